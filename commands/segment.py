"""`kctl segment`: Kafka's log files, read without a broker. Each command beside it has a file of its own."""

from __future__ import annotations

from kctl.commands import segment_dump
from kctl.commands.invocation import CommandGroup

app = CommandGroup("Read, check and repair log files, without a broker.")

app.command("dump")(segment_dump.dump)
