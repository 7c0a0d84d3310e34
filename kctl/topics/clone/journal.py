"""The journals of copies: one file per `kctl topic clone --data`, to resume an interrupted copy.

Nothing else writes to the target, so its log end offset is the number of copied records. The journal maps it to the
source offset to continue from. Brokers append whole batches, so the log end offset is always the end of a batch that
kctl built, and the journal has the source offset after each of them. Only pairs that the previous pair does not imply
are written: the difference of the two offsets changes only at gaps in the source (compaction, transaction markers). A
pair is on disk before its batch is sent.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from kctl.base import journal, run_files
from kctl.base.journal import Journal
from kctl.cluster.log_offsets import LogOffsets
from kctl.errors import Busy, InvalidFile, Reason, Refused

_KIND = "clones"
Pair = tuple[int, int]  # target offset, source offset
_TIMESTAMP_TYPE = "message.timestamp.type"


class CloneStep(str, Enum):
    """The `step` of an entry.

    BEGIN: before the target is created. CREATED: with the target's topic id. POSITIONS: offset pairs, before their
    batches are sent. RESUME: where a later run continues; pairs after this point are void. END: complete or abandoned.
    """

    BEGIN = "begin"
    CREATED = "created"
    POSITIONS = "positions"
    RESUME = "resume"
    END = "end"


@dataclass(frozen=True, slots=True)
class CloneTask:
    """The task of a copy. logs: the offset range to copy of each partition. Topic ids are None before Kafka 2.8.

    configs: configs of the target.
    """

    source: str
    source_id: str | None
    target: str
    cluster_id: str
    replication_factor: int
    configs: Mapping[str, str]
    logs: Mapping[int, LogOffsets]


@dataclass
class CloneState:
    """The progress of a copy, from its journal. pairs: by partition, in offset order."""

    task: CloneTask
    created: bool = False
    target_id: str | None = None
    ended: bool = False
    pairs: dict[int, list[Pair]] = field(default_factory=dict)

    def source_offset(self, partition: int, target_end: int) -> int:
        """Return the source offset to continue from if the target partition ends at `target_end`."""
        pairs = self.pairs[partition]
        target, source = pairs[bisect_right(pairs, (target_end, 1 << 63)) - 1]
        return source + target_end - target


class PairTracker:
    """The target offsets of batches in sending order, and the pairs that the journal needs for them."""

    def __init__(self, starts: Mapping[int, Pair]) -> None:
        self._ends = {partition: target for partition, (target, _) in starts.items()}
        self._differences = {partition: source - target for partition, (target, source) in starts.items()}

    def add(self, partition: int, count: int, source: int) -> tuple[int, Pair | None]:
        """Return the first target offset of a batch of `count` records, and its pair unless it is implied.

        source: the source offset after the batch.
        """
        first = self._ends[partition]
        end = self._ends[partition] = first + count
        if source - end == self._differences[partition]:
            return first, None
        self._differences[partition] = source - end
        return first, (end, source)


def configs_at_creation(configs: Mapping[str, str]) -> dict[str, str]:
    """Return the configs for the creation of the target.

    LogAppendTime is set after the copy, so that records keep their timestamps.
    """
    return {name: value for name, value in configs.items() if name != _TIMESTAMP_TYPE}


def begin_entry(task: CloneTask) -> dict[str, Any]:
    """Return the fields of a BEGIN entry."""
    return {
        "source": task.source, "source_id": task.source_id, "target": task.target, "cluster_id": task.cluster_id,
        "replication_factor": task.replication_factor, "configs": dict(task.configs),
        "logs": {str(partition): [log.start, log.end] for partition, log in task.logs.items()},
    }  # fmt: skip


def pairs_entry(pairs: Mapping[int, Iterable[Pair]]) -> dict[str, Any]:
    """Return the fields of a POSITIONS entry, or of a RESUME entry with one pair per partition."""
    return {"positions": {str(partition): [list(pair) for pair in rows] for partition, rows in pairs.items()}}


def replay(entries: Iterable[Mapping[str, Any]], *, name: str) -> CloneState:
    """Return the state after all entries. name: the journal, for errors. Raises InvalidFile."""
    state: CloneState | None = None
    try:
        for entry in entries:
            step = CloneStep(entry["step"])
            if step is CloneStep.BEGIN:
                state = _begin(entry)
            elif state is None:
                raise ValueError("it does not start with a begin entry")
            else:
                apply_entry(state, step, entry)
    except (ValueError, KeyError, TypeError, IndexError) as exc:
        raise InvalidFile(f"{name} is not the journal of a copy: {exc}", hint="move it away") from exc
    if state is None:
        raise InvalidFile(f"{name} is empty")
    return state


def apply_entry(state: CloneState, step: CloneStep, entry: Mapping[str, Any]) -> None:
    """Apply an entry to the state."""
    if step is CloneStep.CREATED:
        state.created, state.target_id = True, entry["target_id"]
    elif step is CloneStep.END:
        state.ended = True
    elif step in {CloneStep.POSITIONS, CloneStep.RESUME}:
        for key, rows in entry["positions"].items():
            pairs = state.pairs[int(key)]
            if step is CloneStep.RESUME:
                pairs[:] = [pair for pair in pairs if pair[0] < rows[0][0]]
            pairs += [(int(target), int(source)) for target, source in rows]


def _begin(entry: Mapping[str, Any]) -> CloneState:
    logs = {int(key): LogOffsets(int(start), int(end)) for key, (start, end) in entry["logs"].items()}
    task = CloneTask(
        entry["source"], entry["source_id"], entry["target"], entry["cluster_id"], int(entry["replication_factor"]),
        dict(entry["configs"]), logs,
    )  # fmt: skip
    return CloneState(task, pairs={partition: [(0, log.start)] for partition, log in logs.items()})


# --- files ------------------------------------------------------------------------------------------------------------


def unfinished(cluster_id: str, target: str) -> tuple[Path, CloneState] | None:
    """Return the journal of the unfinished copy into `target`, and its state."""
    folder = run_files.folder(_KIND, cluster_id)
    for path in run_files.runs(folder):
        if not run_files.ended(path, CloneStep.END.value):
            state = replay(journal.read(path), name=str(path))
            if state.task.target == target:
                return path, state
    return None


def begin(task: CloneTask) -> Journal:
    """Return a new, locked journal. An unfinished journal for the same target is ended: the target no longer exists.

    Raises Busy if another process copies into the target.
    """
    folder = run_files.folder(_KIND, task.cluster_id)
    with run_files.one_at_a_time(folder):
        while (other := unfinished(task.cluster_id, task.target)) is not None:
            with _locked(other[0], task.target) as old:
                old.append(CloneStep.END.value, outcome="abandoned")
        new_journal = journal.create(folder / run_files.new_name(folder))
        try:
            new_journal.append(CloneStep.BEGIN.value, **begin_entry(task), pid=os.getpid())
        except BaseException:
            new_journal.close()
            raise
    return new_journal


def lock_unfinished(path: Path, target: str) -> tuple[Journal, CloneState]:
    """Lock the journal of an unfinished copy. Raises Busy, or Refused if it has ended in the meantime."""
    locked_journal = _locked(path, target)
    try:
        state = replay(locked_journal.entries, name=str(path))
        if state.ended:
            raise Refused(f"the copy into {target} has already ended", reason=Reason.RUN_STATE)
    except BaseException:
        locked_journal.close()
        raise
    return locked_journal, state


def refuse_while_held(path: Path, target: str) -> None:
    """Raise Busy if a process works on the copy."""
    if journal.is_locked(path):
        raise _busy(target)


def _locked(path: Path, target: str) -> Journal:
    try:
        return journal.resume(path)
    except Busy:
        raise _busy(target) from None


def _busy(target: str) -> Busy:
    return Busy(f"another kctl process is copying into {target}", hint="wait until it ends")
