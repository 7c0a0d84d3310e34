"""The problems of log files, and their effect on the broker that opens the files.

Startup of a broker of 3.9 (LogManager, LogLoader, LogSegment.recover): after a clean shutdown, it only checks that each
.index exists and that .txnindex is readable. It does not validate batches, .index or .timeindex; it only reads the
headers after the last index entry of the active segment, to find the next offset. It appends at the end of the file.
After an unclean shutdown, it reads every segment from the recovery point on, truncates the log at the first invalid
batch, deletes all later segments, and rebuilds the indexes of the segments it read. Older segments stay unchanged.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path


class ProblemSeverity(str, Enum):
    """The severity. info: harmless; warning: a broker tolerates or repairs it; error: data is lost or misread."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class BrokerEffect(str, Enum):
    """The effect on the broker."""

    NONE = "nothing"
    RECOVERS = "recovers by itself"
    CUTS_OR_APPENDS = (
        "after an unclean shutdown, the broker truncates it and rebuilds the indexes; after a clean shutdown, it "
        "appends after it, and reads of the appended records fail"
    )
    CUTS_OR_REFUSES = (
        "after an unclean shutdown, the broker truncates it and rebuilds the indexes; after a clean shutdown, it does "
        "not start"
    )
    REMOVES = "removes it at startup"
    REMOVES_INDEX = "removes the index at startup"
    REBUILDS = "rebuilds the index at startup"
    SLOW_READS = "reads more of the log than necessary until the index is rebuilt"
    WRONG_READS = (
        "reads at wrong positions until the index is rebuilt; a start after a clean shutdown does not detect it"
    )
    WRONG_TIMES = "lookups by timestamp and retention.ms are wrong until the index is rebuilt"
    WRONG_TRANSACTIONS = "read_committed consumers get wrong records until the index is rebuilt"
    WRONG_STABLE_OFFSET = (
        "starts with wrong open transactions; read_committed consumers may hang or read aborted records"
    )
    WRONG_TRUNCATION = "replicas may truncate their logs at a wrong offset"
    DISORDER = "reads skip or repeat records; a start after an unclean shutdown may empty the whole segment"
    LOSES = (
        "reads of it fail; a start after an unclean shutdown truncates the log here, unless the recovery point is in a "
        "later segment"
    )
    LOSES_ALL = "deletes all segments of the partition at startup"
    LOST = "continues with the shorter log; the records after its end are lost"
    FIRST_ONLY = "returns it to reads from its first offset; reads from its later offsets skip it"
    UNREADABLE = "returns it, but consumers, compaction and followers fail on it"
    REFUSES_UNCLEAN = "does not start after an unclean shutdown"
    REFUSES = "does not start"
    OFFLINE_TOO = "none if the broker can read it; otherwise it takes the whole log dir offline, or does not start"
    OFFLINE = "takes the whole log dir offline, or does not start"
    SHORT_SNAPSHOT = "loads the snapshot without the missing records: topics, configs or ACLs may be lost"
    ANOTHER_TOPIC = "does not serve this replica: it belongs to another topic with the same name"
    GAP = "continues; consumers skip the missing offsets"


@dataclass(frozen=True, slots=True)
class FileProblem:
    """A problem of a file. position: in the file; None for the whole file. offset: None if unknown.

    first_offset, last_offset: the affected records, by the valid batches around them; None: unknown.
    """

    code: str
    severity: ProblemSeverity
    file: str
    position: int | None
    offset: int | None
    message: str
    effect: BrokerEffect
    first_offset: int | None = None
    last_offset: int | None = None


@dataclass(frozen=True, slots=True)
class Omitted:
    """The number of further findings with the same code in a file, which are not listed one by one."""

    code: str
    severity: ProblemSeverity
    file: str
    count: int


_E, _W, _I = ProblemSeverity.ERROR, ProblemSeverity.WARNING, ProblemSeverity.INFO

