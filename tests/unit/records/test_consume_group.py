"""A group member whose partitions change while a response is in flight. Consumer and fetcher are stand-ins;
real ones are in tests/integration/records/test_consume.py and tests/integration/records/test_consume_group.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.errors import CommitFailedError, KafkaError, KafkaTimeoutError, RebalanceInProgressError
from kafka.structs import OffsetAndMetadata
from kafka.structs import TopicPartition as TheirTopicPartition

from kctl.cluster.log_offsets import LogOffsets
from kctl.errors import OperationFailed
from kctl.model import TopicPartition
from kctl.protocol.codes import ErrorCode
from kctl.records.chunk import Chunk
from kctl.records.consume import group_reader
from kctl.records.consume.batches import batches_in, next_offset
from kctl.records.consume.consumer import from_kafka, to_kafka
from kctl.records.consume.delivery import Delivery, Stats
from kctl.records.consume.fetcher import Fetched
from kctl.records.consume.group_reader import GroupReader
from kctl.records.consume.options import ConsumeOptions
from kctl.records.consume.plan import ReadPlan
from segment_files import Rec, batch, marker, with_bytes

TP = TopicPartition("t", 3)
HUNDRED = b"".join(batch(base, [Rec(value=b"x" * 500) for _ in range(50)]) for base in (0, 50))


class Consumer:
    """kafka-python's consumer. script: the effect of each poll(); committed: the group's offsets."""

    def __init__(self, *script: Callable[[Consumer], None], committed: int = 0) -> None:
        self._script = iter(script)
        self.committed = committed
        self.positions: dict[Any, int] = {}
        self.paused: set[Any] = set()
        self._coordinator = SimpleNamespace(need_rejoin=lambda: False, coordinator_unknown=lambda: False)
        self._subscription = self

    def subscribe(self, _topics: list[str], listener: Any) -> None:
        self._listener = listener

    def poll(self, timeout_ms: int) -> None:
        next(self._script, lambda _: None)(self)
        assert self.positions.keys() <= self.paused, "it would fetch what we do"

    def take(self) -> None:
        """As before a rebalance: the positions are committed first."""
        tp = to_kafka(TP)
        self.committed = self.positions[tp]
        self._listener.on_partitions_revoked({tp})
        del self.positions[tp]
        self.paused.discard(tp)

    def give(self) -> None:
        tp = to_kafka(TP)
        self.positions[tp] = self.committed
        self._listener.on_partitions_assigned({tp})

    def pause(self, *partitions: Any) -> None:
        self.paused |= set(partitions)

    def seek(self, tp: Any, offset: int) -> None:
        if tp not in self.positions:
            raise KeyError(tp)
        self.positions[tp] = offset

    def assignment(self) -> set[Any]:
        return set(self.positions)

    def all_consumed_offsets(self) -> dict[Any, OffsetAndMetadata]:
        return {tp: OffsetAndMetadata(offset, "", -1) for tp, offset in self.positions.items()}

    def group_metadata(self) -> Any:
        from kafka.structs import MemberState

        return SimpleNamespace(state=MemberState.STABLE)

    def commit(self, offsets: Mapping[TheirTopicPartition, OffsetAndMetadata], timeout_ms: int) -> None:
        ((tp, offset),) = offsets.items()
        assert from_kafka(tp) == TP
        self.committed = offset.offset

    def close(self, **_options: Any) -> None: ...


class Log:
    """A stand-in for the Fetcher: one partition; the first response has one batch, the next two, and so on."""

    data = b""
    start = 0
    searching = False

    def __init__(self, *_args: Any, **_options: Any) -> None:
        self._position: int | None = None
        self._answers = 0

    def seek(self, _tp: TopicPartition, offset: int) -> None:
        self._position = offset

    def drop(self, _tp: TopicPartition) -> None:
        self._position = None

    def poll(self, _timeout_s: float) -> Iterator[Fetched]:
        position = self._position
        if position is None:
            return
        if position < self.start:
            yield Fetched(TP, position, position, b"", (), -1, ErrorCode.OFFSET_OUT_OF_RANGE)
            return
        self._answers += 1
        remaining = [each for each in batches_in(self.data) if each.last_offset >= position][: self._answers]
        data = b"".join(self.data[each.position : each.next_position] for each in remaining)
        self._position = next_offset(data, position)
        yield Fetched(TP, position, self._position, data, (), 0)

    def close(self) -> None: ...


class Sink:
    """A sink. shown: offsets. breaks: the number of the flush at which the reader of the pipe has exited."""

    def __init__(self, breaks: int = 0) -> None:
        self.shown: list[int] = []
        self.warnings: list[str] = []
        self.flushed = 0
        self._breaks, self._flushes = breaks, 0

    def write(self, chunk: Chunk) -> None:
        self.shown += chunk.offsets

    def flush(self) -> None:
        self._flushes += 1
        if self._flushes == self._breaks:
            raise BrokenPipeError
        self.flushed = len(self.shown)

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    def stats(self, stats: Stats) -> None: ...


Read = Callable[..., GroupReader]


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Read:
    """Return a reader of `data` that serves the consumer after each 2 to 16 KiB."""
    monkeypatch.setattr(group_reader, "_SERVE_EVERY_S", 0.0)

    def make(
        consumer: Consumer, sink: Sink, data: bytes, *, start: int = 0, end: int = 100, **options: Any
    ) -> GroupReader:
        monkeypatch.setattr(group_reader, "open_consumer", lambda *_: consumer)
        monkeypatch.setattr(group_reader, "Fetcher", type("Filled", (Log,), {"data": data, "start": start}))
        selected = ConsumeOptions(topics=("t",), group="g", exit_eof=True, idle_ms=5000, **options)
        plan = ReadPlan(("t",), (TP,), {}, {TP: end})
        client: Any = None
        return GroupReader(client, selected, plan, Delivery(selected, sink, plan.ends, None), sink)

    return make


def nothing(_consumer: Consumer) -> None: ...


def test_a_partition_is_revoked_during_delivery_and_assigned_again(reader: Read) -> None:
    received: list[int] = []

    def take(consumer: Consumer) -> None:
        received.append(len(sink.shown))
        consumer.take()

    consumer, sink = Consumer(Consumer.give, nothing, take, nothing, Consumer.give), Sink()
    assert reader(consumer, sink, HUNDRED).run() == "end"
    assert 0 < received[0] < 100
    assert sink.shown == list(range(100)), "nothing twice, and nothing left out"
    assert consumer.committed == 100


def test_records_read_by_another_member_in_the_meantime_are_not_shown(reader: Read) -> None:
    def give(consumer: Consumer) -> None:
        assert consumer.committed == len(sink.shown), "all that was shown was committed before it was taken away"
        consumer.committed = 60
        consumer.give()

    consumer, sink = Consumer(Consumer.give, nothing, Consumer.take, give), Sink()
    assert reader(consumer, sink, HUNDRED).run() == "end"
    before = sink.shown.index(60)
    assert sink.shown == [*range(before), *range(60, 100)]
    assert 0 < before < 60


@pytest.mark.parametrize("when", ["r", ".r", "..r", "...r", "r.rr", "rrrrrrrrr"])
def test_a_rebalance_that_keeps_the_partition(reader: Read, when: str) -> None:
    """Records that were requested again in the meantime are not shown twice."""

    def both(consumer: Consumer) -> None:
        consumer.take()
        consumer.give()

    consumer, sink = Consumer(Consumer.give, *(both if each == "r" else nothing for each in when)), Sink()
    assert reader(consumer, sink, HUNDRED).run() == "end"
    assert sink.shown == list(range(100))
    assert consumer.committed == 100


def test_records_after_the_end_are_not_committed(reader: Read) -> None:
    """The end is in a gap: the record after it is for the next reader."""
    data = batch(0, [Rec(offset=1), Rec(offset=5), Rec(offset=9)])
    consumer, sink = Consumer(Consumer.give), Sink()
    assert reader(consumer, sink, data, end=8).run() == "end"
    assert (sink.shown, consumer.committed) == ([1, 5], 8)


def test_markers_at_the_end_count_as_read(reader: Read) -> None:
    data = batch(0, 2, producer=(7, 0, 0), transactional=True) + marker(2, (7, 0))
    consumer, sink = Consumer(Consumer.give), Sink()
    assert reader(consumer, sink, data, end=3).run() == "end"
    assert (sink.shown, consumer.committed) == ([0, 1], 3)


def test_max_messages_is_exact(reader: Read) -> None:
    consumer, sink = Consumer(Consumer.give, committed=3), Sink()
    assert reader(consumer, sink, HUNDRED, max_messages=42).run() == "max-messages"
    assert (sink.shown, consumer.committed) == (list(range(3, 45)), 45)


def test_the_command_stops_when_its_reader_exits(reader: Read) -> None:
    """Records flushed before were delivered and are committed; the rest is not."""
    consumer, sink = Consumer(Consumer.give), Sink(breaks=3)
    with pytest.raises(BrokenPipeError):
        reader(consumer, sink, HUNDRED).run()
    assert 0 < consumer.committed == sink.flushed < len(sink.shown) < 100


def test_interrupted_during_a_write(reader: Read) -> None:
    class Stopped(Sink):
        def flush(self) -> None:
            super().flush()
            if self._flushes == 2:
                raise KeyboardInterrupt

    consumer, sink = Consumer(Consumer.give), Stopped()
    assert reader(consumer, sink, HUNDRED).run() == "interrupted"
    assert 0 < consumer.committed == len(sink.shown) < 100


@pytest.mark.parametrize("error", [RebalanceInProgressError, CommitFailedError, KafkaTimeoutError])
def test_interrupted_in_a_rebalance(reader: Read, error: type[KafkaError]) -> None:
    """A rejected or late commit does not turn Ctrl-C into a failure."""

    class Rebalancing(Consumer):
        def commit(self, *_: object, **_options: object) -> None:
            raise error

    def interrupt(_consumer: Consumer) -> None:
        raise KeyboardInterrupt

    sink = Sink()
    interrupted = reader(Rebalancing(Consumer.give, interrupt), sink, HUNDRED)
    assert interrupted.run() == "interrupted"
    assert interrupted.committed == {}
    (warning,) = sink.warnings
    assert warning.startswith("group g: ")
    assert "the offsets were not committed" in warning


def test_damage_is_reported_with_its_offsets_and_earlier_records_are_committed(reader: Read) -> None:
    data = batch(0, 5) + with_bytes(batch(5, 3), 70, b"\x7f")
    consumer, sink = Consumer(Consumer.give), Sink()
    with pytest.raises(OperationFailed, match="the batch of offsets 5 to 7 is damaged") as caught:
        reader(consumer, sink, data).run()
    assert "kctl group reset-offsets g --topic t:3 --to-offset 8" in str(caught.value.hint)
    assert (sink.shown, consumer.committed) == ([0, 1, 2, 3, 4], 5)


def test_a_truncated_log(reader: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    consumer, sink = Consumer(Consumer.give, committed=2), Sink()
    created = reader(consumer, sink, HUNDRED, start=30)
    monkeypatch.setattr(group_reader, "read_log_offsets", lambda *_: ({TP: LogOffsets(start=30, end=100)}, set(), {}))
    assert created.run() == "end"
    assert sink.shown == list(range(30, 100))
    assert (created.skipped, consumer.committed) == (28, 100)
    assert sink.warnings == ["t-3: offsets 2 to 29 were deleted before they were read"]
