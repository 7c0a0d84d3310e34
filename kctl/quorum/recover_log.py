"""Read a metadata log (__cluster_metadata-0) offline: its voters, its end, its elections, and damage. Changes nothing.

Voters: control records KRAFT_VOTERS in snapshots and log (KIP-853); the last one applies, committed or not, as in
org.apache.kafka.raft.internals.VoterSetHistory. Elections: control records LEADER_CHANGE (LeaderChangeMessage).
Snapshots: files OFFSET-EPOCH.checkpoint (org.apache.kafka.snapshot.Snapshots), which end with SNAPSHOT_FOOTER.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kctl.errors import KctlError, OperationFailed
from kctl.segment.dump.query import all_records
from kctl.segment.format.batch import Batch
from kctl.segment.format.compression import BadPayload
from kctl.segment.format.control import control_type
from kctl.segment.format.messages import BadMessage, MessageReader, message, read, uuid_text
from kctl.segment.format.record import BadRecords, StoredRecord
from kctl.segment.format.release import Release
from kctl.segment.log.partition import list_folder, next_segment, read_partition
from kctl.segment.log.source import Source
from kctl.segment.log.walk import Damage, batches, content_of, is_preallocated, is_valid

METADATA_FOLDER = "__cluster_metadata-0"
_SNAPSHOT = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")
_LEADER_CHANGE, _FOOTER, _KRAFT_VERSION, _VOTERS = 2, 4, 5, 6
_MAX_BATCH = 64 << 20
_NO_DIRECTORY = bytes(16)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An endpoint of a voter."""

    listener: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class LogVoter:
    """A voter in a voters record. directory_id: of its log dir with the metadata log; None with static voters."""

    id: int
    directory_id: str | None
    endpoints: tuple[Endpoint, ...] = ()


@dataclass(frozen=True, slots=True)
class LoggedElection:
    """An election in the log. offset: of its record. granting: the voters that voted for the leader."""

    offset: int
    epoch: int
    leader_id: int
    voters: tuple[LogVoter, ...]
    granting: tuple[int, ...]
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class MetadataLog:
    """A metadata log.

    end_offset, last_epoch: the position that elections compare; 0 and 0 if it is empty. batch_count: batches in the
    segments. last_timestamp_ms: of the last batch, ms since the epoch. voters: of the last voters record, at
    voters_offset; empty with static voters. kraft_version: 1 with a voters record. last_election: None if there is none
    in the segments. damage: why Kafka cannot use the whole log; it is readable up to end_offset.
    """

    end_offset: int
    last_epoch: int
    batch_count: int
    last_timestamp_ms: int | None
    snapshot: tuple[int, int] | None
    voters: tuple[LogVoter, ...]
    voters_offset: int | None
    last_election: LoggedElection | None
    damage: tuple[str, ...]

    @property
    def position(self) -> tuple[int, int]:
        """Return (last epoch, end offset): the log with the higher one is more complete."""
        return self.last_epoch, self.end_offset

    @property
    def is_empty(self) -> bool:
        """Return True if it has no batch, and at most the snapshot that formatting writes (offset 0)."""
        return not self.batch_count and (self.snapshot is None or self.snapshot[0] == 0)


class _Reading:
    """The state of a read in progress."""

    def __init__(self) -> None:
        self.end_offset = self.last_epoch = self.batch_count = 0
        self.last_timestamp_ms: int | None = None
        self.snapshot: tuple[int, int] | None = None
        self.voters: tuple[LogVoter, ...] = ()
        self.voters_offset: int | None = None
        self.last_election: LoggedElection | None = None
        self.damage: list[str] = []

    def add_control(self, batch: Batch, record: StoredRecord, *, in_snapshot: bool) -> int:
        """Apply a control record, and return its type."""
        kind = control_type(record)
        if kind == _VOTERS:
            values = read(message("VotersRecord", Release.KAFKA_4_4), MessageReader(record.value or b""), 0)
            self.voters = tuple(_voter(each) for each in values["voters"])
            self.voters_offset = (self.snapshot or (0, 0))[0] if in_snapshot else record.offset
        elif kind == _LEADER_CHANGE:
            reader = MessageReader(record.value or b"")
            version = int.from_bytes((record.value or b"\0\0")[:2], "big")
            values = read(message("LeaderChangeMessage", Release.KAFKA_4_4), reader, version)
            self.last_election = LoggedElection(
                record.offset,
                batch.partition_leader_epoch,
                values["leaderId"],
                tuple(_voter(each) for each in values["voters"]),
                tuple(each["voterId"] for each in values["grantingVoters"]),
                record.timestamp,
            )
        return kind


