"""A rolling restart of a cluster that kctl set up, as one step of another operation.

`kctl cluster restart --rolling` does the same with its own plan and question.
"""

from __future__ import annotations

from collections.abc import Collection

from kctl.base.address import Address
from kctl.deploy import health, lifecycle
from kctl.deploy.layout import LOOPBACK, ClusterSpec
from kctl.model import Broker
from kctl.restart.control_local import LocalControl
from kctl.restart.journals import begin_or_resume
from kctl.restart.live_cluster import LiveCluster
from kctl.restart.plan import (
    RollingRestart,
    choose,
    make_plan,
    read_unfinished,
    refuse_blocked,
    refuse_without_election,
    result_of,
    unfinished_run,
)
from kctl.restart.restart_run import RestartOptions, RestartReporter, RestartRun, SystemClock
from kctl.restart.run import carry_out


def restart_own(
    name: str, nodes: Collection[int], options: RestartOptions, reporter: RestartReporter
) -> RollingRestart:
    """Restart these nodes one after another. An unfinished run of the cluster is resumed instead, whatever its nodes.

    Raises Refused before the first stop if a node cannot be stopped, NotFinished with the next steps afterwards.
    """
    spec = lifecycle.load_cluster(name)
    lifecycle.check_startable(name)
    controllers = {node.id: Address(LOOPBACK, node.port) for node in spec.controllers}
    target, clock = health.target_of(spec), SystemClock()
    with LiveCluster(target, controllers=controllers) as cluster:
        _, path = unfinished_run(cluster, target.name, lifecycle.own_cluster_id(name))
        state = None if path is None else read_unfinished(path, None)
        if state is not None:
            brokers = {node: row.broker for node, row in state.brokers.items()}
        else:
            brokers = choose(_all_nodes(spec), nodes)
        cluster.add_servers([broker for broker in brokers.values() if broker.id not in controllers])
        plan = make_plan(cluster, target.name, brokers, options, clock=clock, resumes=path, state=state)
        refuse_without_election(cluster, options, state)
        refuse_blocked(plan)
        journal, state_at = begin_or_resume(plan.cluster, plan.cluster_id, list(brokers.values()), path)
        with journal:
            run = RestartRun(
                cluster, LocalControl(name), journal, state_at, options, reporter, clock,
                controllers=frozenset(controllers),
            )  # fmt: skip
            began = clock.now()
            carry_out(run)
            return result_of(run, plan, began)


def _all_nodes(spec: ClusterSpec) -> dict[int, Broker]:
    brokers = {node.id: Broker(node.id, LOOPBACK, node.port, node.rack) for node in spec.brokers}
    return brokers | {node.id: Broker(node.id, LOOPBACK, node.port, None) for node in spec.controllers}
