"""Committed offsets as __consumer_offsets tells them, commit by commit: which took effect, and when.

Rules (org.apache.kafka.coordinator.group.OffsetMetadataManager: replay and replayEndTransactionMarker, Kafka 3.9;
KIP-98, KIP-447):

- A commit outside of a transaction takes effect at once. Its value says when it was made.
- One within a transaction is pending until its producer's marker: COMMIT makes it take effect then, ABORT drops it.
- What was written later wins, whatever is committed first: a commit that takes effect ends older pending ones of its
  group and partition.
- A record without a value (a tombstone) removes the committed offset, and what is pending.

Compaction leaves, of the part that is cleaned, the last record of each group and partition. So what is there is true
for ever; what was committed before the part that is not cleaned may be missing.
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
from kctl.segment.format.internal_messages import coordinator_record, group_keys
from kctl.segment.format.messages import BadMessage
from kctl.segment.format.record import BadRecords, Record
from kctl.segment.log.transactions import first_record

TOPIC = "__consumer_offsets"
MOST_PENDING = 1_000_000  # far more than any coordinator has; what is hostile must not fill the memory
MOST_TOLD = 100
_COMMIT_KEYS = (0, 1)  # the versions in front of an OffsetCommitKey


class GroupPartition(NamedTuple):
    """What a commit is about."""

    group: str
    topic: str
    partition: int


class OffsetCommit(NamedTuple):
    """A commit that took effect at `at_ms`. committed_offset None: it was removed.

    commit_ms: when it was made (of a transaction before at_ms), None for a removal. leader_epoch: None when it was not
    given. log_offset: of the record.
    """

    key: GroupPartition
    at_ms: int
    committed_offset: int | None
    commit_ms: int | None
    leader_epoch: int | None
    log_offset: int
    transactional: bool = False


@dataclass(slots=True)
class Told:
    """What could not be used. unreadable: records, as a broker skips them; texts: the first of all."""

    damaged: int = 0
    unreadable: int = 0
    untracked: int = 0
    texts: list[str] = field(default_factory=list)

    def damage(self, text: str) -> None:
        """A place that cannot be read."""
        self.damaged += 1
        self._tell(text)

    def skip(self, text: str) -> None:
        """A record that cannot be read."""
        self.unreadable += 1
        self._tell(text)

    def _tell(self, text: str) -> None:
        if len(self.texts) < MOST_TOLD:
            self.texts.append(text)


@lru_cache(maxsize=1 << 16)
def commit_key(data: bytes) -> GroupPartition | None:
    """What a record's key is about; None for one of another type, which is not read. Raises BadMessage."""
    if len(data) >= INT16.size and INT16.unpack_from(data)[0] not in _COMMIT_KEYS:
        return None
    key, _ = coordinator_record(data, None, group_keys())
    return GroupPartition(key.data["group"], key.data["topic"], key.data["partition"])


def commit_of(record: Record, *, transactional: bool = False) -> OffsetCommit | None:
    """A data record's commit, as if it took effect at once; None for a record of another type. Raises BadMessage."""
    if record.key is None:
        raise BadMessage("a record without a key")
    about = commit_key(record.key)
    if about is None:
        return None
    _, value = coordinator_record(record.key, record.value, group_keys())
    if value is None:
        return OffsetCommit(about, record.timestamp, None, None, None, record.offset, transactional)
    made, epoch = value.data["commitTimestamp"], value.data.get("leaderEpoch", -1)
    return OffsetCommit(
        about,
        made if made >= 0 else record.timestamp,
        value.data["offset"],
        made if made >= 0 else None,
        epoch if epoch >= 0 else None,
        record.offset,
        transactional,
    )


_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class PendingCommits(Generic[_Key, _Value]):
    """The commits of transactions under way, of one partition of the topic. untracked: that were too many."""

    def __init__(self, *, most: int = MOST_PENDING) -> None:
        self._most, self._count, self.untracked = most, 0, 0
        self._by_key: dict[_Key, dict[int, tuple[int, _Value]]] = {}
        self._by_producer: dict[int, dict[_Key, None]] = {}

    def __len__(self) -> int:
        return self._count

    def keys(self) -> set[_Key]:
        """What has something pending."""
        return set(self._by_key)

    def add(self, producer_id: int, key: _Key, log_offset: int, value: _Value) -> None:
        """A commit within a transaction; its producer's older one of the same key is forgotten."""
        found = self._by_key.get(key)
        if found is None or producer_id not in found:
            if self._count >= self._most:
                self.untracked += 1
                return
            self._count += 1
        self._by_key.setdefault(key, {})[producer_id] = (log_offset, value)
        self._by_producer.setdefault(producer_id, {})[key] = None

    def supersede(self, key: _Key) -> None:
        """Another commit of `key`, or its removal, has taken effect, behind all that is pending."""
        self._drop(key, lambda _: True)

    def end(self, producer_id: int, *, commit: bool) -> list[tuple[_Key, _Value]]:
        """The producer's marker; what takes effect by it, in the order in which it was written."""
        found: list[tuple[int, _Key, _Value]] = []
        for key in self._by_producer.pop(producer_id, ()):
            log_offset, value = self._by_key[key].pop(producer_id)
            self._count -= 1
            if not self._by_key[key]:
                del self._by_key[key]
            if commit:
                found.append((log_offset, key, value))
        for log_offset, key, _ in found:
            self._drop(key, log_offset.__gt__)
        return [(key, value) for _, key, value in sorted(found, key=lambda each: each[0])]

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
    """Follows one partition of the topic, batch by batch: the plain way, which says what is right."""

    def __init__(self, told: Told) -> None:
        self.told = told
        self.pending: PendingCommits[GroupPartition, OffsetCommit] = PendingCommits()

    def add(self, batch: Batch, content: memoryview, where: str) -> Iterator[OffsetCommit]:
        """What takes effect by a batch with a right CRC. content: the whole batch; where: for messages."""
        try:
            if batch.control:
                yield from self._marker(batch, content)
                return
            for record in all_records(batch, content, limit=MAX_MESSAGE_BYTES):
                yield from self._record(batch, record, where)
        except (BadRecords, BadPayload) as exc:
            self.told.damage(f"{where}: {exc}")

    def _record(self, batch: Batch, record: Record, where: str) -> Iterator[OffsetCommit]:
        try:
            found = commit_of(record, transactional=batch.transactional and batch.producer_id >= 0)
        except BadMessage as exc:
            self.told.skip(f"{where}: offset {record.offset}: {exc}")
            return
        if found is None:
            return
        if found.transactional and found.committed_offset is not None:
            self.pending.add(batch.producer_id, found.key, found.log_offset, found)
        else:
            self.pending.supersede(found.key)
            yield found

    def _marker(self, batch: Batch, content: memoryview) -> Iterator[OffsetCommit]:
        ended = marker_of(batch, content)
        if ended is None:
            return
        for _, found in self.pending.end(batch.producer_id, commit=ended):
            yield found._replace(at_ms=batch.max_timestamp)


def marker_of(batch: Batch, content: memoryview) -> bool | None:
    """Whether a control batch commits its producer's transaction; None when it ends none. Raises BadRecords."""
    record = first_record(batch, content)
    kind = None if record is None else control_type(record)
    return kind == COMMIT if kind in {ABORT, COMMIT} else None
