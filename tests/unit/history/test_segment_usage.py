"""What log dirs' files tell of retention and compaction, on folders built here; and the command that shows it."""

from __future__ import annotations

import json
import os
from dataclasses import fields
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kctl.__main__ import main
from kctl.errors import NotFound, UsageError
from kctl.history.retention.segment_usage import (
    CleanerRow,
    SegmentRequest,
    SegmentRow,
    log_folders,
    read_segments,
    topics_of,
)
from kctl.history.snapshots import schema
from kctl.history.snapshots.collect import Pass
from kctl.history.snapshots.store import create_store
from kctl.lag.log_config import LogConfig
from kctl.segment.log.segment_retention import DeletionReason, Pin
from segment_files import BASE_TIMESTAMP, Rec, batch
from snapshot_stores import put

HOUR = 3_600_000
NOW = BASE_TIMESTAMP + 100 * HOUR


def log(log_dir: Path, name: str, *hours: float | None, keys: int = 5) -> Path:
    """A log of ten records a segment; hours: the age of each one's records and file, negative: in the future."""
    folder = log_dir / name
    folder.mkdir(parents=True)
    for number, age in enumerate(hours):
        at = NOW - int((age or 0) * HOUR)
        recs = [Rec(key=b"key-%d" % (i % keys), timestamp=0) for i in range(10)]
        path = folder / f"{number * 10:020d}.log"
        path.write_bytes(batch(number * 10, recs, base_timestamp=at))
        os.utime(path, (at / 1000,) * 2)
    return folder


def checkpoint(log_dir: Path, name: str, offsets: dict[str, int], age_s: float = 0) -> None:
    lines = [f"{topic.rpartition('-')[0]} {topic.rpartition('-')[2]} {offset}" for topic, offset in offsets.items()]
    path = log_dir / name
    path.write_text("\n".join(["0", str(len(lines)), *lines, ""]))
    os.utime(path, (NOW / 1000 - age_s,) * 2)


def configs(**policies: dict[str, Any]) -> dict[str, LogConfig]:
    return {topic: LogConfig(topic, **{"cleanup_policy": "delete", **own}) for topic, own in policies.items()}


def test_segments_that_go_and_what_keeps_others(tmp_path: Path) -> None:
    log(tmp_path, "old-0", 30, 20, 0)
    log(tmp_path, "future-0", 30, -9999, 20, 0)
    log(tmp_path, "behind-0", 30, 20, 0)
    log(tmp_path, "many-0", 3, 2, 1, 0)
    log(tmp_path, "gone-0.11111111111111111111111111111111-delete", 30)
    checkpoint(tmp_path, "replication-offset-checkpoint", {"behind-0": 5, "old-0": 30, "future-0": 40, "many-0": 40})
    day = {"retention_ms": 10 * HOUR, "retention_bytes": -1}
    size = (tmp_path / "many-0" / f"{0:020d}.log").stat().st_size
    known = configs(old=day, future=day, behind=day, gone=day, many={"retention_ms": -1, "retention_bytes": 2 * size})
    folders = log_folders([tmp_path])
    assert topics_of(folders) == {"old", "future", "behind", "many"}
    found = read_segments(folders, SegmentRequest(known, NOW))
    assert (found.logs, found.segments_seen, found.failures) == (4, 14, [])
    rows = {(row.topic, row.base_offset): row for row in found.segments}
    assert {key: (row.reason, row.pinned_by, row.pinned_by_segment, row.expired) for key, row in rows.items()} == {
        ("old", 0): (DeletionReason.RETENTION_MS, None, None, True),
        ("old", 10): (DeletionReason.RETENTION_MS, None, None, True),
        ("future", 0): (DeletionReason.RETENTION_MS, None, None, True),
        ("future", 10): (None, Pin.FUTURE_TIMESTAMP, None, False),
        ("future", 20): (None, Pin.EARLIER_SEGMENT, 10, True),
        ("future", 30): (None, Pin.EARLIER_SEGMENT, 10, False),
        ("behind", 0): (None, Pin.HIGH_WATERMARK, None, True),
        ("behind", 10): (None, Pin.HIGH_WATERMARK, None, True),
        ("many", 0): (DeletionReason.RETENTION_BYTES, None, None, False),
        ("many", 10): (DeletionReason.RETENTION_BYTES, None, None, False),
    }
    assert all(row.log_dir == str(tmp_path.resolve()) for row in found.segments)


