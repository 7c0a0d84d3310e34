"""The record of an upgrade in cluster.json, and the config files that belong to each release.

Each change holds the cluster's lock. A node's files are changed before the record names its new release: if kctl is
killed in between, the node starts with the old release, which ignores the new settings, and the next run repeats both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

from kctl.base.properties import decode_properties, parse_properties
from kctl.deploy import store
from kctl.deploy.config.log4j_config import render_log4j
from kctl.deploy.host import Host
from kctl.deploy.layout import (
    BrokerNode,
    ClusterSpec,
    ControllerNode,
    Node,
    Release,
    Upgrade,
    UpgradePhase,
    ZooKeeperNode,
    is_kafka_4,
)
from kctl.deploy.nodes import observe
from kctl.errors import NotFound, Reason, Refused
from kctl.upgrade.paths import check_path
from kctl.upgrade.settings import (
    SettingChange,
    changed_text,
    changes_of,
    current_settings,
    invalid_settings,
    without_protocol,
)

_SAVED = "before-upgrade"  # the extension of the copy of server.properties as it was


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """The changes to a node's server.properties, and the settings whose values the target rejects."""

    node: str
    changes: tuple[SettingChange, ...]
    invalid: tuple[str, ...]


def current_upgrade(spec: ClusterSpec) -> Upgrade:
    """Return the upgrade that is not finalized. Raises Refused if there is none."""
    if spec.upgrade is None:
        raise Refused(
            f"cluster {spec.name} has no unfinished upgrade: it runs Kafka {spec.kafka_version}",
            hint=f"start one with `kctl cluster upgrade {spec.name} --to VERSION`",
            reason=Reason.NOTHING_TO_DO,
        )
    return spec.upgrade


# --- the record -------------------------------------------------------------------------------------------------------