def read_metadata_log(folder: Path) -> MetadataLog:
    """Return what a metadata log contains. Raises NotFound, NotAuthorized, UsageError if the folder is unreadable."""
    reading = _Reading()
    _read_snapshots(folder, reading)
    _read_segments(folder, reading)
    return MetadataLog(
        reading.end_offset, reading.last_epoch, reading.batch_count, reading.last_timestamp_ms, reading.snapshot,
        reading.voters, reading.voters_offset, reading.last_election, tuple(reading.damage),
    )  # fmt: skip


def _voter(values: dict[str, object]) -> LogVoter:
    directory = values["voterDirectoryId"]
    endpoints = values.get("endpoints") or ()
    assert isinstance(directory, bytes)
    assert isinstance(values["voterId"], int)
    assert isinstance(endpoints, (list, tuple))
    return LogVoter(
        values["voterId"],
        None if directory == _NO_DIRECTORY else uuid_text(directory),
        tuple(Endpoint(each["name"], each["host"], each["port"]) for each in endpoints),
    )


def _read_snapshots(folder: Path, reading: _Reading) -> None:
    """Read the newest complete snapshot; incomplete ones are damage."""
    snapshots = {}
    for path in list_folder(folder):
        match = _SNAPSHOT.fullmatch(path.name)
        if match:
            snapshots[int(match[1]), int(match[2])] = path
    for position in sorted(snapshots, reverse=True):
        attempt = _Reading()
        attempt.snapshot = position
        problem = _snapshot_problem(snapshots[position], attempt)
        if problem is None:
            reading.snapshot, reading.voters, reading.voters_offset = position, attempt.voters, attempt.voters_offset
            reading.end_offset, reading.last_epoch = position
            return
        reading.damage.append(f"snapshot {snapshots[position].name}: {problem}")


def _snapshot_problem(path: Path, reading: _Reading) -> str | None:
    last_kind = None
    try:
        with Source(path) as source:
            for item in batches(source):
                if isinstance(item, Damage):
                    return f"byte {item.position}: {item.message}"
                if not is_valid(source, item):
                    return f"byte {item.position}: the CRC does not match"
                last_kind = None
                for record in _control_records(source, item):
                    last_kind = reading.add_control(item, record, in_snapshot=True)
    except (BadRecords, BadPayload, BadMessage, OperationFailed) as exc:
        return str(exc)
    return None if last_kind == _FOOTER else "it ends without a footer"


def _control_records(source: Source, batch: Batch) -> Iterator[StoredRecord]:
    if batch.control:
        yield from all_records(batch, content_of(source, batch, _MAX_BATCH), limit=_MAX_BATCH)


def _read_segments(folder: Path, reading: _Reading) -> None:
    segments = [each for each in read_partition(folder).segments if each.log is not None]
    expected: int | None = None
    for segment in segments:
        assert segment.log is not None
        try:
            with Source(segment.log) as source:
                expected = _read_segment(source, reading, expected)
        except (BadRecords, BadPayload, BadMessage) as exc:
            reading.damage.append(f"{segment.log.name}: {exc}")
            return
        except KctlError as exc:
            reading.damage.append(exc.message)
            return
        if expected is None:
            return


def _read_segment(source: Source, reading: _Reading, expected: int | None) -> int | None:
    """Read a segment, and return the offset after it; None after damage, where Kafka would stop or truncate."""
    name = source.path.name
    for item in batches(source):
        if isinstance(item, Damage):
            unfinished = item.code == "incomplete" and item.position + item.length >= source.size
            if not (is_preallocated(source, item) or (unfinished and next_segment(source.path) is None)):
                reading.damage.append(f"{name}, byte {item.position}: {item.message}")
                return None
            break  # a write that was cut off or is in progress: the node truncates it at the next start
        if not is_valid(source, item):
            reading.damage.append(f"{name}, byte {item.position}, offset {item.base_offset}: the CRC does not match")
            return None
        if expected is None and item.base_offset > reading.end_offset:  # a gap between the snapshot and the log
            reading.damage.append(
                f"offsets {reading.end_offset} to {item.base_offset - 1} are in neither a snapshot nor the log"
            )
        elif expected is not None and item.base_offset != expected:
            reading.damage.append(f"{name}: offset {item.base_offset} follows {expected - 1}")
            return None
        for record in _control_records(source, item):
            if record.offset >= (reading.voters_offset or 0) or control_type(record) != _VOTERS:
                reading.add_control(item, record, in_snapshot=False)
        expected = item.last_offset + 1
        reading.batch_count += 1
        reading.last_timestamp_ms = item.max_timestamp
        if (item.partition_leader_epoch, expected) > (reading.last_epoch, reading.end_offset):
            reading.end_offset, reading.last_epoch = expected, item.partition_leader_epoch
    return expected if expected is not None else reading.end_offset
