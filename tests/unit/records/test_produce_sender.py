"""The sender, its connections and the outcome of each batch, with a programmable broker."""

from __future__ import annotations

import struct
import time
from collections import Counter
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kctl.errors import ConnectionFailed, KctlError, NotSupported, OperationFailed
from kctl.protocol.client import ClusterClient
from kctl.protocol.connection import Connection
from kctl.records.background import Background
from kctl.records.produce import sender as produce_sender
from kctl.records.produce.batch import ClosedBatch
from kctl.records.produce.link import Link
from kctl.records.produce.options import SenderOptions
from kctl.records.produce.outgoing import Outgoing
from kctl.records.produce.sender import ACKNOWLEDGED, FAILED, UNKNOWN, Sender
from produce_fakes import FakeBroker, FakeClient, state


class Rig:
    """A sender with a broker, and the outcomes of batches."""

    def __init__(
        self, partitions: int = 1, *, acks: int = -1, idempotent: bool | None = None, timeout_s: float = 30.0,
        batch_bytes: int = 1000, leader: int = 1, continue_after_loss: bool = False, resend: bool = False,
    ) -> None:  # fmt: skip
        self.client = FakeClient(state(partitions, leader))
        self.outcomes: list[tuple[list[int], str, str | None]] = []
        idempotent = acks == -1 if idempotent is None else idempotent
        self.sender = Sender(
            cast(ClusterClient, self.client),
            SenderOptions(
                "t",
                acks,
                (1, 0) if idempotent else None,
                "none",
                None,
                batch_bytes,
                0.0,
                timeout_s,
                continue_after_loss,
                resend,
            ),
            self.client.known,
            self._done,
            Background(),
        )
        self.number = 0
        self.ended: list[ClosedBatch] = []

    def _done(self, batch: ClosedBatch, outcome: str, error: KctlError | None) -> None:
        self.outcomes.append((list(batch.numbers), outcome, error.message if error else None))
        self.ended.append(batch)

    @property
    def broker(self) -> FakeBroker:
        return self.client.brokers[-1]

    def batch(self, partition: int | None = 0, size: int = 950) -> None:
        """Give a record that fills a batch."""
        self.number += 1
        self.sender.add(Outgoing(None, b"x" * size, partition=partition), self.number)

    def step(self, times: int = 1) -> None:
        for _ in range(times):
            self.sender.step(0)
            self.broker.listen()

    def until(self, met: Callable[[], object], what: str, *, answering: bool = False) -> None:
        ends = time.monotonic() + 20
        while not met():
            assert time.monotonic() < ends, what
            self.sender.step(0.01)
            self.broker.listen()
            while answering and self.broker.requests:
                self.broker.answer()

    def acknowledged(self) -> list[int]:
        return [number for numbers, outcome, _ in self.outcomes if outcome == ACKNOWLEDGED for number in numbers]


@pytest.fixture
def rig() -> Iterator[Callable[..., Rig]]:
    created: list[Rig] = []

    def make(*args: Any, connect: bool = True, **options: Any) -> Rig:
        created.append(Rig(*args, **options))
        if connect:
            created[-1].sender.connect()
        return created[-1]

    yield make
    for one in created:
        one.sender.close(at_once=True)
        one.broker.close()


def test_one_batch_until_the_first_is_acknowledged_and_then_five(rig: Callable[..., Rig]) -> None:
    """A broker without state of a producer accepts any sequence number, so the first batch must be in the log first."""
    it = rig()
    for _ in range(8):
        it.batch()
    it.step(5)
    assert len(it.broker.requests) == 1
    it.broker.answer()
    it.step(5)
    assert len(it.broker.requests) == 5
    while it.broker.requests:
        it.broker.answer()
        it.step(3)
    assert it.acknowledged() == list(range(1, 9))
    assert it.sender.idle


def test_after_an_error_one_at_a_time_and_in_order(rig: Callable[..., Rig]) -> None:
    it = rig()
    it.batch()
    it.until(it.acknowledged, "the first", answering=True)
    for _ in range(5):
        it.batch()
    it.until(lambda: len(it.broker.requests) == 5, "five under way")
    codes = iter([(19, -1), (45, -1), (45, -1), (45, -1), (45, -1)])
    it.broker.judge = lambda _partition: next(codes)
    for _ in range(5):
        it.broker.answer()
    it.until(lambda: it.broker.requests, "sent again")
    it.step(5)
    assert len(it.broker.requests) == 1
    it.broker.judge = lambda _partition: (0, 7)
    it.until(lambda: it.sender.idle, "all of them", answering=True)
    assert it.acknowledged() == list(range(1, 7))


