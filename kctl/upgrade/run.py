"""Carry out upgrades and rollbacks: record, node by node, soak, read back."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from kctl.deploy import store
from kctl.deploy.data import cluster_id_on_disk
from kctl.deploy.host import Host
from kctl.deploy.layout import ClusterSpec, Release
from kctl.deploy.nodes import observe
from kctl.deploy.start import check_release
from kctl.errors import ConnectionFailed, KctlError, OperationFailed, Refused, UsageError
from kctl.restart.own_members import live_cluster
from kctl.restart.restart_run import NotFinished
from kctl.restart.steps import BrokerPhase
from kctl.upgrade.levels import check_way_back, highest_levels
from kctl.upgrade.plan import UpgradePlan, finalization_purpose, upgrade_purpose
from kctl.upgrade.record import begin, current_upgrade, end_rollback, set_phase
from kctl.upgrade.rolling import (
    ChangedNode,
    RollingChange,
    RollingWork,
    change_nodes,
    discard_run,
    unfinished_path,
)
from kctl.upgrade.soak import soak

if TYPE_CHECKING:
    from kctl.upgrade.finalize import FinalizationPlan


class UpgradeOutcome(str, Enum):
    """The outcome of an upgrade, a rollback or a finalization. UPGRADED: not finalized."""

    UPGRADED = "upgraded"
    ROLLED_BACK = "rolled back"
    FINALIZED = "finalized"
    UNCHANGED = "unchanged"
    NOT_FINISHED = "not finished"


@dataclass(frozen=True, slots=True)
class UpgradeResult:
    """The result of an upgrade, a rollback or a finalization.

    nodes: the nodes that this process was to restart. soak_ms: time for which the health was watched; None if it was
    not.
    """

    cluster: str
    cluster_id: str
    from_version: str
    to_version: str
    outcome: UpgradeOutcome
    nodes: tuple[ChangedNode, ...]
    soak_ms: int | None
    duration_ms: int

    @property
    def changed(self) -> bool:
        touched = any(node.result is not BrokerPhase.PENDING for node in self.nodes)
        return touched or self.outcome in {UpgradeOutcome.ROLLED_BACK, UpgradeOutcome.FINALIZED}


@dataclass
class Progress:
    """The progress of this process, for the result after a failure. raised: feature levels were raised."""

    outcome: UpgradeOutcome = UpgradeOutcome.NOT_FINISHED
    raised: bool = False
    soak_ms: int | None = None


def as_unfinished(failure: KctlError, change: RollingChange, work: RollingWork, progress: Progress) -> KctlError:
    """Return NotFinished in place of an error that stands for "nothing was changed", if something was. Pure."""
    touched = any(node.result is not BrokerPhase.PENDING for node in work.changed_nodes.values())
    if not (touched or progress.raised) or not isinstance(failure, (Refused, ConnectionFailed, UsageError)):
        return failure
    return NotFinished(
        f"the {change.purpose} is unfinished: {failure.message}",
        hint="\n".join(line for line in (failure.hint, change.how_to_resume) if line),
        details={**failure.details, "cause": failure.code},
    )


def carry_out_upgrade(change: RollingChange, to: Release, soak_s: float, work: RollingWork, progress: Progress) -> None:
    """Upgrade all pending nodes, then watch the cluster. Raises NotFound, NotFinished, NotHealthy."""
    host = work.host
    spec = store.load(host, change.cluster)
    check_release(spec, to)
    levels: dict[str, int] = {}
    if spec.upgrade is None and spec.uses_kraft:
        with live_cluster(spec) as cluster:
            levels = highest_levels(cluster.client())
    begin(host, change.cluster, to, levels)
    change_nodes(change, work)
    spec = store.load(host, change.cluster)
    progress.soak_ms = soak(host, spec, soak_s, work.clock, work.reporter)
    progress.outcome = UpgradeOutcome.UPGRADED


def carry_out_rollback(change: RollingChange, work: RollingWork, progress: Progress) -> None:
    """Return all nodes to the previous release. Raises Refused if features or protocol were raised, NotFinished.

    A finalization that has not raised anything yet is discarded.
    """
    host = work.host
    spec = store.load(host, change.cluster)
    upgrade = current_upgrade(spec)
    check_way_back(host, change.cluster)
    discard_run(change.cluster_id, {upgrade_purpose(upgrade.to), finalization_purpose(upgrade.to)})
    unfinished_path(change)
    # Again under the lock, which a finalization holds while it raises the features.
    set_phase(host, change.cluster, "rolling back", check=lambda _: check_way_back(host, change.cluster))
    change_nodes(change, work)
    _check_releases(host, end_rollback(host, change.cluster))
    progress.outcome = UpgradeOutcome.ROLLED_BACK


def _check_releases(host: Host, spec: ClusterSpec) -> None:
    """Raise OperationFailed if a process does not run from the jars of the cluster's release."""
    wrong = [each.node.name for each in observe(host, spec) if each.running and each.libs != spec.kafka_libs]
    if wrong:
        raise OperationFailed(
            f"{', '.join(wrong)} of cluster {spec.name} does not run Kafka {spec.kafka_version}",
            hint=f"restart it with `kctl cluster restart {spec.name} --node {wrong[0]}`",
        )


def unchanged_result(host: Host, name: str, target: str) -> UpgradeResult | None:
    """Return the result for a cluster that already runs the target; None if there is something to do."""
    spec = store.load(host, name)
    if spec.upgrade is not None or spec.kafka_version != target:
        return None
    cluster_id = cluster_id_on_disk(host, spec) or ""
    return UpgradeResult(name, cluster_id, target, target, UpgradeOutcome.UNCHANGED, (), None, 0)


def result_of(
    plan: UpgradePlan | FinalizationPlan, work: RollingWork, progress: Progress, began: float
) -> UpgradeResult:
    """Return the result of this process's work, finished or not."""
    return UpgradeResult(
        cluster=plan.cluster,
        cluster_id=plan.cluster_id,
        from_version=plan.from_version,
        to_version=plan.to_version,
        outcome=progress.outcome,
        nodes=tuple(work.changed_nodes.values()),
        soak_ms=progress.soak_ms,
        duration_ms=round((work.clock.now() - began) * 1000),
    )
