"""Finalizations that meet a rollback, a refusal, or another kctl; and the exit code after a partial change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kctl.cluster.api_versions import BrokerApis, Feature
from kctl.deploy import store
from kctl.deploy.create import create
from kctl.deploy.host import LocalHost
from kctl.deploy.layout import Release
from kctl.deploy.layout_request import LayoutRequest
from kctl.deploy.runtime.runtime import KafkaRuntime
from kctl.errors import (
    Busy,
    ConnectionFailed,
    ConnectionRefused,
    InvalidFile,
    KctlError,
    NotHealthy,
    OperationFailed,
    Refused,
)
from kctl.features import facts
from kctl.features.plan import ChangeType, FeaturePlan
from kctl.restart.restart_run import NotFinished, RestartOptions, SystemClock
from kctl.restart.steps import BrokerPhase
from kctl.upgrade import finalize, levels, record, run
from kctl.upgrade.plan import rollback_change
from kctl.upgrade.rolling import ChangedNode, RollingWork

HOST = LocalHost()
PLAN = FeaturePlan(ChangeType.UPGRADE, (), ())


class Quiet:
    def note(self, line: str) -> None:
        """Ignore the line."""

    def update(self, message: str, done: float | None = None, total: float | None = None) -> None:
        """Ignore the progress."""


class Controller:
    """The controller's part of a finalization: it cannot be made to refuse, or to take long, on demand."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.refuses = False

    def check(self) -> None:
        self.calls.append("check")

    def apply(self, *_: Any, **__: Any) -> FeaturePlan:
        self.calls.append("apply")
        with pytest.raises(Busy):
            record.set_phase(HOST, "dev", "rolling back")  # as another process that begins a rollback now
        if self.refuses:
            raise Refused("a broker is too old")
        return PLAN


