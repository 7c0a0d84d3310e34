"""`kctl segment`: read log files without a broker. Each command has a module in this folder."""

from __future__ import annotations

from kctl.commands.terminal.invocation import CommandGroup

app = CommandGroup()

for _name in ("dump", "find", "stats", "diff", "verify"):
    app.command_of(_name, f"kctl.commands.segment.{_name}")
