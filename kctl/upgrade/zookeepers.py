"""Restart ZooKeeper servers one after another: followers first, the leader last; the others must respond."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kctl.base.deadline import Deadline
from kctl.deploy import health, lifecycle
from kctl.deploy.host import Host
from kctl.deploy.layout import ClusterSpec, ZooKeeperNode
from kctl.deploy.nodes import observe
from kctl.deploy.waiting import wait_until
from kctl.errors import TimedOut
from kctl.restart.restart_run import RestartOptions, RestartReporter
from kctl.restart.steps import BrokerPhase
from kctl.upgrade.record import Switch, switch_node


def restart_zookeepers(
    host: Host,
    spec: ClusterSpec,
    nodes: Sequence[ZooKeeperNode],
    switch: Switch,
    options: RestartOptions,
    reporter: RestartReporter,
    on_phase: Callable[[ZooKeeperNode, BrokerPhase], None],
) -> None:
    """Stop, switch and start each server. After OperationFailed or TimedOut, no other server is stopped.

    on_phase: called when the stop of a server begins, when its start begins, and when it is back. No journal is needed:
    a server that is down is the first of the next run.
    """
    running = {process.node.name for process in observe(host, spec) if process.running}
    modes = health.ensemble_modes(spec)
    for node in sorted(nodes, key=lambda each: (each.name in running, modes.get(each.id) == "leader", each.id)):
        if node.name in running:
            _await_ensemble(spec, options.broker_timeout_s, f"stop {node.name}")
            reporter.update(f"stopping {node.name}")
            on_phase(node, BrokerPhase.STOPPING)
            lifecycle.stop_cluster(spec.name, nodes=[node.name], timeout_s=options.broker_timeout_s, host=host)
        reporter.update(f"starting {node.name}")
        on_phase(node, BrokerPhase.STARTING)
        switch_node(host, spec.name, node.name, switch)
        lifecycle.start_cluster(spec.name, nodes=[node.name], timeout_s=options.broker_timeout_s, host=host)
        on_phase(node, BrokerPhase.DONE)
        reporter.note(f"{node.name} is back")
    _await_ensemble(spec, options.broker_timeout_s, "continue")


def _await_ensemble(spec: ClusterSpec, timeout_s: float, action: str) -> None:
    """Wait until every server responds and one leads."""
    modes: dict[int, str | None] = {}

    def serves() -> bool:
        modes.update(health.ensemble_modes(spec))
        return all(modes.values()) and health.ensemble_serves(modes)

    if not wait_until(serves, Deadline(timeout_s), every_s=0.25):
        silent = ", ".join(f"zookeeper-{node}" for node, mode in modes.items() if mode is None)
        raise TimedOut(
            f"cannot {action}: {f'{silent} does not respond' if silent else 'the ZooKeeper servers have no leader'}",
            hint=f"read its log with `kctl cluster logs {spec.name}`; start it with `kctl cluster start {spec.name}`",
        )
