"""What a report says needs a person: which rows are named, how urgent they are, in which words."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Any

import pytest

from kctl.history.report.findings import MAX_FINDINGS, findings
from kctl.history.report.model import (
    FindingKind,
    Gap,
    GroupReport,
    LogDirReport,
    ReportFinding,
    ReportSpan,
    SilentBroker,
    State,
    StatusSpan,
)
from kctl.history.report.verdict import DAY_MS, WEEK_MS, with_verdict
from kctl.history.retention.disk_full import Cause
from report_samples import BUCKETS, FROM, group_report, log_dir_report, partition_status, topic_report

SPAN = ReportSpan(FROM, FROM + timedelta(hours=1), 60_000, BUCKETS, 60, 0, [], 0)
HOUR_MS = 3_600_000


def group(status: State = State.ERR, *, lag: int = 1000, gone: bool = False, **figures: Any) -> GroupReport:
    """Return a group without losses, changed by `figures`."""
    found = group_report("orders-reader", lag, status, gone=gone)
    plain = {"lost": 0, "loss_ms": None, "time_lag_at_least_ms": None} | figures
    return dataclasses.replace(found, now=dataclasses.replace(found.now, **plain))


def log_dir(*, error: str | None = None, **figures: Any) -> LogDirReport:
    """Return a log dir that never fills up, changed by `figures`."""
    found = log_dir_report(1, "/data/1", 10**11, error=error)
    return dataclasses.replace(found, now=dataclasses.replace(found.now, **({"full_ms": None} | figures)))


def of_group(row: GroupReport, partition: str = "STOP", **figures: Any) -> list[ReportFinding]:
    worst = dataclasses.replace(partition_status(row.now.group, "orders", 0, 1), status=partition, **figures)
    return findings(SPAN, [row], [worst], [], [])


def of_log_dirs(*rows: LogDirReport) -> list[ReportFinding]:
    return findings(SPAN, [], [], rows, [])


@pytest.mark.parametrize(
    ("row", "severity", "due_ms"),
    [
        (group(State.OK), None, None),
        (group(State.UNKNOWN), None, None),
        (group(State.WARN), State.WARN, None),
        (group(State.ERR), State.ERR, None),
        (group(State.ERR, loss_ms=DAY_MS), State.ERR, DAY_MS),
        (group(State.WARN, loss_ms=DAY_MS + 1), State.WARN, DAY_MS + 1),
        (group(State.OK, loss_ms=WEEK_MS + 1), None, None),
        (group(State.ERR, gone=True), None, None),
    ],
)
def test_groups_that_are_findings(row: GroupReport, severity: State | None, due_ms: int | None) -> None:
    assert [(each.severity, each.due_ms) for each in of_group(row)] == (
        [] if severity is None else [(severity, due_ms)]
    )


@pytest.mark.parametrize(
    ("figures", "status"),
    [
        ({}, "OK"),
        ({"status": None}, None),
        ({"loss_ms": DAY_MS}, "ERR"),
        ({"loss_ms": 0}, "ERR"),
        ({"loss_ms": DAY_MS + 1}, "WARN"),
        ({"loss_ms": WEEK_MS}, "WARN"),
        ({"loss_ms": WEEK_MS + 1}, "OK"),
        ({"loss_ms": WEEK_MS, "lost": 3}, "ERR"),
        ({"lost": 3}, "OK"),
        ({"status": "WARN"}, "WARN"),
        ({"status": "WARN", "lost": 3}, "ERR"),
        ({"status": "WARN", "loss_ms": DAY_MS}, "ERR"),
        ({"status": None, "loss_ms": DAY_MS}, "ERR"),
        ({"status": "UNKNOWN", "loss_ms": WEEK_MS}, "WARN"),
        ({"status": "STOP", "loss_ms": DAY_MS, "ahead": 1}, "STOP"),
        ({"status": "REWIND"}, "REWIND"),
        ({"ahead": 1}, "ERR"),
        ({"ahead": 0}, "OK"),
        ({"ahead": 1, "standing": "stale"}, "OK"),
        ({"loss_ms": DAY_MS, "standing": "dead"}, "OK"),
    ],
)
def test_one_verdict(figures: dict[str, Any], status: str | None) -> None:
    row = dataclasses.replace(partition_status("g", "t", 0, 1), **({"loss_ms": None, "lost": 0} | figures))
    found = with_verdict(row)
    assert found.status == status
    assert found == dataclasses.replace(row, status=status), "nothing else of the row changes"


@pytest.mark.parametrize(
    ("row", "partition", "what"),
    [
        (group(), "STOP", "commits nothing, 1,000 messages behind"),
        (
            group(time_lag_at_least_ms=60_000),
            "STALL",
            "commits, but its offset does not advance, 1,000 messages behind (1m)",
        ),
        (group(lag=1), "REWIND", "its offset went back, 1 message behind"),
        (
            group(State.WARN, lost=5, loss_ms=HOUR_MS),
            "WARN",
            "falls behind, 1,000 messages behind, 5 messages deleted before they were read, will lose more",
        ),
        (group(State.ERR, lag=7, loss_ms=0), "ERR", "7 messages behind, will lose messages"),
        (
            group(State.ERR, lag=7, loss_ms=0, time_lag_ms=None, time_lag_at_least_ms=4_000),
            "ERR",
            "7 messages behind (>4s), will lose messages",
        ),
        (
            group(State.ERR, lag=0, ahead=1000),
            "ERR",
            "committed offset is 1,000 offsets beyond the end of the log",
        ),
        (
            group(State.ERR, lag=9, ahead=3),
            "STALL",
            (
                "commits, but its offset does not advance,"
                " committed offset is 3 offsets beyond the end of the log, 9 messages behind"
            ),
        ),
    ],
)
def test_the_problem_of_a_group(row: GroupReport, partition: str, what: str) -> None:
    (found,) = of_group(row, partition)
    assert (found.kind, found.name, found.what) == (FindingKind.GROUP, "orders-reader", what)


@pytest.mark.parametrize(
    ("row", "partition", "advice"),
    [
        (group(state="Empty"), "STOP", "the group has no members: start its consumers"),
        (group(), "STOP", "check client client on h: it may hang or fail to commit"),
        (group(), "STALL", "check client client on h: it may be stuck on a message"),
        (group(State.WARN), "WARN", "reads 12/s of 20/s: add or speed up consumers"),
        (group(State.WARN, consumed_per_s=30.0), "WARN", "raise the topics' retention until the group catches up"),
    ],
)
def test_the_advice_for_a_group(row: GroupReport, partition: str, advice: str) -> None:
    (found,) = of_group(row, partition)
    assert found.advice.startswith(advice)


def _gap_in(state: State, first: int) -> list[StatusSpan]:
    """Return a state from a bucket on, with ten buckets without readings and five unknown ones."""
    return [
        StatusSpan(first, 20 - first, state),
        StatusSpan(20, 10, None),
        StatusSpan(30, 5, State.UNKNOWN),
        StatusSpan(35, 25, state),
    ]


@pytest.mark.parametrize(
    ("timeline", "minute", "before_span"),
    [
        ([StatusSpan(0, 30, State.OK), StatusSpan(30, 30, State.ERR)], 30, False),
        ([StatusSpan(0, 30, State.OK), StatusSpan(30, 29, State.ERR), StatusSpan(59, 1, None)], 30, False),
        ([StatusSpan(0, 60, State.ERR)], None, True),
        ([StatusSpan(0, 30, State.ERR), StatusSpan(30, 30, State.OK)], None, False),
        ([StatusSpan(0, 60, None)], None, False),
        ([StatusSpan(0, 9, State.OK), *_gap_in(State.ERR, 9)], 9, False),
        (_gap_in(State.ERR, 0), None, True),
        ([StatusSpan(0, 9, None), *_gap_in(State.ERR, 9)], 9, False),
        ([*_gap_in(State.ERR, 0)[:2], StatusSpan(30, 5, State.OK), StatusSpan(35, 25, State.ERR)], 35, False),
    ],
)
def test_since_when(timeline: list[StatusSpan], minute: int | None, before_span: bool) -> None:
    """Gaps without passes, and passes that could not read a group, do not end its problem."""
    (found,) = of_group(dataclasses.replace(group(), timeline=timeline))
    assert found.before_span == before_span
    assert found.since == (None if minute is None else FROM + timedelta(minutes=minute))


def test_the_advice_after_a_reset_mentions_the_reset() -> None:
    (found,) = of_group(group(state="Empty"), "STOP", worst_status="REWIND")
    assert found.what.startswith("its offset went back, and since then the group commits nothing, ")
    assert found.advice == "check whether the reset was intended; the group has no members: start its consumers"
    (found,) = of_group(group(State.WARN), "WARN", worst_status="REWIND")  # it reads on
    assert found.what.startswith("falls behind, ")


def test_an_open_transaction_that_blocks_a_group() -> None:
    (found,) = of_group(group(), "STALL", lag=7, undecided=7, held_by_transaction=True)
    assert found.what.startswith("waits for an open transaction, ")
    assert "kctl transaction hanging" in found.advice
    held = dataclasses.replace(partition_status("orders-reader", "t", 0, 7), status="STALL", held_by_transaction=True)
    other = dataclasses.replace(held, partition=1, held_by_transaction=False)
    (found,) = findings(SPAN, [group()], [held, other], [], [])
    assert found.what.startswith("commits, but its offset does not advance, ")


def test_causes_of_stale_values_come_first() -> None:
    span = dataclasses.replace(
        SPAN,
        gaps=[
            Gap(FROM, FROM + timedelta(minutes=4), 3, open=False),
            Gap(SPAN.to_at, SPAN.to_at + timedelta(minutes=9), 8, open=True),
        ],
    )
    silent = [SilentBroker(1, FROM + timedelta(minutes=50), 2), SilentBroker(2, None, 0)]
    old = dataclasses.replace(log_dir(full_ms=HOUR_MS), silent_since=silent[0].since)
    offline = log_dir(error="KAFKA_STORAGE_ERROR", log_dir="/lost")
    found = findings(span, [group()], [], [offline, old], [], silent)
    assert [(each.kind.value, each.name) for each in found] == [
        ("collector", "of snapshots"),
        ("broker", "1"),
        ("broker", "2"),
        ("log dir", "/lost"),
        ("group", "orders-reader"),
    ]
    assert {each.severity for each in found} == {State.ERR}
    assert found[0].what == "no snapshots: the last one is 9m old, so all values are stale"
    assert [(each.since, each.before_span) for each in found[:3]] == [
        (SPAN.to_at, False), (silent[0].since, False), (None, True),
    ]  # fmt: skip
    assert found[1].what == "did not respond: 2 log dirs shown with stale values"


CAUSES = [Cause("orders", 10, 0.6, 1.0), Cause(None, 5, 0.3, 1.0), Cause("a", 1, 0.06, 1.0), Cause("b", 1, 0.04, 1.0)]


def test_the_problem_of_a_disk_that_fills_up() -> None:
    (found,) = of_log_dirs(log_dir(full_ms=HOUR_MS, causes=CAUSES))
    assert (found.severity, found.broker, found.name, found.due_ms) == (State.ERR, 1, "/data/1", HOUR_MS)
    assert found.what == ("fills up, 20% of the volume used, growing 1 GB/h, filled by orders 60%, others 30%, a 6%")
    (found,) = of_log_dirs(log_dir(full_ms=0, causes=CAUSES[3:]))
    assert found.what == "is full, 20% of the volume used, growing 1 GB/h, filled by many topics"


@pytest.mark.parametrize(
    ("row", "severity"),
    [
        (log_dir(), None),
        (log_dir(full_ms=DAY_MS), State.ERR),
        (log_dir(full_ms=DAY_MS + 1), State.WARN),
        (log_dir(full_ms=WEEK_MS + 1), None),
        (log_dir(disk_used=0.94), None),
        (log_dir(disk_used=0.95), State.WARN),
        (log_dir(error="KAFKA_STORAGE_ERROR"), State.ERR),
    ],
)
def test_log_dirs_that_are_findings(row: LogDirReport, severity: State | None) -> None:
    assert [each.severity for each in of_log_dirs(row)] == ([] if severity is None else [severity])


def test_one_finding_per_volume_but_one_for_each_offline_log_dir() -> None:
    one = log_dir(full_ms=HOUR_MS, same_volume=["/data/2"])
    other = log_dir(full_ms=HOUR_MS, same_volume=["/data/1"], log_dir="/data/2")
    assert [each.name for each in of_log_dirs(one, other)] == ["/data/1"]
    broken = dataclasses.replace(other, error="KAFKA_STORAGE_ERROR")
    assert [each.name for each in of_log_dirs(one, broken)] == ["/data/2", "/data/1"]


def test_a_stalled_cleaner() -> None:
    now = dataclasses.replace(topic_report("t", 10).now, cleaner_stands_still=True, dirty_ratio_at_least=0.8)
    rows = [topic_report("well", 10), dataclasses.replace(topic_report("t", 10), now=now)]
    (found,) = findings(SPAN, [], [], [], rows)
    assert (found.severity, found.kind, found.name) == (State.WARN, FindingKind.TOPIC, "t")
    assert found.what == "log cleaner is stalled: at least 80% is not compacted"


def test_the_most_urgent_findings_come_first_up_to_a_limit() -> None:
    groups = [
        dataclasses.replace(row, now=dataclasses.replace(row.now, group=name))
        for name, row in {
            "stopped": group(),
            "slow": group(State.WARN),
            "soon": group(State.ERR, loss_ms=HOUR_MS),
            "later": group(State.WARN, loss_ms=2 * DAY_MS),
        }.items()
    ]
    dirs = [log_dir(full_ms=2 * HOUR_MS), log_dir(error="KAFKA_STORAGE_ERROR", log_dir="/lost")]
    found = findings(SPAN, groups, [], dirs, [])
    assert [each.name for each in found] == ["/lost", "soon", "/data/1", "stopped", "later", "slow"]
    assert len(findings(SPAN, [group()] * (MAX_FINDINGS + 5), [], [], [])) == MAX_FINDINGS
