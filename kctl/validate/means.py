"""By what a validation breaks and mends a cluster: signals to the processes of one that kctl set up, or hooks."""

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
from kctl.errors import KctlError, OperationFailed, Refused
from kctl.model import Broker
from kctl.protocol.target import Target
from kctl.restart.control import Act, BrokerControl
from kctl.validate.leftovers import DOWN, UP, brokers_of
from kctl.validate.zookeepers import HookZookeepers, LocalZookeepers, ZookeeperControl, by_hooks

if TYPE_CHECKING:
    from kctl.deploy.waiting import Progress

START_S = 180.0  # when it is brought back in a clean-up


@dataclass(frozen=True)
class Means:
    """control: of brokers. spec: of kctl's own cluster; None for any other. told: by what it is done, for people.
    zookeepers: by what they are killed and started, or why they cannot be."""

    control: BrokerControl
    spec: ClusterSpec | None
    told: str
    zookeepers: ZookeeperControl | str

    def log_folders(self, topic: str, partition: int) -> dict[int, Path]:
        """By broker, the folder of a partition's log, as far as there are some and this machine has them."""
        found = {}
        for node in () if self.spec is None else self.spec.brokers:
            for path in self.spec.data_paths(node) if self.spec else ():
                if (path / f"{topic}-{partition}").is_dir():
                    found[node.id] = path / f"{topic}-{partition}"
        return found


def own_cluster(brokers: Collection[Broker]) -> ClusterSpec | None:
    """The cluster of kctl's that these are brokers of, as far as they are there; None when they are another's."""
    there = {(broker.id, broker.host, broker.port) for broker in brokers}
    for stored in list_clusters(LocalHost()):
        spec = stored.spec
        if spec is None or not there or not there <= {(node.id, LOOPBACK, node.port) for node in spec.brokers}:
            continue
        if lifecycle.running_nodes(spec):  # another one may have the same ports, and be down
            return spec
    return None


def find_means(
    brokers: Mapping[int, Broker], hooks: Path | None, target: Target, *, progress: Progress | None = None
) -> Means:
    """Raises Refused when the cluster is not kctl's and there are no hooks, NotFound when a hook's command is not here,
    and what reading hooks raises; for kctl's own clusters what `check_startable` raises."""
    from kctl.restart.control_hooks import HookControl
    from kctl.restart.hooks import check_brokers, read_hooks

    if hooks is not None:
        found = read_hooks(hooks)
        control = HookControl(found, brokers)
        check_brokers(found, brokers, tuple(control.acts))
        return Means(control, None, f"by the commands of {hooks}", by_hooks(found, target))
    spec = own_cluster(brokers.values())
    if spec is None:
        raise Refused(
            "kctl did not set this cluster up, and so cannot break it",
            hint="give --hooks FILE: the commands that kill, pause, stop and start its brokers, and its ZooKeepers",
        )
    running = lifecycle.running_nodes(spec)
    absent = [node.name for node in spec.nodes if node.name not in running]
    absent += [node.name for node in spec.brokers if node.name in running and node.id not in brokers]
    if absent:
        raise Refused(
            f"{', '.join(absent)} of cluster {spec.name} {'is' if len(absent) == 1 else 'are'} down",
            hint=f"kctl cluster start {spec.name} starts what is down; a validation begins with all in order",
        )
    lifecycle.check_startable(spec.name)
    return _own_means(spec, progress)


def _own_means(spec: ClusterSpec, progress: Progress | None = None) -> Means:
    from kctl.restart.control_local import LocalControl

    control = LocalControl(spec.name, progress=progress)
    return Means(control, spec, f"by signals to the processes of cluster {spec.name}", LocalZookeepers(spec))


