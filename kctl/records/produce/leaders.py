"""The leaders of a topic's partitions, and connections to them.

Nothing here blocks: lookups and connection attempts run in kctl.records.background. After a failed attempt there is a
short pause, and a metadata lookup shows whether the leader has changed.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from kctl.errors import ConnectionFailed, ConnectionReason, KctlError, NotFound, NotSupported, Reason
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
_LOOKUP_S = 5.0
_DIAL_S = 4.0
_RELOOKUP_S, _REDIAL_S = 0.05, 0.5
_METADATA = "metadata"


class Leaders:
    """The leaders and their connections. links: by broker id. trouble: the last failure, for error messages."""

    def __init__(
        self, client: ClusterClient, topic: str, state: ClusterState, background: Background, *, codec: str, acks: int
    ) -> None:
        self._client, self._topic, self._background = client, topic, background
        self._topic_id = state.topics[topic].topic_id
        self._codec, self._acks = codec, acks
        self._brokers = dict(state.brokers)
        self._not_before: dict[int, float] = {}  # when a node may be dialed again
        self._last_lookup = time.monotonic()
        self._missing_since: float | None = None
        self.links: dict[int, Link] = {}
        self.trouble: KctlError | None = None

    def connect(self, nodes: Collection[int]) -> None:
        """Connect to brokers before there is anything to send. Raises an error if none is reachable."""
        leaders = self._brokers.keys() & nodes
        outcomes = self._client.dial_known([self._brokers[node] for node in leaders], timeout_s=_DIAL_S)
        for node, outcome in outcomes.items():
            self._adopt(node, outcome)
        if self.trouble is not None and (isinstance(self.trouble, NotSupported) or (leaders and not self.links)):
            raise self.trouble

    def dial(self, node: int, now: float) -> None:
        """Start connecting, unless the last attempt has just failed."""
        broker = self._brokers.get(node)
        if broker is None:
            self.look_up(now)
        elif self._not_before.get(node, 0.0) <= now:
            self._background.start(node, partial(self._dial_one, broker))

    def _dial_one(self, broker: Broker) -> Connection:
        try:
            outcome = self._client.dial_known([broker], timeout_s=_DIAL_S)[broker.id]
        except OSError as exc:  # e.g. no file descriptors left
            raise ConnectionFailed(f"broker {broker.id} cannot be reached: {exc.strerror}") from None
        if isinstance(outcome, KctlError):
            raise outcome
        return outcome

    def _adopt(self, node: int, outcome: Connection | KctlError) -> None:
        if isinstance(outcome, KctlError):
            self.trouble = outcome
            self._not_before[node] = time.monotonic() + _REDIAL_S
            self.look_up(time.monotonic())
            return
        version = produce_wire.version_for(outcome.api_versions.get(ApiKey.PRODUCE), self._codec)
        if version is None:
            outcome.close()
            self.trouble = NotSupported(
                f"broker {node} does not support batches of format 2 with codec {self._codec}",
                hint="upgrade to Kafka 0.11 or later (2.1 for zstd)",
                reason=Reason.VERSION_UNSUPPORTED,
            )
            self._not_before[node] = float("inf")
            return
        self.links[node] = Link(node, outcome, version, self._acks)

    def broke(self, node: int, link: Link, why: str) -> None:
        """Drop a broken connection."""
        if link.requests:
            self.trouble = ConnectionFailed(
                f"the connection to broker {node} broke: {why}", reason=ConnectionReason.CONNECTION_CLOSED
            )
        link.close()
        self.links.pop(node, None)
        self._not_before[node] = time.monotonic() + _RELOOKUP_S

    def look_up(self, now: float, *, older_than_s: float = _RELOOKUP_S) -> None:
        """Start a lookup of the leaders, unless one is running or was made a moment ago."""
        if now - self._last_lookup < older_than_s:
            return
        self._last_lookup = now
        self._background.start(_METADATA, lambda: self._client.metadata([self._topic], timeout_s=_LOOKUP_S))

    def keep_fresh(self, now: float) -> None:
        """Look up the leaders at least once per minute."""
        self.look_up(now, older_than_s=_METADATA_AGE_S)

    def updates(self) -> Iterator[TopicState | NotFound]:
        """Adopt new connections; yield the current state of the topic, or NotFound if it was deleted."""
        kind: Any
        for kind, outcome in self._background.finished():
            if kind != _METADATA:
                self._adopt(kind, outcome)
                continue
            self._last_lookup = time.monotonic()
            if isinstance(outcome, KctlError):
                self.trouble = outcome
                continue
            self._brokers = dict(outcome.brokers)
            topic = outcome.topics.get(self._topic)
            if topic is not None and (not self._topic_id or topic.topic_id == self._topic_id):
                self._missing_since = None
                yield topic
            elif self._is_deleted(recreated=topic is not None):
                how = "was deleted and recreated" if topic is not None else "was deleted"
                yield NotFound(f"topic {self._topic} {how} during the run")

    def _is_deleted(self, *, recreated: bool) -> bool:
        """Return True only after a few seconds: a broker that has just started may not know the topic yet."""
        now = time.monotonic()
        self._missing_since = now if self._missing_since is None else self._missing_since
        return recreated or now - self._missing_since >= DELETED_AFTER_S

    def close(self, *, at_once: bool = False) -> None:
        """Close all connections, with requests in flight. at_once: do not wait for background calls."""
        for link in self.links.values():
            link.close()
        self.links.clear()
        for kind, outcome in self._background.close(0 if at_once else _LOOKUP_S + 1):
            if kind != _METADATA and not isinstance(outcome, KctlError):
                outcome.close()
