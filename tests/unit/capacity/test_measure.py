"""kctl capacity --measure: rates over time, and topics that killed measurements left behind."""

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
from kctl.capacity import measurement_topic
from kctl.capacity.measure import MeasureOptions, RateMeter, WriteRun, payloads, warm_up_s
from kctl.capacity.measurement_topic import PREFIX, MeasurementTopic, folder, leftovers, new_topic
from kctl.errors import OperationFailed
from kctl.model import ClusterState, TopicState
from kctl.records.produce.sender import ACKNOWLEDGED, Sender
from kctl.topics.create import CreatedTopic
from kctl.topics.delete import DeletedTopic

OPTIONS = MeasureOptions(f"{PREFIX}mine", 3, 2, 1000, 5.0, 10**9)


# --- rates --------------------------------------------------------------------------------------------------------


def _meter(*arrivals: tuple[float, int]) -> RateMeter:
    meter = RateMeter(1.0, 100.0)
    for at, size in arrivals:
        meter.add(size, 100.0 + at)
    return meter


def test_warm_up_is_not_counted() -> None:
    slow_at_first = _meter((0.5, 10), (1.0, 10), (2.0, 100), (3.0, 300))
    assert slow_at_first.rate() == (2.0, 200)
    assert slow_at_first.bytes == 420


def test_everything_counts_if_it_arrives_during_warm_up() -> None:
    assert _meter((0.25, 500), (0.5, 500)).rate() == (0.5, 2000)
    assert _meter((0.5, 500), (2.0, 500)).rate() == (2.0, 500), "a single response gives no duration"


def test_restart_ignores_earlier_bytes() -> None:
    meter = _meter((0.5, 500))
    meter.restart(100.5)
    assert meter.rate() == (0.5, 1000)
    meter.add(300, 101.0)
    assert meter.rate() == (0.5, 600)
    meter.add(400, 102.0)
    meter.add(400, 104.0)
    assert meter.rate() == (2.0, 200)


def test_no_bytes_is_an_error() -> None:
    for meter in (_meter(), _meter((2.0, 0))):
        with pytest.raises(OperationFailed, match="no data was transferred"):
            meter.rate()


def test_warm_up_depends_on_the_duration() -> None:
    assert [warm_up_s(seconds) for seconds in (0.1, 5.0, 600.0)] == [pytest.approx(0.02), 1.0, 2.0]


@pytest.mark.parametrize("size", [1, 1000, 1_000_000])
def test_payloads(size: int) -> None:
    values = payloads(size)
    assert {len(value) for value in values} == {size}
    assert sum(map(len, values)) <= 4 << 20
    if size > 1:
        assert len(set(values)) == len(values)


# --- writing ------------------------------------------------------------------------------------------------------


class _LateSender:
    """A sender that acknowledges each batch in the next step, but nothing in the first silent_s seconds."""

    def __init__(self, silent_s: float) -> None:
        self.silent_until = time.monotonic() + silent_s
        self.writing: WriteRun | None = None
        self.flushing, self.stopped = False, None
        self._batches: list[int] = []

    @property
    def has_room(self) -> bool:
        return len(self._batches) < 3

    @property
    def idle(self) -> bool:
        return not self._batches

    def add_values(self, values: Sequence[bytes], start: int, end: int, _number: int, _partition: int) -> None:
        self._batches.append(sum(map(len, values[start:end])))

    def step(self, _wait_s: float) -> None:
        time.sleep(0.005)
        if time.monotonic() < self.silent_until or not self._batches:
            return
        batch: Any = SimpleNamespace(count=1, content_bytes=self._batches.pop(0))
        assert self.writing is not None
        self.writing.on_batch(batch, ACKNOWLEDGED, None)


def _write(options: MeasureOptions, silent_s: float) -> WriteRun:
    sender = _LateSender(silent_s)
    writing = sender.writing = WriteRun(options)
    writing.run(cast(Sender, sender), None)
    return writing


def test_clock_starts_with_the_first_acknowledgement() -> None:
    """The leader may not know a new topic for a second."""
    started_at = time.monotonic()
    run = _write(replace(OPTIONS, duration_s=0.1, record_bytes=10), silent_s=0.3)
    assert time.monotonic() - started_at >= 0.4
    assert run.records > 1
    assert run.clock.meter.rate()[1] > 0


def test_all_bytes_in_the_first_acknowledgements() -> None:
    run = _write(replace(OPTIONS, duration_s=5.0, record_bytes=10, max_bytes=20), silent_s=0.05)
    assert (run.records, run.clock.meter.bytes) == (1, 20)
    assert run.clock.meter.rate()[1] > 0


def test_no_acknowledgement() -> None:
    with pytest.raises(OperationFailed, match=r"no record of .*mine was acknowledged within 0\.2 s"):
        _write(replace(OPTIONS, duration_s=0.1, timeout_s=0.1), silent_s=60)


# --- leftovers of killed runs -------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def _state(*names: str, cluster_id: str = "one") -> ClusterState:
    return ClusterState(cluster_id, 1, {}, {name: TopicState(name, False, None, ()) for name in names})


def _started(name: str, cluster_id: str | None = "one") -> journal.Journal:
    topic_journal = journal.create(folder() / f"{name}.jsonl")
    topic_journal.append("begun", topic=name, cluster_id=cluster_id)
    return topic_journal


