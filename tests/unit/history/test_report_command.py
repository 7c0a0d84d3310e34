"""`kctl spark report` over a store: figures worked out by hand, its page, its refusals. No broker, no Java."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from kctl.commands.app import main
from kctl.history.lag.plan import LagRequest, plan_span
from kctl.history.report.build import report_of
from kctl.history.report.group_series import RowLimits
from kctl.history.report.model import FindingKind, Report
from kctl.history.report.verdict import with_verdict
from kctl.history.snapshots.commit import put_pass
from kctl.history.snapshots.layout import HOUR_MS
from kctl.lag.selection import EVERY, names_of
from report_pages import report_in
from report_samples import FROM
from report_stores import MESSAGE_BYTES, MINUTE_MS, PASSES, START_MS, a_pass, at_ms, end_of, small_cluster
from snapshot_stores import compact_all

pytestmark = pytest.mark.usefixtures("one_command_tree")
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
SPAN = ("--from", "2026-09-21T14:00:00Z", "--to", "2026-09-21T15:00:00Z")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = small_cluster(tmp_path_factory.mktemp("report") / "store")
    compact_all(found)  # a file for each table instead of sixty: the tests are quicker
    return found.root


@pytest.fixture(scope="module")
def report(store: Path) -> Report:
    return _report(store)


def _report(store: Path, wanted: LagRequest | None = None, limits: RowLimits | None = None) -> Report:
    plan = plan_span(store, START_MS, START_MS + HOUR_MS, wanted or LagRequest(EVERY, EVERY))
    return report_of(plan, made_at=FROM, limits=limits or RowLimits())


@pytest.fixture
def run(store: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """run(*options) → exit code, stdout, stderr."""

    def run_(*options: str, span: tuple[str, ...] = SPAN) -> tuple[int, str, str]:
        code = main(["spark", "report", "--store", str(store), *span, *options])
        return code, *capsys.readouterr()

    return run_


# --- figures --------------------------------------------------------------------------------------------------------


def _by_group(report: Report) -> dict[str, Any]:
    return {group.now.group: group for group in report.groups}


def test_the_worst_group_comes_first_and_deleted_groups_last(report: Report) -> None:
    assert [g.now.group for g in report.groups] == ["stopped", "falls-behind", "ghost", "keeps-up", "left"]
    # "falls-behind" is WARN by how its offsets moved, and loses messages within a day.
    assert [g.now.status for g in report.groups] == ["ERR", "ERR", "OK", "OK", "OK"]
    assert [g.gone for g in report.groups] == [False, False, False, False, True]


def test_lag_over_time_is_the_sum_of_partitions_at_its_peak(report: Report) -> None:
    """A bucket of 90 s has one or two passes. The lag of a slow group grows by 2 × 40 per minute."""
    found = _by_group(report)["falls-behind"].lag_over_time
    assert report.span.bucket_ms == 90_000
    last = [max(m for m in range(PASSES) if m * MINUTE_MS // 90_000 == bucket) for bucket in range(40)]
    assert found == [80 * minute for minute in last]
    assert _by_group(report)["keeps-up"].lag_over_time == [0] * 40
    assert _by_group(report)["ghost"].lag_over_time == [None] * 40
    left = _by_group(report)["left"]
    assert left.lag_over_time[:26] == [0] * 26
    assert left.lag_over_time[27:] == [None] * 13


def test_the_timeline_shows_when_a_group_stopped(report: Report) -> None:
    """The last commit, at minute 30, had lag 0. Ten readings later, at minute 40, the group counts as stopped."""
    spans = _by_group(report)["stopped"].timeline
    assert [(s.status, s.first * 1.5) for s in spans] == [("OK", 0), ("ERR", 39)]
    assert sum(s.count for s in spans) == report.span.buckets
    assert {s.status for s in _by_group(report)["ghost"].timeline} == {"OK"}


def test_the_overview_has_totals(report: Report) -> None:
    totals = report.overview
    assert (totals.group_count, totals.groups_ok, totals.groups_warn, totals.groups_err) == (5, 2, 0, 2)
    assert totals.lag == 2 * 40 * 59 + 2 * 100 * 29
    assert totals.replicas_bytes == 8 * end_of(59) * MESSAGE_BYTES
    assert totals.growth_bytes_per_hour == pytest.approx(8 * 100 * 60 * MESSAGE_BYTES)
    assert (totals.broker_count, totals.log_dir_count, totals.offline_log_dirs, totals.topic_count) == (3, 3, 1, 2)
    assert totals.next_loss_ms == min(p.loss_ms for p in report.partitions if p.loss_ms is not None)


def test_disks_and_topics(report: Report) -> None:
    offline = next(row for row in report.log_dirs if row.now.broker == 3)
    assert offline.error == "KAFKA_STORAGE_ERROR"
    assert offline.size_over_time == [None] * 40
    first = next(row for row in report.log_dirs if row.now.broker == 1)
    assert first.size_over_time[-1] == first.now.size_bytes == 4 * end_of(59) * MESSAGE_BYTES
    assert first.size_over_time[0] == 4 * end_of(1) * MESSAGE_BYTES
    topic = report.topics[0]
    assert topic.size_over_time[-1] == topic.now.replicas_bytes
    assert topic.now.retention_ms_used == pytest.approx((HOUR_MS + 59 * MINUTE_MS) / (3 * HOUR_MS))


def test_problems_come_first(report: Report) -> None:
    found = [(each.severity, each.name, each.due_ms) for each in report.findings]
    by_name = {row.now.group: row.now.loss_ms for row in report.groups}
    assert found == [
        ("ERR", "/lost", None),
        ("ERR", "stopped", by_name["stopped"]),
        ("ERR", "falls-behind", by_name["falls-behind"]),
    ]
    stopped = report.findings[1]
    assert stopped.what == "commits nothing, 5,800 messages behind (29m), will lose messages"
    assert stopped.advice == "the group has no members: start its consumers"
    assert stopped.since == report.span.from_at + timedelta(minutes=39)


def test_unread_messages_when_a_disk_is_full(tmp_path: Path) -> None:
    """Broker 2 is full before retention deletes anything: 100,000 B per partition and minute."""
    few = small_cluster(tmp_path / "store", passes=20, volume_bytes=4 * end_of(19) * MESSAGE_BYTES + 4_000_000)
    found = _report(few.root)
    (full,) = [row for row in found.log_dirs if row.now.full_ms is not None]
    assert full.now.broker == 2
    assert full.now.full_ms == pytest.approx(10 * MINUTE_MS, rel=0.01)
    assert [row.group for row in found.losses] == ["falls-behind"]
    assert found.losses[0].unread == pytest.approx(2 * 40 * (19 + 10), rel=0.05)
    assert found.losses[0].sole == 0
    assert [(each.name, each.broker) for each in found.findings[:2]] == [("/lost", 3), ("/data", 2)]
    assert "filled by" in found.findings[1].what
    assert _report(few.root, LagRequest(names_of(["keeps-up"]), EVERY)).losses == []


def test_values_equal_those_of_the_lag_report(store: Path, report: Report) -> None:
    from kctl.history.evaluate.group_ranges import EVERY_GROUP
    from kctl.history.lag.rows import partition_rows

    plan = plan_span(store, START_MS, START_MS + HOUR_MS, LagRequest(EVERY, EVERY))
    rows = [row for rows in partition_rows(plan.query, EVERY_GROUP, []) for row in rows]
    assert sorted(map(repr, map(with_verdict, rows))) == sorted(map(repr, report.partitions))


def test_counts_groups_and_findings_use_the_same_status(report: Report) -> None:
    by_group = {group.now.group: group.now.status for group in report.groups if not group.gone}
    named = {each.name: each.severity.value for each in report.findings if each.kind is FindingKind.GROUP}
    assert named == {name: status for name, status in by_group.items() if status in {"ERR", "WARN"}}
    totals = report.overview
    assert (totals.groups_err, totals.groups_warn, totals.groups_ok) == tuple(
        list(by_group.values()).count(status) for status in ("ERR", "WARN", "OK")
    )
    assert {row.status for row in report.partitions if row.group == "falls-behind"} == {"ERR"}
    assert {row.burrow_status for row in report.partitions if row.group == "falls-behind"} == {"WARN"}


def test_limits_apply_to_lists_but_not_to_the_overview(store: Path, report: Report) -> None:
    few = _report(store, limits=RowLimits(groups=1, partitions=2, topics=1))
    assert few.overview == report.overview
    assert [g.now.group for g in few.groups] == ["stopped"]
    assert few.groups[0] == report.groups[0]
    assert few.partitions == report.partitions[:2]
    assert len(few.topics) == 1


def test_globs_select_groups_and_topics(store: Path) -> None:
    some = _report(store, LagRequest(names_of(["*e*", "!ghost"]), names_of(["orders"])))
    assert sorted(_by_group(some)) == ["falls-behind", "keeps-up", "left", "stopped"]
    assert [row.now.topic for row in some.topics] == ["orders"]
    assert _by_group(some)["stopped"] == _by_group(_report(store))["stopped"]


def test_a_single_pass_gives_no_status(tmp_path: Path) -> None:
    """There is none in the table and none in the timeline."""
    found = _report(small_cluster(tmp_path / "store", passes=1).root)
    assert {row.now.status for row in found.groups} == {None}
    assert {span.status for row in found.groups for span in row.timeline} == {"UNKNOWN"}
    assert found.overview.groups_unknown == 5
    assert [each.name for each in found.findings] == ["/lost"]


def test_incomplete_passes_have_reasons(tmp_path: Path) -> None:
    store = small_cluster(tmp_path / "store", passes=12)
    part = a_pass(12)
    part.failed("broker 3: connection refused")
    put_pass(store, at_ms(12), at_ms(12) + 50, part)
    found = _report(store.root)
    assert (found.span.passes, found.span.incomplete) == (13, 1)
    assert found.span.failures == ["broker 3: connection refused"]
    assert len([text for text in found.lacking if "connection refused" in text]) == 1


def test_a_dead_broker_is_named_and_its_values_are_marked(tmp_path: Path) -> None:
    store = small_cluster(tmp_path / "store", passes=12)
    for minute in (12, 13):
        part = a_pass(minute)
        part.failed("broker 2 is down: 4 replicas of it were not read")
        for table in ("replicas", "log_dirs"):
            part.rows[table] = [row for row in part.rows[table] if row[0] != 2]
        put_pass(store, at_ms(minute), at_ms(minute) + 50, part, interval_ms=MINUTE_MS)
    found = _report(store.root)
    died = EPOCH + timedelta(milliseconds=at_ms(12))
    assert [(each.broker, each.since, each.log_dir_count) for each in found.silent_brokers] == [(2, died, 1)]
    assert [(each.kind.value, each.name, each.since) for each in found.findings[:1]] == [("broker", "2", died)]
    assert {row.now.broker: row.silent_since for row in found.log_dirs} == {1: None, 2: died, 3: None}


def test_a_gap_is_reported_and_ends_no_alarm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An alarm since minute 40, and no snapshots from minute 46 to 50."""
    store = small_cluster(tmp_path / "store")
    for minute in range(46, 50):
        for file in store.root.glob(f"*/date=*/hour=*/pass-{at_ms(minute)}.parquet"):
            file.unlink()
    found = _report(store.root)
    assert [(each.passes, each.open) for each in found.span.gaps] == [(4, False)]
    stopped = next(each for each in found.findings if each.name == "stopped")
    assert stopped.since is not None
    assert (stopped.since - found.span.from_at) < timedelta(minutes=41)
    code = main(["spark", "report", "--store", str(store.root), *SPAN])
    out = capsys.readouterr().out
    assert code == 0
    assert re.search(
        r"^incomplete +no snapshots from 09-21 14:45:00 to 14:50:00 \(5m\): 4 passes missing$", out, re.MULTILINE
    )


