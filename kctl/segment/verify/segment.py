"""Checking a segment: its log together with .index, .timeindex and .txnindex."""

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
from kctl.segment.verify.transactions import TransactionCheck, Transactions

MUST_HAVE = (".index", ".timeindex")


@dataclass(frozen=True)
class Place:
    """Where a segment stands. active: a broker appends to it; clean: its log dir was shut down cleanly, so that
    nothing of its indexes is preallocated any more."""

    active: bool = True
    clean: bool = False


def verify_segment(
    run: Verification, files: SegmentFiles, folder: Path, place: Place, transactions: Transactions, epochs: EpochCheck
) -> LogFacts | None:
    """Check one segment; None when its log is not there or cannot be read. folder: where its files are."""
    name = folder / f"{files.base_offset:020d}.log"
    if files.log is None:
        for path in (files.index, files.timeindex, files.txnindex):
            if path is not None:
                run.checked.files += 1
                run.findings.add(
                    "log_missing", path, f"there is no {name.name}: the records of this segment are missing"
                )
        return None
    if run.options.progress is not None:
        run.options.progress(str(files.log), 0)
    with ExitStack() as opened:
        # The indexes first: a broker that writes meanwhile appends to the log before it appends to them.
        companions = _companions(run, files, name, place, transactions, opened)
        companions.epochs = epochs
        try:
            log = opened.enter_context(Source(files.log, window_bytes=LOG_WINDOW_BYTES))
            check = LogCheck(log, files.base_offset, run.findings, companions, _options(run, place))
            facts = check.run()
        except KctlError as exc:
            run.unreadable(files.log, exc)
            transactions.forget()
            return None
    count(run, facts)
    return facts


def _options(run: Verification, place: Place) -> LogOptions:
    progress = run.options.progress
    return LogOptions(
        deep=run.options.deep,
        active=place.active,
        clean=place.clean,
        complete=not place.active,
        max_message_bytes=run.options.max_message_bytes,
        progress=None if progress is None else lambda walked: progress("", walked),
    )


def _companions(
    run: Verification, files: SegmentFiles, name: Path, place: Place, transactions: Transactions, opened: ExitStack
) -> Companions:
    found = Companions()
    tail_is_legal = place.active and not place.clean
    for path, suffix in zip((files.index, files.timeindex), MUST_HAVE, strict=True):
        if path is None:
            if place.active and _is_empty(files.log):  # preallocated or not
                continue  # a broker makes them with the first append (LazyIndex)
            run.findings.add(f"{suffix[1:]}_missing", name.with_suffix(suffix), f"{name.name} has none")
            continue
        run.checked.files += 1
        try:
            kind = OffsetCursor if suffix == OffsetCursor.suffix else TimeCursor
            cursor = kind(path, files.base_offset, run.findings, tail_is_legal=tail_is_legal)
        except KctlError as exc:
            run.unreadable(path, exc)
            continue
        opened.callback(cursor.close)
        if isinstance(cursor, OffsetCursor):
            found.index = cursor
        else:
            found.times = cursor
    found.transactions = _transactions(run, files, name, transactions, opened)
    return found


def _is_empty(path: Path | None) -> bool:
    if path is None:
        return False
    try:
        with Source(path) as source:
            return all_zero(source, 0, source.size)
    except KctlError:
        return False


def _transactions(
    run: Verification, files: SegmentFiles, name: Path, transactions: Transactions, opened: ExitStack
) -> TransactionCheck | None:
    path = name.with_suffix(".txnindex")
    run.checked.files += files.txnindex is not None
    try:
        check = TransactionCheck(path, files.base_offset, run.findings, transactions, exists=files.txnindex is not None)
    except KctlError as exc:
        run.unreadable(path, exc)
        transactions.forget()
        return None
    except OSError:  # the log, which is said where it is opened
        transactions.forget()
        return None
    opened.callback(check.close)
    return check


def count(run: Verification, facts: LogFacts) -> None:
    """Add a log to what was checked."""
    checked = run.checked
    checked.segments += 1
    checked.files += 1
    checked.batches += facts.batches
    checked.records += facts.records
    checked.size_bytes += facts.size_bytes
