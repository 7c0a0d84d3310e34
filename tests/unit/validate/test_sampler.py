"""What the sampler keeps of what brokers say, and the faults that are noted for later."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from unittest import mock

import pytest

from kctl.errors import InvalidFile, NotFound, OperationFailed, TimedOut
from kctl.model import Broker, ClusterState, PartitionState, TopicState
from kctl.protocol.target import Target
from kctl.validate.fault_log import note_fault, read_faults
from kctl.validate.report.gaps import Fault
from kctl.validate.report.timeline import PartitionView
from kctl.validate.sampler import Sampler, _Changes, views_of

FULL, SHORT = PartitionView(1, 5, full=True), PartitionView(1, 5, full=False)


def test_a_sample_for_each_change() -> None:
    changes: _Changes[str] = _Changes()
    assert changes.last() is None
    for said in ("a", "a", "b", "a"):
        changes.add(said)
    assert [said for _, _, said in changes.rows()] == ["a", "b", "a"]
    first, second, third = changes.rows()
    assert first[0] < first[1] < second[0] == second[1] < third[0]


def test_what_a_broker_says_of_the_topic() -> None:
    rows = (
        PartitionState("t", 0, 2, 7, (2, 1), (2,)), PartitionState("t", 1, -1, 8, (1, 2), (1, 2)),
    )  # fmt: skip
    state = ClusterState("c", 1, {1: Broker(1, "h", 1)}, {"t": TopicState("t", False, None, rows)})
    assert views_of(state, "t") == {0: PartitionView(2, 7, full=False), 1: PartitionView(-1, 8, full=True)}
    assert views_of(state, "other") == {}


def sampler(**said: dict[int, PartitionView]) -> Sampler:
    """said: what each broker said just now, b1, b2 …"""
    made = Sampler(Target("c", ("h:1",)), "t", every_s=0.01)
    for name, views in said.items():
        changes: _Changes[dict[int, PartitionView]] = _Changes()
        made._views[int(name[1:])] = changes
        changes.add(views)
    return made


def test_full_is_what_every_broker_calls_full_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kctl.validate.sampler._TIMEOUT_S", 60.0)  # they are asked once
    started = time.monotonic()
    sampler(b1={0: FULL}, b2={0: FULL}).wait_full_isr(5, stable_s=0.05)
    assert time.monotonic() - started >= 0.05


@pytest.mark.parametrize(
    "views",
    [{}, {0: SHORT}, {0: FULL, 1: SHORT}, {0: PartitionView(-1, 5, full=True)}],
    ids=["unknown topic", "short", "one short", "no leader"],
)
def test_one_broker_that_does_not_call_it_full(views: dict[int, PartitionView]) -> None:
    with pytest.raises(TimedOut, match="topic t was not fully replicated"):
        sampler(b1={0: FULL}, b2=views).wait_full_isr(0.2, stable_s=0.05)


def test_a_broker_that_does_not_answer_keeps_it_from_being_full(monkeypatch: pytest.MonkeyPatch) -> None:
    made = sampler(b1={0: FULL}, b2={0: FULL})
    assert made._full_now(time.monotonic_ns())
    assert not made._full_now(time.monotonic_ns() + 1_200_000_000)
    with pytest.raises(TimedOut):
        sampler().wait_full_isr(0.05)


def test_it_begins_when_every_broker_knows_the_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was just made is not known everywhere at once; a replica that is behind keeps nobody from beginning."""
    monkeypatch.setattr("kctl.validate.sampler._TIMEOUT_S", 60.0)  # they are asked once
    made = sampler(b1={0: SHORT}, b2={})
    monkeypatch.setattr("kctl.validate.sampler.connect", mock.Mock())
    answers = [NotFound("there is no t"), NotFound("there is no t"), mock.Mock(brokers={})]
    monkeypatch.setattr("kctl.validate.sampler.known_topics", mock.Mock(side_effect=answers))
    monkeypatch.setattr(made, "_run", lambda *_: threading.Timer(0.3, made._views[2].add, [{0: FULL}]).start())
    began = time.monotonic()
    made.start()
    assert time.monotonic() - began > 0.25
    monkeypatch.setattr("kctl.validate.sampler._START_S", 0.05)
    monkeypatch.setattr("kctl.validate.sampler.known_topics", mock.Mock(side_effect=NotFound("there is no t")))
    with pytest.raises(NotFound):
        sampler(b1={0: FULL}).start()


def test_samples_of_all_brokers_in_the_order_of_time() -> None:
    made = sampler(b2={0: FULL}, b1={0: SHORT})
    made._views[2].add({0: SHORT})
    assert [(sample.node, sample.partitions[0].full) for sample in made.samples] == [
        (2, True), (1, False), (2, False),
    ]  # fmt: skip
    made._controllers.add((None, 4))
    assert [(each.controller, each.epoch) for each in made.controllers] == [(None, 4)]


# --- faults ---------------------------------------------------------------------------------------------------------


def test_faults_are_noted_and_read(tmp_path: Path) -> None:
    assert read_faults(tmp_path) == []
    faults = [Fault("kill -9 of broker 1", 12, (1,)), Fault("«ü» and\nmore", 13)]
    for fault in faults:
        note_fault(tmp_path, fault)
    assert read_faults(tmp_path) == faults
    path = tmp_path / "faults.jsonl"
    path.write_bytes(path.read_bytes()[:-3])
    assert read_faults(tmp_path) == faults[:1]
    path.write_bytes(b"[]\n")
    with pytest.raises(InvalidFile):
        read_faults(tmp_path)
    with pytest.raises(OperationFailed):
        note_fault(tmp_path / "none", faults[0])