def test_an_alarm_since_before_the_span(run: Callable[..., tuple[int, str, str]]) -> None:
    _, out, _ = run(span=("--from", "2026-09-21T14:50:00Z", "--to", "2026-09-21T15:00:00Z"))
    assert re.search(r"^ERR +group stopped .* before 09-21 14:50 ", out, re.MULTILINE)


def test_a_missing_table_is_one_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = small_cluster(tmp_path / "store", passes=12)
    shutil.rmtree(store.root / "commits")
    code = main(["spark", "report", "--store", str(store.root), *SPAN])
    out, err = capsys.readouterr()
    assert code == 5
    assert err.count("commits is missing") == err.count("commits/") + 1 == 1
    assert re.search(r"^groups +unknown", out, re.MULTILINE)


# --- the command ----------------------------------------------------------------------------------------------------


def test_tables(run: Callable[..., tuple[int, str, str]]) -> None:
    code, out, err = run()
    assert (code, err) == (0, "")
    assert re.search(r"^ERR +log dir /lost on broker 3 +is offline: KAFKA_STORAGE_ERROR +- +-$", out, re.MULTILINE)
    assert re.search(r"^lag +10,520 messages$", out, re.MULTILINE)
    assert re.search(r"^stopped +ERR +5800 +\S{12} +\.{8}E{4} ", out, re.MULTILINE)
    code, out, _ = run("-o", "wide")
    assert re.search(r"^stopped +ERR +ERR +Empty +5800 +\S{24} +\.+E+ ", out, re.MULTILINE)
    assert re.search(r"^left .* \.{17} {7} ", out, re.MULTILINE)
    assert "KAFKA_STORAGE_ERROR" in out


