"""Find the records of a key. Logs have no index of keys: segments are scanned, newest first."""

from __future__ import annotations

from collections.abc import Iterator

from kctl.segment.dump.query import MAX_MESSAGE_BYTES, may_hold
from kctl.segment.find.find import RecordPlace, SearchReason, SearchResult, open_log, place, records, scan
from kctl.segment.format.batch import Batch
from kctl.segment.format.record import BadRecords, StoredRecord
from kctl.segment.log.partition_log import PartitionLog
from kctl.segment.log.source import Source
from kctl.segment.log.walk import content_of


def find_key(log: PartitionLog, key: bytes, *, limit: int = MAX_MESSAGE_BYTES) -> SearchResult:
    """Find the newest record with this key, the one that compaction keeps. limit: maximum bytes of a message."""
    result = SearchResult(str(log.path))
    for files in reversed(log.segments):
        with open_log(files) as source:
            last: tuple[Batch, StoredRecord] | None = None
            for each in _matches(source, key, result, limit):
                last = each
            if last is not None:
                result.place, result.exact = place(source, *last), True
                if last[1].value is None:
                    text = "it is a tombstone: compaction removes the key, and later the tombstone itself"
                    result.because(SearchReason.TOMBSTONE, text)
                return result
    result.because(SearchReason.NO_SUCH_KEY, "no record has this key")
    return result


def every_record(
    log: PartitionLog, key: bytes, result: SearchResult, *, limit: int = MAX_MESSAGE_BYTES
) -> Iterator[RecordPlace]:
    """Yield all records with this key by offset. result: counts what was scanned."""
    for files in log.segments:
        with open_log(files) as source:
            for batch, record in _matches(source, key, result, limit):
                yield place(source, batch, record)


def _matches(source: Source, key: bytes, result: SearchResult, limit: int) -> Iterator[tuple[Batch, StoredRecord]]:
    for batch in scan(source, 0, result):
        try:
            if not may_hold(batch, content_of(source, batch, limit), key, limit=limit):
                continue
        except BadRecords:
            pass  # noted by `records`
        for record in records(source, batch, result, limit):
            if record.key == key and not batch.control:
                yield batch, record