def test_what_the_cleaner_has_before_it(tmp_path: Path) -> None:
    log(tmp_path, "dirty-0", 4, 3, 2, 1)
    log(tmp_path, "clean-0", 4, 3, 2, 1)
    log(tmp_path, "deleted-0", 4, 3, 2, 1)
    checkpoint(tmp_path, "cleaner-offset-checkpoint", {"dirty-0": 10, "clean-0": 30}, age_s=3600)
    compact = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": 0.5}
    known = configs(dirty=compact, clean=compact, deleted={})
    found = read_segments(
        log_folders([tmp_path]), SegmentRequest(known, NOW, cleaner=True, keys=True, buffer_bytes=24 * 4)
    )
    assert [row.topic for row in found.cleaner] == ["dirty", "clean"]
    row, clean = found.cleaner
    size = row.size_bytes // 4
    assert (row.clean_bytes, row.cleanable_bytes) == (size, 2 * size)
    assert row.dirty_ratio == pytest.approx(2 / 3)
    assert (row.cleaned_to_offset, row.uncleanable_from_offset, row.offsets) == (10, 30, 20)
    assert (row.wants_cleaning, row.stands_still) == (True, True)
    assert (row.waiting_ms, row.silent_ms) == (2 * HOUR, HOUR)  # with the third segment more than half is dirty
    assert (row.keys, row.keys_exact, row.dedupe_keys, row.rounds) == (5, True, 3, 2)  # 5 keys, 3 at once
    assert (clean.dirty_ratio, clean.wants_cleaning, clean.stands_still, clean.offsets) == (0.0, False, False, 0)


@pytest.mark.parametrize(
    ("hours", "checkpoint_age_s", "stands_still"),
    [
        ((4, 3, 2), 60, False),  # it has just cleaned another log: this one's turn comes
        ((4, 3, 2), 3600, True),
        ((4, 3, 2), None, True),  # it has never cleaned anything
        ((0.1, 0.05, 0), 86_400, False),  # it had nothing to do for a day, and has now
        ((0.1, 0.05, 0), None, False),
        ((4, 3, 2, 0), 3600, True),  # that segments go on being closed does not hide it
    ],
)
def test_when_a_cleaner_stands_still(
    tmp_path: Path, hours: tuple[float, ...], checkpoint_age_s: float | None, stands_still: bool
) -> None:
    log(tmp_path, "dirty-0", *hours)
    if checkpoint_age_s is not None:
        checkpoint(tmp_path, "cleaner-offset-checkpoint", {"other-0": 10}, age_s=checkpoint_age_s)
    known = configs(dirty={"cleanup_policy": "compact"})
    (row,) = read_segments(log_folders([tmp_path]), SegmentRequest(known, NOW, cleaner=True)).cleaner
    assert (row.wants_cleaning, row.stands_still, row.keys, row.cleaned_to_offset) == (True, stands_still, None, None)
    assert row.waiting_ms == int(hours[0] * HOUR)


def test_checkpoints_lie_beside_the_folder_that_was_given(tmp_path: Path) -> None:
    """A link may lead out of the log dir, as /proc/PID/root does to what this machine has in that place."""
    (tmp_path / "seen").mkdir()
    (tmp_path / "seen" / "keys-0").symlink_to(log(tmp_path / "elsewhere", "keys-0", 4, 3, 2))
    known = configs(keys={"cleanup_policy": "compact"})
    checkpoint(tmp_path / "elsewhere", "cleaner-offset-checkpoint", {"keys-0": 10}, age_s=60)
    (row,) = read_segments(log_folders([tmp_path / "seen"]), SegmentRequest(known, NOW, cleaner=True)).cleaner
    assert (row.cleaned_to_offset, row.silent_ms) == (10, 60_000)
    checkpoint(tmp_path / "seen", "cleaner-offset-checkpoint", {"keys-0": 20}, age_s=30)
    (row,) = read_segments(log_folders([tmp_path / "seen"]), SegmentRequest(known, NOW, cleaner=True)).cleaner
    assert (row.cleaned_to_offset, row.silent_ms) == (20, 30_000)


