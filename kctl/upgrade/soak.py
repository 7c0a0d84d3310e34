"""Watch the cluster after the last node: it must stay healthy before anything that cannot be undone."""

from __future__ import annotations

from kctl.base.text import counted
from kctl.deploy.host import Host
from kctl.deploy.layout import BrokerNode, ClusterSpec
from kctl.deploy.nodes import observe
from kctl.deploy.quorum import read_quorum
from kctl.errors import KctlError, NotHealthy
from kctl.restart.gate import NAMED, out_of_sync
from kctl.restart.live_cluster import LiveCluster
from kctl.restart.own_members import live_cluster
from kctl.restart.restart_run import RestartClock, RestartReporter

DEFAULT_SOAK_S = 30.0
_EVERY_S = 2.0
_STRIKES = 3  # consecutive checks: a replica may be out of sync for a moment under load


def soak(host: Host, spec: ClusterSpec, seconds: float, clock: RestartClock, reporter: RestartReporter) -> int:
    """Check the cluster until `seconds` have passed. Return the time in ms.

    Makes at least one check. Raises NotHealthy if three consecutive checks find a problem.
    """
    began, strikes = clock.now(), 0
    with live_cluster(spec) as cluster:
        while True:
            problem = why_not_healthy(host, spec, cluster)
            strikes = strikes + 1 if problem is not None else 0
            elapsed_s = clock.now() - began
            if strikes >= _STRIKES:
                raise NotHealthy(
                    f"cluster {spec.name} did not stay healthy after the upgrade: {problem}",
                    hint="repair it and run the same command again to watch once more, or go back with "
                    f"`kctl cluster rollback {spec.name}`",
                )
            if elapsed_s >= seconds and not strikes:
                return round(elapsed_s * 1000)
            reporter.update(problem or "watching the health of the cluster", min(elapsed_s, seconds), seconds)
            clock.sleep(min(_EVERY_S, max(0.1, seconds - elapsed_s)))


def _has_controller(spec: ClusterSpec, controller_id: int | None) -> bool:
    """With KRaft, brokers name any broker as the controller, so the voters are asked."""
    if not spec.uses_kraft:
        return controller_id is not None
    quorum = read_quorum(spec, [voter.id for voter in spec.voters])
    return quorum is not None and quorum.leader_id is not None


def why_not_healthy(host: Host, spec: ClusterSpec, cluster: LiveCluster) -> str | None:
    """Return the first problem: a process that ended, a broker that is not listed, replicas that are not in sync."""
    down = [process.node.name for process in observe(host, spec) if not process.running]
    if down:
        return f"{', '.join(down)} is down"
    try:
        snapshot = cluster.snapshot(())
    except KctlError as exc:
        return exc.message
    brokers = [node.id for node in spec.nodes if isinstance(node, BrokerNode)]
    absent = sorted(set(brokers).difference(snapshot.state.brokers))
    if absent:
        return f"broker {', '.join(map(str, absent))} is not listed"
    if not _has_controller(spec, snapshot.state.controller_id):
        return "the cluster has no controller"
    behind = out_of_sync(snapshot.state, snapshot.adding, brokers)
    if behind:
        return f"{counted(len(behind), 'partition')} not in sync ({', '.join(map(str, behind[:NAMED]))})"
    return None
