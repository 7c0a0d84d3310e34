"""The commands in tables of the index, the cheat sheet and other pages exist, with their options."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from command_tree import every_command

_DOCS = Path(__file__).parents[2] / "docs"
_COMMANDS = {
    line
    for name in ("README.md", "cheat-sheet.md", "troubleshooting.md", "secured-clusters.md")
    for line in re.findall(r"`(kctl [a-z][^`]*)`", (_DOCS / name).read_text())
}


@pytest.mark.parametrize("line", sorted(_COMMANDS))
def test_a_command_exists(line: str) -> None:
    words = shlex.split(line)[1:]
    commands = dict(every_command())
    path = next((" ".join(words[:n]) for n in (3, 2, 1) if " ".join(words[:n]) in commands), None)
    if path is None:  # a group, or its help
        assert any(name.startswith(f"{words[0]} ") for name in commands), line
        return
    options = {option for param in commands[path].params for option in param.opts} | {"--help"}
    assert [word for word in words if word.startswith("--") and word not in options] == []
