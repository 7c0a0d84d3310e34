"""Find out what happened to missing records: search the log files of all replicas, as `segment find` does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kctl.errors import KctlError
from kctl.segment.find.find_key import find_key
from kctl.segment.log.partition_log import partition_log
from kctl.validate.invariants import Findings
from kctl.validate.workload.records import key_of

MAX_SEARCHES = 10  # records of each kind to search


@dataclass(frozen=True, slots=True)
class ReplicaMatch:
    """A record in the log files of a replica."""

    broker: int
    segment: str
    offset: int


@dataclass(frozen=True, slots=True)
class MissingRecord:
    """A record that was acknowledged but is not in the log, or is in the log but was not delivered.

    became: "lost": in no replica's files; "cut off": in a file, but not in the leader's log; "not delivered": in the
    log, but the consumer never received it; "not looked for": the log files are not on this machine. delivered: True
    if the consumer received it. unread: replicas whose files are unreadable. key: for `segment find --key`.
    """

    partition: int
    offset: int
    sequence: int
    became: str
    delivered: bool | None
    seen: tuple[ReplicaMatch, ...]
    unread: tuple[str, ...]
    key: str


def find_missing(findings: Findings, run: str, folders: Mapping[int, Mapping[int, Path]]) -> list[MissingRecord]:
    """Return the first lost and the first undelivered records. folders: partition → broker → log folder."""
    rows = [
        _missing(each.partition, each.offset, each.sequence, each.delivered, run, folders, in_log=False)
        for each in findings.lost.first[:MAX_SEARCHES]
    ]
    undelivered = [each for each in findings.not_delivered.first if each.sequence >= 0][:MAX_SEARCHES]
    rows += [
        _missing(each.partition, each.offset, each.sequence, False, run, folders, in_log=True) for each in undelivered
    ]
    return rows


def _missing(
    partition: int, offset: int, sequence: int, delivered: bool | None, run: str,
    folders: Mapping[int, Mapping[int, Path]], *, in_log: bool,
) -> MissingRecord:  # fmt: skip
    key = key_of(run, partition, sequence)
    matches, unread = [], []
    replicas = folders.get(partition, {})
    for broker, folder in sorted(replicas.items()):
        try:
            place = find_key(partition_log(folder), key).place
        except (KctlError, OSError) as exc:
            unread.append(f"broker {broker}: {exc}")
            continue
        if place is not None:
            matches.append(ReplicaMatch(broker, place.segment, place.record.offset))
    return MissingRecord(
        partition, offset, sequence, fate(matches, readable=len(replicas) - len(unread), in_log=in_log), delivered,
        tuple(matches), tuple(unread), key.decode(),
    )  # fmt: skip


def fate(matches: Sequence[ReplicaMatch], *, readable: int, in_log: bool) -> str:
    """Return a record's fate. readable: number of readable replicas. in_log: the leader's log has the record."""
    if in_log:
        return "not delivered"
    if not readable:
        return "not looked for"
    return "cut off" if matches else "lost"
