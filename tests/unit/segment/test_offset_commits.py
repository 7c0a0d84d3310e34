"""What __consumer_offsets tells: which commits took effect and when, by the plain way and by columns."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from kctl.errors import NotFound
from kctl.history.commits import batch_columns as offsets_columns
from kctl.history.commits import commit_log as offsets_history
from kctl.history.commits.commit_log import ARROW, Span, log_partition, offsets_logs, read_log, read_logs
from kctl.history.commits.effects import Commits
from kctl.segment.format.batch import Batch
from kctl.segment.format.offset_commits import CommitLog, CommitNotes, OffsetCommit, PendingCommits
from kctl.segment.log.partition_log import partition_log
from kctl.segment.log.source import Source
from kctl.segment.log.walk import batches, content_of, is_valid
from offsets_files import commit, commit_key, commit_value, group_key
from segment_files import BASE_TIMESTAMP as T
from segment_files import Rec, batch, compress, marker, record, with_bytes, write

DATA = Path(__file__).resolve().parents[2] / "data" / "segments"
NAME = "__consumer_offsets-3"
Rows = list[dict[str, Any]]


def rows_of(folder: Path, span: Span | None = None) -> Rows:
    found: Rows = []
    for each in read_log(partition_log(folder), span or Span()):
        each.validate(full=True)
        assert each.schema == ARROW
        found += each.to_pylist()
    return found


def _seen(folder: Path) -> list[tuple[int, int | None, bool]]:
    """(when, offset, transactional) of each commit."""
    return [(row["at_ms"] - T, row["committed_offset"], row["transactional"]) for row in rows_of(folder)]


def _one(offset: int | None, made: int, key: str = "t") -> Rec:
    return commit("g", key, 0, offset, T + made)


A, B = (7, 0), (8, 0)


def _txn(at: int, producer: tuple[int, int], *recs: Rec, base: int = 0) -> bytes:
    return batch(at, recs, producer=(*producer, 0), transactional=True, base_timestamp=T + base)


def _end(at: int, producer: tuple[int, int], when: int, *, ok: bool = True) -> bytes:
    return marker(at, producer, commit=ok, base_timestamp=T + when)


CASES: dict[str, tuple[list[bytes], list[tuple[int, int | None, bool]]]] = {
    "one after the other": ([batch(0, [_one(5, 1)]), batch(1, [_one(6, 2)])], [(1, 5, False), (2, 6, False)]),
    "removed": ([batch(0, [_one(5, 1)]), batch(1, [_one(None, 0)], base_timestamp=T + 9)],
                [(1, 5, False), (9, None, False)]),
    "in a transaction": ([_txn(0, A, _one(5, 1)), _end(1, A, 4)], [(4, 5, True)]),
    "aborted": ([_txn(0, A, _one(5, 1)), _end(1, A, 4, ok=False)], []),
    "not ended": ([_txn(0, A, _one(5, 1))], []),
    "twice in a transaction": ([_txn(0, A, _one(5, 1)), _txn(1, A, _one(6, 2)), _end(2, A, 4)], [(4, 6, True)]),
    "what was written later wins": ([_txn(0, A, _one(5, 1)), batch(1, [_one(9, 2)]), _end(2, A, 4)], [(2, 9, False)]),
    "what was written earlier does not": ([batch(0, [_one(9, 1)]), _txn(1, A, _one(5, 2)), _end(2, A, 4)],
                                          [(1, 9, False), (4, 5, True)]),
    "of two transactions the later written": (
        [_txn(0, A, _one(5, 1)), _txn(1, B, _one(6, 2)), _end(2, B, 3), _end(3, A, 4)], [(3, 6, True)]),
    "of two transactions in order": (
        [_txn(0, A, _one(5, 1)), _txn(1, B, _one(6, 2)), _end(2, A, 3), _end(3, B, 4)], [(3, 5, True), (4, 6, True)]),
    "a removal ends what is pending": (
        [_txn(0, A, _one(5, 1)), batch(1, [_one(None, 0)], base_timestamp=T + 2), _end(2, A, 4)], [(2, None, False)]),
    "another partition is another matter": (
        [_txn(0, A, _one(5, 1)), batch(1, [_one(9, 2, "u")]), _end(2, A, 4)], [(2, 9, False), (4, 5, True)]),
    "another producer's marker": ([_txn(0, A, _one(5, 1)), _end(1, B, 3), _end(2, A, 4)], [(4, 5, True)]),
    "a marker once more": ([_txn(0, A, _one(5, 1)), _end(1, A, 3), _end(2, A, 4)], [(3, 5, True)]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_takes_effect(name: str, tmp_path: Path) -> None:
    parts, expected = CASES[name]
    write(tmp_path / NAME, 0, parts)
    assert _seen(tmp_path / NAME) == expected
    assert [
        (c.at_ms - T, c.committed_offset, c.transactional) for c in _plain(tmp_path / NAME, CommitNotes())
    ] == expected


def test_a_transaction_goes_over_segments(tmp_path: Path) -> None:
    write(tmp_path / NAME, 0, [_txn(0, A, _one(5, 1))])
    write(tmp_path / NAME, 10, [batch(10, [_one(1, 2, "u")]), _end(11, A, 4)])
    assert _seen(tmp_path / NAME) == [(2, 1, False), (4, 5, True)]


def test_a_log_that_was_compacted(tmp_path: Path) -> None:
    """Offsets with gaps; an emptied batch that keeps a producer's sequence; a tombstone with its delete horizon; a
    transaction's commit that was kept, with its marker; and behind it what is not cleaned yet."""
    horizon = 0x40  # KIP-534: the base timestamp is when it may go
    removed = commit("h", "t", 0, None, 0)
    write(tmp_path / NAME, 0, [
        batch(4, [], producer=(*A, 0), transactional=True, last_offset_delta=3, max_timestamp=T),
        batch(9, [commit("g", "t", 1, 5, T + 1)]),
        batch(12, [Rec(removed.key, None, offset=2, timestamp=-86_400_000)], base_timestamp=T + 86_400_000,
              attributes=horizon, max_timestamp=T),
        _txn(20, A, _one(7, 3)),
        _end(25, A, 6),
    ])  # fmt: skip
    write(tmp_path / NAME, 30, [batch(30, [_one(8, 7)]), batch(31, [_one(9, 8)])])
    assert _seen(tmp_path / NAME) == [(1, 5, False), (0, None, False), (6, 7, True), (7, 8, False), (8, 9, False)]
    assert [row["log_offset"] for row in rows_of(tmp_path / NAME)] == [9, 14, 20, 30, 31]