# code → severity and effect; a test triggers each code
_KINDS: dict[str, tuple[ProblemSeverity, BrokerEffect]] = {
    # The log.
    "batch_crc": (_E, BrokerEffect.LOSES),
    "batch_magic": (_E, BrokerEffect.UNREADABLE),  # the CRC does not cover it; a broker reads a higher magic as 2
    "batch_count": (_E, BrokerEffect.UNREADABLE),
    "batch_codec": (_E, BrokerEffect.UNREADABLE),
    "batch_incomplete": (_W, BrokerEffect.CUTS_OR_APPENDS),  # at the end of the active segment: FileRecords.open
    "batch_too_large": (_I, BrokerEffect.NONE),
    # The active segment with log.preallocate=true; a warning after a clean shutdown: LogSegment.readNextOffset throws.
    "zero_tail": (_I, BrokerEffect.CUTS_OR_REFUSES),
    "garbage": (_E, BrokerEffect.LOSES),
    "offset_order": (_E, BrokerEffect.DISORDER),
    "offset_before_base": (_E, BrokerEffect.REFUSES_UNCLEAN),  # UnifiedLog.splitOverflowedSegment requires an overflow
    "offset_overflow": (_W, BrokerEffect.RECOVERS),  # it splits the segment (KAFKA-6264)
    "wrapper_offset": (_I, BrokerEffect.FIRST_ONLY),  # old librdkafka left the offset of a wrapper of magic 1 at 0
    "records": (_E, BrokerEffect.UNREADABLE),
    "record_offsets": (_E, BrokerEffect.UNREADABLE),
    "record_timestamps": (_W, BrokerEffect.WRONG_TIMES),
    "control_record": (_E, BrokerEffect.REFUSES_UNCLEAN),  # EndTransactionMarker.deserialize throws
    "transaction_state": (_E, BrokerEffect.REFUSES_UNCLEAN),  # ProducerAppendInfo: InvalidTxnStateException
    "transactions_not_followed": (_I, BrokerEffect.NONE),
    # Its indexes.
    "log_missing": (_W, BrokerEffect.REMOVES_INDEX),
    "index_missing": (_W, BrokerEffect.REBUILDS),
    "index_length": (_W, BrokerEffect.RECOVERS),  # the extra bytes are ignored
    "index_tail": (_W, BrokerEffect.SLOW_READS),
    "index_order": (_E, BrokerEffect.WRONG_READS),
    "index_position": (_E, BrokerEffect.WRONG_READS),
    "index_offset": (_E, BrokerEffect.WRONG_READS),
    "index_sparse": (_W, BrokerEffect.SLOW_READS),
    "timeindex_missing": (
        _W,
        BrokerEffect.WRONG_TIMES,
    ),  # an empty one is created, and the file's mtime is used instead
    "timeindex_length": (_W, BrokerEffect.RECOVERS),
    "timeindex_tail": (
        _E,
        BrokerEffect.WRONG_TIMES,
    ),  # the last entry is 1970: retention.ms deletes the segment at once
    "timeindex_order": (_E, BrokerEffect.WRONG_TIMES),
    "timeindex_timestamp": (_E, BrokerEffect.WRONG_TIMES),
    "timeindex_offset": (_E, BrokerEffect.WRONG_TIMES),
    "timeindex_last": (_W, BrokerEffect.WRONG_TIMES),
    "txnindex_length": (_E, BrokerEffect.WRONG_TRANSACTIONS),  # entries appended after the extra bytes are misread
    "txnindex_version": (_E, BrokerEffect.REFUSES),
    "txnindex_version_byte": (_W, BrokerEffect.NONE),  # TransactionIndex compares the first of its two bytes
    "txnindex_order": (_E, BrokerEffect.WRONG_TRANSACTIONS),
    "txnindex_before_base": (_W, BrokerEffect.REBUILDS),
    "txnindex_extra": (_E, BrokerEffect.WRONG_TRANSACTIONS),
    "txnindex_lacks": (_E, BrokerEffect.WRONG_TRANSACTIONS),
    "txnindex_entry": (_E, BrokerEffect.WRONG_TRANSACTIONS),
    # The partition's folder.
    "segment_gap": (_I, BrokerEffect.NONE),
    "segment_missing": (_W, BrokerEffect.GAP),
    "segment_overlap": (_E, BrokerEffect.DISORDER),
    "file_name": (_E, BrokerEffect.REFUSES),  # LogLoader parses the name as a number
    "file_name_digits": (_E, BrokerEffect.DISORDER),  # it creates an empty segment at that offset
    "unknown_file": (_I, BrokerEffect.NONE),
    "leftover": (_I, BrokerEffect.REMOVES),
    "snapshot": (_W, BrokerEffect.RECOVERS),  # it is deleted, and an older snapshot or the log is read instead
    "snapshot_offset": (_I, BrokerEffect.REMOVES),
    "snapshot_entry": (_W, BrokerEffect.WRONG_STABLE_OFFSET),
    "snapshot_transaction": (_W, BrokerEffect.WRONG_STABLE_OFFSET),
    "epochs": (_E, BrokerEffect.OFFLINE),
    "epochs_order": (_W, BrokerEffect.RECOVERS),  # LeaderEpochFileCache drops entries out of order
    "epochs_batch": (_E, BrokerEffect.WRONG_TRUNCATION),
    "partition_metadata": (_E, BrokerEffect.OFFLINE),
    "topic_id": (_E, BrokerEffect.ANOTHER_TOPIC),
    # KRaft.
    "kraft_snapshot": (_E, BrokerEffect.REFUSES),  # RecordsIterator validates each batch
    "kraft_snapshot_header": (_E, BrokerEffect.REFUSES),  # RecordsSnapshotReader throws
    "kraft_snapshot_footer": (_E, BrokerEffect.SHORT_SNAPSHOT),
    "quorum_state": (_E, BrokerEffect.REFUSES),  # FileQuorumStateStore throws
    # The log dir.
    "checkpoint": (_E, BrokerEffect.OFFLINE),
    "checkpoint_folder": (_I, BrokerEffect.RECOVERS),
    "recovery_point": (_W, BrokerEffect.LOST),
    "high_watermark": (_W, BrokerEffect.LOST),
    "log_start_offset": (_E, BrokerEffect.LOSES_ALL),
    "cleaner_offset": (_I, BrokerEffect.RECOVERS),
    "meta_properties": (_E, BrokerEffect.REFUSES),
    "meta_properties_missing": (_W, BrokerEffect.NONE),
    "cluster_id": (_E, BrokerEffect.REFUSES),
    "directory_id": (_E, BrokerEffect.REFUSES),
    "folder_name": (_E, BrokerEffect.REFUSES),
    "partition_twice": (_E, BrokerEffect.REFUSES),
    # Anywhere.
    "vanished": (_I, BrokerEffect.NONE),
    "unreadable": (_E, BrokerEffect.OFFLINE_TOO),
    "too_large": (_W, BrokerEffect.NONE),
}
CODES = tuple(_KINDS)
# Codes of the files that --repair-index rewrites.
INDEX_CODES = frozenset(
    code
    for code in CODES
    if code.startswith(("index_", "timeindex_", "txnindex_"))
)  # fmt: skip


