"""The journals of reassignments: one file for each run, one unfinished run for each cluster and machine.

`reassignments/<cluster id>/<UTC yyyymmddThhmmss.mmmZ>-<pid>.jsonl` in kctl's state folder. Beside it, while somebody
wants something of the run, `….request` holds one word for the process that carries it out.
"""

from __future__ import annotations

import os
from enum import Enum
from pathlib import Path

from kctl.base import journal, run_files
from kctl.base.journal import Journal
from kctl.errors import Busy, InvalidFile, KctlError, OperationFailed, Refused
from kctl.reassign.run.run_plan import RunPlan, begin_entry
from kctl.reassign.run.steps import Step, replay

_WAYS_OUT = "`kctl topic reassign resume` goes on with it, `cancel` takes back what is in flight, `status` shows it"
_WHILE_RUNNING = "`kctl topic reassign status` watches it, `pause` or `cancel` stops it"


class Request(str, Enum):
    """What another kctl asks of the process that carries a run out.

    PAUSE: end the batch, then pause. CANCEL, PAUSE_NOW: stop at once and let go of the journal; who asked takes it up.
    """

    PAUSE = "pause"
    PAUSE_NOW = "pause now"
    CANCEL = "cancel"


def folder(cluster_id: str) -> Path:
    """Where the journals of a cluster are; it need not exist."""
    return run_files.folder("reassignments", cluster_id)


def runs(cluster_id: str) -> list[Path]:
    """The journals of a cluster that say anything, the newest first."""
    return run_files.runs(folder(cluster_id))


def unfinished(cluster_id: str) -> Path | None:
    """The journal of the run that has not ended."""
    return next((path for path in runs(cluster_id) if not finished(path)), None)


def newest(cluster_id: str) -> Path | None:
    """The journal of the run that has not ended, whatever came after it; else of the one that was begun last."""
    return unfinished(cluster_id) or next(iter(runs(cluster_id)), None)


def finished(path: Path) -> bool:
    """Is its last entry the end of the run? Reads only the end of the file."""
    return run_files.ended(path, Step.END.value)


def begin(plan: RunPlan) -> Journal:
    """A new journal that says what is to be done, held. Raises Refused while another run has not ended."""
    where = folder(plan.cluster_id)
    with run_files.one_at_a_time(where):
        other = unfinished(plan.cluster_id)
        if other is not None:
            refuse_second(other)
        held = journal.create(where / run_files.new_name(where))
        try:
            held.append(Step.BEGIN.value, **begin_entry(plan), pid=os.getpid())
        except BaseException:
            held.close()
            raise
    return held


def refuse_second(path: Path) -> None:
    """Raise Refused: the run of `path` has not ended; Busy when a process carries it out."""
    what, since, pid = _describe(path)
    if journal.held(path):
        process = "" if pid is None else f" (pid {pid})"
        raise Busy(f"a reassignment of this cluster is running{process}{since}: {what}", hint=_WHILE_RUNNING)
    raise Refused(f"a reassignment of this cluster has not ended{since}: {what}", hint=_WAYS_OUT)


def _describe(path: Path) -> tuple[str, str, int | None]:
    """«apply of plan.json (run …)», «, begun at …», and its process; as far as the journal says."""
    try:
        state = replay(journal.read(path), name=str(path))
    except InvalidFile:
        return f"run {path.stem}", "", None
    return f"{state.plan.kind} of {state.plan.source} (run {path.stem})", f", begun at {state.began_at}", state.pid


# --- requests ---------------------------------------------------------------------------------------------------------


def leave_request(path: Path, request: Request) -> None:
    """Leave a request for the process that holds the journal."""
    beside, fresh = _request_file(path), path.with_suffix(f".request-{os.getpid()}")
    try:
        fresh.unlink(missing_ok=True)
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(fd, "w") as file:  # noqa: PTH123 - a descriptor, no path
            file.write(request.value)
        fresh.replace(beside)
    except OSError as exc:
        raise OperationFailed(f"cannot write {beside}: {exc.strerror}") from exc


def read_request(path: Path) -> Request | None:
    """The request that was left; None when there is none that is understood."""
    try:
        with journal.opened(_request_file(path)) as fd:
            word = os.read(fd, 64)
    except (KctlError, OSError):
        return None
    return next((request for request in Request if request.value.encode() == word.strip()), None)


def withdraw_request(path: Path) -> None:
    """Take a request away; harmless when there is none."""
    _request_file(path).unlink(missing_ok=True)


def _request_file(path: Path) -> Path:
    return path.with_suffix(".request")
