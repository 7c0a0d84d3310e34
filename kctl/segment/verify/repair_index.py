"""`verify --repair-index`: new index files for segments whose old ones are wrong or missing, for a stopped broker.

What is written is what LogSegment.recover would write (kctl.segment.verify.rebuild_index). When the log itself is
damaged, that goes up to the damage, where a broker's recovery would cut the log; the log stays as it is. Index files
without findings are left alone, also where a broker's recovery would write other entries that are as right.

A file is replaced in three steps: NAME.new is written and synced; the old file gets a second name, NAME.old-TIME; then
NAME.new is renamed to NAME. A broker leaves both other names alone (LogLoader looks at suffixes). Interrupted anywhere,
NAME is the old file or the new one, whole; the next run overwrites NAME.new and uses the second name that is there.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path

from kctl.base.durable import sync_folder
from kctl.base.outcomes import ItemResult
from kctl.errors import Busy, NotAuthorized, OperationFailed, Refused
from kctl.segment.format.index_entries import extent
from kctl.segment.format.producer_snapshot import BadSnapshot, parse_snapshot
from kctl.segment.log.file_users import Usage, usage_of
from kctl.segment.log.log_dir_lock import hold, holder, log_dirs_of
from kctl.segment.log.partition import read_partition
from kctl.segment.log.source import Source, read_whole
from kctl.segment.log.transactions import TransactionTracker
from kctl.segment.verify.context import SNAPSHOT_BYTES
from kctl.segment.verify.findings import INDEX_CODES, Finding
from kctl.segment.verify.rebuild_index import ENTRY_SIZE, INDEX_INTERVAL_BYTES, Rebuilt, follow_log, rebuild

_USED = (".log", *ENTRY_SIZE)  # what a broker has open or mapped


@dataclass(frozen=True, slots=True)
class IndexRepair:
    """A file that is to be written. codes: what is wrong with it; entries_before: None when it is not there.

    note: up to where the log can be indexed, when that is not its end. kept: the old file's new name, once written.
    result: «would write», «written» or «left alone».
    """

    file: str
    codes: tuple[str, ...]
    entries_before: int | None
    entries_after: int
    bytes_after: int
    note: str | None = None
    result: ItemResult = ItemResult.WOULD_WRITE
    kept: str | None = None


@dataclass(frozen=True)
class RepairPlan:
    """indexes: what is to be done; warnings: what a person should know before."""

    indexes: tuple[IndexRepair, ...]
    warnings: tuple[str, ...]
    interval_bytes: int
    logs: dict[str, tuple[int, int]] = field(default_factory=dict)  # size and time of change when it was made

    @property
    def to_write(self) -> tuple[IndexRepair, ...]:
        return tuple(row for row in self.indexes if row.result is ItemResult.WOULD_WRITE)


def plan_repair(findings: Iterable[Finding], *, interval_bytes: int = INDEX_INTERVAL_BYTES) -> RepairPlan:
    """What would be written because of the findings of a verification. Raises what Source raises."""
    wrong: dict[Path, set[str]] = {}
    for found in findings:
        if found.code in INDEX_CODES:
            wrong.setdefault(Path(found.file), set()).add(found.code)
    rows: list[IndexRepair] = []
    logs = dict.fromkeys(path.with_suffix(".log") for path in wrong)
    marks = {}
    for log in logs:
        marks[str(log)] = _mark(log)
        rebuilt = _rebuild(log, interval_bytes, transactions=log.with_suffix(".txnindex") in wrong)
        files = (log.with_suffix(suffix) for suffix in ENTRY_SIZE)
        rows.extend(_row(path, wrong[path], rebuilt) for path in files if path in wrong)
    return RepairPlan(tuple(rows), tuple(_warnings(logs)), interval_bytes, marks)


def _row(path: Path, codes: set[str], rebuilt: Rebuilt) -> IndexRepair:
    before, data = _entries(path), rebuilt.content(path.suffix)
    size = ENTRY_SIZE[path.suffix]
    row = IndexRepair(str(path), tuple(sorted(codes)), before, len(data) // size, len(data), rebuilt.stopped)
    same = before is not None and path.stat().st_size == len(data) and path.read_bytes() == data
    # A damaged log, or transactions that cannot be known: then there is nothing better to be had.
    return replace(row, result=ItemResult.LEFT_ALONE) if same else row


def _entries(path: Path) -> int | None:
    if not path.exists():
        return None
    with Source(path) as source:
        return extent(source, ENTRY_SIZE[path.suffix]).entries


def _mark(log: Path) -> tuple[int, int]:
    status = log.stat()
    return status.st_size, status.st_mtime_ns


def _warnings(logs: Iterable[Path]) -> Iterator[str]:
    for folder in dict.fromkeys(log.parent for log in logs):
        log_dirs = log_dirs_of(folder)
        if not log_dirs:
            yield f"{folder} is in no log dir: make sure that no broker uses it"
        for log_dir in log_dirs:
            who = holder(log_dir)
            if who is not None:
                yield f"{who} holds {log_dir / '.lock'}: stop the broker before you write indexes"
        usage = _usage(folder)
        for user in usage.users:
            yield f"{user}: stop it before you write indexes"
        if usage.unseen is not None and not log_dirs:
            yield f"cannot tell whether a process uses {folder}: {usage.unseen}"


def _usage(folder: Path) -> Usage:
    """Return the processes that use the files of a partition's folder."""
    return usage_of([folder, *(path for path in folder.iterdir() if path.suffix in _USED)])


