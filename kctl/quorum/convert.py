"""Convert static voters (controller.quorum.voters) to dynamic ones (KIP-853).

kraft.version 1 moves the voters from the settings into the metadata log. Afterwards each node needs
controller.quorum.bootstrap.servers in place of controller.quorum.voters, and a restart. The remaining steps follow from
the feature level and from the settings with which the nodes run, so the same command resumes a conversion.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from kctl.base.text import counted
from kctl.deploy.config.quorum_settings import has_static_voters, with_bootstrap_servers
from kctl.deploy.data import find_cluster
from kctl.deploy.host import Host, LocalHost
from kctl.deploy.layout import BrokerNode, ClusterSpec, ControllerNode
from kctl.deploy.store import lock_cluster
from kctl.errors import ConnectionFailed, KctlError, NotSupported, OperationFailed, Reason, Refused, UsageError
from kctl.features.apply import apply, check
from kctl.features.facts import read_features
from kctl.features.levels import KRAFT_VERSION
from kctl.features.plan import FeaturePlan, plan_upgrade
from kctl.protocol.controllers import SERVERS_KEY, VOTERS_KEY
from kctl.quorum.facts import QuorumFacts, read_facts
from kctl.quorum.node_settings import Settings, read_controller_settings, read_settings
from kctl.restart.journals import find_unfinished
from kctl.restart.own_restart import restart_own
from kctl.restart.plan import read_unfinished

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient
    from kctl.restart.restart_run import RestartOptions, RestartReporter

_DYNAMIC_VOTERS = 1  # level of kraft.version; it cannot be lowered again
_FEATURE_S = 30.0
_MAX_FILE_BYTES = 1 << 20
_PASSES = 2  # of the rolling restart: the first one may resume an older run of other nodes


class VoterSource(str, Enum):
    """The place from which a node learns the voters: its settings, or the metadata log."""

    STATIC = "static"
    DYNAMIC = "dynamic"
    UNKNOWN = "unknown"


class ConvertStep(str, Enum):
    FEATURE = "kraft.version"
    SETTINGS = "settings"
    RESTART = "restart"


_PAST = {ConvertStep.FEATURE: "kraft.version is 1 now", ConvertStep.SETTINGS: "the settings are written"}


@dataclass(frozen=True, slots=True)
class ConvertNode:
    """A node. problem: why its settings cannot be read. file: its server.properties, if kctl set it up and the file
    still has static voters."""

    node_id: int
    role: str
    voter_source: VoterSource
    problem: str | None = None
    file: Path | None = None

    @property
    def is_done(self) -> bool:
        return self.voter_source is VoterSource.DYNAMIC and self.file is None


@dataclass(frozen=True, slots=True)
class Conversion:
    """A planned conversion.

    cluster: the name, if kctl set it up; then kctl does all steps. bootstrap_servers: the value for each node. steps:
    what kctl will do. remaining: ids of the nodes whose settings the operator has to change.
    """

    cluster: str | None
    kraft_version: int
    voters: tuple[int, ...]
    bootstrap_servers: str
    nodes: tuple[ConvertNode, ...]
    steps: tuple[ConvertStep, ...]
    remaining: tuple[int, ...]

    @property
    def changed(self) -> bool:
        return bool(self.steps)


def plan_conversion(client: ClusterClient, host: Host | None = None) -> Conversion:
    """Plan the conversion. Raises NotSupported (ZooKeeper, a node before Kafka 4.1), Refused (a voter is down)."""
    host = host or LocalHost()
    facts = read_facts(client, watch=True)
    if facts.kraft_version is None:
        raise Refused("no broker reports its features", hint="see `kctl broker list`", reason=Reason.UNREADABLE)
    if not facts.quorum.nodes:
        raise NotSupported(
            "the cluster cannot have dynamic voters", hint="upgrade all nodes to Kafka 4.1 or later",
            reason=Reason.VERSION_UNSUPPORTED,
        )  # fmt: skip
    if facts.kraft_version < 1:
        _require_all_voters(facts)
        _plan_feature(client)
    spec = find_cluster(host, facts.cluster_id)
    nodes = _nodes(client, facts, host, spec)
    to_change = [each.node_id for each in nodes if not each.is_done]
    steps = [ConvertStep.FEATURE] if facts.kraft_version < 1 else []
    if spec is not None and to_change:
        _refuse_other_run(facts.cluster_id)  # before kraft.version changes: the restart would be refused after it
        steps += [ConvertStep.SETTINGS] if any(each.file is not None for each in nodes) else []
        steps += [ConvertStep.RESTART]
    return Conversion(
        cluster=None if spec is None else spec.name,
        kraft_version=facts.kraft_version,
        voters=tuple(voter.id for voter in facts.quorum.voters),
        bootstrap_servers=_servers(facts),
        nodes=nodes,
        steps=tuple(steps),
        remaining=() if spec is not None else tuple(to_change),
    )


def _plan_feature(client: ClusterClient) -> FeaturePlan:
    """Plan kraft.version 1, and let the controller validate it. Raises NotSupported if a node is too old, Refused."""
    return check(client, plan_upgrade(read_features(client), {KRAFT_VERSION: _DYNAMIC_VOTERS}))


def _require_all_voters(facts: QuorumFacts) -> None:
    """Raise Refused if a voter is down: the controller accepts the level only after each voter reported its support.

    A voter that is down would remain in the metadata log permanently.
    """
    silent = [voter.id for voter in facts.quorum.voters if voter.id not in facts.fetching]
    if silent:
        raise Refused(
            f"{len(silent)} of {counted(len(facts.quorum.voters), 'voter')} {'does' if len(silent) == 1 else 'do'} not"
            f" follow the leader: controller {', '.join(map(str, silent))}",
            hint="start all voters first; see `kctl quorum status`",
            reason=Reason.NOT_READY,
        )


def _refuse_other_run(cluster_id: str) -> None:
    """Raise Refused if nodes of the cluster are being restarted for another purpose, Busy if kctl does it now."""
    path = find_unfinished(cluster_id)
    if path is not None:
        read_unfinished(path, None)


def _servers(facts: QuorumFacts) -> str:
    voters = {voter.id for voter in facts.quorum.voters}
    nodes = [node for node in facts.quorum.nodes if node.listener == facts.listener and node.id in voters]
    return ",".join(f"{node.host}:{node.port}" for node in nodes)


# --- nodes ------------------------------------------------------------------------------------------------------------


def _nodes(client: ClusterClient, facts: QuorumFacts, host: Host, spec: ClusterSpec | None) -> tuple[ConvertNode, ...]:
    settings = read_settings(client)
    voters = {voter.id for voter in facts.quorum.voters}
    roles = {node: "broker, controller" if node in voters else "broker" for node in settings}
    controllers = {node: address for node, address in (facts.controllers or {}).items() if node not in settings}
    settings |= read_controller_settings(client, controllers) if controllers else {}
    missing = voters - settings.keys()
    problem = OperationFailed(facts.controllers_problem or "not registered")
    settings |= dict.fromkeys(missing, problem)
    return tuple(
        _node(node, roles.get(node, "controller"), settings[node], _file(host, spec, node)) for node in sorted(settings)
    )


def _node(node: int, role: str, settings: Settings | KctlError, file: Path | None) -> ConvertNode:
    if isinstance(settings, KctlError):
        return ConvertNode(node, role, VoterSource.UNKNOWN, settings.message, file)
    state = VoterSource.STATIC if settings.get(VOTERS_KEY) else VoterSource.DYNAMIC
    return ConvertNode(node, role, state, None, file)


def _file(host: Host, spec: ClusterSpec | None, node_id: int) -> Path | None:
    """Return the config file of a node that kctl set up, if it has static voters."""
    node = None if spec is None else next((each for each in spec.nodes if each.id == node_id), None)
    if spec is None or not isinstance(node, (BrokerNode, ControllerNode)):
        return None
    path = spec.config_path(node)
    return path if has_static_voters(_read(host, path), source=str(path)) else None


def _read(host: Host, path: Path) -> str:
    from kctl.base.properties import decode_properties

    return decode_properties(host.read_file(path, max_bytes=_MAX_FILE_BYTES) or b"", source=str(path))


# --- carrying out -----------------------------------------------------------------------------------------------------


def carry_out(
    client: ClusterClient,
    plan: Conversion,
    options: RestartOptions,
    reporter: RestartReporter,
    host: Host | None = None,
) -> Conversion:
    """Carry out the steps. Return the plan of the remaining steps: none, if kctl set up the cluster.

    Raises the error of the controller, Refused, NotFinished (a node did not restart), OperationFailed.
    """
    host = host or LocalHost()
    done: list[ConvertStep] = []
    try:
        return _carry_out(client, plan, options, reporter, host, done)
    except (Refused, ConnectionFailed, UsageError) as exc:  # they stand for "nothing was changed"
        if not done:
            raise
        raise OperationFailed(
            f"{' and '.join(_PAST[step] for step in done)}, but: {exc.message}",
            hint="\n".join(line for line in (exc.hint, "run the same command again to continue") if line),
            details=exc.details,
        ) from exc


def _carry_out(
    client: ClusterClient,
    plan: Conversion,
    options: RestartOptions,
    reporter: RestartReporter,
    host: Host,
    done: list[ConvertStep],
) -> Conversion:
    """Carry out the steps, and add each to `done` once it has changed something."""
    if ConvertStep.SETTINGS in plan.steps:
        _new_settings(host, plan)  # a file that cannot be changed is an error before kraft.version changes
    if ConvertStep.FEATURE in plan.steps:
        reporter.update("raising kraft.version to 1")
        apply(client, _plan_feature(client), timeout_s=_FEATURE_S)
        done.append(ConvertStep.FEATURE)
    if plan.cluster is None:
        return plan_conversion(client, host)
    if ConvertStep.SETTINGS in plan.steps:
        reporter.update("writing the settings")
        _write_settings(host, plan)
        done.append(ConvertStep.SETTINGS)
    if ConvertStep.RESTART in plan.steps:
        return _restart(client, plan, options, reporter, host)
    return plan_conversion(client, host)


def _new_settings(host: Host, plan: Conversion) -> dict[Path, str]:
    """Return the new text of each file that still has static voters. Raises InvalidFile."""
    files = [node.file for node in plan.nodes if node.file is not None]
    return {file: with_bootstrap_servers(_read(host, file), plan.bootstrap_servers, source=str(file)) for file in files}


def _write_settings(host: Host, plan: Conversion) -> None:
    assert plan.cluster is not None
    with lock_cluster(plan.cluster):
        for file, text in _new_settings(host, plan).items():
            host.write_file(file, text.encode())


def _restart(
    client: ClusterClient, plan: Conversion, options: RestartOptions, reporter: RestartReporter, host: Host
) -> Conversion:
    assert plan.cluster is not None
    remainder = plan
    for _ in range(_PASSES):
        nodes = [each.node_id for each in remainder.nodes if each.voter_source is not VoterSource.DYNAMIC]
        restart_own(plan.cluster, nodes, options, reporter)
        remainder = plan_conversion(client, host)
        if not remainder.changed:
            return remainder
    names = ", ".join(str(each.node_id) for each in remainder.nodes if each.voter_source is not VoterSource.DYNAMIC)
    raise OperationFailed(
        f"node {names} still runs with {VOTERS_KEY}", hint=f"check {SERVERS_KEY} in its server.properties"
    )
