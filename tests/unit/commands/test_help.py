"""Help by the names that people try: --help, -h, and `kctl help …`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from command_tree import every_command
from kctl.commands import app
from kctl.records.decode.decoding import BUILT_IN
from kctl.segment.dump.row_decoders import INTERNAL_TOPICS


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


def test_each_time_says_how_it_is_read_without_a_zone() -> None:
    times = {
        f"{path} {param.opts[0]}": param.help
        for path, command in every_command()
        for param in command.params
        if getattr(param, "metavar", None) in {"TIME", "WHEN"}
    }
    assert len(times) >= 15
    assert [name for name, text in times.items() if "UTC if no zone is given" not in (text or "")] == []


def test_help_of_what_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["help", "topics"]) == 2
    assert "topics" in capsys.readouterr().err


def test_formats_of_watch(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["topic", "watch", "-o", "csv"]) == 2
    assert "topic watch supports only tables" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("topic list", "Output format: table, wide, json, yaml or csv."),
        ("topic offsets", "Output format: table, wide, json, yaml, csv or kafka."),
        ("topic watch", "table, wide or json (one line per interval)."),
        ("zk watch", "table, wide, json or csv."),
        ("cluster export", "json, or yaml."),
        ("consume", "json (JSON Lines; default: text); with --quiet table, wide, json, yaml or csv."),
    ],
)
def test_formats_that_a_command_has(path: str, said: str) -> None:
    command = dict(every_command())[path]
    (option,) = (param for param in command.params if "--output" in param.opts)
    assert option.help == said


def test_all_decoders_are_named_in_help_and_docs() -> None:
    (option,) = (param for param in dict(every_command())["consume"].params if "--decoder" in param.opts)
    page = (Path(__file__).resolve().parents[3] / "docs" / "consume.md").read_text()
    table = page.partition("## Decoders")[2].partition("What a decoder cannot take")[0]
    for name in (*BUILT_IN, *INTERNAL_TOPICS):
        assert re.search(rf"[ :]{name}[,.;]", option.help), name
        assert f"`{name}`" in table, name
