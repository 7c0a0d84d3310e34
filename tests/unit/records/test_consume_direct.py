"""Reading without a group while leaders are unavailable, and into a pipe without a reader.

Brokers that fail on demand are stand-ins; real brokers are in tests/integration/records/test_consume_more.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from kctl.cluster.log_offsets import LogOffsets
from kctl.errors import ConnectionFailed, KctlError, NotAuthorized, OperationFailed
from kctl.model import TopicPartition
from kctl.protocol.codes import ErrorCode
from kctl.records.chunk import Chunk
from kctl.records.consume import absence, direct, leader_query
from kctl.records.consume.delivery import Delivery, Stats
from kctl.records.consume.direct import DirectReader
from kctl.records.consume.fetcher import Fetched
from kctl.records.consume.options import ConsumeOptions
from kctl.records.consume.plan import ReadPlan
from segment_files import batch

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
AWAY = ConnectionFailed("broker 1 refused the connection")


class _Sink:
    def __init__(self, write_s: float = 0.0) -> None:
        self.seen: list[tuple[int, int]] = []
        self.warnings: list[str] = []
        self._write_s = write_s

    def write(self, chunk: Chunk) -> None:
        time.sleep(self._write_s)
        self.seen += [(chunk.tp.partition, offset) for offset in chunk.offsets]

    def flush(self) -> None: ...

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    def stats(self, stats: Stats) -> None: ...


class _Fetcher:
    """Logs that begin at 5, with ten batches of one record. silent_s: how long finding the leaders takes."""

    silent_s = 0.0

    def __init__(self, _client: Any, positions: dict[TopicPartition, int], **_: Any) -> None:
        self._positions, self._cut = dict(positions), set[TopicPartition]()
        self._begun = time.monotonic()

    @property
    def searching(self) -> bool:
        return time.monotonic() - self._begun < self.silent_s

    def poll(self, timeout_s: float) -> Iterator[Fetched]:
        time.sleep(0.01)
        for tp, at in list(self._positions.items()):
            if self.searching or tp in self._cut:
                continue
            if at < 5:
                self._cut.add(tp)
                yield Fetched(tp, at, at, b"", (), -1, ErrorCode.OFFSET_OUT_OF_RANGE)
            elif at < 15:
                self._positions[tp] = at + 1
                yield Fetched(tp, at, at + 1, batch(at, 1), (), 15)

    def seek(self, tp: TopicPartition, offset: int) -> None:
        self._positions[tp] = offset
        self._cut.discard(tp)

    def drop(self, tp: TopicPartition) -> None:
        self._positions.pop(tp, None)

    def close(self) -> None: ...


Asked = Callable[[TopicPartition], "LogOffsets | KctlError | None"]


def _asking(monkeypatch: pytest.MonkeyPatch, answer: Asked) -> None:
    """The leaders' response about a log: its ends, an error, or None if metadata lack the topic."""

    def ends(_client: Any, tps: Sequence[TopicPartition], **_: Any) -> Any:
        message = {tp: answer(tp) for tp in tps}
        return (
            {tp: each for tp, each in message.items() if isinstance(each, LogOffsets)},
            {tp for tp, each in message.items() if each is None},
            {tp: each for tp, each in message.items() if isinstance(each, KctlError)},
        )

    def at(client: Any, tps: Sequence[TopicPartition], _time_ms: int) -> Any:
        result, deleted, unread = ends(client, tps)
        return dict.fromkeys(result, -1), deleted, unread

    monkeypatch.setattr(direct, "read_log_offsets", ends)
    monkeypatch.setattr(direct, "read_offsets_at", at)
    monkeypatch.setattr(leader_query, "_RETRY_S", 0.05)


def _reader(
    monkeypatch: pytest.MonkeyPatch, sink: _Sink, starts: dict[TopicPartition, int], *, timeout_s: float = 30, **o: Any
) -> DirectReader:
    monkeypatch.setattr(direct, "Fetcher", _Fetcher)
    options = ConsumeOptions(topics=("t",), timeout_s=timeout_s, **o)
    plan = ReadPlan(("t",), tuple(starts), starts, dict.fromkeys(starts, 15) if options.exit_eof else {})
    nobody: Any = None
    return DirectReader(nobody, options, plan, Delivery(options, sink, plan.ends, None), sink)


def _after(seconds: float, then: LogOffsets, before: KctlError | None) -> Asked:
    started = time.monotonic()
    return lambda tp: then if tp == T1 or time.monotonic() - started > seconds else before


@pytest.mark.parametrize("before", [AWAY, None], ids=["away", "a broker that does not know the topic yet"])
def test_a_truncated_log_waits_for_its_leader(monkeypatch: pytest.MonkeyPatch, before: KctlError | None) -> None:
    """After an unclean election the offset is out of range, and no leader has the ends. Others are still read."""
    _asking(monkeypatch, _after(0.5, LogOffsets(5, 15), before))
    sink = _Sink()
    reader = _reader(monkeypatch, sink, {T0: 2, T1: 5}, exit_eof=True)
    assert reader.run() == "end"
    assert sink.seen == [(1, offset) for offset in range(5, 15)] + [(0, offset) for offset in range(5, 15)]
    assert reader.skipped == 3
    assert sink.warnings == ["t-0: offsets 2 to 4 were deleted before they were read"]


def test_a_truncated_log_whose_leader_stays_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    _asking(monkeypatch, lambda _: AWAY)
    with pytest.raises(OperationFailed) as caught:
        _reader(monkeypatch, _Sink(), {T0: 2}, exit_eof=True, timeout_s=0.3).run()
    assert caught.value.message == "partition t-0 could not be read for 0.3 s: broker 1 refused the connection"
    follower = _reader(monkeypatch, _Sink(), {T0: 2, T1: 5}, idle_ms=100, timeout_s=0.3)
    assert follower.run() == "idle", "after timeout_s"
    _asking(monkeypatch, lambda _: NotAuthorized("no"))
    with pytest.raises(NotAuthorized):
        _reader(monkeypatch, _Sink(), {T0: 2}, exit_eof=True).run()


def test_a_truncated_log_whose_topic_was_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(absence, "DELETED_AFTER_S", 0.3)
    _asking(monkeypatch, lambda _: None)
    with pytest.raises(OperationFailed, match="topic t was deleted while it was read"):
        _reader(monkeypatch, _Sink(), {T0: 2}).run()


def test_a_leader_is_unavailable_when_until_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    _asking(monkeypatch, _after(0.8, LogOffsets(5, 15), AWAY))
    sink = _Sink()
    reader = _reader(monkeypatch, sink, {T0: 5, T1: 5}, until_ms=round(time.time() * 1000) + 300)
    assert reader.run() == "until"
    assert not sink.warnings
    _asking(monkeypatch, lambda _: AWAY)
    with pytest.raises(OperationFailed, match="partition t-0 could not be read"):
        _reader(monkeypatch, sink, {T0: 5}, until_ms=round(time.time() * 1000) + 100, timeout_s=0.3).run()


def test_a_slow_reader_of_the_pipe_does_not_count_as_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    sink = _Sink(write_s=0.15)
    assert _reader(monkeypatch, sink, {T0: 5}, idle_ms=100).run() == "idle"
    assert sink.seen == [(0, offset) for offset in range(5, 15)]


def test_finding_leaders_does_not_count_as_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Fetcher, "silent_s", 0.5)
    sink = _Sink()
    assert _reader(monkeypatch, sink, {T0: 5}, idle_ms=100).run() == "idle"
    assert len(sink.seen) == 10
