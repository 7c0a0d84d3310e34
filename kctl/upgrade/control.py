"""Control of a cluster whose nodes are switched to another release, or other settings, between stop and start."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from kctl.deploy import lifecycle
from kctl.restart.control_local import LocalControl
from kctl.upgrade.record import switch_node

if TYPE_CHECKING:
    from kctl.deploy.host import Host
    from kctl.deploy.waiting import ProgressReporter
    from kctl.upgrade.record import Switch


class SwitchingControl(LocalControl):
    """Like `LocalControl`, but `start` first changes the files and the record of a stopped node."""

    def __init__(self, cluster: str, switch: Switch, *, progress: ProgressReporter | None, host: Host) -> None:
        super().__init__(cluster, progress=progress, host=host)
        self._switch = switch

    def start(self, broker: int, *, timeout_s: float) -> None:
        """Switch the node, then start it. After OperationFailed (with the end of its log) and TimedOut, it is down."""
        self._retry_while_busy(partial(_switch_and_start, self._switch), broker, timeout_s)


def _switch_and_start(switch: Switch, cluster: str, *, nodes: list[str], host: Host, **options: Any) -> None:
    for node in nodes:
        switch_node(host, cluster, node, switch)
    lifecycle.start_cluster(cluster, nodes=nodes, host=host, **options)
