"""`kctl history lag`: its options, what it shows, its limits and exit codes. `kctl spark lag` differs in its engine."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kctl.commands.app import main
from kctl.commands.history import lag as history_lag
from kctl.commands.history.lag_view import lag_tables
from kctl.commands.terminal.output_tables import cells_of
from kctl.commands.terminal.table_layout import Cells, fit
from kctl.history.evaluate.group_ranges import GroupRange
from kctl.history.lag import evaluate
from kctl.history.lag.request import LagQuery
from kctl.history.lag.status_rows import PartitionStatus
from kctl.history.lag.window import MINUTE_MS
from kctl.history.snapshots import schema
from kctl.history.snapshots.collect import Pass, Rows
from kctl.history.snapshots.commit import put_pass
from kctl.history.snapshots.store import create_store
from kctl.lag.gate import By

Run = Callable[..., tuple[int, str, str]]
PASSES = 15
NOW = time.time_ns() // 1_000_000


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """`kctl history lag …`: exit code, stdout, stderr."""
    monkeypatch.setattr(history_lag, "_now_ms", lambda: NOW)  # whenever this module's turn is

    def call(*args: str) -> tuple[int, str, str]:
        code = main(["history", "lag", *args])
        out, err = capsys.readouterr()
        return code, out, err

    return call


GROUPS = {"keeps-up": 10, "slow": 5, "stopped": 0}  # messages read a minute; ten are written


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A quarter of an hour until now."""
    found = create_store(tmp_path_factory.mktemp("store") / "s", "c")
    for number in range(PASSES):
        at_ms = NOW - (PASSES - number) * MINUTE_MS
        end = 1000 + 10 * number
        rows: Rows = {
            schema.COMMITS: [
                (group, "t", 0, 1000 + rate * number, 0, end, 3, "id", False) for group, rate in GROUPS.items()
            ],
            schema.GROUPS: [(group, "Empty", "classic", "consumer", 0, 1) for group in GROUPS],
            schema.LOGS: [("t", 0, "id", 1, 3, 0, end, end, NOW - 60 * MINUTE_MS)],
            schema.REPLICAS: [(1, "/d", "t", 0, 10 * end, 0, False)],
            schema.CONFIGS: [("t", "delete", 3_600_000, -1, 10, 10, 10, 10, 10, 0.5)],
        }
        put_pass(found, at_ms, at_ms + 50, Pass(rows=rows))
    return found.root


def test_a_table(run: Run, store: Path) -> None:
    code, out, err = run("--store", str(store), "--last", "30m")
    assert (code, err) == (0, "")
    heading, *lines = out.splitlines()
    assert " ".join(heading.split()) == "GROUP TOPIC PART STATE STATUS LAG LOST TIME LAG CAUGHT UP IN LOSS IN"
    assert all(len(line) <= 80 for line in (heading, *lines))
    code, out, err = run("--store", str(store), "--last", "30m", "-o", "wide")
    assert (code, err) == (0, "")
    heading, *lines = out.splitlines()
    assert heading.split()[:6] == ["GROUP", "TOPIC", "PART", "STATE", "STATUS", "COMMITTED"]
    cells = {line.split()[0]: line.split() for line in lines}
    assert {name: row[4] for name, row in cells.items()} == {"keeps-up": "OK", "slow": "WARN", "stopped": "STOP"}
    assert "TIME LAG" in heading
    assert "BEFORE" in heading
    code, out, _ = run("--store", str(store), "--at", str(NOW - MINUTE_MS), "-o", "wide")
    assert "BEFORE" not in out.splitlines()[0]  # a moment has nothing before it
    assert "CLIENT" not in heading  # nobody is there


def test_json_has_every_key(run: Run, store: Path) -> None:
    code, out, _ = run("--store", str(store), "--last", "30m", "-o", "json", "--group", "slow")
    (row,) = json.loads(out)
    assert code == 0
    assert len(row) == 36
    assert (row["group"], row["status"], row["lag"], row["lag_before"], row["readings"]) == ("slow", "WARN", 70, 0, 15)
    assert row["consumed_per_s"] == pytest.approx(5 / 60)
    assert row["produced_per_s"] == pytest.approx(10 / 60)
    assert row["time_lag_ms"] == 7 * MINUTE_MS
    assert row["deletion_ms"] == 53 * MINUTE_MS
    assert row["loss_ms"] == 106 * MINUTE_MS
    assert row["at"].endswith("Z")