def test_a_row_tells_all(tmp_path: Path) -> None:
    write(tmp_path / NAME, 0, [batch(40, [commit("g", "t", 2, 5, T, leader_epoch=6), Rec(group_key("g"), b"\0\3")])])
    assert rows_of(tmp_path / NAME) == [
        {"at_ms": T, "group": "g", "topic": "t", "partition": 2, "committed_offset": 5, "commit_ms": T,
         "leader_epoch": 6, "transactional": False, "log_partition": 3, "log_offset": 40, "error": None}
    ]  # fmt: skip


def test_pending_commits_are_bounded() -> None:
    pending: PendingCommits[str, int] = PendingCommits(limit=2)
    for number, key in enumerate("abca"):
        pending.add(7, key, number, number)
    assert (len(pending), pending.untracked) == (2, 1)
    assert pending.end(7, commit=True) == [("b", 1), ("a", 3)]
    assert (len(pending), pending.keys()) == (0, set())


def test_what_a_real_broker_wrote() -> None:
    """The commits that DumpLogSegments shows of the same file."""
    folder = DATA / "internal" / "kafka-2.8-consumer_offsets"
    shown = (folder / "00000000000000000000.log.offsets.expected").read_text()
    lines = [line for line in shown.splitlines() if '{"type":"1"' in line]
    found = rows_of(folder)
    assert len(found) == len(lines) == 4
    for row, line in zip(found, lines, strict=True):
        assert f"offset: {row['log_offset']} " in line
        assert f'"group":"{row["group"]}","topic":"{row["topic"]}","partition":{row["partition"]}' in line
        assert ("<DELETE>" in line) == (row["committed_offset"] is None)
        if row["committed_offset"] is not None:
            assert f'"offset":{row["committed_offset"]},' in line
            assert f'"commitTimestamp":{row["commit_ms"]}' in line