def test_logs_that_cannot_be_read_are_told_and_passed_over(tmp_path: Path) -> None:
    log(tmp_path, "a-0", 30)
    (tmp_path / "b-0").mkdir()
    (tmp_path / "b-0" / f"{0:020d}.index").write_bytes(b"")
    day = {"retention_ms": HOUR}
    found = read_segments(log_folders([tmp_path]), SegmentRequest(configs(a=day, b=day), NOW))
    assert found.logs == 1
    assert len(found.failures) == 1
    assert "b-0" in found.failures[0]
    with pytest.raises(NotFound):
        log_folders([tmp_path / "none"])
    with pytest.raises(UsageError):
        log_folders([tmp_path / "a-0" / f"{0:020d}.log"])


# --- the command ----------------------------------------------------------------------------------------------------


def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    monkeypatch.setattr("sys.argv", ["kctl", "spark", "retention", *argv])
    code = main()
    told = capsys.readouterr()
    return int(code or 0), told.out, told.err


def test_the_command_takes_configs_from_a_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log(tmp_path / "logs", "old-0", 30, 20, 0)
    log(tmp_path / "logs", "keys-0", 4, 3, 2)
    rows = [
        (name, policy, HOUR, -1, 100, HOUR, HOUR, 0, -1, 0.5)
        for name, policy in (("old", "delete"), ("keys", "compact"))
    ]
    put(create_store(tmp_path / "store", "c"), 0, Pass(rows={schema.CONFIGS: rows}))
    common = ("--log-dir", str(tmp_path / "logs"), "--store", str(tmp_path / "store"), "-o", "json")
    code, out, err = run(monkeypatch, capsys, "--show", "segments", *common)
    assert code == 0, err
    found = json.loads(out)
    assert [(row["topic"], row["base_offset"], row["reason"]) for row in found] == [
        ("old", 0, "retention_ms"), ("old", 10, "retention_ms"), ("old", 20, "retention_ms"),
    ]  # fmt: skip
    assert list(found[0]) == [field.name for field in fields(SegmentRow)]
    assert "read 1 log with 3 segments" in err
    code, out, err = run(monkeypatch, capsys, "--show", "cleaner", "--count-keys", "--dedupe-buffer", "96", *common)
    assert code == 0, err
    assert [(row["topic"], row["keys"], row["rounds"]) for row in json.loads(out)] == [("keys", 5, 2)]
    assert list(json.loads(out)[0]) == [field.name for field in fields(CleanerRow)]
    folder = tmp_path / "parquet"
    code, out, err = run(monkeypatch, capsys, "--show", "segments", "--parquet", str(folder), *common[:4])
    assert code == 0, err
    assert "retention.ms" in out
    written = pq.read_table(folder).to_pylist()
    assert [(row["base_offset"], row["reason"]) for row in written] == [(n, "retention_ms") for n in (0, 10, 20)]
    assert list(written[0]) == list(found[0])


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("--show", "segments"), "it needs --log-dir DIR"),
        (("--log-dir", "/x"), "--log-dir needs --show segments"),
        (("--what-if", "retention.ms=1d"), "--what-if needs --store DIR"),
        (("--show", "skew"), "--show skew needs --store DIR"),
        (("--by", "replica"), "--by replica needs --store DIR"),
        (("--full-within", "1d"), "--full-within needs --store DIR"),
        (("--count-keys",), "--count-keys needs --show cleaner"),
        (("--store", "{store}", "--show", "skew", "--what-if", "retention.ms=1d"), "does not go with --show"),
        (("--store", "{store}", "--what-if", "segment.ms=1d"), "is not a retention change"),
        (("--store", "{store}", "--explain", "--by", "broker"), "--explain works for topics"),
        (("--store", "{store}", "--from", "2020-01-01", "--to", "2019-01-01"), "no snapshot of that time"),
        (("--store", "{store}", "--full-within", "soon"), "'soon' is not a duration"),
        (("--store", "/nowhere"), "/nowhere is not a snapshot store"),
    ],
)
def test_options_that_make_no_sense(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    argv: tuple[str, ...],
    message: str,
) -> None:
    """All of it is told before Spark starts."""
    store = create_store(tmp_path / "store", "c")
    put(store, 0, Pass())
    code, out, err = run(monkeypatch, capsys, *(each.format(store=store.root) for each in argv))
    assert (code in {2, 4}, out) == (True, "")
    assert message in err
