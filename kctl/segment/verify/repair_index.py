"""`verify --repair-index`: rewrite wrong or missing index files of a stopped broker.

The new files are what LogSegment.recover writes (kctl.segment.verify.rebuild_index). If the log itself is damaged, they
end at the damage, where a broker's recovery would truncate the log; the log is not changed. Index files without
findings are not changed, even where recovery would write different entries that are also correct.

A file is replaced in three steps: write and sync NAME.new; hard-link the old file to NAME.old-TIME; rename NAME.new to
NAME. A broker ignores both other names (LogLoader checks suffixes). After an interruption, NAME is the complete old or
the complete new file; the next run overwrites NAME.new and reuses the existing NAME.old-TIME.
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
from kctl.errors import Busy, NotAuthorized, OperationFailed, Reason, Refused
from kctl.segment.format.index_entries import extent
from kctl.segment.format.producer_snapshot import BadSnapshot, parse_snapshot
from kctl.segment.log.file_users import FileUsage, usage_of
from kctl.segment.log.log_dir_lock import hold, holder, log_dirs_of
from kctl.segment.log.partition import read_partition
from kctl.segment.log.source import Source, read_whole
from kctl.segment.log.transactions import TransactionTracker
from kctl.segment.verify.context import SNAPSHOT_BYTES
from kctl.segment.verify.findings import INDEX_CODES, FileProblem
from kctl.segment.verify.rebuild_index import ENTRY_SIZE, INDEX_INTERVAL_BYTES, RebuiltIndexes, follow_log, rebuild

_USED = (".log", *ENTRY_SIZE)  # files that a broker has open or mapped


@dataclass(frozen=True, slots=True)
class IndexRepair:
    """An index file to write. codes: of its findings; entries_before: None if the file does not exist.

    note: why the index ends before the end of the log. kept: the new name of the old file, once written. result: "would
    write", "written" or "left alone".
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
    """The plan of a repair. warnings: to read before confirming."""

    indexes: tuple[IndexRepair, ...]
    warnings: tuple[str, ...]
    interval_bytes: int
    logs: dict[str, tuple[int, int]] = field(default_factory=dict)  # size and mtime when the plan was made

    @property
    def to_write(self) -> tuple[IndexRepair, ...]:
        return tuple(row for row in self.indexes if row.result is ItemResult.WOULD_WRITE)


def plan_repair(findings: Iterable[FileProblem], *, interval_bytes: int = INDEX_INTERVAL_BYTES) -> RepairPlan:
    """Plan the repair of the index files with findings. Raises the errors of Source."""
    wrong: dict[Path, set[str]] = {}
    for finding in findings:
        if finding.code in INDEX_CODES:
            wrong.setdefault(Path(finding.file), set()).add(finding.code)
    rows: list[IndexRepair] = []
    logs = dict.fromkeys(path.with_suffix(".log") for path in wrong)
    fingerprints = {}
    for log in logs:
        fingerprints[str(log)] = _fingerprint(log)
        rebuilt = _rebuild(log, interval_bytes, transactions=log.with_suffix(".txnindex") in wrong)
        files = (log.with_suffix(suffix) for suffix in ENTRY_SIZE)
        rows.extend(_row(path, wrong[path], rebuilt) for path in files if path in wrong)
    return RepairPlan(tuple(rows), tuple(_warnings(logs)), interval_bytes, fingerprints)