# --- what to write ----------------------------------------------------------------------------------------------------


def _rebuild(log: Path, interval_bytes: int, *, transactions: bool) -> Rebuilt:
    base = int(log.stem)
    tracker, problem = _transactions_at(log.parent, base) if transactions else (TransactionTracker(), None)
    rebuilt = rebuild(log, base, tracker, interval_bytes=interval_bytes)
    return rebuilt if problem is None or rebuilt.stopped else replace(rebuilt, stopped=problem)


def _transactions_at(folder: Path, base: int) -> tuple[TransactionTracker, str | None]:
    """The transactions open at a segment's base offset, as UnifiedLog.rebuildProducerState finds them: from the latest
    snapshot before it, or from the beginning of the log; and why that is not sure."""
    found = read_partition(folder)
    start, tracker = 0, TransactionTracker()
    for offset, path in reversed(found.snapshots):
        if offset <= base:
            try:
                tracker = TransactionTracker(parse_snapshot(read_whole(path, most_bytes=SNAPSHOT_BYTES)))
            except (BadSnapshot, Refused):
                continue
            start = offset
            break
    earlier = [files for files in found.segments if files.log is not None and files.base_offset < base]
    for number, files in enumerate(earlier):
        end = earlier[number + 1].base_offset if number + 1 < len(earlier) else base
        if end <= start or files.log is None:
            continue
        problem = follow_log(files.log, tracker, first=start)
        if problem is not None:
            return tracker, f"transactions that began earlier are not all known: {problem}"
    return tracker, None


# --- writing ----------------------------------------------------------------------------------------------------------


def carry_out(plan: RepairPlan, *, now: datetime | None = None, assume_stopped: bool = False) -> list[IndexRepair]:
    """Write what the plan says; its rows as they are then. assume_stopped: also where it cannot be seen whether a
    process uses the files.

    Raises Busy when a broker holds the log dir or a process uses the files, NotAuthorized, Refused when a log has
    changed since the plan was made: before anything is written. Raises OperationFailed when writing fails, or when a
    process has opened the files meanwhile: what was written until then is whole.
    """
    stamp = (now or datetime.now(timezone.utc)).strftime("%Y%m%dT%H%M%SZ")
    logs = list(dict.fromkeys(Path(row.file).with_suffix(".log") for row in plan.to_write))
    folders = list(dict.fromkeys(log.parent for log in logs))
    with ExitStack() as held:
        locked = {folder: log_dirs_of(folder) for folder in folders}
        for log_dir in dict.fromkeys(log_dir for log_dirs in locked.values() for log_dir in log_dirs):
            held.enter_context(hold(log_dir))
        for log in logs:
            _check(log, [Path(row.file) for row in plan.to_write], plan.logs[str(log)])
        for folder in folders:
            _check_unused(folder, certain=bool(locked[folder]) or assume_stopped)
        done: dict[str, IndexRepair] = {}
        for log in logs:
            rows = [row for row in plan.to_write if Path(row.file).with_suffix(".log") == log]
            needs_transactions = any(row.file.endswith(".txnindex") for row in rows)
            rebuilt = _rebuild(log, plan.interval_bytes, transactions=needs_transactions)
            for row in rows:
                path = Path(row.file)
                kept = replace_file(
                    path, rebuilt.content(path.suffix), like=path if path.exists() else log, stamp=stamp
                )
                done[row.file] = replace(row, result=ItemResult.WRITTEN, kept=None if kept is None else str(kept))
        for folder in folders:
            _check_still_unused(folder)
    return [done.get(row.file, row) for row in plan.indexes]


