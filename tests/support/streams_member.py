"""A member of a streams group (KIP-1071) without Kafka Streams: StreamsGroupHeartbeat, sent like its clients do.

The message definitions are those in Kafka's own jar.
"""

from __future__ import annotations

import sys
import uuid
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kctl.cluster.groups.coordinators import find_coordinators
from kctl.cluster.groups.describe import list_groups
from kctl.protocol.client import ClusterClient
from kctl_testing import eventually

_MESSAGES = ("StreamsGroupHeartbeatRequest", "StreamsGroupHeartbeatResponse")


def heartbeat_messages(clients_jar: Path, folder: Path) -> tuple[Any, Any]:
    """Yield kafka-python classes for the request and response, valid in the block. folder: of the package."""
    from kafka.protocol.api_message import ApiMessage

    package = f"streams_messages_{uuid.uuid4().hex}"
    (folder / package).mkdir()
    (folder / package / "__init__.py").touch()
    with zipfile.ZipFile(clients_jar) as jar:
        for name in _MESSAGES:
            (folder / package / f"{name}.json").write_bytes(jar.read(f"common/message/{name}.json"))
    sys.path.insert(0, str(folder))
    try:

        class StreamsGroupHeartbeatRequest(ApiMessage, load_json=package): ...

        class StreamsGroupHeartbeatResponse(ApiMessage, load_json=package): ...
    finally:
        sys.path.remove(str(folder))
    return StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse


class StreamsMember:
    """A joined member; it stays alive for group.streams.session.timeout.ms after each heartbeat."""

    def __init__(self, client: ClusterClient, request: Any, group: str) -> None:
        self._client, self._request, self._group = client, request, group
        self.member_id, self._epoch = str(uuid.uuid4()), 0
        self._coordinator: int | None = None
        self._left = False
        self.active: dict[str, list[int]] = {}

    def _is_coordinated(self) -> bool:
        """Return True once the group has a coordinator: in a new cluster, the offsets topic is created first."""
        node = find_coordinators(self._client, [self._group])[self._group]
        self._coordinator = node if isinstance(node, int) else None
        loading = self._coordinator is not None and list_groups(self._client).unlisted
        return self._coordinator is not None and not loading

    def _beat(self, **fields: Any) -> Any:
        request = self._request(
            group_id=self._group, member_id=self.member_id, endpoint_information_epoch=0,
            **{"member_epoch": self._epoch, "rebalance_timeout_ms": -1, **fields},
        )  # fmt: skip
        answer = self._client.send(request, node_id=self._coordinator)
        assert not answer.error_code, answer
        self._epoch = answer.member_epoch
        if answer.active_tasks is not None:
            self.active = {task.subtopology_id: sorted(task.partitions) for task in answer.active_tasks}
        return answer

    def join(self, subtopologies: Mapping[str, Mapping[str, Any]]) -> None:
        """Join. subtopologies: by id, with source_topics and other fields. Sends heartbeats until it has tasks."""
        eventually(self._is_coordinated, seconds=60, what="the group has a coordinator")
        topology = self._request.Topology
        empty: dict[str, list[str]] = {
            "source_topics": [], "source_topic_regex": [], "state_changelog_topics": [],
            "repartition_sink_topics": [], "repartition_source_topics": [], "copartition_groups": [],
        }  # fmt: skip
        parts = [topology.Subtopology(subtopology_id=name, **{**empty, **has}) for name, has in subtopologies.items()]
        self._beat(
            rebalance_timeout_ms=300_000, topology=topology(epoch=0, subtopologies=parts), process_id="process-1",
            client_tags=[], active_tasks=[], standby_tasks=[], warmup_tasks=[],
        )  # fmt: skip
        eventually(self._has_tasks, seconds=60, what="the coordinator gave tasks")
        self._own()

    def _has_tasks(self) -> bool:
        self._beat()
        return bool(self.active)

    def _own(self) -> None:
        """Confirm the assigned tasks."""
        tasks = self._request.TaskIds
        active = [tasks(subtopology_id=name, partitions=numbers) for name, numbers in self.active.items()]
        self._beat(active_tasks=active, standby_tasks=[], warmup_tasks=[])

    def leave(self) -> None:
        """Leave the group. Does nothing if it has left."""
        if not self._left:
            self._beat(member_epoch=-1)
            self._left = True


@contextmanager
def streams_member(
    client: ClusterClient, request: Any, group: str, subtopologies: Mapping[str, Mapping[str, Any]]
) -> Iterator[StreamsMember]:
    """Yield a member that has joined and has its tasks; it leaves at the end."""
    member = StreamsMember(client, request, group)
    member.join(subtopologies)
    try:
        yield member
    finally:
        member.leave()
