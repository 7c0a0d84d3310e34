"""`kctl topic reassign`: moving partitions. Each command has its own file."""

from __future__ import annotations

from kctl.commands.terminal.invocation import CommandGroup

app = CommandGroup("Plan partition moves and carry them out.")

for _name in ("plan", "show", "apply", "status", "pause", "resume", "cancel", "rollback", "verify"):
    app.command_of(_name, f"kctl.commands.reassign.{_name}")
