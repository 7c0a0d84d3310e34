"""Check a partition folder: its segments in order, and the other files."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from pathlib import Path

from kctl.segment.format.checkpoints import BadCheckpoint, parse_leader_epochs, parse_settings
from kctl.segment.format.producer_snapshot import BadSnapshot, ProducerEntry, parse_snapshot
from kctl.segment.format.quorum_state import QUORUM_STATE
from kctl.segment.log.partition import PartitionFolder, SegmentFiles, is_kraft_snapshot
from kctl.segment.verify.context import SNAPSHOT_BYTES, Verification, some
from kctl.segment.verify.epochs import EpochCheck
from kctl.segment.verify.kraft import verify_quorum_state, verify_snapshot
from kctl.segment.verify.log_facts import LogFacts
from kctl.segment.verify.segment import SegmentRole, verify_segment
from kctl.segment.verify.transactions import LogTransactions

# A KRaft snapshot that a node was writing (org.apache.kafka.snapshot.Snapshots).
_PARTIAL_SNAPSHOT = re.compile(r"\d{20}-\d{10}-\d*\.checkpoint\.part")
READ_BY_NAME = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
_NUMBER = re.compile(r"[+-]?[0-9]{1,19}")
_REPLACED_INDEX = re.compile(r"\d{20}\.(?:index|timeindex|txnindex)\.(?:old-.+|new)")


@dataclass
class PartitionFacts:
    """The facts that the checks of a log dir need. topic_id: None if unknown.

    first_offset: the first segment's base offset; None: no segment. next_offset: the log end offset; None if the last
    log is unreadable.
    """

    folder: PartitionFolder
    first_offset: int | None = None
    next_offset: int | None = 0
    topic_id: str | None = None


class PartitionCheck:
    """The check of one folder."""

    def __init__(
        self, run: Verification, folder: PartitionFolder, *, cleaned: bool | None, clean_shutdown: bool
    ) -> None:
        """Prepare the check.

        cleaned: the log was compacted (cleaner-offset-checkpoint); None: the checkpoint is unreadable. clean_shutdown:
        of the log dir.
        """
        self._run, self._folder, self._clean = run, folder, clean_shutdown
        self._cleaned, self._cleaned_unknown = bool(cleaned), cleaned is None
        self._transactions = LogTransactions()
        self._gaps: list[tuple[Path, int, int]] = []
        self._snapshots = dict(folder.snapshots)

    def check(self) -> PartitionFacts:
        """Check everything in the folder."""
        folder, run = self._folder, self._run
        run.checked.partition_count += 1
        self._check_names()
        epochs = self._epochs()
        logs = [files for files in folder.segments if files.log is not None]
        facts = PartitionFacts(folder, logs[0].base_offset if logs else None)
        facts.topic_id = self._metadata()
        previous: LogFacts | None = None
        for files in folder.segments:
            role = SegmentRole(active=not logs or files is logs[-1], clean=self._clean)
            if files.log is not None:
                self._begin_segment(files, previous, first=files is logs[0])
            segment_facts = verify_segment(run, files, folder.path, role, self._transactions, epochs)
            if files.log is not None:
                previous = segment_facts
            if files.log is not None and segment_facts is None:
                facts.next_offset, self._cleaned_unknown = None, True
            if segment_facts is not None:
                facts.next_offset = max(facts.next_offset or 0, segment_facts.next_offset)
                # Only compaction leaves offsets missing within a segment, or an empty segment.
                self._cleaned |= segment_facts.compacted or (segment_facts.size_bytes == 0 and not role.active)
        self._finish(facts, logs)
        return facts

    # --- between segments ---------------------------------------------------------------------------------------------

    def _begin_segment(self, files: SegmentFiles, previous: LogFacts | None, *, first: bool) -> None:
        """Continue with the next segment: check its offsets against the previous one, update the transactions."""
        base, transactions = files.base_offset, self._transactions
        if previous is not None:
            self._compare_offsets(previous, base)
        entries = self._snapshot(base)
        if first:
            if base == 0 or entries is not None:
                transactions.begin(entries)
        elif entries is not None:
            exact = transactions.known and not transactions.compacted and not transactions.lost
            if exact and previous is not None and previous.next_offset == base:
                self._compare_snapshot(base, entries)
            elif not transactions.lost:
                transactions.begin(entries)

    def _compare_offsets(self, previous: LogFacts, base: int) -> None:
        end = previous.next_offset
        if end > base:
            text = f"the segment ends at offset {end - 1}, but the next segment starts at offset {base}"
            self._run.findings.add("segment_overlap", previous.path, text, offset=end - 1)
        elif end < base and previous.damaged_at is None:
            self._gaps.append((previous.path, end, base))
        self._transactions.compacted = self._transactions.compacted or end != base

    def _finish(self, facts: PartitionFacts, logs: list[SegmentFiles]) -> None:
        for path, end, base in self._gaps:
            text = f"offsets {end} to {base - 1} are missing between two segments"
            if self._cleaned:
                self._run.findings.add("segment_gap", path, f"{text}; compaction removed the records", offset=end)
            elif self._cleaned_unknown:
                text += "; either compaction removed the records or a segment was lost: not all files can be read"
                self._run.findings.add("segment_gap", path, text, offset=end)
            else:
                text += ", and nothing else indicates compaction: a segment was probably lost"
                self._run.findings.add("segment_missing", path, text, offset=end)
        bases = {files.base_offset for files in logs}
        for offset, path in self._folder.snapshots:
            self._snapshot_place(offset, path, bases, facts.next_offset)
            if offset not in bases:
                self._snapshot(offset)
        last_snapshot = None if facts.next_offset is None else self._snapshots.get(facts.next_offset)
        transactions = self._transactions
        if (
            last_snapshot is not None
            and facts.next_offset is not None
            and facts.next_offset not in bases
            and transactions.known
            and not transactions.compacted
        ):
            self._compare_snapshot(facts.next_offset, self._read_snapshot(last_snapshot) or [])

    # --- producer snapshots -------------------------------------------------------------------------------------------

    def _snapshot(self, offset: int) -> list[ProducerEntry] | None:
        """Return the producers at an offset; None without a valid snapshot. Reports problems."""
        path = self._snapshots.get(offset)
        if path is None:
            return None
        return read_snapshot(self._run, offset, path)

    def _read_snapshot(self, path: Path) -> list[ProducerEntry] | None:
        """Read a snapshot again, without reporting."""
        try:
            return parse_snapshot(path.read_bytes()) if path.stat().st_size <= SNAPSHOT_BYTES else None
        except (BadSnapshot, OSError):
            return None

    def _compare_snapshot(self, offset: int, entries: list[ProducerEntry]) -> None:
        """Compare a snapshot with the transactions that are open according to the log."""
        in_snapshot = {
            entry.producer_id: entry.current_transaction_first_offset
            for entry in entries
            if entry.current_transaction_first_offset >= 0
        }
        in_log = self._transactions.open_transactions()
        for producer in sorted(in_snapshot.keys() | in_log.keys()):
            if in_snapshot.get(producer) != in_log.get(producer):
                snapshot, log = (_start(each.get(producer)) for each in (in_snapshot, in_log))
                text = (
                    f"open transaction of producer {producer}: {snapshot} according to the snapshot, {log} in the log"
                )
                self._run.findings.add("snapshot_transaction", self._snapshots[offset], text, offset=offset)

    def _snapshot_place(self, offset: int, path: Path, bases: set[int], end: int | None) -> None:
        """Report snapshots that ProducerStateManager.removeStraySnapshots and truncateAndReload remove."""
        if end is not None and offset > end:
            text = f"the snapshot is for offset {offset}, but the log end offset is {end}"
        elif offset not in bases and offset < max(bases, default=0):
            text = f"no segment starts at the snapshot's offset {offset}"
        else:
            return
        self._run.findings.add("snapshot_offset", path, text, offset=offset)

    # --- the small files ----------------------------------------------------------------------------------------------

    def _check_names(self) -> None:
        findings = self._run.findings
        for path in self._folder.leftovers:
            findings.add("leftover", path, f".{path.suffix[1:]} file of an interrupted deletion or compaction")
        unknown = []
        for path in self._folder.unknown:
            if path.suffix in READ_BY_NAME and path.is_file():
                if _NUMBER.fullmatch(path.name.partition(".")[0]):
                    findings.add("file_name_digits", path, "the base offset in the file name must have 20 digits")
                else:
                    findings.add("file_name", path, "the file name is not a base offset of 20 digits")
            elif is_kraft_snapshot(path):
                verify_snapshot(self._run, path)
            elif path.name == QUORUM_STATE:
                verify_quorum_state(self._run, path)
            elif _PARTIAL_SNAPSHOT.fullmatch(path.name):
                findings.add("leftover", path, "a snapshot that is being written, or was not completed")
            else:
                unknown.append(path.name)
        if unknown:
            replaced = " (indexes that --repair-index replaced)" if all(map(_REPLACED_INDEX.fullmatch, unknown)) else ""
            text = f"a broker ignores unknown files: {some(unknown)}{replaced}"
            findings.add("unknown_file", self._folder.path, text)

    def _epochs(self) -> EpochCheck:
        path = self._folder.leader_epochs
        entries = None if path is None else read_epochs(self._run, path)
        return EpochCheck() if entries is None else EpochCheck(path, entries)

    def _metadata(self) -> str | None:
        path = self._folder.metadata
        return None if path is None else read_topic_id(self._run, path)


def _start(offset: int | None) -> str:
    return "none" if offset is None else f"starts at {offset}"


def read_snapshot(run: Verification, offset: int, path: Path) -> list[ProducerEntry] | None:
    """Return the producers of a snapshot; None if unreadable. Reports problems."""
    data = run.small_file(path, SNAPSHOT_BYTES)
    if data is None:
        return None
    try:
        entries = parse_snapshot(data)
    except BadSnapshot as exc:
        run.findings.add("snapshot", path, str(exc))
        return None
    for entry in entries:
        latest = max(entry.last_offset, entry.current_transaction_first_offset)
        if latest >= offset:
            text = f"offset {latest} of producer {entry.producer_id} is not below the snapshot's offset {offset}"
            run.findings.add("snapshot_entry", path, text, offset=latest)
    return entries


def read_epochs(run: Verification, path: Path) -> list[tuple[int, int]] | None:
    """Return the entries of leader-epoch-checkpoint that a broker would keep, in order; None if unreadable."""
    data = run.small_file(path)
    if data is None:
        return None
    try:
        entries = parse_leader_epochs(data)
    except BadCheckpoint as exc:
        run.findings.add("epochs", path, str(exc))
        return None
    ordered: list[tuple[int, int]] = []
    for epoch, start in entries:
        if epoch < 0 or start < 0:
            run.findings.add("epochs", path, f"epoch {epoch} at offset {start}: negative values are not valid")
            return None
        if ordered and (epoch <= ordered[-1][0] or start <= ordered[-1][1]):
            text = f"epoch {epoch} at offset {start} follows epoch {ordered[-1][0]} at offset {ordered[-1][1]}"
            run.findings.add("epochs_order", path, text, offset=start)
            while ordered and (epoch <= ordered[-1][0] or start <= ordered[-1][1]):
                ordered.pop()
        ordered.append((epoch, start))
    return ordered


def read_topic_id(run: Verification, path: Path) -> str | None:
    """Return the topic id of partition.metadata (PartitionMetadataReadBuffer); None if a broker would reject it."""
    data = run.small_file(path)
    if data is None:
        return None
    try:
        settings = parse_settings(data, ":")
        version, topic_id = settings["version"], settings["topic_id"]
        if not version.isdigit():
            raise BadCheckpoint(1, f"unknown version {version}")
        if not is_uuid(topic_id):
            raise BadCheckpoint(2, f"{topic_id!r} is not a topic id")
    except BadCheckpoint as exc:
        run.findings.add("partition_metadata", path, str(exc))
    except KeyError as exc:
        run.findings.add("partition_metadata", path, f"{exc.args[0]} is missing")
    else:
        return topic_id
    return None


def is_uuid(text: str) -> bool:
    """Return True for an id of Kafka: 16 bytes in URL-safe base64 without padding, not all zero."""
    try:
        return len(text) == 22 and any(base64.b64decode(f"{text}==", altchars=b"-_", validate=True))
    except (binascii.Error, ValueError):
        return False
