"""The records of a key. Logs have no index of keys: they are read, the newest segment first."""

from __future__ import annotations

from collections.abc import Iterator

from kctl.segment.dump.query import MAX_MESSAGE_BYTES, may_hold
from kctl.segment.find.find import Found, Place, Reason, open_log, place, records, scan
from kctl.segment.format.batch import Batch
from kctl.segment.format.record import BadRecords, Record
from kctl.segment.log.partition_log import PartitionLog
from kctl.segment.log.source import Source
from kctl.segment.log.walk import content_of


def find_key(log: PartitionLog, key: bytes, *, limit: int = MAX_MESSAGE_BYTES) -> Found:
    """The newest record with this key: what compaction keeps. limit: of one message, in bytes."""
    found = Found(str(log.path))
    for files in reversed(log.segments):
        with open_log(files) as source:
            last: tuple[Batch, Record] | None = None
            for each in _matches(source, key, found, limit):
                last = each
            if last is not None:
                found.place, found.exact = place(source, *last), True
                if last[1].value is None:
                    text = "it is a tombstone: compaction removes the key, and later the tombstone itself"
                    found.because(Reason.TOMBSTONE, text)
                return found
    found.because(Reason.NO_SUCH_KEY, "no record has this key")
    return found


def every_record(log: PartitionLog, key: bytes, found: Found, *, limit: int = MAX_MESSAGE_BYTES) -> Iterator[Place]:
    """All records with this key by offset. found: is told what was read."""
    for files in log.segments:
        with open_log(files) as source:
            for batch, record in _matches(source, key, found, limit):
                yield place(source, batch, record)


def _matches(source: Source, key: bytes, found: Found, limit: int) -> Iterator[tuple[Batch, Record]]:
    for batch in scan(source, 0, found):
        try:
            if not may_hold(batch, content_of(source, batch, limit), key, limit=limit):
                continue
        except BadRecords:
            pass  # is told below
        for record in records(source, batch, found, limit):
            if record.key == key and not batch.control:
                yield batch, record