def test_a_loss_right_now_is_shown() -> None:
    """A column is left out when nobody has a value, not when all have 0."""
    row = {field.name: None for field in dataclasses.fields(PartitionStatus)}
    shown = dataclasses.replace(PartitionStatus(**row), loss_ms=0, undecided=0)  # type: ignore[arg-type]
    (table,) = lag_tables([shown], By.PARTITION)
    titles = [column.title for column in table.columns]
    assert "LOSS IN" in titles
    assert "UNDECIDED" not in titles
    assert "DELETED IN" not in titles
    assert [column.show and column.show(0) for column in table.columns if column.title == "LOSS IN"] == ["now"]


def test_names_are_whole_at_80_columns() -> None:
    row = {field.name: None for field in dataclasses.fields(PartitionStatus)}
    figures = {"lag": 1_234_567, "lost": 12, "undecided": 3, "time_lag_ms": 6_100_000, "catch_up_ms": 0, "loss_ms": 0}
    names = {"group": '<b>x</b>" ünï', "topic": "eu/payments"}
    status = {"partition": 11, "state": "Stable", "status": "STALL", "standing": "active"}
    (table,) = lag_tables([PartitionStatus(**row | figures | names | status)], By.PARTITION)  # type: ignore[arg-type]
    (texts,) = cells_of(table)
    cells = [
        Cells(column.title, [text], breakable=column.align == "left", whole=column.name)
        for column, text in zip(table.columns, texts, strict=True)
    ]
    fitted = fit(cells, 80)
    assert fitted.width <= 80
    assert fitted.widths[:2] == [len(names["group"]), len(names["topic"])]


def test_who_is_held_up_by_an_open_transaction_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    row = {field.name: None for field in dataclasses.fields(PartitionStatus)}
    held, well = (
        PartitionStatus(**row | {"group": "g", "topic": "t", "partition": 3, "held_by_transaction": is_held})  # type: ignore[arg-type]
        for is_held in (True, False)
    )
    plan: Any = SimpleNamespace(notes=(), silent=())
    history_lag._remarks(plan, [well], [], [well])
    assert capsys.readouterr().err == ""
    history_lag._remarks(plan, [well, held, held], [], [well, held, held])
    said = " ".join(capsys.readouterr().err.split())
    assert said.startswith("group g, t, partition 3, and 1 more: an open transaction blocks all unread messages")


def test_csv_and_by_group(run: Run, store: Path) -> None:
    code, out, _ = run("--store", str(store), "--last", "30m", "-o", "csv", "--by", "group")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == 0
    assert [(row["group"], row["status"], row["partition_count"]) for row in rows] == [
        ("keeps-up", "OK", "1"), ("slow", "WARN", "1"), ("stopped", "ERR", "1"),
    ]  # fmt: skip


def test_the_worst(run: Run, store: Path) -> None:
    code, out, err = run("--store", str(store), "--last", "30m", "-o", "json", "--worst", "2")
    assert code == 0
    assert [row["group"] for row in json.loads(out)] == ["stopped", "slow"]
    assert err == "showing 2 of 3 rows\n"


@pytest.mark.parametrize(
    ("limits", "code", "text"),
    [
        (["ERR"], 1, "1 partition is ERR: group stopped, t, partition 0 is STOP"),
        (["WARN"], 1, "2 partitions are WARN or worse: group stopped, t, partition 0 is STOP"),
        (["STALL"], 0, ""),
        (["lag>140"], 0, ""),
        (["lag>70"], 1, "1 partition is over lag>70: group stopped, t, partition 0 has lag 140"),
        (["time-lag>6m"], 1, "2 partitions are over time-lag>6m: group stopped, t, partition 0 has time lag 14m"),
        (["loss<1h"], 1, "1 partition is over loss<1h: group stopped, t, partition 0 has loss 46m"),
        (["loss<1m", "lag>69"], 1, "2 partitions are over lag>69"),
        (["WARN", "lag>100"], 1, "warning: 1 partition is over lag>100"),
    ],
)
def test_limits_make_exit_code_1(run: Run, store: Path, limits: list[str], code: int, text: str) -> None:
    options = [option for limit in limits for option in ("--fail-on", limit)]
    found, out, err = run("--store", str(store), "--last", "30m", *options)
    assert (found, text in err) == (code, True), err
    assert "keeps-up" in out