# --- columns against the plain way ----------------------------------------------------------------------------------


def _plain(folder: Path, notes: CommitNotes) -> Iterator[OffsetCommit]:
    """Every batch by kctl.segment.format.offset_commits, damage as read_log tells it."""
    log = partition_log(folder)
    follower = CommitLog(notes)
    for files in log.segments:
        assert files.log is not None
        with Source(files.log) as source:
            for item in batches(source):
                where = f"{source.path} at {item.position}"
                if not isinstance(item, Batch):
                    last = files is log.segments[-1]
                    if not (last and item.position + item.length >= source.size and item.code == "incomplete"):
                        notes.damage(f"{where}: {item.message}")
                elif item.magic < 0 or not is_valid(source, item):
                    notes.damage(f"{where}: the CRC is not that of the batch")
                else:
                    yield from follower.add(item, content_of(source, item, 1 << 30), where)


def _record(rng: random.Random) -> Rec:
    kind = rng.randrange(40)
    key = commit_key(rng.choice("ghé"), rng.choice("tu"), rng.randrange(3), version=rng.choice([1, 1, 1, 0]))
    made = T + rng.randint(0, 50)
    value: bytes | None = commit_value(
        rng.randint(0, 99), made, version=rng.choice([3, 3, 3, 0, 1, 2]), leader_epoch=rng.choice([-1, 4]),
        metadata=rng.choice(["", "m" * 3, "é"]),
    )  # fmt: skip
    if kind < 3:
        value = None
    odd: dict[int, Rec] = {
        3: Rec(group_key("g"), b"\0\3x"),
        4: Rec(group_key("g"), None),
        5: Rec(key, commit_value(7, made, version=4)),
        6: Rec(key, value, [(b"h", b"v")]),
        7: Rec(None, value),
        8: Rec(key[:-1], value),
        9: Rec(key + b"more", value),
        10: Rec(key, b"\0\3\0"),
        11: Rec(key, commit_value(7, -1)),
        12: Rec(b"\7\7some", value),
        13: Rec(b"\0", value),
        14: Rec(key, value, timestamp=-5),
        15: Rec(commit_key("g" * 100, "t" * 200, 1), commit_value(1, made, metadata="m" * 20_000)),
        16: Rec(b"\xff\xff", value),
        17: Rec(key, b"\0\x09" + bytes(30)),
        19: Rec(commit_key("g", "t", -1), value),
        18: Rec(b"\0\1\0\2\xff\xfe" + key[5:], value),
    }
    return odd.get(kind, Rec(key, value)) if rng.random() < 0.7 else Rec(key, value)


def _broken(rng: random.Random, offset: int, recs: list[Rec], inside: bool) -> bytes:
    """A batch with a right CRC whose records are not right, or not as many as it says."""
    data = bytearray(b"".join(record(rec, number) for number, rec in enumerate(recs)))
    for _ in range(rng.choice([0, 1, 1, 3])):
        data[rng.randrange(len(data))] = rng.choice([0, 1, 2, 0x7F, 0x80, 0xFF, rng.randrange(256)])
    codec = rng.choice(["none", "zstd"])
    return batch(
        offset, recs, payload=bytes(data) if codec == "none" else compress(codec, bytes(data)), codec=codec,
        transactional=inside, producer=(*A, 0) if inside else (-1, -1, -1),
        count=rng.choice([len(recs)] * 4 + [0, 1, -1, len(recs) + 1, 2**31 - 1]),
        base_timestamp=rng.choice([T, T, T, -1, 2**63 - 1]), max_timestamp=T + 9,
        last_offset_delta=rng.choice([None, None, None, -1]),
    )  # fmt: skip


