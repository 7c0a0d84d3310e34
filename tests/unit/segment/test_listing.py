"""What log dirs hold, by listing them and by reading all headers."""

from __future__ import annotations

from pathlib import Path

from kctl.segment.log.listing import SegmentListing, list_segments
from kctl.segment.log.partition import partition_folders
from kctl.spark import segments_source
from kctl.spark.task_split import split_by_weight
from segment_files import BASE_TIMESTAMP as T
from segment_files import Rec, batch, offset_checkpoint, offset_index, time_index, with_bytes, write

DATA = Path(__file__).resolve().parents[2] / "data" / "segments"
ZEROS = bytes(120)


def _log_dir(path: Path) -> Path:
    """orders-0 in two segments, the second one active with preallocated indexes; a deleted one; a copy under way."""
    first = [batch(0, 3, base_timestamp=T), batch(3, 2, base_timestamp=T + 500)]
    write(
        path / "orders-0", 0, first,
        index=offset_index([(4, len(first[0]))]), timeindex=time_index([(T + 501, 4)]),
    )  # fmt: skip
    second = [batch(5, 1, base_timestamp=T + 700), batch(6, 1, base_timestamp=T + 900), batch(7, 1, base_timestamp=T)]
    write(
        path / "orders-0", 5, second,
        index=offset_index([(6, len(second[0]))], 5) + ZEROS, timeindex=time_index([(T + 700, 5)], 5) + ZEROS,
    )  # fmt: skip
    (path / "orders-0" / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAABQ\n")
    write(path / f"orders-1.{'b' * 32}-delete", 0, [batch(0)])
    for name, offset in {"replication-offset-checkpoint": 7, "log-start-offset-checkpoint": 2}.items():
        (path / name).write_bytes(offset_checkpoint({("orders", 0): offset, ("orders", 1): 99}))
    (path / "cleaner-offset-checkpoint").write_bytes(b"garbage\n")
    return path


def _rows(path: Path, *, headers: bool = False) -> list[SegmentListing]:
    return list(list_segments(partition_folders(path), headers=headers))


def test_a_log_dir(tmp_path: Path) -> None:
    rows = _rows(_log_dir(tmp_path / "logs"))
    assert [(r.topic, r.partition, r.state, r.base_offset, r.next_base_offset) for r in rows] == [
        ("orders", 0, None, 0, 5), ("orders", 0, None, 5, None), ("orders", 1, "delete", 0, None),
    ]  # fmt: skip
    assert [(r.first_timestamp_ms, r.largest_timestamp_ms) for r in rows] == [
        (T, T + 501), (T + 700, T + 900), (T, T),
    ]  # fmt: skip
    first, second, deleted = rows
    assert (first.log_dir, first.folder) == (str(tmp_path / "logs"), "orders-0")
    assert (first.high_watermark, first.log_start_offset, first.cleaned_offset) == (7, 2, None)
    assert (deleted.high_watermark, deleted.log_start_offset) == (None, None)  # the name is that of another folder
    assert (first.topic_id, deleted.topic_id) == ("AAAAAAAAAAAAAAAAAAAABQ", None)
    log = tmp_path / "logs" / "orders-0" / f"{5:020d}.log"
    assert second.size_bytes == log.stat().st_size
    assert second.index_bytes == 8 + 12 + 2 * len(ZEROS)
    assert second.modified_ms == log.stat().st_mtime_ns // 1_000_000
    assert (second.batches, second.records, second.last_offset, second.damaged_places, second.error) == (None,) * 5


def test_headers_tell_more_and_the_same_times(tmp_path: Path) -> None:
    listed, read = _rows(_log_dir(tmp_path)), _rows(tmp_path, headers=True)
    assert [(r.batches, r.records, r.last_offset, r.damaged_places) for r in read] == [
        (2, 5, 4, 0), (3, 3, 7, 0), (1, 1, 0, 0),
    ]  # fmt: skip
    assert [r._replace(batches=None, records=None, last_offset=None, damaged_places=None) for r in read] == listed


def test_damage_is_counted_and_passed(tmp_path: Path) -> None:
    parts = [batch(0, 2), batch(2, 2), batch(4, 2, base_timestamp=T + 70)]
    data = b"".join(parts)
    write(tmp_path / "orders-0", 0, with_bytes(data, len(parts[0]) + 8, b"\xff\xff\xff\xff"))
    (row,) = _rows(tmp_path, headers=True)
    assert (row.batches, row.records, row.last_offset, row.damaged_places) == (2, 4, 5, 1)
    assert (row.first_timestamp_ms, row.largest_timestamp_ms) == (T, T + 71)
    assert _rows(tmp_path)[0].largest_timestamp_ms == T + 71


def test_a_wrong_index_is_not_believed(tmp_path: Path) -> None:
    """Positions behind the log; then all headers are read."""
    write(
        tmp_path / "orders-0", 0, [batch(0, 2)],
        index=offset_index([(1, 10**6)]), timeindex=time_index([(T + 10**9, 1)]),
    )  # fmt: skip
    assert _rows(tmp_path)[0].largest_timestamp_ms == T + 1


def test_no_timestamps(tmp_path: Path) -> None:
    write(tmp_path / "orders-0", 0, b"")
    (row,) = _rows(tmp_path)
    assert (row.size_bytes, row.first_timestamp_ms, row.largest_timestamp_ms, row.error) == (0, None, None, None)


def test_what_cannot_be_read_is_a_row(tmp_path: Path) -> None:
    write(tmp_path / "orders-0", 0, [batch(0)])
    (tmp_path / "orders-0" / f"{9:020d}.log").mkdir()
    folders = partition_folders(tmp_path)
    write(tmp_path / "gone-0", 0, [batch(0)])
    rows = list(list_segments([*folders, tmp_path / "missing-3"]))
    assert [(r.topic, r.base_offset, r.error is None) for r in rows] == [
        ("orders", 0, True), ("orders", 9, False), ("missing", None, False),
    ]  # fmt: skip
    assert "a folder" in (rows[1].error or "")
    assert "does not exist" in (rows[2].error or "")


def test_real_segments_have_the_same_times_both_ways() -> None:
    """Files of a 3.9.2 broker, with transactions, in several segments."""
    folders = [DATA / "v2" / name for name in ("txn", "append", "compact", "gzip")]
    listed, read = list(list_segments(folders)), list(list_segments(folders, headers=True))
    assert len(listed) >= 9
    assert [r.largest_timestamp_ms for r in listed] == [r.largest_timestamp_ms for r in read]
    assert [r.first_timestamp_ms for r in listed] == [r.first_timestamp_ms for r in read]
    assert all(r.error is None and r.damaged_places == 0 for r in read)


def test_the_source_gives_the_same_rows(tmp_path: Path) -> None:
    folders = partition_folders(_log_dir(tmp_path))
    (dealt,) = segments_source.shares(folders, 1)
    rows = [row for each in segments_source.read(dealt, headers=True) for row in each.to_pylist()]
    expected = list(list_segments(map(Path, dealt), headers=True))
    assert [SegmentListing(**row) for row in rows] == expected
    assert len(segments_source.shares(folders, 8)) == 2
    assert segments_source.shares([], 8) == []


def test_work_is_dealt_by_weight() -> None:
    assert split_by_weight("abcd", {"a": 5, "b": 1, "c": 3, "d": 2}.__getitem__, 2) == [["a", "b"], ["c", "d"]]
    assert split_by_weight([1, 2], lambda _: 0, 5) == [[1], [2]]
    assert split_by_weight([Rec()], lambda _: 1, 0) == [[Rec()]]
