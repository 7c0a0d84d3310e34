"""Checking a partition's folder: its segments one after the other, and what lies beside them."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from pathlib import Path

from kctl.segment.format.checkpoints import BadCheckpoint, parse_leader_epochs, parse_settings
from kctl.segment.format.producer_snapshot import BadSnapshot, ProducerEntry, parse_snapshot
from kctl.segment.log.partition import PartitionFolder, SegmentFiles
from kctl.segment.verify.context import SNAPSHOT_BYTES, Verification, some
from kctl.segment.verify.epochs import EpochCheck
from kctl.segment.verify.log_facts import LogFacts
from kctl.segment.verify.segment import Place, verify_segment
from kctl.segment.verify.transactions import Transactions

# Beside segments in __cluster_metadata-0 (KIP-630, KIP-595).
_KRAFT = re.compile(r"\d{20}-\d{10}\.checkpoint|bootstrap\.checkpoint|quorum-state")
READ_BY_NAME = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
_NUMBER = re.compile(r"[+-]?[0-9]{1,19}")
_KEPT = re.compile(r"\d{20}\.(?:index|timeindex|txnindex)\.(?:old-.+|new)")


@dataclass
class PartitionFacts:
    """What the checks of a log dir need. first_offset: the first segment's base offset, None without a segment;
    next_offset: behind the last batch, None when the last log cannot be read. topic_id: None when it is not known."""

    folder: PartitionFolder
    first_offset: int | None = None
    next_offset: int | None = 0
    topic_id: str | None = None


class PartitionCheck:
    """Checks one folder."""

    def __init__(
        self, run: Verification, folder: PartitionFolder, *, cleaned: bool | None, clean_shutdown: bool
    ) -> None:
        """cleaned: whether compaction has been there (cleaner-offset-checkpoint), None: that cannot be read;
        clean_shutdown: of its log dir."""
        self._run, self._folder, self._clean = run, folder, clean_shutdown
        self._cleaned, self._unknown = bool(cleaned), cleaned is None
        self._transactions = Transactions()
        self._gaps: list[tuple[Path, int, int]] = []
        self._snapshots = dict(folder.snapshots)

    def check(self) -> PartitionFacts:
        """Everything in it."""
        folder, run = self._folder, self._run
        run.checked.partition_count += 1
        self._names()
        epochs = self._epochs()
        logs = [files for files in folder.segments if files.log is not None]
        facts = PartitionFacts(folder, logs[0].base_offset if logs else None)
        facts.topic_id = self._metadata()
        previous: LogFacts | None = None
        for files in folder.segments:
            place = Place(active=not logs or files is logs[-1], clean=self._clean)
            if files.log is not None:
                self._at(files, previous, first=files is logs[0])
            found = verify_segment(run, files, folder.path, place, self._transactions, epochs)
            if files.log is not None:
                previous = found
            if files.log is not None and found is None:
                facts.next_offset, self._unknown = None, True
            if found is not None:
                facts.next_offset = max(facts.next_offset or 0, found.next_offset)
                # What only compaction does: offsets missing within a segment, a segment without anything left.
                self._cleaned |= found.compacted or (found.size_bytes == 0 and not place.active)
        self._end(facts, logs)
        return facts

    # --- between segments ---------------------------------------------------------------------------------------------

    def _at(self, files: SegmentFiles, previous: LogFacts | None, *, first: bool) -> None:
        """The log goes on with this segment: what is known of transactions, and whether offsets follow each other."""
        base, following = files.base_offset, self._transactions
        if previous is not None:
            self._compare(previous, base)
        entries = self._snapshot(base)
        if first:
            if base == 0 or entries is not None:
                following.begin(entries)
        elif entries is not None:
            exact = following.known and not following.compacted and not following.lost
            if exact and previous is not None and previous.next_offset == base:
                self._compare_snapshot(base, entries)
            elif not following.lost:
                following.begin(entries)

    def _compare(self, previous: LogFacts, base: int) -> None:
        end = previous.next_offset
        if end > base:
            text = f"it goes to offset {end - 1}, and the next segment begins at {base}"
            self._run.findings.add("segment_overlap", previous.path, text, offset=end - 1)
        elif end < base and previous.damaged_at is None:
            self._gaps.append((previous.path, end, base))
        self._transactions.compacted = self._transactions.compacted or end != base

    def _end(self, facts: PartitionFacts, logs: list[SegmentFiles]) -> None:
        for path, end, base in self._gaps:
            text = f"offsets {end} to {base - 1} are in no segment"
            if self._cleaned:
                self._run.findings.add("segment_gap", path, f"{text}, as compaction leaves it", offset=end)
            elif self._unknown:
                text += ": by compaction, or a segment is missing; not all that would tell can be read"
                self._run.findings.add("segment_gap", path, text, offset=end)
            else:
                text += ", and nothing else shows that compaction was here: a segment may be missing"
                self._run.findings.add("segment_missing", path, text, offset=end)
        bases = {files.base_offset for files in logs}
        for offset, path in self._folder.snapshots:
            self._snapshot_place(offset, path, bases, facts.next_offset)
            if offset not in bases:
                self._snapshot(offset)
        last = None if facts.next_offset is None else self._snapshots.get(facts.next_offset)
        following = self._transactions
        if (
            last is not None
            and facts.next_offset is not None
            and facts.next_offset not in bases
            and following.known
            and not following.compacted
        ):
            self._compare_snapshot(facts.next_offset, self._read_snapshot(last) or [])

    # --- producer snapshots -------------------------------------------------------------------------------------------

    def _snapshot(self, offset: int) -> list[ProducerEntry] | None:
        """The producers at an offset, None when no valid snapshot tells; reports on it."""
        path = self._snapshots.get(offset)
        if path is None:
            return None
        return read_snapshot(self._run, offset, path)

    def _read_snapshot(self, path: Path) -> list[ProducerEntry] | None:
        """Once more, without reporting."""
        try:
            return parse_snapshot(path.read_bytes()) if path.stat().st_size <= SNAPSHOT_BYTES else None
        except (BadSnapshot, OSError):
            return None

    def _compare_snapshot(self, offset: int, entries: list[ProducerEntry]) -> None:
        """With the transactions that the log itself shows as open."""
        said = {
            entry.producer_id: entry.current_transaction_first_offset
            for entry in entries
            if entry.current_transaction_first_offset >= 0
        }
        shown = self._transactions.open_transactions()
        for producer in sorted(said.keys() | shown.keys()):
            if said.get(producer) != shown.get(producer):
                one, other = (known.get(producer, "no offset") for known in (said, shown))
                text = f"producer {producer}'s transaction open here began at {one} by it, at {other} by the log"
                self._run.findings.add("snapshot_transaction", self._snapshots[offset], text, offset=offset)

    def _snapshot_place(self, offset: int, path: Path, bases: set[int], end: int | None) -> None:
        """What ProducerStateManager.removeStraySnapshots and truncateAndReload remove."""
        if end is not None and offset > end:
            text = f"it is for offset {offset}, and the log ends before {end}"
        elif offset not in bases and offset < max(bases, default=0):
            text = f"no segment begins at {offset}"
        else:
            return
        self._run.findings.add("snapshot_offset", path, text, offset=offset)

    # --- the small files ----------------------------------------------------------------------------------------------

    def _names(self) -> None:
        findings = self._run.findings
        for path in self._folder.leftovers:
            findings.add("leftover", path, f"{path.suffix[1:]} is what an interrupted deletion or compaction leaves")
        unknown = []
        for path in self._folder.unknown:
            if path.suffix in READ_BY_NAME and path.is_file():
                if _NUMBER.fullmatch(path.name.partition(".")[0]):
                    findings.add("file_name_digits", path, "a base offset has 20 digits")
                else:
                    findings.add("file_name", path, "it is not named after a base offset, 20 digits")
            elif not _KRAFT.fullmatch(path.name):
                unknown.append(path.name)
        if unknown:
            kept = " (indexes that --repair-index replaced)" if all(map(_KEPT.fullmatch, unknown)) else ""
            text = f"a broker leaves alone what it does not know: {some(unknown)}{kept}"
            findings.add("unknown_file", self._folder.path, text)

    def _epochs(self) -> EpochCheck:
        path = self._folder.leader_epochs
        entries = None if path is None else read_epochs(self._run, path)
        return EpochCheck() if entries is None else EpochCheck(path, entries)

    def _metadata(self) -> str | None:
        path = self._folder.metadata
        return None if path is None else read_topic_id(self._run, path)


def read_snapshot(run: Verification, offset: int, path: Path) -> list[ProducerEntry] | None:
    """The producers of a snapshot; None when it cannot be read. Reports on it."""
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
            text = f"producer {entry.producer_id} is at {latest}, which is not before the snapshot's offset {offset}"
            run.findings.add("snapshot_entry", path, text, offset=latest)
    return entries


def read_epochs(run: Verification, path: Path) -> list[tuple[int, int]] | None:
    """The entries of leader-epoch-checkpoint as a broker keeps them, in order; None when it cannot be read."""
    data = run.small_file(path)
    if data is None:
        return None
    try:
        entries = parse_leader_epochs(data)
    except BadCheckpoint as exc:
        run.findings.add("epochs", path, str(exc))
        return None
    kept: list[tuple[int, int]] = []
    for epoch, start in entries:
        if epoch < 0 or start < 0:
            run.findings.add("epochs", path, f"epoch {epoch} from offset {start}: neither can be negative")
            return None
        if kept and (epoch <= kept[-1][0] or start <= kept[-1][1]):
            text = f"epoch {epoch} from offset {start} comes behind epoch {kept[-1][0]} from {kept[-1][1]}"
            run.findings.add("epochs_order", path, text, offset=start)
            while kept and (epoch <= kept[-1][0] or start <= kept[-1][1]):
                kept.pop()
        kept.append((epoch, start))
    return kept


def read_topic_id(run: Verification, path: Path) -> str | None:
    """The topic id of partition.metadata; None when a broker would not read it (PartitionMetadataReadBuffer)."""
    data = run.small_file(path)
    if data is None:
        return None
    try:
        settings = parse_settings(data, ":")
        version, topic_id = settings["version"], settings["topic_id"]
        if not version.isdigit():
            raise BadCheckpoint(1, f"version {version} is unknown")
        if not is_uuid(topic_id):
            raise BadCheckpoint(2, f"{topic_id!r} is no topic id")
    except BadCheckpoint as exc:
        run.findings.add("partition_metadata", path, str(exc))
    except KeyError as exc:
        run.findings.add("partition_metadata", path, f"{exc.args[0]} is missing")
    else:
        return topic_id
    return None


def is_uuid(text: str) -> bool:
    """Whether it is an id as Kafka writes them: 16 bytes in URL-safe base64 without padding, not all zero."""
    try:
        return len(text) == 22 and any(base64.b64decode(f"{text}==", altchars=b"-_", validate=True))
    except (binascii.Error, ValueError):
        return False
