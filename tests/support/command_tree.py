"""Every command of kctl, with what its help says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def every_command() -> Iterator[tuple[str, Any]]:
    """«topic list» and its click command, for all that are no groups."""
    from kctl.commands import app

    for name in app.GROUPS:
        yield from _below(name, app.load(name))


def _below(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "commands"):
        yield path, command
        return
    for name in command.commands:
        yield from _below(f"{path} {name}", command.commands[name])


def example_of(command: Any) -> str:
    """The command line behind «Example:», in one line; empty without."""
    _, found, text = (command.help or "").partition("Example:")
    return " ".join(text.split("\n\n")[0].split()) if found else ""
