"""kctl capacity --measure: rates of what came when, and whose a topic is that was left."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kctl.base import journal
from kctl.base.outcomes import ItemResult
from kctl.capacity import own_topic
from kctl.capacity.measure import MeasureOptions, Meter, Writing, payloads, warm_s
from kctl.capacity.own_topic import PREFIX, OwnTopic, folder, leftovers, new_topic
from kctl.errors import OperationFailed
from kctl.model import ClusterState, TopicState
from kctl.records.produce.sender import ACKNOWLEDGED, Sender
from kctl.topics.create import CreatedTopic
from kctl.topics.delete import DeletedTopic

OPTIONS = MeasureOptions(f"{PREFIX}mine", 3, 2, 1000, 5.0, 10**9)


# --- rates --------------------------------------------------------------------------------------------------------


def _meter(*came: tuple[float, int]) -> Meter:
    meter = Meter(1.0, 100.0)
    for at, size in came:
        meter.add(size, 100.0 + at)
    return meter


def test_the_warm_up_does_not_count() -> None:
    slow_at_first = _meter((0.5, 10), (1.0, 10), (2.0, 100), (3.0, 300))
    assert slow_at_first.rate() == (2.0, 200)
    assert slow_at_first.bytes == 420


def test_what_is_through_before_the_warm_up_ends_counts_whole() -> None:
    assert _meter((0.25, 500), (0.5, 500)).rate() == (0.5, 2000)
    assert _meter((0.5, 500), (2.0, 500)).rate() == (2.0, 500), "one answer behind it is no time"


def test_what_came_first_counts_only_alone() -> None:
    meter = _meter((0.5, 500))
    meter.restart(100.5)
    assert meter.rate() == (0.5, 1000)
    meter.add(300, 101.0)
    assert meter.rate() == (0.5, 600)
    meter.add(400, 102.0)
    meter.add(400, 104.0)
    assert meter.rate() == (2.0, 200)


def test_nothing_is_no_rate() -> None:
    for meter in (_meter(), _meter((2.0, 0))):
        with pytest.raises(OperationFailed, match="nothing came through"):
            meter.rate()


def test_the_warm_up_is_a_part_of_the_time() -> None:
    assert [warm_s(seconds) for seconds in (0.1, 5.0, 600.0)] == [pytest.approx(0.02), 1.0, 2.0]


@pytest.mark.parametrize("size", [1, 1000, 1_000_000])
def test_payloads(size: int) -> None:
    made = payloads(size)
    assert {len(value) for value in made} == {size}
    assert sum(map(len, made)) <= 4 << 20
    if size > 1:
        assert len(set(made)) == len(made)


# --- writing ------------------------------------------------------------------------------------------------------


class _LateSender:
    """Acknowledges each batch of one look at the next, but none in its first seconds."""

    def __init__(self, silent_s: float) -> None:
        self.silent_until = time.monotonic() + silent_s
        self.writing: Writing | None = None
        self.flushing, self.stopped = False, None
        self._given: list[int] = []

    @property
    def has_room(self) -> bool:
        return len(self._given) < 3

    @property
    def idle(self) -> bool:
        return not self._given

    def add_values(self, values: Sequence[bytes], start: int, end: int, _number: int, _partition: int) -> None:
        self._given.append(sum(map(len, values[start:end])))

    def step(self, _wait_s: float) -> None:
        time.sleep(0.005)
        if time.monotonic() < self.silent_until or not self._given:
            return
        batch: Any = SimpleNamespace(count=1, content_bytes=self._given.pop(0))
        assert self.writing is not None
        self.writing.done(batch, ACKNOWLEDGED, None)


def _write(options: MeasureOptions, silent_s: float) -> Writing:
    sender = _LateSender(silent_s)
    writing = sender.writing = Writing(options)
    writing.go(cast(Sender, sender), None)
    return writing


def test_the_time_begins_with_the_first_acknowledgement() -> None:
    """A new topic's leader may not know it for a second."""
    began = time.monotonic()
    written = _write(replace(OPTIONS, duration_s=0.1, record_bytes=10), silent_s=0.3)
    assert time.monotonic() - began >= 0.4
    assert written.records > 1
    assert written.clock.meter.rate()[1] > 0


def test_all_of_the_bytes_within_the_first_acknowledgements() -> None:
    written = _write(replace(OPTIONS, duration_s=5.0, record_bytes=10, max_bytes=20), silent_s=0.05)
    assert (written.records, written.clock.meter.bytes) == (1, 20)
    assert written.clock.meter.rate()[1] > 0


def test_no_acknowledgement_ever() -> None:
    with pytest.raises(OperationFailed, match=r"nothing for .*mine was acknowledged within 0\.2 s"):
        _write(replace(OPTIONS, duration_s=0.1, timeout_s=0.1), silent_s=60)


# --- whose topic it is --------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def _state(*names: str, cluster_id: str = "one") -> ClusterState:
    return ClusterState(cluster_id, 1, {}, {name: TopicState(name, False, None, ()) for name in names})


def _begun(name: str, cluster_id: str | None = "one") -> journal.Journal:
    held = journal.create(folder() / f"{name}.jsonl")
    held.append("begun", topic=name, cluster_id=cluster_id)
    return held