def test_json_is_the_report(run: Callable[..., tuple[int, str, str]]) -> None:
    code, out, _ = run("-o", "json")
    found = json.loads(out)
    assert code == 0
    assert found["span"]["from_at"] == "2026-09-21T14:00:00.000Z"
    assert found["groups"][0]["timeline"][1] == {"first": 26, "count": 14, "status": "ERR"}


def test_the_page(run: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text("what was there before")
    code, out, err = run("--html", str(file))
    assert (code, out) == (4, "")
    assert "Replace it?" in err
    assert file.read_text() == "what was there before"
    code, out, err = run("--html", str(file), "--yes")
    assert code == 0
    assert "falls-behind" in out
    assert err == f"written to {file}\n"
    text = file.read_text()
    assert text.startswith("<!DOCTYPE html>")
    assert report_in(text)["groups"][0]["now"]["group"] == "stopped"
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert run("--html", str(file))[0] == 0, "its own page is made anew without a question"


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        (("-o", "csv"), 2, "a report has several tables and cannot be written as CSV"),
        (("--html", "/nowhere/report.html"), 2, "the folder /nowhere does not exist"),
        (("--last", "1h"), 2, "do not go together"),
        (("--conf", "spark.ui.enabled=true"), 2, "need --master"),
        (("--driver-memory", "2g"), 2, "need --master"),
        (("--master", "mesos://h:5050"), 2, "mesos"),
        (("--group", "nobody"), 4, "group 'nobody' does not exist"),
    ],
)
def test_refused(run: Callable[..., tuple[int, str, str]], options: tuple[str, ...], code: int, text: str) -> None:
    found, out, err = run(*options)
    assert (found, out) == (code, "")
    assert text in err


