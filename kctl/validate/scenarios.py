"""The scenarios: what each does to the cluster, and what it takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kctl.errors import Refused
from kctl.restart.control import Act
from kctl.validate.stage import Stage

_AWAY_S = 10.0  # for which a broker stays away after the cluster has noticed


@dataclass(frozen=True)
class Scenario:
    """does: for the plan, in the order of its steps. proves: what holds when it is fulfilled. acts: required
    of the broker control. measures: names of the budgets that are checked; none where writes stop on purpose.
    """

    name: str
    does: str
    proves: str
    acts: tuple[Act, ...]
    run: Callable[[Stage], None]
    measures: tuple[str, ...]
    zookeeper: bool = False
    unclean: bool = False


def leader_election(stage: Stage) -> None:
    """A leader that is not the controller crashes and comes back; then the preferred leaders are elected."""
    controller = stage.controller()
    stage.steady()
    led = next((p for p in stage.partitions() if p.leader not in (controller, -1)), None)
    if led is None:
        raise Refused("no broker but the controller leads a partition")
    stage.roles[led.leader] = f"leader of partition {led.partition}"
    stage.breaker.kill(led.leader)
    stage.steady("waiting for writes in every partition")
    stage.start(led.leader)
    stage.recovered()
    stage.fault("election of the preferred leaders")
    stage.elect_preferred()
    stage.steady()


def controller_election(stage: Stage) -> None:
    """The controller crashes and comes back."""
    stage.steady()
    controller = stage.controller()
    stage.roles[controller] = "the controller"
    stage.breaker.kill(controller)
    stage.steady("waiting for writes in every partition")
    stage.start(controller)
    stage.recovered()
    stage.steady()


def broker_loss(stage: Stage) -> None:
    """A broker crashes, and the others have to do without it for some time."""
    controller = stage.controller()
    stage.steady()
    lost = max(broker for p in stage.partitions() for broker in p.replicas if broker != controller)
    stage.breaker.kill(lost)
    stage.until(lambda found: all(lost not in p.isr for p in found), f"broker {lost} is in no ISR")
    stage.go_on(_AWAY_S, f"broker {lost} stays away")
    stage.steady("waiting for writes in every partition")
    stage.start(lost)
    stage.recovered()
    stage.steady()


def rolling_restart(stage: Stage) -> None:
    """All brokers one after the other, as `kctl cluster restart --rolling` does it."""
    from kctl.base import journal
    from kctl.restart.live_cluster import LiveCluster
    from kctl.restart.restart_run import RealClock, RestartOptions, RestartRun
    from kctl.restart.run import carry_out
    from kctl.restart.steps import RestartStep, begin_entry, replay

    stage.steady()
    state = stage.client.metadata(())
    with (
        journal.create(stage.folder / "rolling.jsonl") as held,
        LiveCluster(stage.client.target, list(state.brokers.values())) as cluster,
    ):
        held.append(
            RestartStep.BEGIN.value,
            **begin_entry(stage.client.target.name, state.cluster_id or "", list(state.brokers.values())),
        )
        elect = cluster.why_no_election() is None
        options = RestartOptions(stable_interval_s=1.0, broker_timeout_s=stage.wait_s, elect=elect)
        run_state = replay(held.entries, name=str(held.path))
        carry_out(RestartRun(cluster, stage.breaker, held, run_state, options, _Teller(stage), RealClock()))
    stage.recovered()
    stage.steady()


class _Teller:
    """What a rolling restart tells, on one line."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def note(self, line: str) -> None:
        self._stage.told(line)

    def update(self, message: str, done: float | None = None, total: float | None = None) -> None:  # noqa: ARG002
        self._stage.told(message)


def unclean_election(stage: Stage) -> None:
    """The only follower hangs and falls behind, the leader crashes, and the follower is elected without its records."""
    first = stage.partitions()[0]
    leader, follower = first.replicas
    stage.steady()
    stage.roles.update({leader: "the leader", follower: "the follower"})
    stage.breaker.pause(follower)
    stage.until(lambda found: all(follower not in p.isr for p in found), f"broker {follower} is in no ISR")
    stage.go_on(3.0, "writing to the leader alone")
    stage.breaker.kill(leader)
    stage.told(f"broker {follower} goes on")
    stage.breaker.unpause(follower)
    stage.until(lambda found: all(p.leader == follower for p in found), f"broker {follower} is elected")
    stage.go_on(2.0, "writing to the one that lacks records")
    stage.start(leader)
    stage.recovered()
    stage.steady()


def zookeeper_loss(stage: Stage) -> None:
    """All ZooKeepers crash; brokers have to go on without, and to find them again."""
    stage.steady()
    name = "kill -9 of ZooKeeper"
    stage.fault(name)
    stage.breaker.kill_zookeepers()
    stage.go_on(_AWAY_S, "writing without ZooKeeper")
    stage.steady("waiting for writes in every partition")
    if serving := stage.breaker.serving_zookeepers():
        stage.doubt(f"«{name}» was none: {', '.join(serving)} served before the start")
    stage.fault("start of ZooKeeper")
    stage.breaker.start_zookeepers(stage.wait_s)
    time.sleep(2.0)  # brokers that lost their sessions leave the ISRs now, if they do
    stage.recovered()
    stage.steady()


_WRITES = ("max_gap_ms", "max_isr_ms")
SCENARIOS: Sequence[Scenario] = (
    Scenario(
        "leader-election", "kill -9 of a leader, start it again, elect the preferred leaders",
        "other replicas take over, with all that was acknowledged", ("kill", "start"), leader_election,
        (*_WRITES, "max_leader_ms"),
    ),
    Scenario(
        "controller-election", "kill -9 of the controller, start it again",
        "another broker becomes controller and elects leaders", ("kill", "start"), controller_election,
        (*_WRITES, "max_leader_ms", "max_controller_ms"),
    ),
    Scenario(
        "rolling-restart", "stop and start every broker, one after the other",
        "planned work costs no record and little time", ("stop", "start"), rolling_restart,
        (*_WRITES, "max_leader_ms", "max_controller_ms"),
    ),
    Scenario(
        "unclean-election", "pause a follower, kill -9 its leader, let the follower be elected, start the leader again",
        "min.insync.replicas=2 keeps what was acknowledged even then", ("pause", "unpause", "kill", "start"),
        unclean_election, (), unclean=True,
    ),
    Scenario(
        "broker-loss", "kill -9 of a broker, do without it for a while, start it again",
        "one broker less stops no writes, and it catches up", ("kill", "start"), broker_loss,
        (*_WRITES, "max_leader_ms"),
    ),
    Scenario(
        "zookeeper-loss", "kill -9 of all ZooKeepers, start them again after a while",
        "brokers serve on without ZooKeeper, and find it again", (), zookeeper_loss, _WRITES, zookeeper=True,
    ),
)  # fmt: skip


def find(name: str) -> Scenario:
    """By its name; raises KeyError."""
    return {scenario.name: scenario for scenario in SCENARIOS}[name]