def _files() -> list[str]:
    return sorted(path.name for path in folder().glob("*"))


def test_what_a_killed_run_left() -> None:
    left, gone, elsewhere = (PREFIX + name for name in ("left", "gone", "elsewhere"))
    for name, cluster_id in ((left, "one"), (gone, "one"), (elsewhere, "two")):
        _begun(name, cluster_id).close()
    with _begun(f"{PREFIX}running"):
        found = leftovers(_state(left, f"{PREFIX}running", f"{PREFIX}other", "orders"))
    assert found.topics == (left,)
    assert found.others == (f"{PREFIX}other",), "another machine's, perhaps: only told"
    assert _files() == [f"{elsewhere}.jsonl", f"{left}.jsonl", f"{PREFIX}running.jsonl"], "one is gone, so its file is"


def test_a_run_that_was_killed_before_it_began_anything() -> None:
    journal.create(folder() / f"{PREFIX}early.jsonl").close()
    torn = folder() / f"{PREFIX}torn.jsonl"
    torn.write_bytes(b'{"step":"beg')
    assert leftovers(_state()).topics == ()
    assert _files() == []


def test_a_topic_that_this_user_may_not_see_is_not_gone() -> None:
    _begun(OPTIONS.topic).close()
    assert leftovers(_state(), {OPTIONS.topic}).topics == ()
    assert _files() == [f"{OPTIONS.topic}.jsonl"]


def test_no_folder_is_nothing_left() -> None:
    assert leftovers(_state("orders")) == own_topic.Leftovers((), ())


def test_the_topic_is_as_safe_as_planned() -> None:
    new = new_topic(OPTIONS)
    assert (new.partitions, new.replication_factor) == (1, 3)
    assert new.configs == {"min.insync.replicas": "2", "cleanup.policy": "delete"}


# --- making and removing it: creation cannot be interrupted on demand, so the brokers' answers are made up ----------


class _Brokers:
    """Stands for the cluster. ends: what creation ends in; appears: whether the topic is there after it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, ends: BaseException | None, appears: bool) -> None:
        self.ends, self.appears, self.deleted = ends, appears, list[str]()
        self.refuses_to_delete = False
        monkeypatch.setattr(own_topic, "plan_create", lambda *_: [])
        monkeypatch.setattr(own_topic, "create_topics", self._create)
        monkeypatch.setattr(own_topic, "wait_for_topics", lambda _client, names, timeout_s: self._there(names))
        monkeypatch.setattr(own_topic, "delete_topics", self._delete)

    def metadata(self, names: list[str]) -> ClusterState:
        return _state(*self._there(names))

    def _there(self, names: list[str]) -> list[str]:
        return names if self.appears else []

    def _create(self, *_: object, timeout_s: float) -> list[CreatedTopic]:
        assert timeout_s == OPTIONS.timeout_s
        if self.ends is not None:
            raise self.ends
        return [CreatedTopic(OPTIONS.topic, ItemResult.CREATED, 1, 3, {})]

    def _delete(self, _client: object, plan: list[DeletedTopic], *, timeout_s: float) -> list[DeletedTopic]:
        assert timeout_s == OPTIONS.timeout_s
        self.deleted += [row.topic for row in plan]
        return [
            DeletedTopic(
                plan[0].topic, ItemResult.FAILED if self.refuses_to_delete else ItemResult.DELETED, None, 1, 3, None
            )
        ]


def _run(brokers: _Brokers, between: Callable[[OwnTopic], object]) -> None:
    with own_topic.own_topic(brokers, OPTIONS, "one") as topic:  # type: ignore[arg-type]
        try:
            between(topic)
        finally:
            topic.remove()


def test_it_goes_and_its_file_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = _Brokers(monkeypatch, ends=None, appears=True)
    _run(brokers, lambda topic: topic.make())
    assert (brokers.deleted, _files()) == ([OPTIONS.topic], [])


def test_interrupted_while_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = _Brokers(monkeypatch, ends=KeyboardInterrupt(), appears=True)
    with pytest.raises(KeyboardInterrupt):
        _run(brokers, lambda topic: topic.make())
    assert (brokers.deleted, _files()) == ([OPTIONS.topic], [])


def test_interrupted_and_not_there_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = _Brokers(monkeypatch, ends=KeyboardInterrupt(), appears=False)
    with pytest.raises(KeyboardInterrupt):
        _run(brokers, lambda topic: topic.make())
    assert brokers.deleted == []
    assert leftovers(_state(OPTIONS.topic)).topics == (OPTIONS.topic,), "it came later: the next run finds it"


def test_interrupted_before_anything_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = _Brokers(monkeypatch, ends=None, appears=False)
    _run(brokers, lambda _topic: None)
    assert (brokers.deleted, _files()) == ([], [])


def test_it_does_not_go(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = _Brokers(monkeypatch, ends=None, appears=True)
    brokers.refuses_to_delete = True
    with pytest.raises(OperationFailed, match="is not gone") as caught:
        _run(brokers, lambda topic: topic.make())
    assert "kctl topic delete" in str(caught.value.hint)
    assert leftovers(_state(OPTIONS.topic)).topics == (OPTIONS.topic,)
