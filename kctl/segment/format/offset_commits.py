"""Replay the commits of __consumer_offsets: which commits took effect, and when.

Rules (org.apache.kafka.coordinator.group.OffsetMetadataManager: replay and replayEndTransactionMarker, Kafka 3.9;
KIP-98, KIP-447):

- A commit outside a transaction takes effect at once. Its value has the time of the commit.
- A commit in a transaction is pending until its producer's marker: COMMIT makes it take effect, ABORT drops it.
- The record that was written last wins, whichever transaction ends first: a commit that takes effect drops older
  pending commits of its group and partition.
- A record without a value (a tombstone) removes the committed offset and pending commits.

Compaction keeps the last record of each group and partition in the cleaned part of the log. So every commit that
the replay yields took effect, but earlier commits of the cleaned part may be missing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Generic, NamedTuple, TypeVar

from kctl.base.binary_layout import INT16
from kctl.segment.dump.query import MAX_MESSAGE_BYTES, all_records
from kctl.segment.format.batch import Batch
from kctl.segment.format.compression import BadPayload
from kctl.segment.format.control import ABORT, COMMIT, control_type
from kctl.segment.format.internal_messages import all_group_keys, coordinator_record
from kctl.segment.format.messages import BadMessage
from kctl.segment.format.record import BadRecords, StoredRecord
from kctl.segment.log.transactions import first_record

TOPIC = "__consumer_offsets"
MAX_PENDING = 1_000_000  # far more than any coordinator has; hostile input must not exhaust memory
MAX_NOTES = 100
_COMMIT_KEYS = (0, 1)  # the versions in front of an OffsetCommitKey


class GroupPartition(NamedTuple):
    """The consumer group and partition of a commit."""

    group: str
    topic: str
    partition: int


class OffsetCommit(NamedTuple):
    """A commit that took effect at `at_ms`. committed_offset: None if it was removed.

    commit_ms: the time of the commit (before at_ms in a transaction); None for a removal. leader_epoch: None if the
    commit has none. log_offset: of the record.
    """

    key: GroupPartition
    at_ms: int
    committed_offset: int | None
    commit_ms: int | None
    leader_epoch: int | None
    log_offset: int
    transactional: bool = False


@dataclass(slots=True)
class CommitNotes:
    """Counts of unusable data.

    unreadable: records, which a broker skips as well; texts: the first MAX_NOTES messages.
    """

    damaged: int = 0
    unreadable: int = 0
    untracked: int = 0
    texts: list[str] = field(default_factory=list)

    def damage(self, text: str) -> None:
        """Count a damaged place."""
        self.damaged += 1
        self._note(text)

    def skip(self, text: str) -> None:
        """Count an unreadable record."""
        self.unreadable += 1
        self._note(text)

    def _note(self, text: str) -> None:
        if len(self.texts) < MAX_NOTES:
            self.texts.append(text)


@lru_cache(maxsize=1 << 16)
def commit_key(data: bytes) -> GroupPartition | None:
    """Return the group and partition of a record's key; None for other types of keys. Raises BadMessage."""
    if len(data) >= INT16.size and INT16.unpack_from(data)[0] not in _COMMIT_KEYS:
        return None
    key, _ = coordinator_record(data, None, all_group_keys())
    return GroupPartition(key.data["group"], key.data["topic"], key.data["partition"])


def commit_of(record: StoredRecord, *, transactional: bool = False) -> OffsetCommit | None:
    """Return the commit of a record as if it took effect at once; None for other types. Raises BadMessage."""
    if record.key is None:
        raise BadMessage("a record without a key")
    key = commit_key(record.key)
    if key is None:
        return None
    _, value = coordinator_record(record.key, record.value, all_group_keys())
    if value is None:
        return OffsetCommit(key, record.timestamp, None, None, None, record.offset, transactional)
    commit_ms, epoch = value.data["commitTimestamp"], value.data.get("leaderEpoch", -1)
    return OffsetCommit(
        key,
        commit_ms if commit_ms >= 0 else record.timestamp,
        value.data["offset"],
        commit_ms if commit_ms >= 0 else None,
        epoch if epoch >= 0 else None,
        record.offset,
        transactional,
    )