def _check_unused(folder: Path, *, certain: bool) -> None:
    """certain: kctl holds the broker's lock, or the user confirmed that no broker runs."""
    usage = _usage(folder)
    if usage.users:
        hint = "stop the broker first, or repair a real copy; nothing was changed"
        raise Busy(str(usage.users[0]), hint=hint)
    if usage.unseen is not None and not certain:
        raise Refused(
            f"cannot tell whether a process uses {folder}: {usage.unseen}",
            hint="nothing was changed; run kctl as root, or with --assume-stopped if no broker runs",
        )


def _check_still_unused(folder: Path) -> None:
    """After writing, detect a broker that started meanwhile without the lock and may have an old index open."""
    for user in _usage(folder).users:
        raise OperationFailed(f"{user}, which it opened while kctl wrote indexes", hint="restart that process")


def _check(log: Path, files: Sequence[Path], mark: tuple[int, int]) -> None:
    """What can be known before the first file is touched."""
    if _mark(log) != mark:
        raise Refused(f"{log} has changed since it was read", hint="nothing was changed; verify it again")
    for path in files:
        if path.parent != log.parent:
            continue
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise Refused(f"{path} is not a plain file", hint="nothing was changed")
        if os.statvfs(path.parent).f_flag & os.ST_RDONLY:
            raise Refused(f"{path.parent} is on a read-only file system", hint="nothing was changed")
        owner = (path if path.exists() else log).stat().st_uid
        if not os.access(path.parent, os.W_OK | os.X_OK) or os.geteuid() not in {0, owner}:
            raise NotAuthorized(f"{path} cannot be replaced", hint="run kctl as the broker's user; nothing was changed")


def replace_file(path: Path, data: bytes, *, like: Path, stamp: str) -> Path | None:
    """Put `data` in the place of a file, which is kept under another name (returned; None when there was none).

    like: whose owner and mode it gets. Raises OperationFailed; then `path` is as it was, or already the new one.
    """
    new = path.with_name(f"{path.name}.new")
    try:
        status = like.stat()
        fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            if (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
                os.fchown(fd, status.st_uid, status.st_gid)
            os.fchmod(fd, status.st_mode & 0o7777)
            file.write(data)
            file.flush()
            os.fsync(fd)
        kept = _keep(path, stamp)
        sync_folder(path.parent)
        new.replace(path)
        sync_folder(path.parent)
    except OSError as exc:
        raise OperationFailed(
            f"{path} could not be replaced: {exc.strerror}", hint="run the command again; a broker ignores *.new"
        ) from None
    return kept


def _keep(path: Path, stamp: str) -> Path | None:
    """A second name for a file, the one of an interrupted run when there is one."""
    if not path.exists():
        return None
    for other in path.parent.glob(f"{path.name}.old-*"):
        if other.samefile(path):
            return other
    kept = path.with_name(f"{path.name}.old-{stamp}")
    number = 1
    while kept.exists() or kept.is_symlink():
        number += 1
        kept = path.with_name(f"{path.name}.old-{stamp}-{number}")
    try:
        kept.hardlink_to(path)
    except OSError as exc:
        if exc.errno not in {errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK}:
            raise
        import shutil  # a file system without links

        shutil.copy2(path, kept)
    return kept