def test_limits_as_json(run: Run, store: Path) -> None:
    options = ("--fail-on", "ERR", "--fail-on", "lag>1", "-o", "json")
    code, _, err = run("--store", str(store), "--last", "30m", *options)
    told = json.loads(err.splitlines()[-1])
    assert (code, told["code"], told["limits"]) == (1, "not_healthy", {"ERR": 1, "lag>1": 2})


def test_max_lag_is_that_of_kctl_lag(run: Run, store: Path) -> None:
    code, _, err = run("--store", str(store), "--last", "30m", "--max-lag", "100")
    assert (code, "over the limit of 100" in err) == (1, True)


def test_explanations(run: Run, store: Path) -> None:
    code, out, _ = run("--store", str(store), "--last", "30m", "--explain", "--worst", "1")
    assert code == 0
    assert "group stopped, t, partition 0" in out
    assert "log end 1140 − max(committed 1000, log start 0) = 140" in out
    code, out, _ = run("--store", str(store), "--last", "30m", "--explain", "--worst", "1", "-o", "json")
    (row,) = json.loads(out)
    assert {"name": "lag", "text": "log end 1140 − max(committed 1000, log start 0) = 140"} in row["explain"]


def test_a_moment(run: Run, store: Path) -> None:
    at_ms = NOW - 10 * MINUTE_MS
    code, out, _ = run("--store", str(store), "--at", str(at_ms), "-o", "json", "--group", "slow")
    assert code == 0
    assert json.loads(out)[0]["lag"] == 25  # five minutes after it began
    code, out, _ = run("--store", str(store), "--at", str(at_ms - 1), "-o", "json", "--group", "slow")
    assert json.loads(out)[0]["lag"] == 20
    code, _, err = run("--store", str(store), "--at", "2020-01-01")
    assert (code, "has no snapshots" in err) == (4, True)


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (("--last", "15m"), "--last needs --store"),
        (("--at", "-5m"), "--at needs --store"),
        (("--from", "-5m"), "--from needs --store"),
        (("--to", "-5m"), "--to needs --from"),
        (("--now", "--at", "-5m", "--store", "x"), "--now and --at do not go together"),
        (("--last", "5m", "--from", "-5m", "--store", "x"), "--last and --from do not go together"),
        (("--store", "x", "--at", "soon"), "is not a time"),
        (("--store", "x", "--last", "long"), "is not a duration"),
        (("--store", "x", "--last", "0s"), "--last 0s: must be greater than 0"),
        (("--store", "x", "--from", "2100-01-01"), "is in the future"),
        (("--store", "x", "--from", "-5m", "--to", "-10m"), "ends before it starts"),
        (("--store", "mesos://host/x", "--last", "5m"), "cannot read stores at mesos://"),
        (("--store", "s3a://key:secret@bucket/x", "--last", "5m"), "contains credentials"),
        (("--observe", "5s", "--store", "x", "--last", "5m"), "--observe needs the live cluster"),
        (("--observe", "1h"), "at most 10m"),
        (("--fail-on", "lag"), "is not a limit"),
        (("--fail-on", "STOP", "--by", "group"), "a group is OK, WARN or ERR"),
        (("--explain", "--by", "topic"), "--explain works with --by partition only"),
        (("--window", "1"), "--window"),
        (("--lookback", "far"), "is not a duration"),
        (("--state", "Sleepy"), "'sleepy' is not a group state"),
        (("-o", "parquet"), "is not a format"),
    ],
)
def test_bad_options_are_told_at_once(run: Run, args: tuple[str, ...], text: str) -> None:
    code, out, err = run(*args)
    assert (code, out) == (2, "")
    assert text in err


