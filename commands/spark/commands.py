"""kctl spark: lag and retention usage, computed by PySpark. Each command has a module of its own."""

from __future__ import annotations

from kctl.commands.terminal.invocation import CommandGroup

app = CommandGroup("Compute lag and retention usage with PySpark.")
app.command_of("lag", "kctl.commands.history.lag")
app.command_of("retention", "kctl.commands.history.retention")
app.command_of("trends", "kctl.commands.history.trends")
app.command_of("report", "kctl.commands.history.report")
app.command_of("warm", "kctl.commands.spark.warm")
app.command_of("bundle", "kctl.commands.spark.bundle")
app.command_of("snapshot", "kctl.commands.history.snapshot")
