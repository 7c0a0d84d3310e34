"""Inject faults into a cluster and undo them: by signals if kctl set it up, or by hooks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kctl.base.journal import Journal
from kctl.deploy import lifecycle
from kctl.deploy.host import LocalHost
from kctl.deploy.layout import LOOPBACK, ClusterSpec
from kctl.deploy.store import list_clusters
from kctl.errors import KctlError, OperationFailed, Reason, Refused
from kctl.model import Broker
from kctl.protocol.target import Target
from kctl.restart.control import Act, BrokerControl
from kctl.validate.leftovers import DOWN, TOPIC, UP, brokers_of
from kctl.validate.servers import HookZookeepers, LocalServers, ServerControl, by_hooks

if TYPE_CHECKING:
    from kctl.deploy.waiting import ProgressReporter

START_S = 180.0  # start timeout during clean-up


@dataclass(frozen=True)
class FaultInjection:
    """The controls that inject faults into brokers, ZooKeeper servers, and dedicated controllers.

    spec: of a cluster that kctl set up, else None. method: for messages. zookeepers, controllers: the control of these
    servers, or the reason why there is none.
    """

    control: BrokerControl
    spec: ClusterSpec | None
    method: str
    zookeepers: ServerControl | str
    controllers: ServerControl | str = "kctl did not set the controllers up, and hooks cannot control them"

    def servers(self, names: Sequence[str] = ()) -> ServerControl:
        """Return the control of the servers with these names. Raises Refused if there is none."""
        controls = [each for each in (self.zookeepers, self.controllers) if not isinstance(each, str)]
        if not controls:
            raise Refused(str(self.zookeepers), reason=Reason.IMPOSSIBLE)
        return next((each for each in controls if {*names} <= {*each.names}), controls[0])

    def log_folders(self, topic: str, partition: int) -> dict[int, Path]:
        """Return brokers → the log folder of a partition, for folders on this machine."""
        folders = {}
        for node in () if self.spec is None else self.spec.brokers:
            for path in self.spec.data_paths(node) if self.spec else ():
                if (path / f"{topic}-{partition}").is_dir():
                    folders[node.id] = path / f"{topic}-{partition}"
        return folders


def local_cluster(brokers: Collection[Broker]) -> ClusterSpec | None:
    """Return the cluster set up by kctl to which these running brokers belong, None if there is none."""
    running = {(broker.id, broker.host, broker.port) for broker in brokers}
    for stored_cluster in list_clusters(LocalHost()):
        spec = stored_cluster.spec
        if spec is None or not running or not running <= {(node.id, LOOPBACK, node.port) for node in spec.brokers}:
            continue
        if lifecycle.running_nodes(spec):  # a stopped cluster may have the same ports
            return spec
    return None


def find_fault_injection(
    brokers: Mapping[int, Broker], hooks: Path | None, target: Target, *, progress: ProgressReporter | None = None
) -> FaultInjection:
    """Return the fault injection for a cluster.

    Raises Refused if kctl did not set the cluster up and there are no hooks, NotFound if a command of the hooks does
    not exist, and the errors of `read_hooks` and `check_startable`.
    """
    from kctl.restart.control_hooks import HookControl
    from kctl.restart.hooks import check_brokers, read_hooks

    if hooks is not None:
        commands = read_hooks(hooks)
        control = HookControl(commands, brokers)
        check_brokers(commands, brokers, tuple(control.acts))
        return FaultInjection(control, None, f"by the commands of {hooks}", by_hooks(commands, target))
    spec = local_cluster(brokers.values())
    if spec is None:
        raise Refused(
            "kctl did not set this cluster up, so it cannot inject faults",
            hint="set --hooks FILE with commands that kill, pause, stop and start brokers and ZooKeeper servers",
            reason=Reason.WRONG_CLUSTER,
        )
    running = lifecycle.running_nodes(spec)
    absent = [node.name for node in spec.nodes if node.name not in running]
    absent += [node.name for node in spec.brokers if node.name in running and node.id not in brokers]
    if absent:
        raise Refused(
            f"{', '.join(absent)} of cluster {spec.name} {'is' if len(absent) == 1 else 'are'} down",
            hint=f"run `kctl cluster start {spec.name}` first",
            reason=Reason.NOT_READY,
        )
    lifecycle.check_startable(spec.name)
    return _local_injection(spec, progress)


def _local_injection(spec: ClusterSpec, progress: ProgressReporter | None = None) -> FaultInjection:
    from kctl.restart.control_local import LocalControl

    control = LocalControl(spec.name, progress=progress)
    method = f"by signals to the processes of cluster {spec.name}"
    if not spec.uses_kraft:
        zookeepers = LocalServers(spec, tuple(node.name for node in spec.zookeepers))
        return FaultInjection(control, spec, method, zookeepers, f"cluster {spec.name} uses ZooKeeper, not KRaft")
    no_zookeeper = f"cluster {spec.name} uses KRaft, not ZooKeeper"
    if not spec.controllers:
        return FaultInjection(control, spec, method, no_zookeeper, "the brokers are the controllers")
    controllers = LocalServers(spec, tuple(node.name for node in spec.controllers))
    return FaultInjection(control, spec, method, no_zookeeper, controllers)


def recovery_control(
    brokers: Mapping[int, Broker], cluster_id: str, hooks: Path | None, target: Target
) -> FaultInjection:
    """Return the controls to restart nodes that an earlier run took down. brokers: live ones; journals have the others.

    Raises Refused if there is no way to start the nodes that the journals list.
    """
    from kctl.restart.control_hooks import HookControl
    from kctl.restart.hooks import read_hooks

    spec = local_cluster(brokers.values())
    if hooks is None and spec is not None:
        return _local_injection(spec)
    if hooks is None:
        raise Refused(
            f"an earlier validation of cluster {cluster_id} did not clean up, and kctl did not set this cluster up",
            hint="set --hooks FILE with the commands that start brokers and ZooKeeper servers",
            reason=Reason.WRONG_CLUSTER,
        )
    all_brokers = {**brokers_of(cluster_id), **brokers}
    commands = read_hooks(hooks)
    zookeepers = HookZookeepers(commands, target.zookeeper_security)
    return FaultInjection(HookControl(commands, all_brokers), None, f"by the commands of {hooks}", zookeepers)


class Breaker:
    """A BrokerControl that records faults in the run's journal before they happen, and repairs afterwards.

    on_fault: called with the act and the broker immediately before the fault.
    """

    def __init__(
        self, injection: FaultInjection, journal: Journal, on_fault: Callable[[Act, int], None] | None = None
    ) -> None:
        self.injection, self._journal, self.on_fault = injection, journal, on_fault
        self.acts: Collection[Act] = injection.control.acts

    def stop(self, broker: int, *, timeout_s: float) -> None:
        self._break("stop", broker)
        self.injection.control.stop(broker, timeout_s=timeout_s)

    def kill(self, broker: int) -> None:
        self._break("kill", broker)
        self.injection.control.kill(broker)

    def pause(self, broker: int) -> None:
        self._break("pause", broker)
        self.injection.control.pause(broker)

    def unpause(self, broker: int) -> None:
        self.injection.control.unpause(broker)
        self._journal.append(UP, node=str(broker))

    def start(self, broker: int, *, timeout_s: float) -> None:
        self.injection.control.start(broker, timeout_s=timeout_s)
        self._journal.append(UP, node=str(broker))

    def _break(self, act: Act, broker: int) -> None:
        self._journal.append(DOWN, node=str(broker), act=act)
        if self.on_fault is not None:
            self.on_fault(act, broker)

    def record_topic(self, topic: str) -> None:
        """Record a topic in the run's journal, immediately before it is created."""
        self._journal.append(TOPIC, topic=topic)

    def kill_servers(self, names: Sequence[str]) -> None:
        """Kill ZooKeeper servers or controllers. Raises like ServerControl."""
        servers = self.injection.servers(names)
        for name in names:
            self._journal.append(DOWN, node=name, act="kill")
        servers.kill(names)

    def start_servers(self, names: Sequence[str], timeout_s: float) -> None:
        """Start ZooKeeper servers or controllers, and wait until they serve. Raises like ServerControl."""
        self.injection.servers(names).start(names, timeout_s=timeout_s)
        for name in names:
            self._journal.append(UP, node=name)

    def running_servers(self, names: Sequence[str]) -> list[str]:
        """Return which of these servers serve requests now."""
        return [name for name in self.injection.servers(names).serving() if name in names]

    def repair(self, broker: int, act: str, responds: Callable[[int], bool], start_s: float) -> None:
        """Bring a broker back; do nothing if it is up. responds: returns True if a broker responds in time."""
        if act == "pause":
            self._unpause_or_start(broker, responds, start_s)
        else:
            self.start(broker, timeout_s=start_s)

    def _unpause_or_start(self, broker: int, responds: Callable[[int], bool], start_s: float) -> None:
        """Unpause a broker, or start it if it has died.

        Starting a running process does nothing, even if the process is still paused, so the broker must also respond.
        """
        failure: KctlError | None = None
        try:
            self.injection.control.unpause(broker)
        except KctlError as exc:
            failure = exc
        try:
            self.injection.control.start(broker, timeout_s=start_s)
        except KctlError as exc:
            if failure is None:
                raise
            raise OperationFailed(f"{failure.message}; {exc.message}", hint=exc.hint) from exc
        if failure is not None and not responds(broker):
            raise OperationFailed(f"{failure.message}; it was started, but does not respond", hint=failure.hint)
        self._journal.append(UP, node=str(broker))
