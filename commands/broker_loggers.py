"""kctl broker loggers."""

from kctl.commands.invocation import CommandGroup

app = CommandGroup("List and set the log levels of brokers.")
