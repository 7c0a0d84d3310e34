"""Cordon log dirs: they keep their replicas and receive no new ones (KIP-1066, Kafka 4.3).

The broker's dynamic config cordoned.log.dirs lists the log dirs, or is `*` for all of them. The controller places no
replica on a broker whose log dirs are all cordoned. It learns of a change with the broker's next heartbeat
(broker.heartbeat.interval.ms, default: 2 s). Requires metadata.version 4.3-IV0.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kctl.base.config_values import items
from kctl.base.deadline import Deadline
from kctl.base.outcomes import ItemResult
from kctl.base.text import counted
from kctl.cluster.config_resources import Resource
from kctl.cluster.log_dirs import CORDONED, LogDir, fetch_log_dirs, is_cordoned
from kctl.configs.change import ConfigPlan, Edit, apply_changes, plan_changes
from kctl.errors import KctlError, NotFound, NotSupported, OutcomeUnknown, Reason, Refused

if TYPE_CHECKING:
    from kctl.configs.model import Config
    from kctl.protocol.client import ClusterClient

_ALL = "*"
_ENOUGH = 2  # more brokers than this can hold the usual three replicas
_POLL_S = 0.2
_READ_BACK_S = 15.0


@dataclass(frozen=True, slots=True)
class CordonRow:
    """A log dir. replica_count: its replicas, which stay. cordoned: after the change, or in a plan before it."""

    broker: int
    log_dir: str
    replica_count: int
    cordoned: bool
    result: ItemResult


@dataclass(frozen=True, slots=True)
class CordonPlan:
    """A planned change of a broker's cordoned log dirs. after: path → True if cordoned. warnings: effects.

    change: the config change; None if there is nothing to do.
    """

    broker: int
    rows: list[CordonRow]
    after: Mapping[str, bool]
    warnings: list[str]
    change: ConfigPlan | None


def plan_cordon(client: ClusterClient, broker: int, paths: Collection[str], *, cordon: bool) -> CordonPlan:
    """Plan to cordon (or uncordon) log dirs of a broker. paths: empty for all of them.

    Raises NotFound (broker, log dir), Refused (the broker is down), NotSupported before Kafka 4.3, and the errors of
    plan_changes.
    """
    state = client.metadata()
    if broker not in state.brokers:
        hosts = any(broker in p.replicas for topic in state.topics.values() for p in topic.partitions)
        live = ", ".join(map(str, sorted(state.brokers)))
        if hosts:
            raise Refused(
                f"broker {broker} is down: only the broker itself can change its cordoned log dirs",
                hint=f"start it, or cordon another broker ({live})",
                reason=Reason.NOT_READY,
            )
        raise NotFound(f"broker {broker} is not in the cluster", hint=f"live brokers: {live}")
    log_dirs = fetch_log_dirs(client, state.brokers)
    own = log_dirs[broker]
    if isinstance(own, KctlError):
        raise own
    after = states_after(broker, own, paths, cordon=cordon)
    rows = _rows(broker, own, after)
    change = None
    if any(row.result.changed for row in rows):
        everything = cordon and not paths
        change = plan_changes(
            client, Resource.broker(broker), lambda configs: [edit_for(broker, after, configs, everything=everything)]
        )
    warnings = warnings_of(broker, after, {n: d for n, d in log_dirs.items() if not isinstance(d, KctlError)})
    return CordonPlan(broker, rows, after, warnings if cordon else [], change)


def states_after(broker: int, log_dirs: Sequence[LogDir], paths: Collection[str], *, cordon: bool) -> dict[str, bool]:
    """Return path → whether it is cordoned after the change. Pure. Raises NotFound for an unknown path."""
    states = {each.path: each.cordoned for each in log_dirs}
    chosen = {path.rstrip("/") or path for path in paths}
    unknown = sorted(chosen - states.keys())
    if unknown:
        raise NotFound(
            f"broker {broker} has no log dir {unknown[0]}", hint=f"its log dirs: {', '.join(sorted(states))}"
        )
    return {path: cordon if path in chosen or not chosen else cordoned for path, cordoned in states.items()}


def edit_for(broker: int, after: Mapping[str, bool], configs: Mapping[str, Config], *, everything: bool) -> Edit:
    """Return the change of cordoned.log.dirs. everything: `*`, which includes log dirs that are added later. Pure.

    Raises NotSupported if the broker does not know the config.
    """
    config = configs.get(CORDONED)
    if config is None:
        raise NotSupported(
            f"broker {broker} cannot cordon log dirs",
            hint="requires Kafka 4.3 or later, with KRaft",
            reason=Reason.VERSION_UNSUPPORTED,
        )
    cordoned = sorted(path for path, is_set in after.items() if is_set)
    if cordoned:
        return Edit(CORDONED, "set", _ALL if everything else ",".join(cordoned))
    own = config.own("broker")
    inherited = [each for each in config.synonyms if each is not own and items(each.value)]
    # Without a value of its own, the broker would use the one for all brokers, or that of server.properties.
    return Edit(CORDONED, "set", "") if inherited else Edit(CORDONED, "unset", None)


def warnings_of(broker: int, after: Mapping[str, bool], log_dirs: Mapping[int, Sequence[LogDir]]) -> list[str]:
    """Return a warning if the change limits the replicas of new topics. Pure."""
    own = [replace(each, cordoned=after.get(each.path, False)) for each in log_dirs[broker]]
    if not is_cordoned(own):
        return []
    receiving = sorted(node for node, each in log_dirs.items() if node != broker and not is_cordoned(each))
    if not receiving:
        return ["no broker receives new replicas: topics and partitions can no longer be created"]
    if len(receiving) > _ENOUGH:
        return []
    nodes = ", ".join(map(str, receiving))
    whose = f"broker {nodes} receives" if len(receiving) == 1 else f"brokers {nodes} receive"
    return [f"only {whose} new replicas: new topics have at most {counted(len(receiving), 'replica')}"]


def apply_cordon(
    client: ClusterClient, plan: CordonPlan, *, timeout_s: float, sleep: Callable[[float], None] = time.sleep
) -> list[CordonRow]:
    """Change the config, and wait until the broker reports the log dirs accordingly. Return the rows as read back.

    Raises the errors of apply_changes, and OutcomeUnknown if the broker does not report the change.
    """
    if plan.change is None:
        return plan.rows
    apply_changes(client, plan.change, timeout_s=timeout_s)
    deadline = Deadline(min(timeout_s, _READ_BACK_S))
    while True:
        log_dirs = fetch_log_dirs(client, [plan.broker])[plan.broker]
        if not isinstance(log_dirs, KctlError):
            now = {each.path: each.cordoned for each in log_dirs}
            if now == plan.after:
                return [_done(row, now[row.log_dir]) for row in plan.rows]
        if deadline.expired:
            raise OutcomeUnknown(
                f"broker {plan.broker} accepted {CORDONED}, but does not report its log dirs accordingly",
                hint=f"run `kctl broker log-dirs {plan.broker}`; relative paths in log.dirs do not work (KAFKA-20901)",
            )
        sleep(_POLL_S)


def _done(row: CordonRow, cordoned: bool) -> CordonRow:
    return replace(row, cordoned=cordoned, result=row.result.done if row.result.planned else row.result)


def _rows(broker: int, log_dirs: Sequence[LogDir], after: Mapping[str, bool]) -> list[CordonRow]:
    def result(log_dir: LogDir) -> ItemResult:
        if log_dir.cordoned == after[log_dir.path]:
            return ItemResult.UNCHANGED
        return ItemResult.WOULD_CORDON if after[log_dir.path] else ItemResult.WOULD_UNCORDON

    return [
        CordonRow(broker, each.path, sum(not r.future for r in each.replicas), each.cordoned, result(each))
        for each in sorted(log_dirs, key=lambda each: each.path)
    ]
