"""The command line of kctl: parse, call the library, render. Imported as kctl.commands."""
