"""kctl quorum: show and change the voters of the metadata quorum (KRaft)."""

from __future__ import annotations

from kctl.commands.terminal.invocation import CommandGroup

app = CommandGroup()
app.command_of("status", "kctl.commands.quorum.status")
app.command_of("add", "kctl.commands.quorum.change")
app.command_of("remove", "kctl.commands.quorum.change")
app.command_of("convert", "kctl.commands.quorum.convert")
app.command_of("recover", "kctl.commands.quorum.recover")
