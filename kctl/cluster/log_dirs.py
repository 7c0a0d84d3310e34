"""What is on the brokers' disks, by one DescribeLogDirs to each broker (KIP-113; disk sizes: KIP-827, 3.3)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from kctl.errors import KctlError

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


CORDONED = "cordoned.log.dirs"  # a broker's config


class LogDirReplica(NamedTuple):
    """One replica in a log dir. future: a copy on its way to this log dir (AlterReplicaLogDirs)."""

    topic: str
    partition: int
    size_bytes: int
    offset_lag: int
    future: bool


@dataclass(frozen=True, slots=True)
class LogDir:
    """A log dir of a broker. Sizes are None on brokers before 3.3; error: why the dir is offline. cordoned: it is to
    get no new replicas (KIP-1066, 4.3)."""

    path: str
    total_bytes: int | None
    usable_bytes: int | None
    replicas: list[LogDirReplica]
    error: str | None = None
    cordoned: bool = False

    @property
    def receives(self) -> bool:
        """Whether the broker places new replicas in this log dir."""
        return self.error is None and not self.cordoned


def is_cordoned(log_dirs: Collection[LogDir]) -> bool:
    """Whether a broker receives no new replicas, because all its online log dirs are cordoned."""
    online = [each for each in log_dirs if each.error is None]
    return bool(online) and all(each.cordoned for each in online)


def fetch_log_dirs(
    client: ClusterClient, brokers: Collection[int], *, topics: Mapping[str, Collection[int]] | None = None
) -> dict[int, list[LogDir] | KctlError]:
    """The log dirs of each broker with all replicas, or only those of `topics` (partitions by topic).

    A broker that does not answer, or may not be asked, is a KctlError.
    """
    from kafka.protocol.admin import DescribeLogDirsRequest

    topic_class = DescribeLogDirsRequest.DescribableLogDirTopic
    wanted = None
    if topics is not None:
        wanted = [topic_class(topic=name, partitions=sorted(numbers)) for name, numbers in topics.items()]
    responses = client.send_each({node: DescribeLogDirsRequest(topics=wanted) for node in sorted(brokers)})
    return {node: _parse(node, response) for node, response in responses.items()}


def _parse(node: int, response: Any) -> list[LogDir] | KctlError:
    from kctl.protocol.client import error_for

    if isinstance(response, KctlError):
        return response
    if response.error_code:
        return error_for(response.error_code, None, subject=f"log dirs of broker {node}")
    if not response.results:
        # Before version 3 of the request, this is all that says «not authorized».
        return error_for(31, "no log dirs were described", subject=f"log dirs of broker {node}")
    return [_log_dir(node, row) for row in response.results]


def _log_dir(node: int, row: Any) -> LogDir:
    from kctl.protocol.client import error_for

    error = None
    if row.error_code:
        error = error_for(row.error_code, None, subject=f"log dir {row.log_dir} of broker {node}").message
    return LogDir(
        path=row.log_dir,
        total_bytes=_known(row.total_bytes),
        usable_bytes=_known(row.usable_bytes),
        replicas=[
            LogDirReplica(topic.name, p.partition_index, p.partition_size, p.offset_lag, p.is_future_key)
            for topic in row.topics
            for p in topic.partitions
        ],
        error=error,
        cordoned=bool(row.is_cordoned),
    )


def _known(size: int | None) -> int | None:
    return None if size is None or size < 0 else size