def begin(host: Host, name: str, to: Release, max_levels: Mapping[str, int]) -> ClusterSpec:
    """Record the start of an upgrade, or different jars for the target of the upgrade in progress.

    Raises Refused if another upgrade, or another phase, was started or finalized in the meantime.
    """
    with store.lock_cluster(name):
        spec = store.load(host, name)
        if spec.upgrade is None:
            check_path(spec, to.version)  # again: another upgrade may have been finalized since the plan
            for node in spec.nodes:
                host.remove_file(saved_path(spec, node))
            at = datetime.now(timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")
            return _save(host, spec, Upgrade(to, at, max_levels=dict(max_levels)))
        check_resumable(spec, to.version)
        return _save(host, spec, replace(spec.upgrade, to=to))


def check_resumable(spec: ClusterSpec, target: str) -> None:
    """Raise Refused if the unfinished upgrade has another target, or is being finalized or rolled back."""
    upgrade = current_upgrade(spec)
    if upgrade.phase == "upgrading" and upgrade.to.version == target:
        return
    name, doing = spec.name, f"is being upgraded to {upgrade.to.version}"
    hint = f"finish with `kctl cluster finalize {name}`, or go back with `kctl cluster rollback {name}`, first"
    if upgrade.phase == "rolling back":
        doing = f"is being rolled back to {spec.kafka_version}"
        hint = f"resume it with `kctl cluster rollback {name}`"
    elif upgrade.phase == "finalizing":
        doing += ", which is being finalized"
        hint = f"resume it with `kctl cluster finalize {name}`"
    raise Refused(f"cluster {name} {doing}", hint=hint, reason=Reason.RUN_STATE)


def set_phase(
    host: Host, name: str, phase: UpgradePhase, *, check: Callable[[ClusterSpec], None] | None = None
) -> ClusterSpec:
    """Record the phase. check: raises an error if the phase may not begin now; called while the cluster is locked."""
    with store.lock_cluster(name):
        spec = store.load(host, name)
        if check is not None:
            check(spec)
        return save_phase(host, spec, phase)


def save_phase(host: Host, spec: ClusterSpec, phase: UpgradePhase) -> ClusterSpec:
    """Record the phase; only while holding the cluster's lock."""
    return _save(host, spec, replace(current_upgrade(spec), phase=phase))


def end_rollback(host: Host, name: str) -> ClusterSpec:
    """Remove the upgrade from the record: all nodes run the previous release."""
    with store.lock_cluster(name):
        spec = store.load(host, name)
        current_upgrade(spec)
        for node in spec.nodes:
            _restore_file(host, spec, node)
        return _end(host, spec, spec.release)


def end_upgrade(host: Host, name: str) -> ClusterSpec:
    """Make the target the cluster's own release: the upgrade is finalized."""
    with store.lock_cluster(name):
        spec = store.load(host, name)
        upgrade = current_upgrade(spec)
        for node in _members(spec):
            _update_header(host, spec, node, upgrade.to.version)
        known_settings = current_settings(spec.settings, spec.kafka_version, upgrade.to.version)
        return _end(host, replace(spec, settings=known_settings), upgrade.to)


def _end(host: Host, spec: ClusterSpec, release: Release) -> ClusterSpec:
    ended = replace(spec, kafka_version=release.version, kafka_libs=release.libs, upgrade=None)
    store.save(host, ended)
    for node in spec.nodes:
        host.remove_file(saved_path(spec, node))
    return ended


def _save(host: Host, spec: ClusterSpec, upgrade: Upgrade) -> ClusterSpec:
    changed = replace(spec, upgrade=upgrade)
    store.save(host, changed)
    return changed


# --- nodes ------------------------------------------------------------------------------------------------------------

Switch = Callable[[Host, ClusterSpec, Node], ClusterSpec]


def switch_node(host: Host, name: str, node_name: str, switch: Switch) -> None:
    """Switch a stopped node to another release or other settings. No effect while its process runs."""
    with store.lock_cluster(name):
        spec = store.load(host, name)
        process = next((each for each in observe(host, spec) if each.node.name == node_name), None)
        if process is None:
            raise NotFound(f"cluster {name} has no node {node_name}")
        if not process.running:
            store.save(host, switch(host, spec, process.node))


def to_target(host: Host, spec: ClusterSpec, node: Node) -> ClusterSpec:
    """Switch a node to the target: the files, and the record, which the caller saves."""
    upgrade = current_upgrade(spec)
    if isinstance(node, (BrokerNode, ControllerNode)):
        _adapt_file(host, spec, node, upgrade)
    return replace(spec, upgrade=replace(upgrade, nodes=tuple(sorted({*upgrade.nodes, node.name}))))


def to_former(host: Host, spec: ClusterSpec, node: Node) -> ClusterSpec:
    """Switch a node back to the previous release and its settings."""
    upgrade = current_upgrade(spec)
    _restore_file(host, spec, node)
    return replace(spec, upgrade=replace(upgrade, nodes=tuple(each for each in upgrade.nodes if each != node.name)))


def to_new_protocol(host: Host, spec: ClusterSpec, node: Node) -> ClusterSpec:
    """Let a broker use the inter-broker protocol of the target (ZooKeeper).

    The record is written first: it must contain every broker that may have used the new protocol.
    """
    upgrade = current_upgrade(spec)
    if upgrade.phase != "finalizing":  # a rollback has begun, and has found no broker with the new protocol
        raise Refused(f"cluster {spec.name} is not being finalized any more", reason=Reason.RUN_STATE)
    raised = _save(host, spec, replace(upgrade, raised=tuple(sorted({*upgrade.raised, node.name}))))
    path = spec.config_path(node)
    host.write_file(path, without_protocol(_read_text(host, path)).encode())
    return raised


def _members(spec: ClusterSpec) -> list[BrokerNode | ControllerNode]:
    return [node for node in spec.nodes if not isinstance(node, ZooKeeperNode)]


# --- files ------------------------------------------------------------------------------------------------------------


def saved_path(spec: ClusterSpec, node: Node) -> Path:
    """Return the path of the copy of a node's config file as it was before the upgrade."""
    path = spec.config_path(node)
    return path.with_name(f"{path.name}.{_SAVED}")


def node_settings(host: Host, spec: ClusterSpec, target: str) -> list[NodeSettings]:
    """Return what changes in the config files of all brokers and controllers. Raises InvalidFile, NotFound."""
    rows = []
    for node in _members(spec):
        path = spec.config_path(node)
        settings = parse_properties(_read_text(host, path), source=str(path))
        changes = _changes(spec, node, settings, target)
        obsolete = {change.setting for change in changes}
        kept_settings = {name: value for name, value in settings.items() if name not in obsolete}
        rows.append(
            NodeSettings(node.name, tuple(changes), tuple(invalid_settings(kept_settings, spec.kafka_version, target)))
        )
    return rows


def edited_logging(host: Host, spec: ClusterSpec, target: str) -> list[Path]:
    """Return the log4j.properties that the user edited and that a node does not read with the target (log4j 2)."""
    if is_kafka_4(spec.kafka_version) or not is_kafka_4(target):
        return []
    before = replace(spec, upgrade=None)
    paths = {node.name: before.log4j_path(node) for node in _members(spec)}
    return [
        paths[node.name]
        for node in _members(spec)
        if (host.read_file(paths[node.name]) or b"") not in {b"", render_log4j(before, node).encode()}
    ]


def _changes(
    spec: ClusterSpec, node: BrokerNode | ControllerNode, settings: Mapping[str, str], target: str
) -> list[SettingChange]:
    before = replace(spec, upgrade=None)
    return changes_of(settings, before, replace(before, kafka_version=target), node)


def _adapt_file(host: Host, spec: ClusterSpec, node: BrokerNode | ControllerNode, upgrade: Upgrade) -> None:
    path = spec.config_path(node)
    text = _read_text(host, path)
    changes = _changes(spec, node, parse_properties(text, source=str(path)), upgrade.to.version)
    if not changes:
        return
    if host.size(saved_path(spec, node)) is None:
        host.write_file(saved_path(spec, node), text.encode())
    host.write_file(path, changed_text(text, changes, upgrade.to.version).encode())


def _restore_file(host: Host, spec: ClusterSpec, node: Node) -> None:
    saved = host.read_file(saved_path(spec, node))
    if saved is not None:
        host.write_file(spec.config_path(node), saved)


def _update_header(host: Host, spec: ClusterSpec, node: Node, version: str) -> None:
    """Replace the release in the first line that kctl wrote; a file that the user wrote is unchanged."""
    path = spec.config_path(node)
    data = host.read_file(path)
    if data is None:
        return
    first, newline, rest = data.partition(b"\n")
    old = f"Kafka {spec.kafka_version}.".encode()
    if first.startswith(b"# ") and first.endswith(old):
        host.write_file(path, first.removesuffix(old) + f"Kafka {version}.".encode() + newline + rest)


def _read_text(host: Host, path: Path) -> str:
    data = host.read_file(path)
    if data is None:
        raise NotFound(
            f"{path} does not exist", hint="start the node to create the file again, then repeat the command"
        )
    return decode_properties(data, source=str(path))
