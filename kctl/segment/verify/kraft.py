"""Check the files of KRaft: snapshots (KIP-630) and quorum-state (KIP-595).

A snapshot is a log of its own, from a SnapshotHeader to a SnapshotFooter record. RecordsSnapshotReader requires the
header. Nothing requires the footer, so a node silently loads a truncated snapshot.
"""

from __future__ import annotations

from pathlib import Path

from kctl.errors import KctlError
from kctl.segment.dump.query import all_records
from kctl.segment.format.batch import Batch
from kctl.segment.format.compression import BadPayload
from kctl.segment.format.control import SNAPSHOT_FOOTER, SNAPSHOT_HEADER, control_type
from kctl.segment.format.quorum_state import BadQuorumState, parse_quorum_state
from kctl.segment.format.record import BadRecords
from kctl.segment.log.partition import METADATA_FOLDER
from kctl.segment.log.source import Source
from kctl.segment.log.walk import batches, content_of
from kctl.segment.verify.context import Verification
from kctl.segment.verify.findings import FileProblems, ProblemSeverity
from kctl.segment.verify.log import LogCheck
from kctl.segment.verify.log_facts import LOG_WINDOW_BYTES, Companions, LogOptions

CLEAN_SHUTDOWN = ".kafka_cleanshutdown"


def shut_down_cleanly(folder: Path) -> bool:
    """Return True if the broker that wrote this partition folder stopped cleanly.

    Always False for the metadata log: KafkaMetadataLog neither trims its indexes at a shutdown nor trusts them at a
    start.
    """
    folder = folder.absolute()
    return folder.name != METADATA_FOLDER and (folder.parent / CLEAN_SHUTDOWN).exists()


def verify_snapshot(run: Verification, path: Path) -> None:
    """Check a KRaft snapshot."""
    try:
        with Source(path, window_bytes=LOG_WINDOW_BYTES) as source:
            damage = FileProblems(run.options.max_findings)
            facts = LogCheck(source, None, damage, Companions(), log_options(run)).run()
            _report(run, path, damage)
            _check_ends(run, source)
    except KctlError as exc:
        run.unreadable(path, exc)
        return
    checked = run.checked
    checked.files += 1
    checked.batches += facts.batches
    checked.records += facts.records
    checked.size_bytes += facts.size_bytes


def _report(run: Verification, path: Path, damage: FileProblems) -> None:
    """Report damage with its effect on a snapshot, which no node repairs. `_check_ends` reports a missing end."""
    for each in damage.listed:
        if each.severity is ProblemSeverity.ERROR:
            run.findings.add(
                "kraft_snapshot",
                path,
                each.message,
                position=each.position,
                offset=each.offset,
                concerned=(each.first_offset, each.last_offset),
            )


def log_options(run: Verification) -> LogOptions:
    """Return the options for a log that is not a segment."""
    progress = run.options.progress
    return LogOptions(
        deep=run.options.deep,
        max_message_bytes=run.options.max_message_bytes,
        progress=None if progress is None else lambda checked_bytes: progress("", checked_bytes),
    )


def _check_ends(run: Verification, source: Source) -> None:
    first = last = None
    for item in batches(source):
        if isinstance(item, Batch):
            first, last = first or item, item
    limit = run.options.max_message_bytes
    if first is None or _control_types(source, first, limit)[:1] != [SNAPSHOT_HEADER]:
        run.findings.add("kraft_snapshot_header", source.path, "the snapshot does not start with a SnapshotHeader")
    elif last is None or _control_types(source, last, limit)[-1:] != [SNAPSHOT_FOOTER]:
        text = "the snapshot does not end with a SnapshotFooter: its last records are missing"
        run.findings.add("kraft_snapshot_footer", source.path, text, position=source.size)


def _control_types(source: Source, batch: Batch, limit: int) -> list[int]:
    if not batch.control:
        return []
    try:
        return [control_type(record) for record in all_records(batch, content_of(source, batch, limit), limit=limit)]
    except (BadRecords, BadPayload):
        return []


def verify_quorum_state(run: Verification, path: Path) -> None:
    """Check a quorum-state file."""
    data = run.small_file(path)
    if data is None:
        return
    try:
        parse_quorum_state(data)
    except BadQuorumState as exc:
        run.findings.add("quorum_state", path, str(exc))
