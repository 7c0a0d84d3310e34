"""Offsets committed by a read: never after a record that was not shown, never before those of other members.

The member of the group, its consumer and the brokers are stand-ins, all in `_Cluster`: real ones cannot be made to
rebalance, or a user to press Ctrl-C, between two chosen records.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.structs import MemberState

from kctl.errors import KctlError, OperationFailed
from kctl.model import TopicPartition
from kctl.records.chunk import Chunk
from kctl.records.consume import group_reader
from kctl.records.consume.consumer import to_kafka
from kctl.records.consume.delivery import Delivery
from kctl.records.consume.fetcher import Fetched
from kctl.records.consume.options import ConsumeOptions
from kctl.records.consume.plan import ReadPlan
from kctl.records.consume.select import RecordFilter
from segment_files import Rec, batch

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class _Cluster:
    """A topic of two partitions and a group member that reads it; at the end, Ctrl-C is pressed.

    log: the offsets that records have; offsets: what the group has committed, by whomever; meanwhile: what happens
    within polls of the member, one of them in each. Records come from whoever asks: the member, unless it has paused
    its partitions, or `fetcher`.
    """

    def __init__(self, log: Mapping[TopicPartition, Sequence[int]]) -> None:
        self.log = log
        self.offsets = dict.fromkeys(log, 0)
        self.meanwhile: list[Callable[[], None]] = []
        self.pressed_in_poll = False
        self.joins_at = 0.0
        self._subscription = self._coordinator = self
        self._positions: dict[Any, int] = {}
        self._paused: set[Any] = set()
        self._listener: Any = None
        self._asked: dict[TopicPartition, int] = {}

    # --- other members ---

    def takes_away(self, tp: TopicPartition, *, then_committed: int) -> None:
        self.offsets |= {_ours(each): at for each, at in self._positions.items()}  # as before any rebalance
        self._listener.on_partitions_revoked(set(self._positions))
        self._give({each: at for each, at in self._positions.items() if _ours(each) != tp})
        self.offsets[tp] = then_committed

    def gives_back(self, tp: TopicPartition) -> None:
        self._listener.on_partitions_revoked(set(self._positions))
        self._give(self._positions | {to_kafka(tp): self.offsets[tp]})

    def _give(self, positions: Mapping[Any, int]) -> None:
        self._positions = dict(positions)
        self._paused.clear()
        self._listener.on_partitions_assigned(set(positions))

    # --- the used part of kafka-python's consumer ---

    def group_metadata(self) -> Any:
        return SimpleNamespace(state=MemberState.STABLE if self._positions else MemberState.REBALANCING)

    def need_rejoin(self) -> bool:
        return not self._positions

    def coordinator_unknown(self) -> bool:
        return False

    def subscribe(self, topics: Sequence[str], listener: Any) -> None:
        assert topics == ["t"]
        self._listener = listener

    def assignment(self) -> Collection[Any]:
        return set(self._positions)

    def position(self, tp: Any, timeout_ms: int | None = None) -> int:
        return self._positions[tp]

    def all_consumed_offsets(self) -> Mapping[Any, Any]:
        return {tp: SimpleNamespace(offset=at) for tp, at in self._positions.items()}

    def seek(self, tp: Any, offset: int) -> None:
        self._positions[tp] = offset

    def pause(self, *tps: Any) -> None:
        self._paused.update(tps)

    def poll(self, timeout_ms: int, max_records: int = 500) -> dict[Any, list[Any]]:
        if time.monotonic() < self.joins_at:
            time.sleep(0.01)
            return {}
        if not self._positions:
            self._give({to_kafka(tp): at for tp, at in self.offsets.items()})
        happens = self.meanwhile.pop(0) if self.meanwhile else None
        if happens is not None:
            happens()
        result: dict[Any, list[Any]] = {}
        requests = {tp: at for tp, at in self._positions.items() if tp not in self._paused}
        for tp, at in requests.items():
            offsets = [each for each in self.log[_ours(tp)] if each >= at][
                : max_records - sum(map(len, result.values()))
            ]
            if offsets:
                result[tp] = [_record(offset) for offset in offsets]
                self._positions[tp] = offsets[-1] + 1
        if self.pressed_in_poll or (requests and not (result or happens)):
            raise KeyboardInterrupt
        time.sleep(0 if result else 0.001)
        return result

    def commit(self, offsets: Mapping[Any, Any], timeout_ms: int) -> None:
        self.offsets |= {_ours(tp): each.offset for tp, each in offsets.items()}

    def close(self, *, autocommit: bool, timeout_ms: int) -> None:
        assert not autocommit, "that would commit what was polled and not shown"

    # --- kctl's Fetcher ---

    def fetcher(self, *_: Any, **__: Any) -> Any:
        return _Fetcher(self)


class _Fetcher:
    def __init__(self, cluster: _Cluster) -> None:
        self._cluster = cluster
        self._positions: dict[TopicPartition, int] = {}
        self.searching = False

    def seek(self, tp: TopicPartition, offset: int) -> None:
        self._positions[tp] = offset

    def drop(self, tp: TopicPartition) -> None:
        self._positions.pop(tp, None)

    def poll(self, timeout_s: float) -> Iterator[Fetched]:
        result = False
        for tp, at in list(self._positions.items()):
            offsets = [each for each in self._cluster.log[tp] if each >= at]
            if offsets:
                recs = [Rec(b"k", b"v" * 1000, offset=each - offsets[0]) for each in offsets]
                self._positions[tp] = offsets[-1] + 1
                result = True
                yield Fetched(tp, at, offsets[-1] + 1, batch(offsets[0], recs), (), offsets[-1] + 1)
        if self._cluster.assignment() and not result and not self._cluster.meanwhile:
            raise KeyboardInterrupt
        time.sleep(0 if result else 0.01)

    def close(self) -> None: ...


def _ours(tp: Any) -> TopicPartition:
    return TopicPartition(tp.topic, tp.partition)


def _record(offset: int) -> Any:
    return SimpleNamespace(offset=offset, timestamp=1, key=b"k", value=b"v" * 1000, headers=())


class _Sink:
    """A sink. error: raised instead of the write after this many records."""

    def __init__(self, error: BaseException | None = None, after: int = 0) -> None:
        self.shown: list[tuple[TopicPartition, int]] = []
        self._error, self._after = error, after

    def write(self, chunk: Chunk) -> None:
        if self._error is not None and len(self.shown) >= self._after:
            raise self._error
        self.shown += [(chunk.tp, offset) for offset in chunk.offsets]

    def flush(self) -> None:
        pass

    def warn(self, text: str) -> None:
        raise AssertionError(text)

    def stats(self, stats: Any) -> None:
        pass

    def first_unshown(self, log: Mapping[TopicPartition, Sequence[int]]) -> dict[TopicPartition, int]:
        return {tp: next((each for each in log[tp] if (tp, each) not in self.shown), log[tp][-1] + 1) for tp in log}


def _read(
    monkeypatch: pytest.MonkeyPatch,
    cluster: _Cluster,
    sink: _Sink,
    *,
    ends: Mapping[TopicPartition, int] | None = None,
    **options: Any,
) -> str:
    monkeypatch.setattr(group_reader, "open_consumer", lambda *_: cluster)
    monkeypatch.setattr(group_reader, "Fetcher", cluster.fetcher, raising=False)
    selected = ConsumeOptions(topics=("t",), group="g", exit_eof=ends is not None, **options)
    plan = ReadPlan(("t",), tuple(cluster.log), {}, ends or {})
    nobody: Any = None
    return group_reader.GroupReader(nobody, selected, plan, Delivery(selected, sink, plan.ends, None), sink).run()


def test_records_that_were_fetched_but_not_shown_are_not_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, sink = _Cluster({T0: range(300), T1: range(200)}), _Sink()
    selection = RecordFilter(key=re.compile(b"k"))
    assert _read(monkeypatch, cluster, sink, max_messages=1, selection=selection) == "max-messages"
    assert len(sink.shown) == 1
    assert cluster.offsets == sink.first_unshown(cluster.log)


@pytest.mark.parametrize("after", [0, 1, 6, 350])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), BrokenPipeError(), OperationFailed("no registry")])
def test_the_end_is_reached_during_a_poll(monkeypatch: pytest.MonkeyPatch, error: BaseException, after: int) -> None:
    cluster, sink = _Cluster({T0: range(300), T1: range(200)}), _Sink(error, after)
    if isinstance(error, KeyboardInterrupt):
        assert _read(monkeypatch, cluster, sink) == "interrupted"
    else:
        with pytest.raises((BrokenPipeError, KctlError)):
            _read(monkeypatch, cluster, sink)
    assert after <= len(sink.shown) < 500, "it ended in the midst of them"
    assert cluster.offsets == sink.first_unshown(cluster.log)


def test_ctrl_c_during_a_fetch(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, sink = _Cluster({T0: range(300), T1: range(200)}), _Sink()
    cluster.pressed_in_poll = True
    assert _read(monkeypatch, cluster, sink) == "interrupted"
    assert not sink.shown
    assert cluster.offsets == {T0: 0, T1: 0}


def test_all_records_are_shown_and_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, sink = _Cluster({T0: range(1200), T1: [4, 7, 9]}), _Sink()
    assert _read(monkeypatch, cluster, sink) == "interrupted"
    assert len(sink.shown) == len(set(sink.shown)) == 1203
    assert cluster.offsets == {T0: 1200, T1: 10}


def test_the_log_grows_after_the_end_of_the_read(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, sink = _Cluster({T0: range(300), T1: [*range(600), *range(603, 900)]}), _Sink()
    assert _read(monkeypatch, cluster, sink, ends={T0: 100, T1: 601}) == "end"
    assert sorted(sink.shown) == [(T0, each) for each in range(100)] + [(T1, each) for each in range(600)]
    assert cluster.offsets == {T0: 100, T1: 601}


def test_another_member_read_further_in_the_meantime(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another member gets t-0 after 100 records and returns it with 500 committed; no more records follow."""
    cluster, sink = _Cluster({T0: range(100), T1: [0]}), _Sink()
    cluster.meanwhile = [
        lambda: None,
        lambda: cluster.takes_away(T0, then_committed=500),
        lambda: cluster.gives_back(T0),
    ]
    assert _read(monkeypatch, cluster, sink) == "interrupted"
    assert len(sink.shown) == 101
    assert cluster.offsets == {T0: 500, T1: 1}


def test_a_partition_of_another_member_is_not_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, sink = _Cluster({T0: range(100), T1: [0]}), _Sink()
    cluster.meanwhile = [lambda: None, lambda: cluster.takes_away(T0, then_committed=700)]
    assert _read(monkeypatch, cluster, sink) == "interrupted"
    assert cluster.offsets == {T0: 700, T1: 1}


def test_joining_does_not_count_as_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, sink = _Cluster({T0: [0, 1], T1: [0, 1]}), _Sink()
    cluster.joins_at = time.monotonic() + 0.6
    cluster.meanwhile = [lambda: None] * 1000
    assert _read(monkeypatch, cluster, sink, idle_ms=200) == "idle"
    assert len(sink.shown) == 4
