"""kctl spark: the reports of kctl history, computed by PySpark. Each command has its own module."""

from __future__ import annotations

from kctl.commands.terminal.invocation import CommandGroup

app = CommandGroup()
app.command_of("lag", "kctl.commands.spark.lag")
app.command_of("retention", "kctl.commands.spark.retention")
app.command_of("trends", "kctl.commands.spark.trends")
app.command_of("report", "kctl.commands.spark.report")
app.command_of("warm", "kctl.commands.spark.warm")
app.command_of("bundle", "kctl.commands.spark.bundle")
app.command_of("snapshot", "kctl.commands.spark.snapshot")
