"""The terminal's side of kctl: parse, call the library, render. Imported as kctl.commands."""
