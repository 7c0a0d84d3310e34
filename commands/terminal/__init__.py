"""Shared parts of all commands: options, tables and other output, confirmation, progress."""
