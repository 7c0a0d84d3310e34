"""Help by the names that people try: --help, -h, and `kctl help …`."""

from __future__ import annotations

import pytest

from command_tree import every_command
from kctl.commands import app


@pytest.mark.parametrize("path", ["", "topic", "topic list", "broker loggers", "lag"])
def test_all_ways_to_ask_say_the_same(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = path.split()
    said = []
    for argv in ([*words, "--help"], [*words, "-h"], ["help", *words]):
        assert app.main(argv) == 0
        said.append(capsys.readouterr().out)
    assert said[0].startswith(f"Usage: kctl {path}".rstrip())
    assert said[1:] == said[:1] * 2


def test_every_command_has_the_short_name() -> None:
    for path, command in every_command():
        assert command.context_settings["help_option_names"] == ["-h", "--help"], path
        assert not any("-h" in param.opts for param in command.params), path


def test_help_of_what_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["help", "topics"]) == 2
    assert "topics" in capsys.readouterr().err


def test_formats_of_watch(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["topic", "watch", "-o", "csv"]) == 2
    assert "topic watch shows a table" in capsys.readouterr().err
