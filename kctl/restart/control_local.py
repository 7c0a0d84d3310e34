"""BrokerControl of a cluster that kctl set up: signals to its processes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from kctl.base.deadline import Deadline
from kctl.deploy import faults, lifecycle
from kctl.deploy.host import Host, LocalHost
from kctl.errors import Busy, NotFound
from kctl.restart.control import Act
from kctl.restart.hooks import ACTS

if TYPE_CHECKING:
    from kctl.deploy.waiting import ProgressReporter

_BUSY_S = 20.0  # time to retry; each attempt itself waits for the lock, too


class LocalControl:
    """Control of a cluster by its name. Each action holds the cluster's lock; other commands can run in between."""

    acts: Collection[Act] = ACTS

    def __init__(self, cluster: str, *, progress: ProgressReporter | None = None, host: Host | None = None) -> None:
        self._cluster, self._progress, self._host = cluster, progress, host or LocalHost()
        spec = lifecycle.load_cluster(cluster, self._host)
        self._names = {node.id: node.name for node in spec.brokers} | {node.id: node.name for node in spec.controllers}

    def stop(self, broker: int, *, timeout_s: float) -> None:
        """Shut the broker down in a controlled way. Raises TimedOut if its process does not end; does not kill it."""
        self._retry_while_busy(lifecycle.stop_cluster, broker, timeout_s)

    def start(self, broker: int, *, timeout_s: float) -> None:
        """Start the broker. On OperationFailed (with the end of its log) and TimedOut, it is stopped again."""
        self._retry_while_busy(lifecycle.start_cluster, broker, timeout_s)

    def _retry_while_busy(self, act: Callable[..., object], broker: int, timeout_s: float) -> None:
        """Retry while another kctl holds the lock: that is no reason to leave a broker down."""
        deadline = Deadline(timeout_s)
        retry_deadline = deadline.at_most(_BUSY_S)
        while True:
            try:
                act(
                    self._cluster, nodes=[self._name(broker)], timeout_s=max(1.0, deadline.left_s),
                    progress=self._progress, host=self._host,
                )  # fmt: skip
                return
            except Busy:
                if retry_deadline.expired:
                    raise

    def kill(self, broker: int) -> None:
        self._inflict(broker, "kill")

    def pause(self, broker: int) -> None:
        self._inflict(broker, "pause")

    def unpause(self, broker: int) -> None:
        self._inflict(broker, "unpause")

    def _inflict(self, broker: int, fault: faults.Fault) -> None:
        spec = lifecycle.load_cluster(self._cluster, self._host)
        selection = faults.choose(self._host, spec, self._name(broker))
        lifecycle.inflict_fault(self._cluster, selection, fault, host=self._host)

    def _name(self, broker: int) -> str:
        if broker not in self._names:
            ids_text = ", ".join(map(str, sorted(self._names)))
            hint = f"its brokers and controllers: {ids_text}"
            raise NotFound(f"cluster {self._cluster} has no broker {broker}", hint=hint)
        return self._names[broker]