def test_a_store_beside_us(run: Run, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks have working directories of their own."""
    monkeypatch.chdir(store.parent)
    asked: list[str | None] = []

    def read(query: LagQuery, _groups: GroupRange) -> tuple[list[Any], list[str]]:
        asked.append(query.store)
        return [], []

    monkeypatch.setattr(evaluate, "_read_range", read)
    code, _, _ = run("--store", store.name, "--last", "30m")
    assert (code, asked) == (0, [str(store)])


def test_no_store(run: Run, tmp_path: Path) -> None:
    code, _, err = run("--store", str(tmp_path), "--last", "5m")
    assert (code, "is not a snapshot store" in err) == (4, True)


def test_names_from_outside_do_not_steer_the_terminal(run: Run, tmp_path: Path) -> None:
    found = create_store(tmp_path / "s", "c")
    evil = "g\x1b[31m\n"
    rows: Rows = {schema.COMMITS: [(evil, "t", 0, 5, 0, 9, 3, "id", False)]}
    put_pass(found, NOW - MINUTE_MS, NOW - MINUTE_MS, Pass(rows=rows, failures=["broker \x1b[2J 1"]))
    code, out, err = run("--store", str(found.root), "--last", "30m", "--explain")
    assert code == 5
    assert "\x1b" not in out + err
    assert "is incomplete: broker" in err
    code, _, err = run("--store", str(found.root), "--last", "30m", "--fail-on", "lag>1")
    assert code == 1
    assert "warning: the result is incomplete: the snapshot of" in " ".join(err.split())


# --- gates ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def odd_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Groups of one topic: one that has read everything, one that has committed more than there is, one that has
    committed nothing, and a share group."""
    found = create_store(tmp_path_factory.mktemp("odd") / "s", "c")
    kinds = {"there": "classic", "ahead": "classic", "silent": "classic", "shared": "share"}
    for number in range(PASSES):
        rows: Rows = {
            schema.COMMITS: [
                ("ahead", "t", 0, 500, 0, 9, 3, "id", False), ("there", "t", 0, 9, 0, 9, 3, "id", False),
            ],
            schema.GROUPS: [(group, "Empty", kind, "consumer", 0, 1) for group, kind in sorted(kinds.items())],
            schema.LOGS: [("t", 0, "id", 1, 3, 0, 9, 9, NOW - 60 * MINUTE_MS)],
        }  # fmt: skip
        put_pass(found, NOW - (PASSES - number) * MINUTE_MS, NOW - (PASSES - number) * MINUTE_MS + 50, Pass(rows=rows))
    return found.root


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        # What fits, and is well.
        ("--group there --max-lag 0", 0, ""),
        ("--match th.re --max-lag 0 --fail-on lag>0 --fail-on WARN", 0, ""),
        # Nothing that fits: with or without a limit.
        ("--group billing-.* --fail-on lag>0", 4, "no group matches billing-.*"),
        ("--group billing-.* --fail-on lag>0", 4, "for a regular expression use --match 'billing-.*'"),
        ("--match billing-.* --fail-on lag>0", 4, "no group matches billing-.*"),
        ("--match billing-.*", 4, "no group matches billing-.*"),
        ("--match th* --max-lag 0", 4, "did you mean 'th.*'?"),
        ("--group billing-*", 4, "no group matches billing-*"),
        ("--group billing --max-lag 0", 4, "group 'billing' does not exist"),
        ("--group there --topic x* --fail-on ERR", 1, "it is unknown for group there"),
        ("--group there --topic x*", 4, "no topic matches x*"),
        ("--topic x* --fail-on ERR", 5, "share group shared is skipped"),
        ("--topic x* --match there|ahead", 4, "no group matches there|ahead"),
        ("--group there --state dead --max-lag 0", 1, "it is unknown for group there"),
        ("--match ( --max-lag 0", 2, "is not a valid regular expression"),
        # Committed beyond the end of the log.
        ("--group ahead --max-lag 1000000", 1, "491 beyond the end of the log"),
        ("--group ahead --fail-on lag>1000000", 1, "has committed 491 beyond the end of the log"),
        ("--group ahead --by group --fail-on lag>0", 1, "has committed 491 beyond"),
        ("--group ahead", 0, "committed 500, but the log ends at 9"),
        # Nothing is known of what was named.
        ("--group silent --max-lag 0", 1, "it is unknown for group silent"),
        ("--group silent --group there --fail-on lag>0", 1, "it is unknown for group silent"),
        # Share groups: not in snapshots.
        ("--group shared --max-lag 0", 5, "share group shared is skipped; show its lag with `kctl lag`"),
        ("--match shared", 5, "share group shared"),
        ("--match there|shared --max-lag 0", 5, "share group shared"),
        ("--match there|shared|ahead --max-lag 0", 1, "share group shared"),
        ("--max-lag 1000 --match there|silent|shared", 5, "share group shared"),
    ],
)
def test_a_gate_does_not_pass_on_nothing(run: Run, odd_store: Path, options: str, code: int, text: str) -> None:
    found, _, err = run("--store", str(odd_store), "--last", "30m", *options.split())
    assert (found, text in err) == (code, True), err


def test_share_groups_that_nobody_asked_for_are_a_note(run: Run, odd_store: Path) -> None:
    code, out, err = run("--store", str(odd_store), "--last", "30m")
    assert (code, "share groups are skipped; show their lag with `kctl lag`: shared" in err) == (0, True)
    assert "there" in out
