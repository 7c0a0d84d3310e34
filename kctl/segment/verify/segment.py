"""Check a segment: its log together with .index, .timeindex and .txnindex."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from kctl.errors import KctlError
from kctl.segment.log.partition import SegmentFiles
from kctl.segment.log.source import Source
from kctl.segment.log.walk import all_zero
from kctl.segment.verify.context import Verification
from kctl.segment.verify.epochs import EpochCheck
from kctl.segment.verify.indexes import OffsetCursor, TimeCursor
from kctl.segment.verify.log import LogCheck
from kctl.segment.verify.log_facts import LOG_WINDOW_BYTES, Companions, LogFacts, LogOptions
from kctl.segment.verify.transactions import LogTransactions, TransactionCheck

MUST_HAVE = (".index", ".timeindex")


@dataclass(frozen=True)
class SegmentRole:
    """The role of a segment. active: a broker appends to it.

    clean: the log dir was shut down cleanly, so the indexes are no longer preallocated.
    """

    active: bool = True
    clean: bool = False


def verify_segment(
    run: Verification,
    files: SegmentFiles,
    folder: Path,
    role: SegmentRole,
    transactions: LogTransactions,
    epochs: EpochCheck,
) -> LogFacts | None:
    """Check one segment. Return None if its log is missing or unreadable. folder: of its files."""
    name = folder / f"{files.base_offset:020d}.log"
    if files.log is None:
        for path in (files.index, files.timeindex, files.txnindex):
            if path is not None:
                run.checked.files += 1
                run.findings.add(
                    "log_missing", path, f"{name.name} does not exist: the records of this segment are missing"
                )
        return None
    if run.options.progress is not None:
        run.options.progress(str(files.log), 0)
    with ExitStack() as stack:
        # Open the indexes first: a running broker appends to the log before it appends to the indexes.
        companions = _companions(run, files, name, role, transactions, stack)
        companions.epochs = epochs
        try:
            log = stack.enter_context(Source(files.log, window_bytes=LOG_WINDOW_BYTES))
            check = LogCheck(log, files.base_offset, run.findings, companions, _options(run, role))
            facts = check.run()
        except KctlError as exc:
            run.unreadable(files.log, exc)
            transactions.forget()
            return None
    count(run, facts)
    return facts


def _options(run: Verification, role: SegmentRole) -> LogOptions:
    progress = run.options.progress
    return LogOptions(
        deep=run.options.deep,
        active=role.active,
        clean=role.clean,
        complete=not role.active,
        max_message_bytes=run.options.max_message_bytes,
        progress=None if progress is None else lambda checked_bytes: progress("", checked_bytes),
    )


def _companions(
    run: Verification,
    files: SegmentFiles,
    name: Path,
    role: SegmentRole,
    transactions: LogTransactions,
    stack: ExitStack,
) -> Companions:
    companions = Companions()
    tail_is_legal = role.active and not role.clean
    for path, suffix in zip((files.index, files.timeindex), MUST_HAVE, strict=True):
        if path is None:
            if role.active and _is_empty(files.log):  # preallocated or empty
                continue  # a broker creates them with the first append (LazyIndex)
            run.findings.add(f"{suffix[1:]}_missing", name.with_suffix(suffix), f"{name.name} has no {suffix}")
            continue
        run.checked.files += 1
        try:
            kind = OffsetCursor if suffix == OffsetCursor.suffix else TimeCursor
            cursor = kind(path, files.base_offset, run.findings, tail_is_legal=tail_is_legal)
        except KctlError as exc:
            run.unreadable(path, exc)
            continue
        stack.callback(cursor.close)
        if isinstance(cursor, OffsetCursor):
            companions.index = cursor
        else:
            companions.times = cursor
    companions.transactions = _transactions(run, files, name, transactions, stack)
    return companions


def _is_empty(path: Path | None) -> bool:
    if path is None:
        return False
    try:
        with Source(path) as source:
            return all_zero(source, 0, source.size)
    except KctlError:
        return False


def _transactions(
    run: Verification, files: SegmentFiles, name: Path, transactions: LogTransactions, stack: ExitStack
) -> TransactionCheck | None:
    path = name.with_suffix(".txnindex")
    run.checked.files += files.txnindex is not None
    try:
        check = TransactionCheck(path, files.base_offset, run.findings, transactions, exists=files.txnindex is not None)
    except KctlError as exc:
        run.unreadable(path, exc)
        transactions.forget()
        return None
    except OSError:  # the log; opening it reports the error
        transactions.forget()
        return None
    stack.callback(check.close)
    return check


def count(run: Verification, facts: LogFacts) -> None:
    """Add a log to the counts."""
    checked = run.checked
    checked.segments += 1
    checked.files += 1
    checked.batches += facts.batches
    checked.records += facts.records
    checked.size_bytes += facts.size_bytes