class FileProblems:
    """The findings: the first `limit` per file and code, and counts of the rest.

    A hostile file cannot exhaust memory: memory grows with the number of files, not with their size.
    """

    def __init__(self, limit: int = 20) -> None:
        self._limit = limit
        self._counts: Counter[tuple[str, str, ProblemSeverity]] = Counter()
        self.listed: list[FileProblem] = []

    def add(
        self,
        code: str,
        file: Path,
        message: str,
        *,
        position: int | None = None,
        offset: int | None = None,
        concerned: tuple[int | None, int | None] = (None, None),
        severity: ProblemSeverity | None = None,
    ) -> int | None:
        """Add a finding. concerned: the first and last affected offset; severity: overrides that of the code.

        Return its index in `listed`; None if it is not listed.
        """
        usual, effect = _KINDS[code]
        severity = severity or usual
        key = (str(file), code, severity)
        self._counts[key] += 1
        if self._counts[key] <= self._limit:
            self.listed.append(FileProblem(code, severity, key[0], position, offset, message, effect, *concerned))
            return len(self.listed) - 1
        return None

    def concern(self, number: int, first: int | None, last: int | None) -> None:
        """Set the affected offsets of a listed finding, once they are known."""
        self.listed[number] = replace(self.listed[number], first_offset=first, last_offset=last)

    def count(self, severity: ProblemSeverity) -> int:
        """Return the number of findings of a severity, including those not listed."""
        return sum(number for (*_, each), number in self._counts.items() if each is severity)

    def omitted(self) -> list[Omitted]:
        """Return the counts of findings that are not listed, by file and code."""
        return [
            Omitted(code, severity, file, number - self._limit)
            for (file, code, severity), number in self._counts.items()
            if number > self._limit
        ]
