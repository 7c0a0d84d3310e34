"""The scenarios: the faults that each injects, and its requirements."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from kctl.errors import Reason, Refused
from kctl.restart.control import Act
from kctl.validate.fault_injection import FaultInjection
from kctl.validate.stage import Stage

_AWAY_S = 10.0  # how long a broker stays down after the cluster has noticed it


@dataclass(frozen=True)
class Scenario:
    """A scenario.

    does: its steps in order, for the plan. proves: what a passed run shows. acts: required actions of the broker
    control. measures: names of the checked budgets; none if writes stop on purpose. servers: those that it kills, if
    they are not brokers.
    """

    name: str
    does: str
    proves: str
    acts: tuple[Act, ...]
    run: Callable[[Stage], None]
    measures: tuple[str, ...]
    servers: Literal["zookeepers", "controllers"] | None = None
    unclean: bool = False


def leader_election(stage: Stage) -> None:
    """Crash and restart a leader that is not the controller, then elect preferred leaders."""
    controller = stage.controller()
    stage.wait_for_writes()
    partition = next((p for p in stage.partitions() if p.leader not in (controller, -1)), None)
    if partition is None:
        raise Refused("only the controller leads partitions", reason=Reason.NOT_READY)
    stage.roles[partition.leader] = f"leader of partition {partition.partition}"
    stage.breaker.kill(partition.leader)
    stage.wait_for_writes("waiting for writes in every partition")
    stage.start(partition.leader)
    stage.wait_for_recovery()
    stage.fault("election of the preferred leaders")
    stage.elect_preferred()
    stage.wait_for_writes()


def controller_election(stage: Stage) -> None:
    """Crash and restart the controller."""
    stage.wait_for_writes()
    controller = stage.controller()
    stage.roles[controller] = "the controller"
    stage.breaker.kill(controller)
    stage.wait_for_writes("waiting for writes in every partition")
    stage.start(controller)
    stage.wait_for_recovery()
    stage.wait_for_writes()


def broker_loss(stage: Stage) -> None:
    """Crash a broker, and restart it after a while."""
    controller = stage.controller()
    stage.wait_for_writes()
    crashed = max(broker for p in stage.partitions() for broker in p.replicas if broker != controller)
    stage.breaker.kill(crashed)
    stage.wait_until(lambda partitions: all(crashed not in p.isr for p in partitions), f"broker {crashed} is in no ISR")
    stage.keep_writing(_AWAY_S, f"broker {crashed} stays down")
    stage.wait_for_writes("waiting for writes in every partition")
    stage.start(crashed)
    stage.wait_for_recovery()
    stage.wait_for_writes()


def rolling_restart(stage: Stage) -> None:
    """Restart all brokers one by one, like `kctl cluster restart --rolling`."""
    from kctl.base import journal
    from kctl.restart.live_cluster import LiveCluster
    from kctl.restart.restart_run import RestartOptions, RestartRun, SystemClock
    from kctl.restart.run import carry_out
    from kctl.restart.steps import RestartStep, begin_entry, replay

    stage.wait_for_writes()
    state = stage.client.metadata(())
    with (
        journal.create(stage.folder / "rolling.jsonl") as run_journal,
        LiveCluster(stage.client.target, list(state.brokers.values())) as cluster,
    ):
        run_journal.append(
            RestartStep.BEGIN.value,
            **begin_entry(stage.client.target.name, state.cluster_id or "", list(state.brokers.values())),
        )
        elect = cluster.why_no_election() is None
        options = RestartOptions(stable_interval_s=1.0, broker_timeout_s=stage.wait_s, elect=elect)
        run_state = replay(run_journal.entries, name=str(run_journal.path))
        carry_out(
            RestartRun(cluster, stage.breaker, run_journal, run_state, options, _RestartProgress(stage), SystemClock())
        )
    stage.wait_for_recovery()
    stage.wait_for_writes()


class _RestartProgress:
    """A view of a rolling restart's progress on one line."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def note(self, line: str) -> None:
        self._stage.progress(line)

    def update(self, message: str, done: float | None = None, total: float | None = None) -> None:  # noqa: ARG002
        self._stage.progress(message)


def unclean_election(stage: Stage) -> None:
    """Pause the only follower until it falls behind, crash the leader, and elect the follower, which lacks records."""
    first = stage.partitions()[0]
    leader, follower = first.replicas
    stage.wait_for_writes()
    stage.roles.update({leader: "the leader", follower: "the follower"})
    stage.breaker.pause(follower)
    stage.wait_until(
        lambda partitions: all(follower not in p.isr for p in partitions), f"broker {follower} is in no ISR"
    )
    stage.keep_writing(3.0, "writing to the leader alone")
    stage.breaker.kill(leader)
    stage.progress(f"resuming broker {follower}")
    stage.breaker.unpause(follower)
    stage.wait_until(lambda partitions: all(p.leader == follower for p in partitions), f"broker {follower} is elected")
    stage.keep_writing(2.0, "writing to the leader that lacks records")
    stage.start(leader)
    stage.wait_for_recovery()
    stage.wait_for_writes()