def cleaning_means(brokers: Mapping[int, Broker], cluster_id: str, hooks: Path | None, target: Target) -> Means:
    """Means to bring back what an earlier run took down, though not all brokers are there. brokers: those that are; the
    others are those of its journal.

    Raises Refused when nothing here can start what is down: what may be down is in the journals.
    """
    from kctl.restart.control_hooks import HookControl
    from kctl.restart.hooks import read_hooks

    spec = own_cluster(brokers.values())
    if hooks is None and spec is not None:
        return _own_means(spec)
    if hooks is None:
        raise Refused(
            f"an earlier validation of cluster {cluster_id} did not clean up, and kctl did not set this cluster up",
            hint="give --hooks FILE: the commands that start what it broke",
        )
    known = {**brokers_of(cluster_id), **brokers}
    found = read_hooks(hooks)
    zookeepers = HookZookeepers(found, target.zookeeper_security)
    return Means(HookControl(found, known), None, f"by the commands of {hooks}", zookeepers)


class Breaker:
    """Breaks and mends by `means`, and notes it in the run's journal: before it breaks, and when it has mended.

    told: is called with the act and the broker before it is done, in the moment of the fault. It is a BrokerControl.
    """

    def __init__(self, means: Means, journal: Journal, told: Callable[[Act, int], None] | None = None) -> None:
        self.means, self._journal, self.told = means, journal, told
        self.acts: Collection[Act] = means.control.acts

    def stop(self, broker: int, *, timeout_s: float) -> None:
        self._break("stop", broker)
        self.means.control.stop(broker, timeout_s=timeout_s)

    def kill(self, broker: int) -> None:
        self._break("kill", broker)
        self.means.control.kill(broker)

    def pause(self, broker: int) -> None:
        self._break("pause", broker)
        self.means.control.pause(broker)

    def unpause(self, broker: int) -> None:
        self.means.control.unpause(broker)
        self._journal.append(UP, node=str(broker))

    def start(self, broker: int, *, timeout_s: float) -> None:
        self.means.control.start(broker, timeout_s=timeout_s)
        self._journal.append(UP, node=str(broker))

    def _break(self, act: Act, broker: int) -> None:
        self._journal.append(DOWN, node=str(broker), act=act)
        if self.told is not None:
            self.told(act, broker)

    @property
    def _zookeepers(self) -> ZookeeperControl:
        """Raises Refused when there is none."""
        if isinstance(self.means.zookeepers, str):
            raise Refused(self.means.zookeepers)
        return self.means.zookeepers

    def kill_zookeepers(self) -> None:
        """All at once. Raises as ZookeeperControl does."""
        for name in self._zookeepers.names:
            self._journal.append(DOWN, node=name, act="kill")
        self._zookeepers.kill()

    def start_zookeepers(self, timeout_s: float, names: Sequence[str] | None = None) -> None:
        """Until they serve. names: None for all."""
        names = self._zookeepers.names if names is None else names
        self._zookeepers.start(names, timeout_s=timeout_s)
        for name in names:
            self._journal.append(UP, node=name)

    def serving_zookeepers(self) -> list[str]:
        """Those that serve now."""
        return self._zookeepers.serving()

    def mend(self, broker: int, act: str, answers: Callable[[int], bool], start_s: float) -> None:
        """Bring back a broker that was broken; harmless when it is there.

        answers: whether a broker does, within a time. start_s: for a start.
        """
        if act == "pause":
            self._wake(broker, answers, start_s)
        else:
            self.start(broker, timeout_s=start_s)

    def _wake(self, broker: int, answers: Callable[[int], bool], start_s: float) -> None:
        """It may have died meanwhile: then it cannot go on, and has to be started. A start that had nothing to do says
        nothing of one that still stands, so it must answer."""
        asleep: KctlError | None = None
        try:
            self.means.control.unpause(broker)
        except KctlError as exc:
            asleep = exc
        try:
            self.means.control.start(broker, timeout_s=start_s)
        except KctlError as exc:
            if asleep is None:
                raise
            raise OperationFailed(f"{asleep.message}; {exc.message}", hint=exc.hint) from exc
        if asleep is not None and not answers(broker):
            raise OperationFailed(f"{asleep.message}; it was started, and does not answer", hint=asleep.hint)
        self._journal.append(UP, node=str(broker))
