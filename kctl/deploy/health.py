"""Readiness of a cluster as the servers themselves report it; an open port is not enough.

A ZooKeeper is ready when `srvr` shows a mode; an ensemble when it has exactly one leader, or its only server is in mode
standalone. A broker is ready when it is registered under /brokers/ids, responds on its port, and lists every broker and
a controller.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kctl.deploy.layout import LOOPBACK, ClusterSpec
from kctl.errors import KctlError
from kctl.zookeeper.cluster_id import CLUSTER_ID

if TYPE_CHECKING:
    from kctl.protocol.target import Target
    from kctl.zookeeper.client import ZooKeeper

_PROBE_TIMEOUT_S = 1.0
_MAX_ANSWER_BYTES = 64 << 10
_MODE = re.compile(r"^Mode: (\w[\w-]*)$", re.MULTILINE)


def zookeeper_mode(port: int, *, timeout_s: float = _PROBE_TIMEOUT_S) -> str | None:
    """Return "standalone", "leader" or "follower" as reported by `srvr`; None if the server does not serve (yet)."""
    match = _MODE.search(four_letter_word(port, "srvr", timeout_s=timeout_s))
    return match.group(1) if match else None


def four_letter_word(port: int, word: str, *, timeout_s: float = _PROBE_TIMEOUT_S) -> str:
    """Return ZooKeeper's response to a four-letter word; "" if there is none."""
    answer = bytearray()
    try:
        with socket.create_connection((LOOPBACK, port), timeout=timeout_s) as connection:
            connection.sendall(word.encode("ascii"))
            while len(answer) < _MAX_ANSWER_BYTES and (chunk := connection.recv(4096)):
                answer += chunk
    except OSError:
        return ""
    return answer.decode("utf-8", "replace")


def ensemble_modes(spec: ClusterSpec, *, timeout_s: float = _PROBE_TIMEOUT_S) -> dict[int, str | None]:
    """Return the mode of each ZooKeeper by id."""
    return {z.id: zookeeper_mode(z.port, timeout_s=timeout_s) for z in spec.zookeepers}


def ensemble_serves(modes: Mapping[int, str | None]) -> bool:
    """Return True if a majority serves and one leads, which is enough for brokers."""
    active_modes = [mode for mode in modes.values() if mode is not None]
    if len(modes) == 1:
        return active_modes == ["standalone"]
    return active_modes.count("leader") == 1 and len(active_modes) > len(modes) // 2


@dataclass(frozen=True, slots=True)
class Registry:
    """The brokers' data in ZooKeeper, read only."""

    _zookeeper: ZooKeeper
    _chroot: str

    def broker_ids(self) -> set[int]:
        """Return the brokers with a live session."""
        return {int(name) for name in self._children("/brokers/ids") if name.isdigit()}

    def controller_id(self) -> int | None:
        """Return the id of the controller; None if there is none."""
        broker_id = self._json("/controller").get("brokerid")
        return broker_id if isinstance(broker_id, int) else None

    def cluster_id(self) -> str | None:
        """Return the cluster id; None before the first start of a broker."""
        value = self._json(CLUSTER_ID).get("id")
        return value if isinstance(value, str) else None

    def topics(self) -> set[str]:
        """Return the topics that are not marked for deletion."""
        return set(self._children("/brokers/topics")).difference(self._children("/admin/delete_topics"))

    def _children(self, path: str) -> list[str]:
        from kctl.zookeeper.client import NoNode

        try:
            return self._zookeeper.get_children(self._chroot + path)
        except NoNode:
            return []

    def _json(self, path: str) -> dict[str, Any]:
        import json

        from kctl.zookeeper.client import NoNode

        try:
            value = json.loads(self._zookeeper.get(self._chroot + path)[0])
        except (NoNode, ValueError):
            return {}
        return value if isinstance(value, dict) else {}


@contextmanager
def registry(spec: ClusterSpec, *, timeout_s: float = 5.0) -> Iterator[Registry]:
    """Open a short session with the cluster's ZooKeeper. Raises ConnectionFailed."""
    from kctl.zookeeper.session import zookeeper

    # Connect without the chroot, which does not exist before the first start.
    with zookeeper(spec.zookeeper_servers, timeout_s=timeout_s) as client:
        yield Registry(client, spec.chroot)


def target_of(spec: ClusterSpec, broker_ids: Collection[int] | None = None) -> Target:
    """Return the cluster, or some of its brokers, as a client's target."""
    from kctl.protocol.target import Target

    servers = [f"{LOOPBACK}:{b.port}" for b in spec.brokers if broker_ids is None or b.id in broker_ids]
    return Target(spec.name, tuple(servers), spec.zookeeper_connect)


@dataclass(frozen=True, slots=True)
class BrokerAnswer:
    """One broker's view of the cluster; `problem` if it does not respond. topics: only if requested."""

    brokers: frozenset[int] = frozenset()
    controller_id: int | None = None
    topics: frozenset[str] = frozenset()
    problem: str | None = None


def ask_brokers(
    spec: ClusterSpec, broker_ids: Collection[int], *, topics: bool = False, timeout_s: float = 3.0
) -> dict[int, BrokerAnswer]:
    """Read the view of each broker, in parallel."""
    from concurrent.futures import ThreadPoolExecutor

    if not broker_ids:
        return {}
    with ThreadPoolExecutor(max_workers=min(len(broker_ids), 16)) as pool:
        answers = pool.map(lambda broker_id: _ask_broker(spec, broker_id, topics, timeout_s), broker_ids)
        return dict(zip(broker_ids, answers, strict=True))


def _ask_broker(spec: ClusterSpec, broker_id: int, topics: bool, timeout_s: float) -> BrokerAnswer:
    from kctl.protocol.client import connect

    try:
        with connect(target_of(spec, [broker_id]), timeout_s=timeout_s) as client:
            state = client.metadata(None if topics else (), timeout_s=timeout_s)
    except KctlError as exc:
        return BrokerAnswer(problem=exc.message)
    return BrokerAnswer(frozenset(state.brokers), state.controller_id, frozenset(state.topics))


def unready_brokers(spec: ClusterSpec, expected: Collection[int], *, timeout_s: float = 3.0) -> dict[int, str]:
    """Return why `expected` brokers are not ready, silent brokers first; {} if all respond and know the others."""
    silent: dict[int, str] = {}
    incomplete: dict[int, str] = {}
    for broker_id, answer in ask_brokers(spec, expected, timeout_s=timeout_s).items():
        unknown = sorted(set(expected) - answer.brokers)
        if answer.problem is not None:
            silent[broker_id] = f"broker {broker_id} does not respond: {answer.problem}"
        elif unknown:
            incomplete[broker_id] = f"broker {broker_id} does not know broker {', '.join(map(str, unknown))} yet"
        elif answer.controller_id is None:
            incomplete[broker_id] = f"broker {broker_id} knows no controller"
    return silent | incomplete


def behind(spec: ClusterSpec, running: Collection[int], *, timeout_s: float = 3.0) -> int | None:
    """Return how many partitions with all replicas on `running` brokers are not fully in sync; None: unknown."""
    from kctl.protocol.client import connect

    try:
        with connect(target_of(spec, running), timeout_s=timeout_s) as client:
            state = client.metadata(timeout_s=timeout_s)
    except KctlError:
        return None
    partitions = (p for topic in state.topics.values() for p in topic.partitions)
    return sum((p.under_replicated or p.offline) and set(p.replicas) <= set(running) for p in partitions)