_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class PendingCommits(Generic[_Key, _Value]):
    """The commits of open transactions in one partition of the topic. untracked: commits beyond the limit."""

    def __init__(self, *, limit: int = MAX_PENDING) -> None:
        self._limit, self._count, self.untracked = limit, 0, 0
        self._by_key: dict[_Key, dict[int, tuple[int, _Value]]] = {}
        self._by_producer: dict[int, dict[_Key, None]] = {}

    def __len__(self) -> int:
        return self._count

    def keys(self) -> set[_Key]:
        """Return the keys with pending commits."""
        return set(self._by_key)

    def add(self, producer_id: int, key: _Key, log_offset: int, value: _Value) -> None:
        """Add a commit of a transaction. It replaces the producer's older commit of the same key."""
        pending = self._by_key.get(key)
        if pending is None or producer_id not in pending:
            if self._count >= self._limit:
                self.untracked += 1
                return
            self._count += 1
        self._by_key.setdefault(key, {})[producer_id] = (log_offset, value)
        self._by_producer.setdefault(producer_id, {})[key] = None

    def supersede(self, key: _Key) -> None:
        """Drop all pending commits of `key`: a later commit, or a removal, has taken effect."""
        self._drop(key, lambda _: True)

    def end(self, producer_id: int, *, commit: bool) -> list[tuple[_Key, _Value]]:
        """Apply a producer's marker. Return the commits that take effect, in log order."""
        effective: list[tuple[int, _Key, _Value]] = []
        for key in self._by_producer.pop(producer_id, ()):
            log_offset, value = self._by_key[key].pop(producer_id)
            self._count -= 1
            if not self._by_key[key]:
                del self._by_key[key]
            if commit:
                effective.append((log_offset, key, value))
        for log_offset, key, _ in effective:
            self._drop(key, log_offset.__gt__)
        return [(key, value) for _, key, value in sorted(effective, key=lambda each: each[0])]

    def _drop(self, key: _Key, older: Callable[[int], bool]) -> None:
        pending = self._by_key.get(key)
        if pending is None:
            return
        for producer_id in [each for each, (log_offset, _) in pending.items() if older(log_offset)]:
            del pending[producer_id]
            self._count -= 1
            del self._by_producer[producer_id][key]
            if not self._by_producer[producer_id]:
                del self._by_producer[producer_id]
        if not pending:
            del self._by_key[key]


class CommitLog:
    """The replay of one partition of the topic, batch by batch. Faster modules must match it."""

    def __init__(self, notes: CommitNotes) -> None:
        self.notes = notes
        self.pending: PendingCommits[GroupPartition, OffsetCommit] = PendingCommits()

    def add(self, batch: Batch, content: memoryview, where: str) -> Iterator[OffsetCommit]:
        """Yield the commits that take effect with a batch whose CRC is valid.

        content: the whole batch; where: for messages.
        """
        try:
            if batch.control:
                yield from self._marker(batch, content)
                return
            for record in all_records(batch, content, limit=MAX_MESSAGE_BYTES):
                yield from self._record(batch, record, where)
        except (BadRecords, BadPayload) as exc:
            self.notes.damage(f"{where}: {exc}")

    def _record(self, batch: Batch, record: StoredRecord, where: str) -> Iterator[OffsetCommit]:
        try:
            commit = commit_of(record, transactional=batch.transactional and batch.producer_id >= 0)
        except BadMessage as exc:
            self.notes.skip(f"{where}: offset {record.offset}: {exc}")
            return
        if commit is None:
            return
        if commit.transactional and commit.committed_offset is not None:
            self.pending.add(batch.producer_id, commit.key, commit.log_offset, commit)
        else:
            self.pending.supersede(commit.key)
            yield commit

    def _marker(self, batch: Batch, content: memoryview) -> Iterator[OffsetCommit]:
        is_commit = marker_of(batch, content)
        if is_commit is None:
            return
        for _, commit in self.pending.end(batch.producer_id, commit=is_commit):
            yield commit._replace(at_ms=batch.max_timestamp)


def marker_of(batch: Batch, content: memoryview) -> bool | None:
    """Return True for a COMMIT marker, False for an ABORT marker, None for other control batches. Raises BadRecords."""
    record = first_record(batch, content)
    kind = None if record is None else control_type(record)
    return kind == COMMIT if kind in {ABORT, COMMIT} else None
