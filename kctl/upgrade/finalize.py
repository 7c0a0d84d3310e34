"""Finalize an upgrade: raise the features (KRaft), or inter.broker.protocol.version (ZooKeeper). Irreversible.

Features are raised to the levels of the target release, except for kraft.version: the conversion from static to dynamic
voters is a separate operation. With ZooKeeper, the brokers restart once more, one after another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.base.text import some_of
from kctl.cluster.config_resources import Resource
from kctl.configs.describe import by_name, describe_each
from kctl.deploy import store
from kctl.deploy.health import target_of
from kctl.deploy.host import Host
from kctl.deploy.layout import BrokerNode, ClusterSpec, Upgrade
from kctl.deploy.nodes import NodeProcess, observe
from kctl.errors import KctlError, OperationFailed, Reason, Refused
from kctl.features.apply import apply, check, unchanged
from kctl.features.facts import ClusterFeatures, read_features
from kctl.features.levels import KRAFT_VERSION, METADATA_VERSION, levels_of_release
from kctl.features.plan import FeatureChange, FeaturePlan, plan_upgrade
from kctl.protocol.client import connect
from kctl.restart.own_members import live_cluster
from kctl.upgrade.paths import line_of
from kctl.upgrade.plan import finalization_purpose, id_on_disk, upgrade_change
from kctl.upgrade.record import current_upgrade, end_upgrade, save_phase, set_phase, to_new_protocol
from kctl.upgrade.rolling import (
    RollingChange,
    RollingWork,
    change_nodes,
    pending_nodes,
    unfinished_path,
)
from kctl.upgrade.run import Progress, UpgradeOutcome
from kctl.upgrade.settings import PROTOCOL_VERSION, holds_protocol
from kctl.upgrade.soak import why_not_healthy

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class ProtocolChange:
    """The change of inter.broker.protocol.version with ZooKeeper, and the brokers that must restart for it."""

    before: str
    after: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FinalizationPlan:
    """The plan of a finalization. features: with KRaft; protocol: with ZooKeeper, if it changes between the releases.

    resumes: True if the finalization was started before. static_voters: kraft.version is and stays 0.
    """

    cluster: str
    cluster_id: str
    from_version: str
    to_version: str
    resumes: bool
    features: tuple[FeatureChange, ...]
    protocol: ProtocolChange | None
    static_voters: bool
    warnings: tuple[str, ...]


def plan_finalization(host: Host, name: str) -> tuple[FinalizationPlan, FeaturePlan | None, RollingChange]:
    """Return the plan; the plan of the features is None with ZooKeeper. The controller validates the features.

    Raises Refused if a node does not run the target, the cluster is not healthy, or there is nothing to finalize.
    """
    spec = store.load(host, name)
    upgrade = current_upgrade(spec)
    change = protocol_change(spec, id_on_disk(host, spec))
    _refuse_unready(host, spec)
    unfinished = unfinished_path(change)
    if unfinished is None:
        with live_cluster(spec) as cluster:
            problem = why_not_healthy(host, spec, cluster)
        if problem is not None:
            raise Refused(
                f"cluster {name} is not healthy: {problem}",
                hint="repair it first, or go back with `kctl cluster rollback " + name + "`",
                reason=Reason.NOT_READY,
            )
    feature_plan, static_voters = None, False
    if spec.uses_kraft:
        with connect(target_of(spec)) as client:
            features = read_features(client)
            feature_plan = check(client, _plan_features(features, upgrade.to.version))
            static_voters = features.level(KRAFT_VERSION) == 0
    plan = FinalizationPlan(
        cluster=name, cluster_id=change.cluster_id, from_version=spec.kafka_version, to_version=upgrade.to.version,
        resumes=upgrade.phase == "finalizing", features=feature_plan.changes if feature_plan else (),
        protocol=_planned_protocol(host, spec, upgrade, change), static_voters=static_voters,
        warnings=feature_plan.warnings if feature_plan else (),
    )  # fmt: skip
    return plan, feature_plan, change


def protocol_change(spec: ClusterSpec, cluster_id: str) -> RollingChange:
    """Return the change that raises the protocol of every broker; no broker is pending with KRaft."""
    upgrade = current_upgrade(spec)
    changes_protocol = holds_protocol(spec, upgrade.to.version)

    def is_pending(current: ClusterSpec, process: NodeProcess) -> bool:
        raised = current.upgrade.raised if current.upgrade is not None else ()
        return (
            changes_protocol
            and isinstance(process.node, BrokerNode)
            and (process.node.name not in raised or not process.running)
        )

    return RollingChange(
        spec.name, cluster_id, finalization_purpose(upgrade.to), to_new_protocol, is_pending,
        "run the same command again to resume",
    )  # fmt: skip


def carry_out_finalization(
    change: RollingChange, feature_plan: FeaturePlan | None, work: RollingWork, progress: Progress
) -> None:
    """Raise the features or the protocol, read them back, and end the upgrade.

    Raises Refused by the controller (nothing was changed), NotFinished, OperationFailed.
    """
    host, name = work.host, change.cluster
    if feature_plan is not None:
        work.reporter.update("raising the features")
        _raise_features(host, name, feature_plan)
        progress.raised = feature_plan.changed
    else:
        spec = set_phase(host, name, "finalizing", check=lambda now: _refuse_unready(host, now))
        version = current_upgrade(spec).to.version
        if holds_protocol(spec, version):
            change_nodes(change, work)
            with connect(target_of(spec)) as client:
                _check_protocol(client, line_of(version))
    end_upgrade(host, name)
    progress.outcome = UpgradeOutcome.FINALIZED


def _raise_features(host: Host, name: str, plan: FeaturePlan) -> None:
    """Raise the features and read them back.

    The lock keeps a rollback from starting a node with the old release between the check and the new levels. The
    question before may have waited for hours, so the nodes and the levels are checked again.
    """
    with store.lock_cluster(name):
        spec = store.load(host, name)
        _refuse_unready(host, spec)
        with connect(target_of(spec)) as client:
            unchanged(client, plan).check()
            spec = save_phase(host, spec, "finalizing")
            try:
                apply(client, plan, timeout_s=_TIMEOUT_S)
            except Refused:
                save_phase(host, spec, "upgrading")
                raise


def _refuse_unready(host: Host, spec: ClusterSpec) -> None:
    """Raise Refused if a rollback has begun, or a node does not run the target."""
    upgrade = current_upgrade(spec)
    _refuse_rolling_back(spec, upgrade)
    _refuse_forgotten(host, spec, upgrade)


def _plan_features(features: ClusterFeatures, version: str) -> FeaturePlan:
    """Plan the levels of the release. Higher levels, and kraft.version 0, are unchanged."""
    levels = {
        name: max(level, features.level(name))
        for name, level in levels_of_release(line_of(version)).items()
        if level or features.level(name)
    }
    if features.level(KRAFT_VERSION) == 0:
        levels.pop(KRAFT_VERSION, None)
    return plan_upgrade(features, dict(sorted(levels.items(), key=lambda item: item[0] != METADATA_VERSION)))


def _planned_protocol(host: Host, spec: ClusterSpec, upgrade: Upgrade, change: RollingChange) -> ProtocolChange | None:
    if not holds_protocol(spec, upgrade.to.version):
        return None
    nodes = tuple(node.name for node in pending_nodes(host, spec, change))
    return ProtocolChange(line_of(spec.kafka_version), line_of(upgrade.to.version), nodes)


def _refuse_rolling_back(spec: ClusterSpec, upgrade: Upgrade) -> None:
    if upgrade.phase == "rolling back":
        raise Refused(
            f"cluster {spec.name} is being rolled back to {spec.kafka_version}",
            hint=f"finish the rollback with `kctl cluster rollback {spec.name}`",
            reason=Reason.RUN_STATE,
        )


def _refuse_forgotten(host: Host, spec: ClusterSpec, upgrade: Upgrade) -> None:
    """Raise Refused if a node does not run the target. A broker that the finalization restarts may be down."""
    is_pending = upgrade_change(spec, "", upgrade.to).is_pending
    forgotten = [
        process
        for process in observe(host, spec)
        if is_pending(spec, process) and process.node.name not in upgrade.raised
    ]
    if forgotten:
        problems = [_why_forgotten(spec, process, upgrade) for process in forgotten]
        only_down = all(spec.release_of(process.node) == upgrade.to and not process.running for process in forgotten)
        again = f"run `kctl cluster upgrade {spec.name} --to {upgrade.to.version}` again"
        raise Refused(
            f"the upgrade of cluster {spec.name} to {upgrade.to.version} is not complete: {'; '.join(problems)}",
            hint=f"start the cluster with `kctl cluster start {spec.name}`" if only_down else again,
            details={"problems": problems},
            reason=Reason.NOT_READY,
        )


def _why_forgotten(spec: ClusterSpec, process: NodeProcess, upgrade: Upgrade) -> str:
    name, release = process.node.name, spec.release_of(process.node)
    if not process.running:
        was = "" if release == upgrade.to else f", and has not run Kafka {upgrade.to.version} yet"
        return f"{name} is down{was}"
    return f"{name} still runs Kafka {spec.kafka_version}"


def _check_protocol(client: ClusterClient, line: str) -> None:
    """Raise OperationFailed if a broker reports another inter.broker.protocol.version."""
    resources = [Resource.broker(node) for node in client.metadata(()).brokers]
    wrong = []
    for resource, configs in describe_each(client, resources, names=[PROTOCOL_VERSION]).items():
        if isinstance(configs, KctlError):
            raise configs
        config = by_name(configs).get(PROTOCOL_VERSION)
        value = config.value if config is not None else None
        if value is None or value.partition("-")[0] != line:
            wrong.append(f"broker {resource.name} has {value}")
    if wrong:
        raise OperationFailed(
            f"{PROTOCOL_VERSION} is not {line} on all brokers: {some_of(wrong)}",
            hint="remove the setting from their server.properties, then run the same command again",
        )
