"""Start the processes of a ZooKeeper layout: the ensemble, then the brokers."""

from __future__ import annotations

import contextlib

from kctl.deploy import health
from kctl.deploy.data import check_registered_cluster
from kctl.deploy.layout import BrokerNode, ZooKeeperNode
from kctl.deploy.start_run import (
    StartRun,
    await_answers,
    await_in_sync,
    await_topics,
    check_alive,
    spawn_node,
    too_slow,
)
from kctl.deploy.waiting import wait_until
from kctl.errors import ConnectionFailed


def start_zookeepers(run: StartRun, nodes: list[ZooKeeperNode]) -> None:
    for node in nodes:
        spawn_node(run, node)
    expected = {node.id for node in run.expected if isinstance(node, ZooKeeperNode)}
    modes: dict[int, str | None] = {}

    def ready() -> bool:
        check_alive(run)
        modes.update(health.ensemble_modes(run.spec))
        answering = {n for n, mode in modes.items() if mode is not None}
        run.progress.update("waiting for ZooKeeper", len(answering), len(run.expected))
        return expected <= answering and health.ensemble_serves(modes)

    if not wait_until(ready, run.deadline):
        silent = [f"zookeeper-{n} does not serve" for n, mode in modes.items() if mode is None]
        raise too_slow(run, silent or ["ZooKeeper has no leader"])


def start_brokers(run: StartRun, nodes: list[BrokerNode]) -> None:
    if not run.broker_ids:
        return
    with health.registry(run.spec, timeout_s=max(run.deadline.left_s, 1.0)) as registry:
        check_registered_cluster(run.host, run.spec, registry.cluster_id(), nodes)
        _await_expired_sessions(run, registry, {node.id for node in nodes})
        for node in nodes:
            spawn_node(run, node)
        _await_registered(run, registry)
        topics = _topics(registry)
    await_answers(run)
    await_topics(run, topics)
    await_in_sync(run)


def _await_expired_sessions(run: StartRun, registry: health.Registry, restarted_ids: set[int]) -> None:
    stale = restarted_ids

    def expired() -> bool:
        nonlocal stale
        with contextlib.suppress(ConnectionFailed):
            stale = restarted_ids & registry.broker_ids()
        if stale:
            listed = ", ".join(map(str, sorted(stale)))
            run.progress.update(f"waiting until the old session of broker {listed} has expired")
        return not stale

    if restarted_ids and not wait_until(expired, run.deadline):
        raise too_slow(run, [f"broker {b} is still registered in ZooKeeper" for b in sorted(stale)])


def _await_registered(run: StartRun, registry: health.Registry) -> None:
    missing = run.broker_ids
    controller: int | None = None

    def registered() -> bool:
        nonlocal missing, controller
        check_alive(run)
        with contextlib.suppress(ConnectionFailed):
            missing = run.broker_ids - registry.broker_ids()
            controller = registry.controller_id()
        run.progress.update("waiting for the brokers", len(run.expected) - len(missing), len(run.expected))
        return not missing and controller is not None

    if not wait_until(registered, run.deadline):
        absent = [f"broker {b} has not registered" for b in sorted(missing)]
        raise too_slow(run, absent or ["there is no controller"])


def _topics(registry: health.Registry) -> set[str]:
    with contextlib.suppress(ConnectionFailed):
        return registry.topics()
    return set()
