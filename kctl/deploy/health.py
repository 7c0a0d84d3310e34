"""Is it ready: asked of the servers themselves, an open port is not enough.

A ZooKeeper is ready when `srvr` shows a mode; the ensemble when it has exactly one leader (or the only server stands
alone). A broker is ready when it is registered under /brokers/ids, answers on its port, and lists every broker and a
controller.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kctl.deploy.layout import LOOPBACK, ClusterSpec
from kctl.errors import KctlError

if TYPE_CHECKING:
    from kctl.context import Target

_PROBE_TIMEOUT_S = 1.0
_MAX_ANSWER_BYTES = 64 << 10
_MODE = re.compile(r"^Mode: (\w[\w-]*)$", re.MULTILINE)


def zookeeper_mode(port: int, *, timeout_s: float = _PROBE_TIMEOUT_S) -> str | None:
    """«standalone», «leader», «follower», as `srvr` says it; None when it does not serve (yet)."""
    match = _MODE.search(four_letter_word(port, "srvr", timeout_s=timeout_s))
    return match.group(1) if match else None


def four_letter_word(port: int, word: str, *, timeout_s: float = _PROBE_TIMEOUT_S) -> str:
    """ZooKeeper's answer to one of its commands; "" when there is none."""
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
    """The mode of each ZooKeeper by its id."""
    return {z.id: zookeeper_mode(z.port, timeout_s=timeout_s) for z in spec.zookeepers}


def ensemble_ready(modes: dict[int, str | None]) -> bool:
    """Every server serves, and one leads."""
    found = list(modes.values())
    return found == ["standalone"] or (None not in found and found.count("leader") == 1)


def ensemble_serves(modes: dict[int, str | None]) -> bool:
    """A majority serves, and one leads: enough for brokers to work."""
    found = [mode for mode in modes.values() if mode is not None]
    if len(modes) == 1:
        return found == ["standalone"]
    return found.count("leader") == 1 and len(found) > len(modes) // 2


@dataclass(frozen=True, slots=True)
class Registry:
    """What brokers keep in ZooKeeper. Reads only."""

    _zookeeper: Any
    _chroot: str

    def broker_ids(self) -> set[int]:
        """Brokers whose session lives."""
        return {int(name) for name in self._children("/brokers/ids") if name.isdigit()}

    def controller_id(self) -> int | None:
        """The broker that is controller; None while there is none."""
        found = self._json("/controller").get("brokerid")
        return found if isinstance(found, int) else None

    def cluster_id(self) -> str | None:
        """None before the first broker's first start."""
        found = self._json("/cluster/id").get("id")
        return found if isinstance(found, str) else None

    def _children(self, path: str) -> list[str]:
        from kazoo.exceptions import NoNodeError

        try:
            return list(self._zookeeper.get_children(self._chroot + path))
        except NoNodeError:
            return []

    def _json(self, path: str) -> dict[str, Any]:
        import json

        from kazoo.exceptions import NoNodeError

        try:
            data, _ = self._zookeeper.get(self._chroot + path)
            value = json.loads(data)
        except (NoNodeError, ValueError):
            return {}
        return value if isinstance(value, dict) else {}


@contextmanager
def registry(spec: ClusterSpec, *, timeout_s: float = 5.0) -> Iterator[Registry]:
    """A short session with the cluster's ZooKeeper. Raises ConnectionFailed."""
    from kctl.client import zookeeper

    # Without the chroot: it is not there before the first start.
    with zookeeper(spec.zookeeper_servers, timeout_s=timeout_s) as client:
        yield Registry(client, spec.chroot)


def target_of(spec: ClusterSpec, broker_ids: Sequence[int] | None = None) -> Target:
    """The cluster, or the chosen brokers of it, as a client's target."""
    from kctl.context import Target

    servers = [f"{LOOPBACK}:{b.port}" for b in spec.brokers if broker_ids is None or b.id in broker_ids]
    return Target(spec.name, tuple(servers), spec.zookeeper_connect)


def unready_brokers(spec: ClusterSpec, *, timeout_s: float = 5.0) -> list[str]:
    """What each broker that is not ready lacks, in words; [] when every one answers and knows all the others."""
    from kafka.protocol.metadata import MetadataRequest

    from kctl.client import connect

    expected = {b.id for b in spec.brokers}
    try:
        with connect(target_of(spec), timeout_s=timeout_s) as client:
            known = set(client.metadata(()).brokers)
            if known < expected:
                return [f"broker {b} is not listed by the controller" for b in sorted(expected - known)]
            request = MetadataRequest(topics=[], allow_auto_topic_creation=False)
            answers = client.send_each(dict.fromkeys(sorted(expected), request), timeout_s=timeout_s)
    except KctlError as exc:
        return [exc.message]
    missing = []
    for broker_id, answer in answers.items():
        if isinstance(answer, KctlError):
            missing.append(f"broker {broker_id} does not answer: {answer.message}")
        elif {b.node_id for b in answer.brokers} != expected:
            missing.append(f"broker {broker_id} does not know all brokers yet")
        elif answer.controller_id not in expected:
            missing.append(f"broker {broker_id} knows no controller")
    return missing