def test_a_lost_response_among_five(rig: Callable[..., Rig]) -> None:
    it = rig()
    it.batch()
    it.until(it.acknowledged, "the first", answering=True)
    for _ in range(5):
        it.batch()
    it.until(lambda: len(it.broker.requests) == 5, "five under way")
    for _ in range(2):
        it.broker.answer()
    it.broker.close()
    it.until(lambda: it.sender.idle, "sent again on a new connection", answering=True)
    assert it.acknowledged() == list(range(1, 7))
    assert len(it.client.brokers) == 2
    assert sum(map(len, it.broker.seen)) == 3


def test_every_partition_gets_its_turn(rig: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve partitions of one leader, requests that hold four batches, and a link that is the bottleneck."""
    monkeypatch.setattr(produce_sender, "_REQUEST_BYTES", 4200)
    it = rig(12)
    count: Counter[int] = Counter()
    for _ in range(200):
        lengths = Counter({queue.partition: queue.length for queue in it.sender._queues})
        while sum(lengths.values()) < 120:  # as the sticky partition does: the shortest queue
            partition = min(lengths, key=lambda number: lengths[number])
            it.batch(partition)
            lengths[partition] += 1
        it.step()
        if it.broker.requests:
            count.update(it.broker.requests[0][1])
            it.broker.answer()
    assert len(count) == 12
    assert min(count.values()) * 2 > max(count.values()), count


def test_waiting_behind_other_partitions_counts_as_progress(
    rig: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(produce_sender, "_REQUEST_BYTES", 1)
    it = rig(12, timeout_s=1.0)
    for partition in range(12):
        it.batch(partition)
    started = time.monotonic()
    while not it.sender.idle and it.sender.stopped is None:
        it.step(2)
        time.sleep(0.15)  # per request: 1.8 s in total
        if it.broker.requests:
            it.broker.answer()
    assert time.monotonic() - started > 1.5
    assert sorted(it.acknowledged()) == list(range(1, 13)), it.outcomes


@pytest.mark.parametrize(
    ("code", "offset", "acks", "idempotent", "sent_again", "in_the_end"),
    [
        # Rejected before the append: not in the log, may be retried.
        (6, -1, -1, True, True, FAILED), (6, -1, -1, False, True, FAILED), (6, -1, 1, False, True, FAILED),
        (3, -1, -1, True, True, FAILED), (19, -1, -1, False, True, FAILED),
        # After the append (DelayedProduce keeps the offset): retried only if the broker detects duplicates.
        (6, 5, -1, True, True, UNKNOWN), (6, 5, -1, False, False, UNKNOWN),
        (3, 5, -1, True, True, UNKNOWN), (3, 5, -1, False, False, UNKNOWN),
        (7, -1, -1, True, True, UNKNOWN), (7, -1, -1, False, False, UNKNOWN), (20, -1, -1, False, False, UNKNOWN),
        (56, -1, -1, True, True, UNKNOWN), (56, -1, -1, False, False, UNKNOWN),
        # Never retried.
        (-1, -1, -1, True, False, UNKNOWN), (10, -1, -1, True, False, FAILED), (87, -1, 1, False, False, FAILED),
    ],
)  # fmt: skip
def test_the_outcome_of_a_batch_by_error(
    rig: Callable[..., Rig], code: int, offset: int, acks: int, idempotent: bool, sent_again: bool, in_the_end: str
) -> None:
    it = rig(acks=acks, idempotent=idempotent, timeout_s=0.3)
    it.broker.judge = lambda _partition: (code, offset)
    it.batch()
    it.until(lambda: it.sender.idle, "its outcome", answering=True)
    assert [outcome for _, outcome, _ in it.outcomes] == [in_the_end]
    assert (len(it.broker.seen) > 1) == sent_again
    assert it.sender.stopped is not None


def test_with_acks_0_a_write_is_progress(rig: Callable[..., Rig]) -> None:
    """Writing a large batch takes longer than --timeout on a slow connection: nothing is given up twice."""
    it = rig(acks=0, timeout_s=1.0, batch_bytes=2_000_000)
    it.batch(size=1_500_000)
    ends = time.monotonic() + 5
    while not it.sender.idle and time.monotonic() < ends:
        it.sender.step(0.05)
        time.sleep(0.05)
        it.broker.listen(50_000)
    assert [outcome for _, outcome, _ in it.outcomes] == [ACKNOWLEDGED]
    assert it.sender.stopped is None


def test_with_acks_0_a_late_write_is_ignored(rig: Callable[..., Rig]) -> None:
    it = rig(acks=0, timeout_s=0.3, batch_bytes=2_000_000)
    it.batch(size=1_500_000)
    ends = time.monotonic() + 10
    while it.sender.stopped is None and time.monotonic() < ends:
        it.sender.step(0.02)
    assert [outcome for _, outcome, _ in it.outcomes] == [UNKNOWN]
    it.step(50)  # the rest is written
    assert len(it.outcomes) == 1


def test_throttle_time_is_waited_for(rig: Callable[..., Rig]) -> None:
    """The broker responds at once, then pauses for throttle_time_ms, which is neither silence nor lack of progress."""
    it = rig(timeout_s=1.0)
    it.broker.throttle_ms = 2000
    it.batch()
    it.until(it.acknowledged, "the first", answering=True)
    it.broker.throttle_ms = 0
    started = time.monotonic()
    for _ in range(3):
        it.batch()
    it.until(lambda: it.broker.requests, "the next one")
    assert time.monotonic() - started > 1.5
    it.until(lambda: it.sender.idle, "all", answering=True)
    assert it.acknowledged() == [1, 2, 3, 4]
    assert len(it.client.brokers) == 1


def test_old_brokers_wait_for_the_throttle_time_themselves(rig: Callable[..., Rig]) -> None:
    link = Link(1, cast(Connection, broker := FakeBroker()), 5, -1)
    link.send("t", 1000, [], (1, 0))
    link.write()
    broker.listen()
    body = struct.pack(">ii", 0, 60_000)
    broker.say(struct.pack(">ii", 4 + len(body), 1) + body)
    assert len(link.read()) == 1
    assert link.has_room
    link.close()
    broker.close()


def test_a_partition_that_accepts_nothing_is_reported_once(rig: Callable[..., Rig]) -> None:
    """The broker's message names the partition, too."""
    sender = rig(timeout_s=4.0).sender
    sender._leaders.trouble = OperationFailed("partition t-0: fewer replicas are in sync", hint="wait")
    result = sender._no_progress(cast(Any, SimpleNamespace(partition=0, size_hint=None)))
    assert result.message == "partition t-0 accepted nothing for 4 s: fewer replicas are in sync"


def test_a_silent_broker_is_reported(rig: Callable[..., Rig]) -> None:
    it = rig(timeout_s=1.2)
    it.batch()
    it.until(lambda: it.sender.idle, "given up")
    ((_, outcome, why),) = it.outcomes
    assert outcome == UNKNOWN
    assert why
    assert "accepted nothing for 1.2 s" in why
    it = rig(idempotent=False, timeout_s=2.0)
    it.batch()
    it.until(lambda: it.sender.idle, "given up")
    assert it.sender._leaders.trouble is not None
    assert it.sender._leaders.trouble.message == "the connection to broker 1 broke: no response within 1.5 s"


def test_the_client_waits_longer_than_the_broker(rig: Callable[..., Rig]) -> None:
    """The broker's REQUEST_TIMED_OUT arrives first."""
    it = rig(timeout_s=30)
    assert it.sender._silent_s == it.sender._request_s + 5


def test_responses_before_an_invalid_one_count(rig: Callable[..., Rig]) -> None:
    it = rig()
    it.batch()
    it.until(it.acknowledged, "the first", answering=True)
    for _ in range(2):
        it.batch()
    it.until(lambda: len(it.broker.requests) == 2, "two under way")
    it.broker.answer()
    it.broker.say(b"\xff\xff\xff\xff\0\0\0\0")
    it.broker.requests.clear()
    it.until(lambda: len(it.client.brokers) > 1 and it.sender.idle, "the other on a new connection", answering=True)
    assert it.acknowledged() == [1, 2, 3]
    assert sum(map(len, it.broker.seen)) == 1


def test_responses_before_a_failed_write_count(rig: Callable[..., Rig]) -> None:
    it = rig(2, acks=1, batch_bytes=3_000_000)
    it.batch(0)
    it.sender.flushing = True
    it.until(lambda: it.broker.requests, "the first")
    it.batch(1, size=2_900_000)
    it.until(lambda: len(it.broker._in) > 100_000, "some of the second")
    it.sender.step(0)
    it.broker.answer()
    it.broker.close()
    it.until(lambda: it.acknowledged() == [1], "the first one's answer")
    it.until(lambda: it.sender.idle, "the second on a new connection: it was cut short", answering=True)
    assert it.acknowledged() == [1, 2]


def test_no_broker_supports_the_codec(rig: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeBroker, "api_versions", {0: (0, 2)})
    with pytest.raises(NotSupported, match="format 2"):
        rig(connect=False).sender.connect()
    it = rig(connect=False)
    it.client.outcome = ConnectionFailed("no way")
    with pytest.raises(ConnectionFailed, match="no way"):
        it.sender.connect()


def test_waiting_for_a_leader_uses_no_cpu(rig: Callable[..., Rig]) -> None:
    it = rig(leader=-1)
    it.batch(size=10)
    steps = 0
    ends = time.monotonic() + 1.0
    while time.monotonic() < ends:
        it.sender.step(1.0)
        steps += 1
    assert steps < 100
    it.client.known = state(1)
    it.until(lambda: it.sender.idle, "a leader", answering=True)
    assert it.acknowledged() == [1]


def test_go_on_continues_in_the_next_epoch_after_a_rejected_batch(rig: Callable[..., Rig]) -> None:
    """A broker rejects batches after a missing sequence number, but accepts the first one of a newer epoch."""
    it = rig(2, continue_after_loss=True)
    for _ in range(2):
        it.batch(0)
        it.batch(1)
    it.until(lambda: it.sender.idle, "the first", answering=True)
    codes = iter([(10, -1), (0, 30), (0, 31)])
    it.broker.judge = lambda partition: next(codes) if partition == 0 else (0, 7)
    it.batch(0)
    it.until(lambda: it.sender.idle, "its refusal", answering=True)
    for _ in range(2):
        it.batch(0)
    it.batch(1)
    it.until(lambda: it.sender.idle, "the others", answering=True)
    assert it.sender.stopped is None
    assert [outcome for _, outcome, _ in it.outcomes] == [ACKNOWLEDGED] * 4 + [FAILED] + [ACKNOWLEDGED] * 3
    received = [(batch.epoch, batch.sequence, batch.base_offset) for batch in it.ended if batch.partition == 0]
    assert received == [(0, 0, 0), (0, 1, 0), (0, 2, -1), (1, 0, 30), (1, 1, 31)]
    assert [batch.sequence for batch in it.ended if batch.partition == 1] == [0, 1, 2]


def test_go_on_gives_up_batches_sent_after_the_lost_one(rig: Callable[..., Rig]) -> None:
    it = rig(continue_after_loss=True)
    it.batch()
    it.until(it.acknowledged, "the first", answering=True)
    for _ in range(7):
        it.batch()
    it.until(lambda: len(it.broker.requests) == 5, "five under way")
    it.broker.judge = lambda _partition: (10, -1)
    it.broker.answer()
    it.step()
    it.broker.judge = lambda _partition: (0, 40)
    it.until(lambda: it.sender.idle, "the others", answering=True)
    outcomes = {numbers[0]: outcome for numbers, outcome, _ in it.outcomes}
    assert outcomes == {
        1: ACKNOWLEDGED, 2: FAILED, **dict.fromkeys((3, 4, 5, 6), UNKNOWN), 7: ACKNOWLEDGED, 8: ACKNOWLEDGED,
    }  # fmt: skip
    assert [(batch.epoch, batch.sequence) for batch in it.ended[-2:]] == [(1, 0), (1, 1)]


def test_go_on_continues_after_a_partition_was_given_up(rig: Callable[..., Rig]) -> None:
    it = rig(continue_after_loss=True, timeout_s=0.3)
    it.broker.judge = lambda _partition: (19, -1)
    it.batch()
    it.batch()
    it.until(lambda: len(it.outcomes) == 2, "no progress", answering=True)
    assert [outcome for _, outcome, _ in it.outcomes] == [FAILED, FAILED]
    it.broker.judge = lambda _partition: (0, 5)
    it.batch()
    it.until(lambda: it.sender.idle, "the next", answering=True)
    assert it.acknowledged() == [3]
    assert it.sender.stopped is None


def test_go_on_without_idempotence_sends_nothing_twice(rig: Callable[..., Rig]) -> None:
    it = rig(acks=1, continue_after_loss=True)
    for _ in range(3):
        it.batch()
    it.until(lambda: it.broker.requests, "the first")
    it.broker.close()
    it.until(lambda: it.sender.idle, "the others on a new connection", answering=True)
    assert [outcome for _, outcome, _ in it.outcomes] == [UNKNOWN, ACKNOWLEDGED, ACKNOWLEDGED]
    assert [len(broker.seen) for broker in it.client.brokers] == [1, 2]


def test_resend_behaves_like_producers_without_idempotence(rig: Callable[..., Rig]) -> None:
    """Batches in flight on a broken connection are sent again, so they may be in the log twice."""
    it = rig(acks=1, continue_after_loss=True, resend=True)
    it.batch()
    it.until(it.acknowledged, "the first", answering=True)
    for _ in range(5):
        it.batch()
    it.until(lambda: len(it.broker.requests) == 5, "five under way")
    it.broker.answer()
    it.broker.close()
    it.until(lambda: it.sender.idle, "the others on a new connection", answering=True)
    assert it.acknowledged() == list(range(1, 7))
    assert [len(broker.seen) for broker in it.client.brokers] == [6, 4]
    assert all(batch.sequence == -1 for batch in it.ended)