def zookeeper_loss(stage: Stage) -> None:
    """Crash all ZooKeeper servers. Brokers must keep serving, and reconnect later."""
    stage.wait_for_writes()
    names = stage.breaker.injection.servers().names
    fault = "kill -9 of ZooKeeper"
    stage.fault(fault)
    stage.breaker.kill_servers(names)
    stage.keep_writing(_AWAY_S, "writing without ZooKeeper")
    stage.wait_for_writes("waiting for writes in every partition")
    _doubt_if_serving(stage, fault, names)
    stage.fault("start of ZooKeeper")
    stage.breaker.start_servers(names, stage.wait_s)
    time.sleep(2.0)  # brokers that lost their sessions may leave ISRs now
    stage.wait_for_recovery()
    stage.wait_for_writes()


def controller_loss(stage: Stage) -> None:
    """Crash the active controller of dedicated controllers. Another one takes over, and clients do not notice."""
    stage.wait_for_writes()
    controller = stage.controller()
    names = (f"controller-{controller}",)
    fault = f"kill -9 of the active controller {controller}"
    stage.fault(fault, controller)
    stage.breaker.kill_servers(names)
    stage.keep_writing(_AWAY_S, "writing without this controller")
    stage.wait_for_writes("waiting for writes in every partition")
    _doubt_if_serving(stage, fault, names)
    stage.fault(f"start of controller {controller}")
    stage.breaker.start_servers(names, stage.wait_s)
    stage.wait_for_recovery()
    stage.wait_for_writes()


def quorum_loss(stage: Stage) -> None:
    """Crash a majority of the dedicated controllers, and try to create a topic.

    Brokers must keep serving, and the topic must be created completely or not at all.
    """
    stage.wait_for_writes()
    names = stage.breaker.injection.servers().names
    names = names[: len(names) // 2 + 1]
    attempt = stage.plan_topic()
    fault = f"kill -9 of {', '.join(names)}"
    stage.fault(fault)
    stage.breaker.kill_servers(names)
    stage.try_topic(attempt)
    stage.keep_writing(_AWAY_S, "writing without an active controller")
    stage.wait_for_writes("waiting for writes in every partition")
    _doubt_if_serving(stage, fault, names)
    stage.fault(f"start of {', '.join(names)}")
    stage.breaker.start_servers(names, stage.wait_s)
    stage.wait_for_recovery()
    stage.check_topic(attempt)
    stage.wait_for_writes()


def _doubt_if_serving(stage: Stage, fault: str, names: Sequence[str]) -> None:
    if serving := stage.breaker.running_servers(names):
        stage.doubt(f"'{fault}' had no effect: {', '.join(serving)} kept running until the restart")


_WRITES = ("max_gap_ms", "max_isr_ms")
SCENARIOS: Sequence[Scenario] = (
    Scenario(
        "leader-election", "kill -9 a leader, start it again, elect the preferred leaders",
        "other replicas take over, with all acknowledged records", ("kill", "start"), leader_election,
        (*_WRITES, "max_leader_ms"),
    ),
    Scenario(
        "controller-election", "kill -9 of the controller, start it again",
        "another broker becomes controller and elects leaders", ("kill", "start"), controller_election,
        (*_WRITES, "max_leader_ms", "max_controller_ms"),
    ),
    Scenario(
        "rolling-restart", "stop and start every broker, one by one",
        "planned restarts lose no record and take little time", ("stop", "start"), rolling_restart,
        (*_WRITES, "max_leader_ms", "max_controller_ms"),
    ),
    Scenario(
        "unclean-election", "pause a follower, kill -9 its leader, let the follower be elected, start the leader again",
        "min.insync.replicas=2 keeps all acknowledged records", ("pause", "unpause", "kill", "start"),
        unclean_election, (), unclean=True,
    ),
    Scenario(
        "broker-loss", "kill -9 of a broker, start it again after a while",
        "writes continue while a broker is down, and the broker catches up", ("kill", "start"), broker_loss,
        (*_WRITES, "max_leader_ms"),
    ),
    Scenario(
        "zookeeper-loss", "kill -9 of all ZooKeeper servers, start them again after a while",
        "brokers keep serving without ZooKeeper, and reconnect", (), zookeeper_loss, _WRITES, servers="zookeepers",
    ),
    Scenario(
        "controller-loss", "kill -9 of the active dedicated controller, start it again after a while",
        "another controller takes over, and clients do not notice", (), controller_loss,
        (*_WRITES, "max_controller_ms"), servers="controllers",
    ),
    Scenario(
        "quorum-loss", "kill -9 of a majority of the dedicated controllers, try to create a topic, start them again",
        "brokers keep serving without a controller, and a topic is created completely or not at all", (), quorum_loss,
        _WRITES, servers="controllers",
    ),
)  # fmt: skip


def scenarios_for(injection: FaultInjection) -> list[Scenario]:
    """Return all scenarios except those for servers that this kind of cluster does not have."""
    other = "zookeepers" if injection.spec is not None and injection.spec.uses_kraft else "controllers"
    return [scenario for scenario in SCENARIOS if scenario.servers != other]


def find(name: str) -> Scenario:
    """Return a scenario by name. Raises KeyError."""
    return {scenario.name: scenario for scenario in SCENARIOS}[name]