def _log(rng: random.Random) -> list[list[bytes]]:
    """Segments of batches."""
    segments: list[list[bytes]] = [[]]
    offset = 0
    for _ in range(rng.randint(1, 25)):
        if rng.random() < 0.1:
            segments.append([])
        producer = rng.choice([A, B])
        kind = rng.random()
        if kind < 0.15:
            made = marker(offset, producer, commit=rng.random() < 0.7, base_timestamp=T + rng.randint(0, 99))
            size = 1
        else:
            recs = [_record(rng) for _ in range(rng.choice([1, 1, 1, 2, 5, 12]))]
            size = len(recs)
            inside = rng.random() < 0.3
            made = batch(
                offset, recs, codec=rng.choice(["none"] * 6 + ["gzip", "zstd"]), transactional=inside,
                producer=(*producer, 0) if inside and rng.random() < 0.9 else (-1, -1, -1),
                append_time=rng.random() < 0.2, base_timestamp=T + rng.randint(0, 99),
            )  # fmt: skip
            if rng.random() < 0.15:
                made = _broken(rng, offset, recs, inside)
        if rng.random() < 0.04:
            at = rng.randrange(len(made))
            made = with_bytes(made, at, bytes([made[at] ^ 1 << rng.randrange(8)]))
        segments[-1].append(made)
        offset += size
    if rng.random() < 0.2:
        segments[-1].append(batch(offset, 3)[: rng.randint(1, 80)])
    return segments