@pytest.mark.parametrize(
    ("span", "code", "text"),
    [
        (("--to", "2026-09-21T15:00:00Z"), 2, "--to needs --from"),
        (("--from", "2026-09-21T15:00:00Z", "--to", "2026-09-21T14:00:00Z"), 2, "ends before it starts"),
        (("--from", "2026-09-22T15:00:00Z", "--to", "2026-09-22T16:00:00Z"), 4, "has no snapshots from"),
    ],
)
def test_invalid_times(run: Callable[..., tuple[int, str, str]], span: tuple[str, ...], code: int, text: str) -> None:
    found, out, err = run(span=span)
    assert (found, out) == (code, "")
    assert text in err


def test_a_damaged_file_is_named_in_the_page_and_sets_the_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = small_cluster(tmp_path / "store", passes=12)
    folder = next((store.root / "commits").glob("date=*/hour=*"))
    broken = folder / f"pass-{at_ms(5)}.parquet"
    broken.write_bytes(b"PAR1" + b"\0" * 100 + b"PAR1")
    file = tmp_path / "report.html"
    code = main(["spark", "report", "--store", str(store.root), *SPAN, "--html", str(file)])
    out, err = capsys.readouterr()
    assert code == 5
    assert "stopped" in out
    assert broken.name in err
    assert broken.name in file.read_text()
