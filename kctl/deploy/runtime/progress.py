"""How a long step of deployment tells how far it is."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """What is told while an installation runs; `kctl.commands.terminal.output.progress` is one."""

    def update(self, message: str, done: float | None = None, total: float | None = None) -> None: ...
