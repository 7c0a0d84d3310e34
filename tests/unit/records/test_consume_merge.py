"""Reading without a group from a fake Fetcher: ends, limits, merging by timestamp."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from kctl.model import TopicPartition
from kctl.records.chunk import Chunk
from kctl.records.consume import direct
from kctl.records.consume.batches import next_offset
from kctl.records.consume.delivery import Delivery, Stats
from kctl.records.consume.direct import DirectReader
from kctl.records.consume.fetcher import Fetched
from kctl.records.consume.options import ConsumeOptions
from kctl.records.consume.plan import ReadPlan
from segment_files import Rec, batch


class _Sink:
    def __init__(self) -> None:
        self.seen: list[tuple[int, int, int]] = []  # (timestamp, partition, offset)

    def write(self, chunk: Chunk) -> None:
        self.seen += [(t, chunk.tp.partition, o) for t, o in zip(chunk.timestamps, chunk.offsets, strict=True)]

    def flush(self) -> None: ...

    def warn(self, text: str) -> None: ...

    def stats(self, stats: Stats) -> None: ...


class _Log:
    """Return a partition's log in small batches, from its timestamps."""

    def __init__(self, number: int, times: Sequence[int], per_batch: int) -> None:
        self.tp = TopicPartition("t", number)
        self.batches = [
            batch(at, [Rec(timestamp=time) for time in times[at : at + per_batch]], base_timestamp=0)
            for at in range(0, len(times), per_batch)
        ]
        self.end = len(times)


class _Fetcher:
    """A fake Fetcher that returns one batch at a time from a random partition.

    Real brokers cannot be made to respond in a given order.
    """

    logs: dict[TopicPartition, _Log]
    random: random.Random

    def __init__(self, _client: Any, positions: dict[TopicPartition, int], **_: Any) -> None:
        self._positions, self._silent = dict(positions), set[TopicPartition]()
        self.searching = False

    def poll(self, _timeout_s: float) -> Iterator[Fetched]:
        expected = [tp for tp in self._positions if tp not in self._silent]
        if not expected:
            return
        tp = self.random.choice(expected)
        log, position = self.logs[tp], self._positions[tp]
        data = next((each for each in log.batches if next_offset(each, 0) > position), b"")
        following = next_offset(data, position)
        self._positions[tp] = following
        yield Fetched(tp, position, following, data, (), log.end)

    def pause(self, tp: TopicPartition) -> None:
        self._silent.add(tp)

    def resume(self, tp: TopicPartition) -> None:
        self._silent.discard(tp)

    def drop(self, tp: TopicPartition) -> None:
        self._positions.pop(tp, None)

    def close(self) -> None: ...


def _run(
    monkeypatch: pytest.MonkeyPatch, logs: list[_Log], seed: int, ends: dict[int, int] | None = None, **options: Any
) -> tuple[str, _Sink]:
    monkeypatch.setattr(direct, "Fetcher", _Fetcher)
    _Fetcher.logs, _Fetcher.random = {log.tp: log for log in logs}, random.Random(seed)
    tps = tuple(log.tp for log in logs)
    until = {log.tp: (ends or {}).get(log.tp.partition, log.end) for log in logs}
    selected = ConsumeOptions(topics=("t",), exit_eof=True, **options)
    plan = ReadPlan(("t",), tps, dict.fromkeys(tps, 0), until)
    sink = _Sink()
    delivery = Delivery(selected, sink, plan.ends, None)
    client: Any = None
    return DirectReader(client, selected, plan, delivery, sink).run(), sink


@pytest.mark.parametrize("seed", range(20))
def test_merge_in_timestamp_order(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    chance = random.Random(seed)
    logs = [
        _Log(number, sorted(chance.randrange(300) for _ in range(chance.randrange(80))), chance.randrange(1, 12))
        for number in range(chance.randrange(1, 6))
    ]
    why, sink = _run(monkeypatch, logs, seed, merge=True)
    assert why == "end"
    assert [time for time, _, _ in sink.seen] == sorted(time for time, _, _ in sink.seen)
    for log in logs:
        assert [o for _, p, o in sink.seen if p == log.tp.partition] == list(range(log.end))


def test_a_partition_stays_in_offset_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Producers' clocks may go back: records after a late record are not moved before it."""
    _, sink = _run(monkeypatch, [_Log(0, [1, 9, 2, 10], 2), _Log(1, [3, 4, 11], 1)], 1, merge=True)
    assert [(t, p) for t, p, _ in sink.seen] == [(1, 0), (3, 1), (4, 1), (9, 0), (2, 0), (10, 0), (11, 1)]


@pytest.mark.parametrize("merge", [False, True])
def test_ends_within_a_batch(monkeypatch: pytest.MonkeyPatch, merge: bool) -> None:
    logs = [_Log(0, list(range(30)), 7), _Log(1, list(range(30)), 9), _Log(2, [], 1)]
    why, sink = _run(monkeypatch, logs, 3, {0: 10, 1: 0, 2: 0}, merge=merge)
    assert (why, sorted(o for _, p, o in sink.seen if p == 0)) == ("end", list(range(10)))
    assert {p for _, p, _ in sink.seen} == {0}


@pytest.mark.parametrize("merge", [False, True])
def test_max_messages_within_a_batch(monkeypatch: pytest.MonkeyPatch, merge: bool) -> None:
    logs = [_Log(0, list(range(0, 60, 2)), 7), _Log(1, list(range(1, 60, 2)), 9)]
    why, sink = _run(monkeypatch, logs, 3, merge=merge, max_messages=11)
    assert (why, len(sink.seen)) == ("max-messages", 11)
    if merge:
        assert [time for time, _, _ in sink.seen] == list(range(11))


def test_until_a_time_skips_later_records(monkeypatch: pytest.MonkeyPatch) -> None:
    why, sink = _run(monkeypatch, [_Log(0, [1, 9, 2, 10], 4)], 1, until_ms=9)
    assert (why, [time for time, _, _ in sink.seen]) == ("until", [1, 2])


def test_a_merge_of_many_compressed_partitions_takes_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of few bytes on the wire may be large: 50 of 6 MB each, one per partition, all in progress at once."""
    count, size = 50, 6000
    logs = [_Log(number, [], 1) for number in range(count)]
    data = batch(0, [Rec(value=b"x" * 1000, timestamp=time) for time in range(size)], codec="zstd", base_timestamp=0)
    for log in logs:
        log.batches, log.end = [data], size
    tracemalloc.start()
    try:
        why, sink = _run(monkeypatch, logs, 1, merge=True, max_messages=5 * count)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (why, len(sink.seen)) == ("max-messages", 5 * count)
    assert most < 130 << 20, f"{most >> 20} MB"
