"""kctl history: lag, disks and trends over time. Each command has its own module."""

from __future__ import annotations

from kctl.commands.terminal.invocation import CommandGroup

app = CommandGroup()
app.command_of("snapshot", "kctl.commands.history.snapshot")
app.command_of("lag", "kctl.commands.history.lag")
app.command_of("retention", "kctl.commands.history.retention")
app.command_of("trends", "kctl.commands.history.trends")
app.command_of("report", "kctl.commands.history.report")