def _compare(seed: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(offsets_history, "PIECE_BYTES", rng.choice([64, 300, 1000, 1 << 20]))
    monkeypatch.setattr(offsets_history, "_MIN_BYTES", 200)
    for number, parts in enumerate(_log(rng)):
        write(folder, number * 1000, parts)
    notes, plain_notes = CommitNotes(), CommitNotes()
    expected = list(_plain(folder, plain_notes))
    rows = [row for each in read_log(partition_log(folder), notes=notes) for row in each.to_pylist()]
    assert [row["error"] for row in rows if row["error"]] == plain_notes.texts
    found = [
        OffsetCommit(
            (row["group"], row["topic"], row["partition"]), row["at_ms"], row["committed_offset"], row["commit_ms"],  # type: ignore[arg-type]
            row["leader_epoch"], row["log_offset"], row["transactional"],
        )
        for row in rows
        if not row["error"]
    ]  # fmt: skip
    assert found == expected
    assert (notes.damaged, notes.unreadable) == (plain_notes.damaged, plain_notes.unreadable)


HOLD = settings(
    phases=[Phase.explicit, Phase.generate], database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
SEEDS = st.integers(0, 2**32)


@settings(HOLD, max_examples=60)
@given(SEEDS)
@example(372)  # one group and partition, written as a key in two ways
@example(954)  # a key of another type that is broken
def test_columns_say_what_the_plain_way_says(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    _compare(seed, tmp_path_factory.mktemp("log") / NAME, monkeypatch)


@pytest.mark.long
@settings(HOLD, max_examples=1200)
@given(SEEDS)
def test_columns_say_what_the_plain_way_says_at_length(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    _compare(seed, tmp_path_factory.mktemp("log") / NAME, monkeypatch)


def _pieces(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """How many pieces are read of a log by columns, and how many commits that gives."""
    calls = 0

    def counted(source: Source, position: int, size: int) -> tuple[Commits, int]:
        nonlocal calls
        calls += 1
        return offsets_columns.read_piece(source, position, size)

    monkeypatch.setattr(offsets_history, "read_piece", counted)
    return len([row for row in rows_of(folder) if row["error"] is None]), calls


def test_ordinary_batches_go_by_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the comparison above would compare nothing; and a log of transactions would take minutes."""
    parts = [
        batch(n * 3, [_one(5, n), _one(None, n), Rec(group_key("g"), b"\0\3")], codec=codec)
        for n, codec in enumerate(["none", "gzip", "snappy", "lz4", "zstd"])
    ]
    parts += [made for n in range(20, 60, 2) for made in (_txn(n, A, _one(n, n)), _end(n + 1, A, n, ok=n % 4 == 0))]
    write(tmp_path / NAME, 0, parts)
    assert _pieces(tmp_path / NAME, monkeypatch) == (10 + 10, 1)


@pytest.mark.parametrize("odd_ones", [(True,), (True, False)])
def test_what_is_not_ordinary_is_not_tried_again_and_again(
    odd_ones: tuple[bool, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = Rec(commit_key("g", "t", 0), commit_value(1, T), [(b"h", b"v")])
    parts = [batch(n, [odd if odd_ones[n % len(odd_ones)] else _one(n, n)]) for n in range(600)]
    write(tmp_path / NAME, 0, parts)
    commits, calls = _pieces(tmp_path / NAME, monkeypatch)
    assert commits == 600
    assert calls < 30


# --- which logs, which commits --------------------------------------------------------------------------------------


def _folder(path: Path, *sizes: int) -> Path:
    for base, size in enumerate(sizes):
        write(path, base * 100, [batch(base * 100 + n, [_one(n, n)]) for n in range(size)])
    return path


def test_the_logs_of_log_dirs(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    _folder(one / "__consumer_offsets-0", 3)
    _folder(one / "__consumer_offsets-1", 2, 2)
    _folder(other / "__consumer_offsets-1", 9)  # an older replica: its last segment begins earlier
    _folder(other / "__consumer_offsets-2", 1)
    _folder(other / f"__consumer_offsets-3.{'a' * 32}-delete", 1)
    _folder(other / "orders-0", 1)
    (other / "lost+found").mkdir()
    found = {log_partition(log): log.path.parent.name for log in offsets_logs([one, other])}
    assert found == {0: "one", 1: "one", 2: "other"}
    assert [log_partition(log) for log in offsets_logs([_folder(tmp_path / "a copy", 1)])] == [None]
    assert [len(log.segments) for log in offsets_logs(sorted((one / "__consumer_offsets-1").glob("*.log")))] == [2]


def test_a_log_dir_without_the_topic(tmp_path: Path) -> None:
    _folder(tmp_path / "orders-0", 1)
    with pytest.raises(NotFound, match="has no partition of __consumer_offsets"):
        offsets_logs([tmp_path])


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        (Span(from_ms=T + 2), [2, 3, 4]),
        (Span(to_ms=T + 2), [0, 1]),
        (Span(T + 1, T + 3), [1, 2]),
        (Span(lower="h"), []),
        (Span(upper="g"), []),
        (Span(lower="g", upper="h"), [0, 1, 2, 3, 4]),
    ],
)
def test_a_span(span: Span, expected: Sequence[int], tmp_path: Path) -> None:
    parts = [batch(n, [_one(n, n)]) for n in range(4)]
    write(tmp_path / NAME, 0, [*parts, _txn(4, A, _one(4, 0)), _end(5, A, 4)])
    assert [row["committed_offset"] for row in rows_of(tmp_path / NAME, span)] == expected


def test_a_log_that_is_gone_is_a_row(tmp_path: Path) -> None:
    gone, there = _folder(tmp_path / "__consumer_offsets-0", 1), _folder(tmp_path / "__consumer_offsets-1", 1)
    logs = offsets_logs([gone, there])
    (gone / f"{0:020d}.log").unlink()
    rows = [row for each in read_logs(logs) for row in each.to_pylist()]
    assert [row["committed_offset"] for row in rows] == [None, 0]
    assert "does not exist" in rows[0]["error"]
