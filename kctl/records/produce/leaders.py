"""Who leads a topic's partitions, and connections to them.

Nothing here waits: kctl.records.background looks and dials.

A broker that cannot be reached is left alone for a moment, and metadata says whether another leads by now.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from kctl.errors import ConnectionFailed, KctlError, NotFound, NotSupported
from kctl.protocol.codes import ApiKey
from kctl.records.background import Background
from kctl.records.consume.absence import DELETED_AFTER_S
from kctl.records.produce import wire as produce_wire
from kctl.records.produce.link import Link

if TYPE_CHECKING:
    from kctl.model import Broker, ClusterState, TopicState
    from kctl.protocol.client import ClusterClient
    from kctl.protocol.connection import Connection

_METADATA_AGE_S = 60.0
_LOOK_S = 5.0
_DIAL_S = 4.0
_LOOK_AGAIN_S, _DIAL_AGAIN_S = 0.05, 0.5
_METADATA = "metadata"


class Leaders:
    """links: by the broker's id. trouble: the last reason for which something did not go on, for whoever gives up."""

    def __init__(
        self, client: ClusterClient, topic: str, known: ClusterState, background: Background, *, codec: str, acks: int
    ) -> None:
        self._client, self._topic, self._background = client, topic, background
        self._topic_id = known.topics[topic].topic_id
        self._codec, self._acks = codec, acks
        self._brokers = dict(known.brokers)
        self._undialled: dict[int, float] = {}  # node → not to be tried before
        self._looked = time.monotonic()
        self._gone_since: float | None = None
        self.links: dict[int, Link] = {}
        self.trouble: KctlError | None = None

    def connect(self, nodes: Collection[int]) -> None:
        """Connect to them, before there is anything to send. Raises why, when none can be reached."""
        known = self._brokers.keys() & nodes
        opened = self._client.dial_known([self._brokers[node] for node in known], timeout_s=_DIAL_S)
        for node, outcome in opened.items():
            self._connected(node, outcome)
        if self.trouble is not None and (isinstance(self.trouble, NotSupported) or (known and not self.links)):
            raise self.trouble

    def dial(self, node: int, now: float) -> None:
        """Begin to connect, unless it did not work a moment ago."""
        broker = self._brokers.get(node)
        if broker is None:
            self.look_up(now)
        elif self._undialled.get(node, 0.0) <= now:
            self._background.start(node, partial(self._dial_one, broker))

    def _dial_one(self, broker: Broker) -> Connection:
        try:
            outcome = self._client.dial_known([broker], timeout_s=_DIAL_S)[broker.id]
        except OSError as exc:  # no file descriptor left, and the like
            raise ConnectionFailed(f"broker {broker.id} cannot be reached: {exc.strerror}") from None
        if isinstance(outcome, KctlError):
            raise outcome
        return outcome

    def _connected(self, node: int, outcome: Connection | KctlError) -> None:
        if isinstance(outcome, KctlError):
            self.trouble = outcome
            self._undialled[node] = time.monotonic() + _DIAL_AGAIN_S
            self.look_up(time.monotonic())
            return
        version = produce_wire.version_for(outcome.api_versions.get(ApiKey.PRODUCE), self._codec)
        if version is None:
            outcome.close()
            self.trouble = NotSupported(
                f"broker {node} does not take batches of format 2 with codec {self._codec}",
                hint="Kafka 0.11 or newer is needed, for zstd 2.1",
            )
            self._undialled[node] = float("inf")
            return
        self.links[node] = Link(node, outcome, version, self._acks)

    def broke(self, node: int, link: Link, why: str) -> None:
        """The connection is gone; who leads now is looked up."""
        if link.requests:
            self.trouble = ConnectionFailed(f"the connection to broker {node} broke: {why}")
        link.close()
        self.links.pop(node, None)
        self._undialled[node] = time.monotonic() + _LOOK_AGAIN_S

    def look_up(self, now: float, *, older_than_s: float = _LOOK_AGAIN_S) -> None:
        """Ask for the leaders anew, unless that is under way or was a moment ago."""
        if now - self._looked < older_than_s:
            return
        self._looked = now
        self._background.start(_METADATA, lambda: self._client.metadata([self._topic], timeout_s=_LOOK_S))

    def keep_fresh(self, now: float) -> None:
        """Ask again after a minute, whatever goes on."""
        self.look_up(now, older_than_s=_METADATA_AGE_S)

    def learned(self) -> Iterator[TopicState | NotFound]:
        """Take new connections; yield the topic as brokers tell it now, or that it is gone."""
        kind: Any
        for kind, outcome in self._background.finished():
            if kind != _METADATA:
                self._connected(kind, outcome)
                continue
            self._looked = time.monotonic()
            if isinstance(outcome, KctlError):
                self.trouble = outcome
                continue
            self._brokers = dict(outcome.brokers)
            found = outcome.topics.get(self._topic)
            if found is not None and (not self._topic_id or found.topic_id == self._topic_id):
                self._gone_since = None
                yield found
            elif self._is_gone(made_again=found is not None):
                how = "was deleted and created again" if found is not None else "was deleted"
                yield NotFound(f"topic {self._topic} {how} meanwhile")

    def _is_gone(self, *, made_again: bool) -> bool:
        """Not before some seconds: a broker that has just started may not know a topic yet."""
        now = time.monotonic()
        self._gone_since = now if self._gone_since is None else self._gone_since
        return made_again or now - self._gone_since >= DELETED_AFTER_S

    def close(self, *, at_once: bool = False) -> None:
        """Close all connections; what is on its way is abandoned. at_once: wait for no call that runs beside it."""
        for link in self.links.values():
            link.close()
        self.links.clear()
        for kind, outcome in self._background.close(0 if at_once else _LOOK_S + 1):
            if kind != _METADATA and not isinstance(outcome, KctlError):
                outcome.close()
