"""What can be wrong with log files, and what it means for the broker that opens them.

What a broker of 3.9 does at start (LogManager, LogLoader, LogSegment.recover): behind a clean shutdown it only looks
whether each .index is there and whether .txnindex can be read; nothing looks into batches, .index and .timeindex, but
for the headers from the active segment's last index entry on: they tell the next offset. It appends at the file's end.
Behind an unclean one it reads every segment from the recovery point on, cuts the log at the first batch that is not
valid, deletes all segments behind it, and builds the indexes of what it has read anew. Older segments stay as they are.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path


class Severity(str, Enum):
    """How bad it is: worth knowing; a broker can live with it or mend it; data are lost or come out wrong."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Effect(str, Enum):
    """What it means for the broker."""

    NONE = "nothing"
    RECOVERS = "recovers by itself"
    CUTS_OR_APPENDS = (
        "an unclean start cuts it off and makes the indexes anew; a clean one looks at neither and appends behind it: "
        "reads of what comes then fail"
    )
    CUTS_OR_REFUSES = "an unclean start cuts it off and makes the indexes anew; a clean one fails on it"
    REMOVES = "removes it at start"
    REMOVES_INDEX = "removes the index at start"
    REBUILDS = "rebuilds the index at start"
    SLOW_READS = "reads more of the log than it needs until the index is rebuilt"
    WRONG_READS = "finds wrong positions until the index is rebuilt; it does not notice at a clean start"
    WRONG_TIMES = "searches by time and deletes by retention.ms wrongly until the index is rebuilt"
    WRONG_TRANSACTIONS = "read_committed consumers get wrong records until the index is rebuilt"
    WRONG_STABLE_OFFSET = "starts with wrong open transactions; read_committed consumers may wait or see too much"
    WRONG_TRUNCATION = "replicas may cut their logs at a wrong offset"
    DISORDER = "reads skip or repeat records; an unclean start may empty the whole segment"
    LOSES = "reads of it fail; an unclean start cuts the log here, unless its recovery point is in a later segment"
    LOSES_ALL = "deletes all segments of the partition at start"
    LOST = "goes on with the shorter log; what was behind its end is gone"
    FIRST_ONLY = "serves it to readers that begin at its first offset; readers of its later offsets pass over it"
    UNREADABLE = "serves it, and consumers, compaction and followers fail on it"
    REFUSES_UNCLEAN = "does not start with it after an unclean shutdown"
    REFUSES = "does not start with it"
    OFFLINE_TOO = "nothing if only kctl may not read it; else it takes the whole log dir offline, or does not start"
    OFFLINE = "takes the whole log dir offline, or does not start"
    ANOTHER_TOPIC = "does not serve this replica: it is of another topic of that name"
    GAP = "goes on; readers jump over what is missing"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found. position: in the file, None when it is about all of it; offset: where one is known.

    first_offset, last_offset: of the records that are concerned, by what is whole before and behind; None: not known.
    """

    code: str
    severity: Severity
    file: str
    position: int | None
    offset: int | None
    message: str
    effect: Effect
    first_offset: int | None = None
    last_offset: int | None = None


@dataclass(frozen=True, slots=True)
class Omitted:
    """How many further findings of a code a file had that are not listed one by one."""

    code: str
    severity: Severity
    file: str
    count: int


_E, _W, _I = Severity.ERROR, Severity.WARNING, Severity.INFO

# code → severity and effect; a test makes each of them
_KINDS: dict[str, tuple[Severity, Effect]] = {
    # The log.
    "batch_crc": (_E, Effect.LOSES),
    "batch_magic": (_E, Effect.UNREADABLE),  # the CRC does not cover it, and a broker reads a higher one as 2
    "batch_count": (_E, Effect.UNREADABLE),
    "batch_codec": (_E, Effect.UNREADABLE),
    "batch_incomplete": (_W, Effect.CUTS_OR_APPENDS),  # at the end of the active segment: FileRecords.open
    "batch_too_large": (_I, Effect.NONE),
    # The active segment of log.preallocate=true; behind a clean shutdown a warning: LogSegment.readNextOffset throws.
    "zero_tail": (_I, Effect.CUTS_OR_REFUSES),
    "garbage": (_E, Effect.LOSES),
    "offset_order": (_E, Effect.DISORDER),
    "offset_before_base": (_E, Effect.REFUSES_UNCLEAN),  # UnifiedLog.splitOverflowedSegment requires an overflow
    "offset_overflow": (_W, Effect.RECOVERS),  # it splits the segment (KAFKA-6264)
    "wrapper_offset": (_I, Effect.FIRST_ONLY),  # old librdkafka left the offset of a wrapper of magic 1 at 0
    "records": (_E, Effect.UNREADABLE),
    "record_offsets": (_E, Effect.UNREADABLE),
    "record_timestamps": (_W, Effect.WRONG_TIMES),
    "control_record": (_E, Effect.REFUSES_UNCLEAN),  # EndTransactionMarker.deserialize throws
    "transaction_state": (_E, Effect.REFUSES_UNCLEAN),  # ProducerAppendInfo: InvalidTxnStateException
    "transactions_not_followed": (_I, Effect.NONE),
    # Its indexes.
    "log_missing": (_W, Effect.REMOVES_INDEX),
    "index_missing": (_W, Effect.REBUILDS),
    "index_length": (_W, Effect.RECOVERS),  # the odd bytes are passed over
    "index_tail": (_W, Effect.SLOW_READS),
    "index_order": (_E, Effect.WRONG_READS),
    "index_position": (_E, Effect.WRONG_READS),
    "index_offset": (_E, Effect.WRONG_READS),
    "index_sparse": (_W, Effect.SLOW_READS),
    "timeindex_missing": (_W, Effect.WRONG_TIMES),  # an empty one is made, and the file's time counts instead
    "timeindex_length": (_W, Effect.RECOVERS),
    "timeindex_tail": (_E, Effect.WRONG_TIMES),  # the last entry is 1970: retention deletes the segment at once
    "timeindex_order": (_E, Effect.WRONG_TIMES),
    "timeindex_timestamp": (_E, Effect.WRONG_TIMES),
    "timeindex_offset": (_E, Effect.WRONG_TIMES),
    "timeindex_last": (_W, Effect.WRONG_TIMES),
    "txnindex_length": (_E, Effect.WRONG_TRANSACTIONS),  # what is appended behind odd bytes is misread
    "txnindex_version": (_E, Effect.REFUSES),
    "txnindex_version_byte": (_W, Effect.NONE),  # TransactionIndex compares the first of its two bytes
    "txnindex_order": (_E, Effect.WRONG_TRANSACTIONS),
    "txnindex_before_base": (_W, Effect.REBUILDS),
    "txnindex_extra": (_E, Effect.WRONG_TRANSACTIONS),
    "txnindex_lacks": (_E, Effect.WRONG_TRANSACTIONS),
    "txnindex_entry": (_E, Effect.WRONG_TRANSACTIONS),
    # The partition's folder.
    "segment_gap": (_I, Effect.NONE),
    "segment_missing": (_W, Effect.GAP),
    "segment_overlap": (_E, Effect.DISORDER),
    "file_name": (_E, Effect.REFUSES),  # LogLoader takes the name for a number
    "file_name_digits": (_E, Effect.DISORDER),  # it makes an empty segment of that offset
    "unknown_file": (_I, Effect.NONE),
    "leftover": (_I, Effect.REMOVES),
    "snapshot": (_W, Effect.RECOVERS),  # it is deleted, and an older one or the log is read instead
    "snapshot_offset": (_I, Effect.REMOVES),
    "snapshot_entry": (_W, Effect.WRONG_STABLE_OFFSET),
    "snapshot_transaction": (_W, Effect.WRONG_STABLE_OFFSET),
    "epochs": (_E, Effect.OFFLINE),
    "epochs_order": (_W, Effect.RECOVERS),  # LeaderEpochFileCache drops what does not fit
    "epochs_batch": (_E, Effect.WRONG_TRUNCATION),
    "partition_metadata": (_E, Effect.OFFLINE),
    "topic_id": (_E, Effect.ANOTHER_TOPIC),
    # The log dir.
    "checkpoint": (_E, Effect.OFFLINE),
    "checkpoint_folder": (_I, Effect.RECOVERS),
    "recovery_point": (_W, Effect.LOST),
    "high_watermark": (_W, Effect.LOST),
    "log_start_offset": (_E, Effect.LOSES_ALL),
    "cleaner_offset": (_I, Effect.RECOVERS),
    "meta_properties": (_E, Effect.REFUSES),
    "meta_properties_missing": (_W, Effect.NONE),
    "cluster_id": (_E, Effect.REFUSES),
    "directory_id": (_E, Effect.REFUSES),
    "folder_name": (_E, Effect.REFUSES),
    "partition_twice": (_E, Effect.REFUSES),
    # Anywhere.
    "vanished": (_I, Effect.NONE),
    "unreadable": (_E, Effect.OFFLINE_TOO),
    "too_large": (_W, Effect.NONE),
}
CODES = tuple(_KINDS)
# Codes of files that --repair-index writes anew.
INDEX_CODES = frozenset(
    code
    for code in CODES
    if code.startswith(("index_", "timeindex_", "txnindex_"))
)  # fmt: skip


class Findings:
    """Collects what is found: the first `limit` of each file and code, and the number of the rest.

    So a hostile file cannot fill the memory: what is kept grows with the number of files, not with their size.
    """

    def __init__(self, limit: int = 20) -> None:
        self._limit = limit
        self._seen: Counter[tuple[str, str, Severity]] = Counter()
        self.listed: list[Finding] = []

    def add(
        self,
        code: str,
        file: Path,
        message: str,
        *,
        position: int | None = None,
        offset: int | None = None,
        concerned: tuple[int | None, int | None] = (None, None),
        severity: Severity | None = None,
    ) -> int | None:
        """A finding of a known kind. concerned: its first and last offset; severity: other than the usual one.

        Returns where it is listed; None when it is not.
        """
        usual, effect = _KINDS[code]
        severity = severity or usual
        key = (str(file), code, severity)
        self._seen[key] += 1
        if self._seen[key] <= self._limit:
            self.listed.append(Finding(code, severity, key[0], position, offset, message, effect, *concerned))
            return len(self.listed) - 1
        return None

    def concern(self, number: int, first: int | None, last: int | None) -> None:
        """Which offsets a listed finding concerns, when that is known only later."""
        self.listed[number] = replace(self.listed[number], first_offset=first, last_offset=last)

    def count(self, severity: Severity) -> int:
        """All of a severity, also those that are not listed."""
        return sum(number for (*_, each), number in self._seen.items() if each is severity)

    def omitted(self) -> list[Omitted]:
        """What is not listed, by file and code."""
        return [
            Omitted(code, severity, file, number - self._limit)
            for (file, code, severity), number in self._seen.items()
            if number > self._limit
        ]
