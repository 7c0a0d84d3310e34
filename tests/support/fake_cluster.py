"""A programmable cluster in memory, behind the interface of ClusterClient.

A real broker cannot drop a response, return a chosen error code, or have another version on demand. Requests that a
test does not script are answered from the topics, groups and offsets of the fake.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from types import SimpleNamespace as Answer
from typing import Any, NamedTuple, TypeAlias, cast

from kctl.errors import KctlError, NotAuthorized, NotSupported
from kctl.model import Broker, ClusterState, PartitionState, TopicPartition, TopicState
from kctl.protocol.client import ClusterClient
from kctl.protocol.codes import ErrorCode
from kctl.protocol.target import Target

# A response, an error, or a function of the node and the request that returns either. None is the normal answer.
Reply: TypeAlias = Any


class Sent(NamedTuple):
    """A request. node: None for the controller, and for metadata from any broker."""

    node: int | None
    api: str
    request: Any


def topic_of(name: str, *leaders: int, replicas: tuple[int, ...] = (1, 2)) -> TopicState:
    """Return a topic with one partition for each leader, all replicas in sync."""
    partitions = (PartitionState(name, n, leader, 0, replicas, replicas) for n, leader in enumerate(leaders))
    return TopicState(name, False, None, tuple(partitions))


class FakeCluster:
    """Topics, groups and offsets to set, replies to script, and a log of the requests.

    offsets: committed, by group. logs: first and last offset by partition. codes: error code by API, then by topic or
    group. hidden: topics that may not be described. operations: allowed by topic. old:
    brokers accept one group per request.
    """

    def __init__(
        self,
        topics: Iterable[TopicState] = (),
        *,
        brokers: Collection[int] | Mapping[int, Broker] = (1, 2),
        controller: int = 1,
        offsets: Mapping[str, Mapping[TopicPartition, int]] | None = None,
    ) -> None:
        self.brokers = brokers if isinstance(brokers, Mapping) else {node: Broker(node, "h", 9092) for node in brokers}
        self.controller = controller
        self.topics = {topic.name: topic for topic in topics}
        self.offsets = dict(offsets or {})
        self.logs: dict[TopicPartition, tuple[int, int]] = {}
        self.coordinator = 1
        self.coordinators: dict[str, int] = {}  # of groups whose coordinator is another broker
        self.states: dict[str, str] = {}
        self.codes: defaultdict[str, dict[str, int]] = defaultdict(dict)
        self.hidden: set[str] = set()
        self.operations: dict[str, frozenset[int]] = {}  # by topic, the operations that the user may perform
        self.versions: dict[int, int] = {}
        self.old = False
        self.timeout_s = 30.0
        self.warnings: tuple[str, ...] = ()
        self.target = Target("fake", ("h:9092",), cluster_id="id")
        self.requests: list[Sent] = []
        self.rounds: list[Mapping[int, Any]] = []  # the requests of each send_each
        self._scripts: defaultdict[tuple[str, int | None], deque[Reply]] = defaultdict(deque)
        self._standing: dict[tuple[str, int | None], Reply] = {}

    # --- for tests ----------------------------------------------------------------------------------------------------

    @property
    def client(self) -> ClusterClient:
        """Return the cluster as a ClusterClient, for the code under test."""
        return cast("ClusterClient", self)

    @property
    def sent(self) -> Counter[str]:
        """Return the number of requests by API."""
        return Counter(each.api for each in self.requests)

    def script(self, api: str, *replies: Reply, node: int | None = None) -> None:
        """Reply to the next requests with these, each once. node: only on this broker."""
        self._scripts[api, node].extend(replies)

    def always(self, api: str, reply: Reply, *, node: int | None = None) -> None:
        """Reply to all requests with this."""
        self._standing[api, node] = reply

    def lead(self, tp: TopicPartition, leader: int) -> None:
        """Make a broker the leader of a partition, -1 none."""
        topic = self.topics[tp.topic]
        partitions = tuple(replace(p, leader=leader) if p.partition == tp.partition else p for p in topic.partitions)
        self.topics[tp.topic] = replace(topic, partitions=partitions)

    # --- ClusterClient ------------------------------------------------------------------------------------------------

    def __enter__(self) -> FakeCluster:
        return self

    def __exit__(self, *_exc: object) -> None: ...

    def api_version(self, api_key: int) -> int | None:
        return self.versions.get(api_key)

    def metadata(
        self,
        topics: Collection[str] | None = None,
        *,
        timeout_s: float | None = None,
        keep_errors: bool = False,
        operations: bool = False,
    ) -> ClusterState:
        reply = self._reply(None, "Metadata", topics)
        if reply is not None:
            return cast("ClusterState", _raised(reply))
        denied: dict[str, KctlError] = {
            name: NotAuthorized(f"topic {name!r}: not authorized to describe it")
            for name in self.hidden.intersection(topics or ())
        }
        for error in () if keep_errors else denied.values():
            raise error
        shown = {name: topic for name, topic in self.topics.items() if topics is None or name in topics}
        return ClusterState("id", self.controller, dict(self.brokers), shown, denied, dict(self.operations))

    def metadata_of_each(
        self, nodes: Iterable[int], topics: Collection[str] | None = None, **_: object
    ) -> dict[int, ClusterState | KctlError]:
        shown = {name: topic for name, topic in self.topics.items() if topics is None or name in topics}
        state = ClusterState("id", self.controller, dict(self.brokers), shown)
        return {node: self._reply(node, "Metadata", topics) or state for node in nodes}

    def send(self, request: Any, *, node_id: int | None = None, **_: object) -> Any:
        return _raised(self._answer(next(iter(self.brokers)) if node_id is None else node_id, request))

    def send_each(self, requests: Mapping[int, Any], **_: object) -> dict[int, Any]:
        self.rounds.append(requests)
        return {node: self._answer(node, request) for node, request in requests.items()}

    def send_to_quorum(self, request: Any, **_: object) -> Any:
        return self.send(request)

    def send_to_controller(self, request: Any, **_: object) -> Any:
        return _raised(self._answer(None, request))

    # --- answers ------------------------------------------------------------------------------------------------------

    def _answer(self, node: int | None, request: Any) -> Any:
        api = type(request).__name__.removesuffix("Request")
        reply = self._reply(node, api, request)
        return reply if reply is not None else getattr(self, f"_{api}")(node, request)

    def _reply(self, node: int | None, api: str, request: Any) -> Reply:
        self.requests.append(Sent(node, api, request))
        for key in ((api, node), (api, None)):
            scripted = self._scripts[key]
            reply = scripted.popleft() if scripted else self._standing.get(key)
            reply = reply(node, request) if callable(reply) else reply
            if reply is not None:
                return reply
        return None

    def _CreateTopics(self, _node: None, request: Any) -> Any:  # noqa: N802 - named as the API
        rows = []
        for topic in request.topics:
            code = self.codes["CreateTopics"].get(topic.name, 0)
            rows.append(
                Answer(name=topic.name, error_code=code, error_message=None, num_partitions=1, replication_factor=1)
            )
            if not code and not request.validate_only:
                self.topics[topic.name] = topic_of(topic.name, *[1] * max(topic.num_partitions, 1))
        return Answer(topics=rows)

    def _DeleteTopics(self, _node: None, request: Any) -> Any:  # noqa: N802
        rows = []
        for topic in request.topics:
            code = self.codes["DeleteTopics"].get(topic.name, 0)
            rows.append(Answer(name=topic.name, error_code=code, error_message=None, topic_id=None))
            if not code:
                self.topics.pop(topic.name, None)
        return Answer(responses=rows)

    def _CreatePartitions(self, _node: None, request: Any) -> Any:  # noqa: N802
        return Answer(results=[Answer(name=topic.name, error_code=0) for topic in request.topics])

    def _ListGroups(self, node: int, _request: Any) -> Any:  # noqa: N802
        rows = [
            Answer(group_id=g, group_state=self.states.get(g, "Empty"), protocol_type="consumer", group_type="classic")
            for g in self.offsets
            if self._coordinator_of(g) == node
        ]
        return Answer(error_code=0, groups=rows)

    def _FindCoordinator(self, _node: int, request: Any) -> Any:  # noqa: N802
        if self.old and request._min_version == 4:
            return NotSupported("too old")
        if self.old:
            return Answer(error_code=0, error_message=None, node_id=self.coordinator)
        rows = [
            Answer(key=key, error_code=0, error_message=None, node_id=self._coordinator_of(key))
            for key in request.coordinator_keys
        ]
        return Answer(coordinators=rows)

    def _DescribeGroups(self, _node: int, request: Any) -> Any:  # noqa: N802
        rows = [
            Answer(
                error_code=self.codes["DescribeGroups"].get(g, 0), error_message=None, group_id=g, members=[],
                protocol_type="consumer", protocol_data="",
                group_state=self.states.get(g, "Empty" if g in self.offsets else "Dead"),
            )
            for g in request.groups
        ]  # fmt: skip
        return Answer(groups=rows)

    def _OffsetFetch(self, _node: int, request: Any) -> Any:  # noqa: N802
        if self.old:
            if request._min_version == 8:
                return NotSupported("too old")
            return Answer(error_code=0, topics=_committed(self.offsets[request.group_id]))
        rows = [
            Answer(group_id=g.group_id, error_code=0, topics=_committed(self.offsets[g.group_id]))
            for g in request.groups
        ]
        return Answer(groups=rows)

    def _OffsetCommit(self, _node: int, request: Any) -> Any:  # noqa: N802
        code = self.codes["OffsetCommit"].get(request.group_id, 0)
        topics = [
            Answer(
                name=topic.name,
                partitions=[Answer(partition_index=p.partition_index, error_code=code) for p in topic.partitions],
            )
            for topic in request.topics
        ]
        return Answer(topics=topics)

    def _ListOffsets(self, node: int, request: Any) -> Any:  # noqa: N802
        def offset(tp: TopicPartition, timestamp: int) -> tuple[int, int]:
            if self.topics[tp.topic].partitions[tp.partition].leader != node:
                return ErrorCode.NOT_LEADER_OR_FOLLOWER, -1
            return 0, self.logs.get(tp, (0, 0))[1 if timestamp == -1 else 0]

        return listed_offsets(request, offset)

    def _coordinator_of(self, group: str) -> int:
        return self.coordinators.get(group, self.coordinator)


def listed_offsets(request: Any, offset: Any) -> Any:
    """Return a ListOffsets response. offset: (partition, timestamp) → error code and offset."""
    topics = []
    for topic in request.topics:
        rows = []
        for p in topic.partitions:
            error, value = offset(TopicPartition(topic.name, p.partition_index), p.timestamp)
            rows.append(Answer(partition_index=p.partition_index, error_code=error, offset=value))
        topics.append(Answer(name=topic.name, partitions=rows))
    return Answer(topics=topics)


def _raised(reply: Any) -> Any:
    if isinstance(reply, KctlError):
        raise reply
    return reply


def _committed(offsets: Mapping[TopicPartition, int]) -> list[Any]:
    return [
        Answer(name=tp.topic, partitions=[Answer(partition_index=tp.partition, error_code=0, committed_offset=offset)])
        for tp, offset in offsets.items()
    ]
