"""The journals of reassignments: one file per run, at most one unfinished run per cluster and machine.

`reassignments/<cluster id>/<UTC yyyymmddThhmmss.mmmZ>-<pid>.jsonl` in kctl's state folder. `….request` next to it holds
a request from another kctl to the process that runs it.
"""

from __future__ import annotations

import os
from enum import Enum
from pathlib import Path

from kctl.base import journal, run_files
from kctl.base.journal import Journal
from kctl.errors import Busy, InvalidFile, KctlError, OperationFailed, Reason, Refused
from kctl.reassign.run.run_plan import RunPlan, begin_entry
from kctl.reassign.run.steps import RunStep, replay

_WAYS_OUT = "see `kctl topic reassign status`, then resume it with `resume`, or cancel its moves with `cancel`"
_WHILE_RUNNING = "watch it with `kctl topic reassign status --watch`, or stop it with `pause` or `cancel`"


class RunRequest(str, Enum):
    """A request from another kctl to the process of a run.

    PAUSE: complete the batch, then pause. CANCEL, PAUSE_NOW: stop immediately and release the journal; the other kctl
    takes it over.
    """

    PAUSE = "pause"
    PAUSE_NOW = "pause now"
    CANCEL = "cancel"


def folder(cluster_id: str) -> Path:
    """Return the folder of the journals of a cluster; it need not exist."""
    return run_files.folder("reassignments", cluster_id)


def runs(cluster_id: str) -> list[Path]:
    """Return the journals of a cluster that have entries, the newest first."""
    return run_files.runs(folder(cluster_id))


def unfinished(cluster_id: str) -> Path | None:
    """Return the journal of the run that has not ended, None if there is none."""
    return next((path for path in runs(cluster_id) if not finished(path)), None)


def newest(cluster_id: str) -> Path | None:
    """Return the journal of the run that has not ended, else of the run that was started last."""
    return unfinished(cluster_id) or next(iter(runs(cluster_id)), None)


def finished(path: Path) -> bool:
    """Return True if the last entry is the end of the run. Reads only the end of the file."""
    return run_files.ended(path, RunStep.END.value)


def begin(plan: RunPlan) -> Journal:
    """Create and lock a journal that starts with the plan. Raises Refused while another run has not ended."""
    parent = folder(plan.cluster_id)
    with run_files.one_at_a_time(parent):
        other = unfinished(plan.cluster_id)
        if other is not None:
            refuse_second(other)
        new_journal = journal.create(parent / run_files.new_name(parent))
        try:
            new_journal.append(RunStep.BEGIN.value, **begin_entry(plan), pid=os.getpid())
        except BaseException:
            new_journal.close()
            raise
    return new_journal


def refuse_second(path: Path) -> None:
    """Raise Refused because the run of `path` has not ended; Busy if a process is running it."""
    what, since, pid = _describe(path)
    if journal.is_locked(path):
        process = "" if pid is None else f" (pid {pid})"
        raise Busy(f"a reassignment of this cluster is running{process}{since}: {what}", hint=_WHILE_RUNNING)
    raise Refused(
        f"a reassignment of this cluster has not ended{since}: {what}", hint=_WAYS_OUT, reason=Reason.RUN_STATE
    )


def _describe(path: Path) -> tuple[str, str, int | None]:
    """Return "apply of plan.json (run …)", ", started at …", and the process id, if the journal has them."""
    try:
        state = replay(journal.read(path), name=str(path))
    except InvalidFile:
        return f"run {path.stem}", "", None
    return f"{state.plan.kind} of {state.plan.source} (run {path.stem})", f", started at {state.began_at}", state.pid


# --- requests ---------------------------------------------------------------------------------------------------------


def write_request(path: Path, request: RunRequest) -> None:
    """Write a request for the process that holds the journal."""
    request_file, temporary = _request_file(path), path.with_suffix(f".request-{os.getpid()}")
    try:
        temporary.unlink(missing_ok=True)
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(fd, "w") as file:  # noqa: PTH123 - a descriptor, no path
            file.write(request.value)
        temporary.replace(request_file)
    except OSError as exc:
        raise OperationFailed(f"cannot write {request_file}: {exc.strerror}") from exc


def read_request(path: Path) -> RunRequest | None:
    """Return the request, None if there is none or it is unknown."""
    try:
        with journal.opened(_request_file(path)) as fd:
            word = os.read(fd, 64)
    except (KctlError, OSError):
        return None
    return next((request for request in RunRequest if request.value.encode() == word.strip()), None)


def withdraw_request(path: Path) -> None:
    """Delete a request; harmless if there is none."""
    _request_file(path).unlink(missing_ok=True)


def _request_file(path: Path) -> Path:
    return path.with_suffix(".request")
