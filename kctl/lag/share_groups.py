"""The lag of share groups (KIP-932), as reported by their coordinators.

A share group commits nothing: it has a start offset in each partition, and records after it may have been delivered
already. So its lag is not the distance to the end of the log; brokers report it since Kafka 4.2 (KIP-1226).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Protocol

from kctl.cluster.groups.model import SHARE, Group
from kctl.cluster.groups.newer_groups import StartOffset, fetch_start_offsets
from kctl.errors import KctlError, NotSupported
from kctl.lag.rules import LagRow, ahead_of, lost_of
from kctl.model import TopicPartition

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


class _LogBounds(Protocol):
    @property
    def start(self) -> int: ...

    @property
    def end(self) -> int: ...


def read_start_offsets(
    client: ClusterClient, groups: Mapping[str, Group], failed: dict[str, str]
) -> dict[str, tuple[StartOffset, ...]]:
    """Return the start offsets of the share groups in `groups`; `failed` receives the reason for each failure."""
    share = {name: group.coordinator for name, group in groups.items() if group.type == SHARE}
    starts: dict[str, tuple[StartOffset, ...]] = {}
    for name, response in fetch_start_offsets(client, share, coordinators=share).items() if share else ():
        if isinstance(response, NotSupported):
            failed[name] = f"{name}: cannot read its start offsets: {response.message}"
        elif isinstance(response, KctlError):
            failed[name] = response.message
        else:
            starts[name] = response.offsets
            if response.unread:
                failed[name] = "; ".join(f"{name}: {error.message}" for error in response.unread.values())
    return starts


def partitions_of(rows: Iterable[StartOffset]) -> set[TopicPartition]:
    """Return the partitions of start offsets."""
    return {TopicPartition(row.topic, row.partition) for row in rows}


def share_rows(
    group: Group,
    starts: Iterable[StartOffset],
    offsets: Mapping[TopicPartition, _LogBounds],
    topics: Collection[str] | None,
) -> Iterator[LagRow]:
    """Return the rows of a share group, without clients: all subscribed members share each partition."""
    for row in starts:
        if topics is not None and row.topic not in topics:
            continue
        log = offsets.get(TopicPartition(row.topic, row.partition))
        start, end = (log.start, log.end) if log else (None, None)
        yield LagRow(
            row.group,
            group.state,
            row.topic,
            row.partition,
            row.start_offset,
            start,
            end,
            row.lag,
            lost_of(row.start_offset, start),
            ahead=ahead_of(row.start_offset, end),
        )