def _row(path: Path, codes: set[str], rebuilt: RebuiltIndexes) -> IndexRepair:
    before, data = _entries(path), rebuilt.content(path.suffix)
    size = ENTRY_SIZE[path.suffix]
    row = IndexRepair(str(path), tuple(sorted(codes)), before, len(data) // size, len(data), rebuilt.stopped)
    same = before is not None and path.stat().st_size == len(data) and path.read_bytes() == data
    # Unchanged if the log is damaged, or if the transactions are unknown: no better index is possible.
    return replace(row, result=ItemResult.LEFT_ALONE) if same else row


def _entries(path: Path) -> int | None:
    if not path.exists():
        return None
    with Source(path) as source:
        return extent(source, ENTRY_SIZE[path.suffix]).entries


def _fingerprint(log: Path) -> tuple[int, int]:
    status = log.stat()
    return status.st_size, status.st_mtime_ns


def _warnings(logs: Iterable[Path]) -> Iterator[str]:
    for folder in dict.fromkeys(log.parent for log in logs):
        log_dirs = log_dirs_of(folder)
        if not log_dirs:
            yield f"{folder} is not in a log dir: make sure that no broker uses it"
        for log_dir in log_dirs:
            holder_name = holder(log_dir)
            if holder_name is not None:
                yield f"{holder_name} holds {log_dir / '.lock'}: stop the broker before writing indexes"
        usage = _usage(folder)
        for user in usage.users:
            yield f"{user}: stop it before writing indexes"
        if usage.unseen is not None and not log_dirs:
            yield f"it is unknown whether a process uses {folder}: {usage.unseen}"


def _usage(folder: Path) -> FileUsage:
    """Return the processes that use the files of a partition's folder."""
    return usage_of([folder, *(path for path in folder.iterdir() if path.suffix in _USED)])


# --- what to write ----------------------------------------------------------------------------------------------------


def _rebuild(log: Path, interval_bytes: int, *, transactions: bool) -> RebuiltIndexes:
    base = int(log.stem)
    tracker, problem = _transactions_at(log.parent, base) if transactions else (TransactionTracker(), None)
    rebuilt = rebuild(log, base, tracker, interval_bytes=interval_bytes)
    return rebuilt if problem is None or rebuilt.stopped else replace(rebuilt, stopped=problem)


def _transactions_at(folder: Path, base: int) -> tuple[TransactionTracker, str | None]:
    """Return the transactions open at a segment's base offset, like UnifiedLog.rebuildProducerState.

    Starts from the latest snapshot at or before the base offset, or from the start of the log. The second value is why
    some transactions may be missing; None: none are.
    """
    partition = read_partition(folder)
    start, tracker = 0, TransactionTracker()
    for offset, path in reversed(partition.snapshots):
        if offset <= base:
            try:
                tracker = TransactionTracker(parse_snapshot(read_whole(path, most_bytes=SNAPSHOT_BYTES)))
            except (BadSnapshot, Refused):
                continue
            start = offset
            break
    earlier = [files for files in partition.segments if files.log is not None and files.base_offset < base]
    for number, files in enumerate(earlier):
        end = earlier[number + 1].base_offset if number + 1 < len(earlier) else base
        if end <= start or files.log is None:
            continue
        problem = follow_log(files.log, tracker, first=start)
        if problem is not None:
            return tracker, f"some transactions that started earlier may be missing: {problem}"
    return tracker, None


# --- writing ----------------------------------------------------------------------------------------------------------


def carry_out(plan: RepairPlan, *, now: datetime | None = None, assume_stopped: bool = False) -> list[IndexRepair]:
    """Write the planned files. Return the rows with their results.

    assume_stopped: write even if it is unknown whether a process uses the files. Raises before any write: Busy if a
    broker holds the log dir or a process uses the files, NotAuthorized, Refused if a log has changed since the plan was
    made. Raises OperationFailed if a write fails, or if a process opened the files meanwhile; files written until then
    are complete.
    """
    stamp = (now or datetime.now(timezone.utc)).strftime("%Y%m%dT%H%M%SZ")
    logs = list(dict.fromkeys(Path(row.file).with_suffix(".log") for row in plan.to_write))
    folders = list(dict.fromkeys(log.parent for log in logs))
    with ExitStack() as locks:
        locked = {folder: log_dirs_of(folder) for folder in folders}
        for log_dir in dict.fromkeys(log_dir for log_dirs in locked.values() for log_dir in log_dirs):
            locks.enter_context(hold(log_dir))
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
                old_copy = replace_file(
                    path, rebuilt.content(path.suffix), like=path if path.exists() else log, stamp=stamp
                )
                done[row.file] = replace(
                    row, result=ItemResult.WRITTEN, kept=None if old_copy is None else str(old_copy)
                )
        for folder in folders:
            _check_still_unused(folder)
    return [done.get(row.file, row) for row in plan.indexes]


def _check_unused(folder: Path, *, certain: bool) -> None:
    """Raise if a process uses the folder. certain: kctl holds the broker's lock, or the user ruled out a broker."""
    usage = _usage(folder)
    if usage.users:
        hint = "nothing was changed; stop the broker first, or repair a copy of the files"
        raise Busy(str(usage.users[0]), hint=hint)
    if usage.unseen is not None and not certain:
        raise Refused(
            f"it is unknown whether a process uses {folder}: {usage.unseen}",
            hint="nothing was changed; run kctl as root, or with `--assume-stopped` if no broker runs",
            reason=Reason.UNREADABLE,
        )


def _check_still_unused(folder: Path) -> None:
    """Raise if a process opened the folder during the write without the lock: it may have an old index open."""
    for user in _usage(folder).users:
        raise OperationFailed(
            f"{user}, opened while kctl wrote indexes", hint="restart that process: it may have an old index open"
        )


def _check(log: Path, files: Sequence[Path], fingerprint: tuple[int, int]) -> None:
    """Raise if the files cannot be replaced, before the first write."""
    if _fingerprint(log) != fingerprint:
        raise Refused(
            f"{log} has changed since it was read",
            hint="nothing was changed; run the command again",
            reason=Reason.CHANGED_MEANWHILE,
        )
    for path in files:
        if path.parent != log.parent:
            continue
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise Refused(
                f"{path} is not a regular file",
                hint="nothing was changed; replace it with a regular file",
                reason=Reason.INVALID_PATH,
            )
        if os.statvfs(path.parent).f_flag & os.ST_RDONLY:
            raise Refused(
                f"{path.parent} is on a read-only file system",
                hint="nothing was changed; remount it read-write",
                reason=Reason.INVALID_PATH,
            )
        owner = (path if path.exists() else log).stat().st_uid
        if not os.access(path.parent, os.W_OK | os.X_OK) or os.geteuid() not in {0, owner}:
            raise NotAuthorized(
                f"cannot replace {path}: permission denied", hint="nothing was changed; run kctl as the broker's user"
            )


def replace_file(path: Path, data: bytes, *, like: Path, stamp: str) -> Path | None:
    """Replace a file with `data`. Return the new name of the old file; None if there was none.

    like: the file whose owner and mode the new file gets. Raises OperationFailed; `path` is then the complete old or
    new file.
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
        old_copy = _link_old(path, stamp)
        sync_folder(path.parent)
        new.replace(path)
        sync_folder(path.parent)
    except OSError as exc:
        raise OperationFailed(
            f"cannot replace {path}: {exc.strerror}", hint="run the command again; a broker ignores *.new"
        ) from None
    return old_copy


def _link_old(path: Path, stamp: str) -> Path | None:
    """Hard-link a file to a second name. Return it, or the one from an interrupted run; None if there is no file."""
    if not path.exists():
        return None
    for other in path.parent.glob(f"{path.name}.old-*"):
        if other.samefile(path):
            return other
    old_copy = path.with_name(f"{path.name}.old-{stamp}")
    number = 1
    while old_copy.exists() or old_copy.is_symlink():
        number += 1
        old_copy = path.with_name(f"{path.name}.old-{stamp}-{number}")
    try:
        old_copy.hardlink_to(path)
    except OSError as exc:
        if exc.errno not in {errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK}:
            raise
        import shutil  # the file system has no hard links

        shutil.copy2(path, old_copy)
    return old_copy
