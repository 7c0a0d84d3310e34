"""What `kctl history snapshot` tells of passes as they come, and of places and times that are none. No broker."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kctl.commands.history import snapshot
from kctl.commands.history.options import check_span
from kctl.commands.terminal.invocation import Invocation
from kctl.errors import KctlError, NotFound, OperationFailed, UsageError
from kctl.history.lag.plan import LagRequest, plan_moment
from kctl.history.snapshots.collect import Pass
from kctl.history.snapshots.commit import PassReport, report
from kctl.history.snapshots.passes import oldest_ms
from kctl.history.snapshots.store import create_store, open_store
from kctl.lag.selection import EVERY
from kctl.protocol.error_meanings import error_for
from snapshot_stores import HOUR, compact_all, store_with

DOWN = "broker 1 is down: 4 replicas of it were not read"


def shown(capsys: pytest.CaptureFixture[str], *passes: PassReport) -> tuple[str, str]:
    show = snapshot._pass_printer(cast("Invocation", SimpleNamespace(output=None)))
    for each in passes:
        show(each)
    return cast("tuple[str, str]", tuple(capsys.readouterr()))


def a_report(*failures: str, **more: Any) -> PassReport:
    made = report(HOUR.start_ms, HOUR.start_ms + 900, Pass(failures=list(failures)), stored=True, size_bytes=10)
    return PassReport(**{name: getattr(made, name) for name in PassReport.__slots__} | more)


def test_a_failure_is_told_when_it_begins_and_when_it_ends(capsys: pytest.CaptureFixture[str]) -> None:
    whole, part = a_report(), a_report(DOWN, "x")
    out, err = shown(capsys, whole, part, part, a_report(DOWN, "x", "y"), whole, whole)
    assert [line.partition(" in ")[2] for line in out.splitlines()] == [
        "900ms",
        "900ms, incomplete",
        "900ms, incomplete as before",
        "900ms, incomplete",
        "900ms",
        "900ms",
    ]
    told = [line.partition(": ")[2] or line for line in err.splitlines()]
    assert told[:3] == [DOWN, "x", "y"]
    assert err.count(DOWN) == 1
    assert err.count("broker 1 responds again") == 1
    assert err.count("the pass is complete again") == 1


def test_numbers_are_counted_in_words_that_fit(capsys: pytest.CaptureFixture[str]) -> None:
    why = "writing to the disk of the store took 4s in the previous pass"
    out, err = shown(
        capsys, a_report(group_count=1, partition_count=1200, storing_ms=1100, missed=1, missed_because=why)
    )
    assert "1 group, 0 commits, 1,200 partitions, 10 B in 2s" in out
    assert f"1 pass was skipped before it: {why}" in err


def test_what_an_error_is_of_is_said_once() -> None:
    found = Pass()
    found.failed("partition t-0", OperationFailed("partition t-0: no leader"))
    found.failed("partition t-1", OperationFailed("no leader"))
    assert found.failures == ["partition t-0: no leader", "partition t-1: no leader"]
    assert error_for(78, None, subject="x").details["kafka_error"] == "OFFSET_NOT_AVAILABLE"  # Collector asks for it


@pytest.mark.parametrize(
    ("from_ms", "to_ms", "last", "text"),
    [
        (1000, 1001, "0s", "--last 0s: must be greater than 0"),
        (5000, 1001, None, "is in the future"),
        (5000, 9000, None, "is in the future"),
        (900, 800, None, "ends before it starts"),
    ],
)
def test_times_that_are_none(from_ms: int, to_ms: int, last: str | None, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        check_span(from_ms, to_ms, 1000, last=last)
    check_span(0, 1001, 1000, last="1s")


def test_a_moment_without_snapshots_names_the_times_that_have_some(tmp_path: Path) -> None:
    store = store_with(tmp_path / "s", [60_000, 120_000])
    first = f"{datetime.fromtimestamp(HOUR.start_ms / 1000 + 60, timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
    last = f"{datetime.fromtimestamp(HOUR.start_ms / 1000 + 120, timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
    for _ in range(2):
        assert oldest_ms(store) == HOUR.start_ms + 60_000
        with pytest.raises(NotFound) as caught:
            plan_moment(store.root, HOUR.start_ms - 1, LagRequest(EVERY, EVERY))
        assert caught.value.hint == f"the store has snapshots from {first} to {last}"
        compact_all(store)


@pytest.mark.parametrize("below", ["", "below"])
def test_a_file_is_no_store(tmp_path: Path, below: str) -> None:
    file = tmp_path / "report.html"
    file.write_text("x")
    for make, code in ((open_store, 4), (lambda path: create_store(path, "c"), 2)):
        with pytest.raises(KctlError, match="is not a folder") as caught:
            make(file / below)
        assert caught.value.exit_code == code
    with pytest.raises(UsageError, match="/dev/full is not a folder"):
        create_store(Path("/dev/full"), "c")
