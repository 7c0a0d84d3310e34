"""The contents of the brokers' log dirs: one DescribeLogDirs per broker (KIP-113; disk sizes: KIP-827, Kafka 3.3)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from kctl.errors import KctlError

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


CORDONED = "cordoned.log.dirs"  # a broker config


class LogDirReplica(NamedTuple):
    """A replica in a log dir. future: a copy that is being moved to this log dir (AlterReplicaLogDirs)."""

    topic: str
    partition: int
    size_bytes: int
    offset_lag: int
    future: bool


@dataclass(frozen=True, slots=True)
class LogDir:
    """A log dir of a broker.

    Sizes: None before Kafka 3.3. error: why the log dir is offline. cordoned: receives no new replicas (KIP-1066, Kafka
    4.3).
    """

    path: str
    total_bytes: int | None
    usable_bytes: int | None
    replicas: list[LogDirReplica]
    error: str | None = None
    cordoned: bool = False

    @property
    def receives(self) -> bool:
        """Return True if the broker places new replicas in this log dir."""
        return self.error is None and not self.cordoned


def is_cordoned(log_dirs: Collection[LogDir]) -> bool:
    """Return True if a broker receives no new replicas because all its online log dirs are cordoned."""
    online = [each for each in log_dirs if each.error is None]
    return bool(online) and all(each.cordoned for each in online)


def fetch_log_dirs(
    client: ClusterClient, brokers: Collection[int], *, topics: Mapping[str, Collection[int]] | None = None
) -> dict[int, list[LogDir] | KctlError]:
    """Return the log dirs of each broker with all replicas, or only those of `topics` (partitions by topic).

    The value is a KctlError for a broker that does not respond or denies access.
    """
    from kafka.protocol.admin import DescribeLogDirsRequest

    topic_class = DescribeLogDirsRequest.DescribableLogDirTopic
    requested = None
    if topics is not None:
        requested = [topic_class(topic=name, partitions=sorted(numbers)) for name, numbers in topics.items()]
    responses = client.send_each({node: DescribeLogDirsRequest(topics=requested) for node in sorted(brokers)})
    return {node: _parse(node, response) for node, response in responses.items()}


def _parse(node: int, response: Any) -> list[LogDir] | KctlError:
    from kctl.protocol.client import error_for
    from kctl.protocol.codes import ErrorCode

    if isinstance(response, KctlError):
        return response
    if response.error_code:
        return error_for(response.error_code, None, subject=f"log dirs of broker {node}")
    if not response.results:
        # Before version 3 of the request, an empty response means "not authorized".
        return error_for(
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "the response has no log dirs", subject=f"log dirs of broker {node}"
        )
    return [_log_dir(node, row) for row in response.results]


def _log_dir(node: int, row: Any) -> LogDir:
    from kctl.protocol.client import error_for

    error = None
    if row.error_code:
        error = error_for(row.error_code, None, subject=f"log dir {row.log_dir} of broker {node}").message
    return LogDir(
        path=row.log_dir,
        total_bytes=_size(row.total_bytes),
        usable_bytes=_size(row.usable_bytes),
        replicas=[
            LogDirReplica(topic.name, p.partition_index, p.partition_size, p.offset_lag, p.is_future_key)
            for topic in row.topics
            for p in topic.partitions
        ],
        error=error,
        cordoned=bool(row.is_cordoned),
    )


def _size(size: int | None) -> int | None:
    return None if size is None or size < 0 else size
