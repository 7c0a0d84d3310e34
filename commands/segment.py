"""`kctl segment`: Kafka's log files, read without a broker. Each command beside it has a file of its own."""

from __future__ import annotations

from kctl.commands import segment_diff, segment_dump, segment_find, segment_stats, segment_verify
from kctl.commands.invocation import CommandGroup

app = CommandGroup("Read, check and repair log files, without a broker.")

app.command("dump")(segment_dump.dump)
app.command("find")(segment_find.find)
app.command("stats")(segment_stats.stats)
app.command("diff")(segment_diff.diff)
app.command("verify")(segment_verify.verify)