@pytest.fixture
def controller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Controller:
    """A cluster of files only, whose upgrade to 4.4.0 is complete."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for variable in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "KCTL_CONFIG", "KCTL_CONTEXT"):
        monkeypatch.delenv(variable, raising=False)
    request = LayoutRequest("dev", "kraft-separate", brokers=1, controllers=1)
    create(HOST, request, runtime=KafkaRuntime("3.9.2", Path("/old/libs"), "test"), start_it=False)
    record.begin(HOST, "dev", Release("4.4.0", Path("/new/libs")), {"metadata.version": 21})
    made = Controller()

    @contextmanager
    def connect(*_: Any) -> Iterator[None]:
        yield

    monkeypatch.setattr(store, "LOCK_WAIT_S", 0.05)
    monkeypatch.setattr(finalize, "connect", connect)
    monkeypatch.setattr(finalize, "observe", lambda *_: [])  # no node was forgotten
    monkeypatch.setattr(finalize, "unchanged", lambda *_: made)
    monkeypatch.setattr(finalize, "apply", made.apply)
    return made


def work() -> RollingWork:
    return RollingWork(HOST, RestartOptions(broker_timeout_s=1.0, timeout_s=1.0), Quiet(), SystemClock())


def phase() -> str | None:
    upgrade = store.load(HOST, "dev").upgrade
    return None if upgrade is None else upgrade.phase


def carry_out() -> None:
    change = finalize.protocol_change(store.load(HOST, "dev"), "c")
    finalize.carry_out_finalization(change, PLAN, work(), run.Progress())


def test_no_rollback_begins_while_the_features_are_raised(controller: Controller) -> None:
    carry_out()
    assert (controller.calls, phase()) == (["check", "apply"], None)


def test_a_refusal_leaves_the_way_back_open(controller: Controller) -> None:
    controller.refuses = True
    with pytest.raises(Refused, match="too old"):
        carry_out()
    assert phase() == "upgrading"


def test_a_rollback_that_began_during_the_question_wins(controller: Controller) -> None:
    record.set_phase(HOST, "dev", "rolling back")
    with pytest.raises(Refused, match="is being rolled back"):
        carry_out()
    assert (controller.calls, phase()) == ([], "rolling back")


@pytest.mark.usefixtures("controller")
def test_no_broker_gets_the_new_protocol_after_a_rollback_began() -> None:
    record.set_phase(HOST, "dev", "rolling back")
    spec = store.load(HOST, "dev")
    with pytest.raises(Refused, match="not being finalized any more"):
        record.to_new_protocol(HOST, spec, spec.brokers[0])


@pytest.mark.usefixtures("controller")
def test_a_rollback_looks_again_under_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([None, Refused("cluster dev cannot return to 3.9.2")])

    def check(*_: Any) -> None:
        answer = next(answers)
        if answer is not None:
            raise answer

    monkeypatch.setattr(run, "check_way_back", check)
    change = rollback_change(store.load(HOST, "dev"), "c")
    with pytest.raises(Refused, match="cannot return"):
        run.carry_out_rollback(change, work(), run.Progress())
    assert phase() == "upgrading"


@pytest.mark.parametrize(
    ("failure", "phase_of_node", "raised", "expected"),
    [
        (Refused("another kctl"), BrokerPhase.DONE, False, NotFinished),
        (ConnectionFailed("no broker"), BrokerPhase.STOPPING, False, NotFinished),
        (InvalidFile("cluster.json is damaged"), BrokerPhase.DONE, False, NotFinished),
        (Refused("another kctl"), BrokerPhase.PENDING, False, Refused),
        (Busy("another kctl"), BrokerPhase.PENDING, True, NotFinished),
        (NotHealthy("did not stay healthy"), BrokerPhase.DONE, False, NotHealthy),
        (OperationFailed("did not reach broker-2"), BrokerPhase.DONE, False, OperationFailed),
    ],
)
@pytest.mark.usefixtures("controller")
def test_a_partial_change_is_not_reported_as_none(
    failure: KctlError, phase_of_node: BrokerPhase, raised: bool, expected: type[KctlError]
) -> None:
    done = work()
    done.changed_nodes["broker-1"] = ChangedNode("broker-1", phase_of_node)
    change = replace(rollback_change(store.load(HOST, "dev"), "c"), how_to_resume="run it again")
    result = run.as_unfinished(failure, change, done, run.Progress(raised=raised))
    assert type(result) is expected
    if expected is NotFinished:
        assert (result.exit_code, result.details["cause"]) == (5, failure.code)
        assert result.message == f"the rollback to 3.9.2 is unfinished: {failure.message}"
        assert result.hint is not None
        assert result.hint.endswith("run it again")


def _brokers_report(monkeypatch: pytest.MonkeyPatch, *answers: KctlError | int) -> None:
    """Let the brokers report this level of metadata.version, or not respond."""
    rows = {node: answer if isinstance(answer, KctlError) else _apis(answer) for node, answer in enumerate(answers, 1)}
    client = SimpleNamespace(metadata=lambda _topics: SimpleNamespace(brokers=rows))

    @contextmanager
    def live_cluster(_spec: object) -> Iterator[object]:
        yield SimpleNamespace(client=lambda: client)

    monkeypatch.setattr(levels, "live_cluster", live_cluster)
    monkeypatch.setattr(facts, "fetch_api_versions", lambda *_: rows)


def _apis(level: int) -> BrokerApis:
    return BrokerApis({}, (Feature("metadata.version", 7, 33, level),), level)


@pytest.mark.usefixtures("controller")
def test_one_broker_that_responds_closes_the_way_back(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = ConnectionRefused("nothing listens")
    _brokers_report(monkeypatch, refused, 33)  # broker 1 is down and still listed; another tool raised the level
    with pytest.raises(Refused, match=r"metadata.version is 33, but the previous release supports at most 21"):
        levels.check_way_back(HOST, "dev")
    _brokers_report(monkeypatch, refused, 21)
    levels.check_way_back(HOST, "dev")
    record.set_phase(HOST, "dev", "finalizing")
    levels.check_way_back(HOST, "dev")
    _brokers_report(monkeypatch, refused, refused)
    with pytest.raises(Refused, match="the finalization has started"):
        levels.check_way_back(HOST, "dev")
    record.set_phase(HOST, "dev", "upgrading")
    levels.check_way_back(HOST, "dev")
