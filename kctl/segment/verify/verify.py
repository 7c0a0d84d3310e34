"""`verify`: check log files without a broker.

Paths are log dirs, partition folders, or files: a log file, or a companion file, which stands for its segment.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kctl.errors import KctlError, NotAuthorized, UsageError
from kctl.segment.format.checkpoints import (
    META_PROPERTIES,
    OFFSET_CHECKPOINTS,
    is_checkpoint,
)
from kctl.segment.format.quorum_state import QUORUM_STATE
from kctl.segment.log.partition import (
    LEADER_EPOCHS,
    LEFTOVERS,
    PARTITION_METADATA,
    companions,
    holds_segments,
    is_folder,
    is_kraft_snapshot,
    list_folder,
    next_segment,
    offset_of,
    parse_folder_name,
    partition_folders,
    read_partition,
)
from kctl.segment.log.source import Source
from kctl.segment.verify.context import CheckedCounts, Verification, VerifyOptions
from kctl.segment.verify.epochs import EpochCheck
from kctl.segment.verify.findings import FileProblem, FileProblems, Omitted, ProblemSeverity
from kctl.segment.verify.kraft import (
    CLEAN_SHUTDOWN,
    log_options,
    shut_down_cleanly,
    verify_quorum_state,
    verify_snapshot,
)
from kctl.segment.verify.log import LogCheck
from kctl.segment.verify.log_dir import LogDirs, read_meta_properties, read_offsets
from kctl.segment.verify.log_facts import LOG_WINDOW_BYTES, Companions
from kctl.segment.verify.partition import READ_BY_NAME, PartitionCheck, read_epochs, read_snapshot, read_topic_id
from kctl.segment.verify.segment import SegmentRole, count, verify_segment
from kctl.segment.verify.transactions import LogTransactions

_SEGMENT = (".log", ".index", ".timeindex", ".txnindex")
# Logs that a broker is about to remove.
_OLD_LOG = re.compile(r"\d{20}\.log\.(?:deleted|cleaned|swap)")


@dataclass(frozen=True)
class VerifyResult:
    """The result of a verification. omitted: counts of findings that are not listed one by one.

    denied: number of files and folders that this user may not read; their condition is unknown.
    """

    paths: tuple[str, ...]
    deep: bool
    checked: CheckedCounts
    errors: int
    warnings: int
    infos: int
    denied: int
    findings: tuple[FileProblem, ...]
    omitted: tuple[Omitted, ...]

    @property
    def healthy(self) -> bool:
        return not self.errors and not self.warnings


def verify(paths: Sequence[Path], options: VerifyOptions | None = None) -> VerifyResult:
    """Check all paths. Raises NotFound, NotAuthorized, and UsageError for a path that does not belong to a log."""
    options = options or VerifyOptions()
    run = Verification(options, FileProblems(options.max_findings))
    log_dirs, segments = LogDirs(run), set[Path]()
    try:
        for path in {path.absolute(): path for path in paths}.values():  # each once
            if not is_folder(path):
                _file(run, path, segments)
            elif is_partition(path):
                _partition(run, path)
            elif is_log_dir(path):
                log_dirs.check(path)
            else:
                hint = "pass a log dir, a partition folder, or files of one"
                raise UsageError(f"{path} is not a log dir: it contains no log and no partitions", hint=hint)
    except PermissionError as exc:  # a folder that may be listed, but not entered
        text = f"cannot read {exc.filename}: permission denied"
        raise NotAuthorized(text, hint="run kctl as the broker's user") from None
    findings = run.findings
    return VerifyResult(
        tuple(map(str, paths)), options.deep, run.checked, findings.count(ProblemSeverity.ERROR),
        findings.count(ProblemSeverity.WARNING), findings.count(ProblemSeverity.INFO), run.denied,
        tuple(findings.listed), tuple(findings.omitted()),
    )  # fmt: skip


def size_of(paths: Sequence[Path]) -> int:
    """Return the total bytes of the logs, for progress. Unreadable files count as 0."""
    total = 0
    for path in paths:
        try:
            folders = [path] if not path.is_dir() or is_partition(path) else partition_folders(path)
            for folder in folders:
                files = list_folder(folder) if folder.is_dir() else [folder.with_suffix(".log")]
                total += sum(file.stat().st_size for file in files if file.suffix == ".log" and file.is_file())
        except (KctlError, OSError):
            continue
    return total


def is_partition(path: Path) -> bool:
    """Return True if a folder is a partition folder, and not a log dir."""
    names = (*READ_BY_NAME, *LEFTOVERS)
    named = parse_folder_name(path.name)[0] is not None
    children = list_folder(path)
    if holds_segments(path) or any(
        child.suffix in names and (named or offset_of(child) is not None) and child.is_file() for child in children
    ):
        return True
    return named and not children


def is_log_dir(path: Path) -> bool:
    """Return True if a folder contains the files of a log dir, or partitions."""
    names = {child.name for child in list_folder(path)}
    if names & {META_PROPERTIES, CLEAN_SHUTDOWN, *OFFSET_CHECKPOINTS}:
        return True
    return any(map(_may_be_partition, partition_folders(path)))  # /etc/polkit-1 is named like one


def _may_be_partition(path: Path) -> bool:
    try:
        return is_partition(path)
    except (KctlError, PermissionError):
        return True


def role_of(log: Path) -> SegmentRole:
    """Return the role of a single segment, by its neighbors in the folder."""
    return SegmentRole(active=next_segment(log) is None, clean=shut_down_cleanly(log.absolute().parent))


def _partition(run: Verification, path: Path) -> None:
    folder = read_partition(path)
    PartitionCheck(run, folder, cleaned=False, clean_shutdown=shut_down_cleanly(path)).check()


def _file(run: Verification, path: Path, segments: set[Path]) -> None:
    if path.suffix in _SEGMENT and offset_of(path) is not None:
        log = path.with_suffix(".log")
        if log not in segments:
            segments.add(log)
            Source(path).close()  # raises if the file does not exist
            _segment(run, log)
    elif is_kraft_snapshot(path):
        Source(path).close()
        verify_snapshot(run, path)
    elif _OLD_LOG.fullmatch(path.name):
        _old_log(run, path)
    elif path.suffix == ".snapshot" and offset_of(path) is not None:
        Source(path).close()
        read_snapshot(run, offset_of(path) or 0, path)
    elif is_checkpoint(path):
        Source(path).close()
        _checkpoint(run, path)
    else:
        Source(path).close()
        raise UsageError(f"{path} is not a file of a log", hint="segment files are named 20 digits and .log, .index …")


def _segment(run: Verification, log: Path) -> None:
    files, transactions = companions(log), LogTransactions()
    snapshot = log.with_suffix(".snapshot")
    entries = None
    if snapshot.exists():
        entries = read_snapshot(run, files.base_offset, snapshot)
    if files.base_offset == 0 or entries is not None:
        transactions.begin(entries)
    verify_segment(run, files, log.parent, role_of(log), transactions, EpochCheck())


def _old_log(run: Verification, path: Path) -> None:
    with Source(path, window_bytes=LOG_WINDOW_BYTES) as source:
        count(run, LogCheck(source, offset_of(path), run.findings, Companions(), log_options(run)).run())


def _checkpoint(run: Verification, path: Path) -> None:
    if path.name == LEADER_EPOCHS:
        read_epochs(run, path)
    elif path.name == PARTITION_METADATA:
        read_topic_id(run, path)
    elif path.name == META_PROPERTIES:
        read_meta_properties(run, path)
    elif path.name == QUORUM_STATE:
        verify_quorum_state(run, path)
    else:
        read_offsets(run, path)