def _files() -> list[str]:
    return sorted(path.name for path in folder().glob("*"))


def test_leftovers_of_killed_runs() -> None:
    leftover, deleted, elsewhere = (PREFIX + name for name in ("left", "gone", "elsewhere"))
    for name, cluster_id in ((leftover, "one"), (deleted, "one"), (elsewhere, "two")):
        _started(name, cluster_id).close()
    with _started(f"{PREFIX}running"):
        found = leftovers(_state(leftover, f"{PREFIX}running", f"{PREFIX}other", "orders"))
    assert found.topics == (leftover,)
    assert found.others == (f"{PREFIX}other",), "may belong to another machine: only reported"
    assert _files() == [f"{elsewhere}.jsonl", f"{leftover}.jsonl", f"{PREFIX}running.jsonl"], (
        "the topic does not exist, so its file is deleted"
    )


def test_run_killed_before_it_started() -> None:
    journal.create(folder() / f"{PREFIX}early.jsonl").close()
    torn = folder() / f"{PREFIX}torn.jsonl"
    torn.write_bytes(b'{"step":"beg')
    assert leftovers(_state()).topics == ()
    assert _files() == []


def test_hidden_topic_keeps_its_file() -> None:
    _started(OPTIONS.topic).close()
    assert leftovers(_state(), {OPTIONS.topic}).topics == ()
    assert _files() == [f"{OPTIONS.topic}.jsonl"]


def test_no_directory_means_no_leftovers() -> None:
    assert leftovers(_state("orders")) == measurement_topic.Leftovers((), ())


def test_topic_has_the_planned_replication() -> None:
    new = new_topic(OPTIONS)
    assert (new.partitions, new.replication_factor) == (1, 3)
    assert new.configs == {"min.insync.replicas": "2", "cleanup.policy": "delete"}


# --- creation and deletion: brokers are faked, because real ones cannot be interrupted on demand --------------------


class _Brokers:
    """A fake cluster. error: raised by the creation. appears: True if the topic exists afterward."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, error: BaseException | None, appears: bool) -> None:
        self.error, self.appears, self.deleted = error, appears, list[str]()
        self.refuses_to_delete = False
        monkeypatch.setattr(measurement_topic, "plan_create", lambda *_: [])
        monkeypatch.setattr(measurement_topic, "create_topics", self._create)
        monkeypatch.setattr(measurement_topic, "wait_for_topics", lambda _client, names, timeout_s: self._found(names))
        monkeypatch.setattr(measurement_topic, "delete_topics", self._delete)

    def metadata(self, names: list[str]) -> ClusterState:
        return _state(*self._found(names))

    def _found(self, names: list[str]) -> list[str]:
        return names if self.appears else []

    def _create(self, *_: object, timeout_s: float) -> list[CreatedTopic]:
        assert timeout_s == OPTIONS.timeout_s
        if self.error is not None:
            raise self.error
        return [CreatedTopic(OPTIONS.topic, ItemResult.CREATED, 1, 3, {})]

    def _delete(self, _client: object, plan: list[DeletedTopic], *, timeout_s: float) -> list[DeletedTopic]:
        assert timeout_s == OPTIONS.timeout_s
        self.deleted += [row.topic for row in plan]
        return [
            DeletedTopic(
                plan[0].topic, ItemResult.FAILED if self.refuses_to_delete else ItemResult.DELETED, None, 1, 3, None
            )
        ]


def _run(brokers: _Brokers, action: Callable[[MeasurementTopic], object]) -> None:
    with measurement_topic.measurement_topic(brokers, OPTIONS, "one") as topic:  # type: ignore[arg-type]
        try:
            action(topic)
        finally:
            topic.delete()


def test_topic_and_file_are_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = _Brokers(monkeypatch, error=None, appears=True)
    _run(brokers, lambda topic: topic.create())
    assert (brokers.deleted, _files()) == ([OPTIONS.topic], [])


def test_interrupted_creation(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = _Brokers(monkeypatch, error=KeyboardInterrupt(), appears=True)
    with pytest.raises(KeyboardInterrupt):
        _run(brokers, lambda topic: topic.create())
    assert (brokers.deleted, _files()) == ([OPTIONS.topic], [])


def test_interrupted_creation_that_completes_later(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = _Brokers(monkeypatch, error=KeyboardInterrupt(), appears=False)
    with pytest.raises(KeyboardInterrupt):
        _run(brokers, lambda topic: topic.create())
    assert brokers.deleted == []
    assert leftovers(_state(OPTIONS.topic)).topics == (OPTIONS.topic,), "it appeared later: the next run finds it"


def test_interrupted_before_the_creation_request(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = _Brokers(monkeypatch, error=None, appears=False)
    _run(brokers, lambda _topic: None)
    assert (brokers.deleted, _files()) == ([], [])


def test_failed_deletion(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = _Brokers(monkeypatch, error=None, appears=True)
    brokers.refuses_to_delete = True
    with pytest.raises(OperationFailed, match="was not deleted") as caught:
        _run(brokers, lambda topic: topic.create())
    assert "kctl topic delete" in str(caught.value.hint)
    assert leftovers(_state(OPTIONS.topic)).topics == (OPTIONS.topic,)
