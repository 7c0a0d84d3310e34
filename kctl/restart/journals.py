"""The journals of rolling restarts: one file per run, at most one unfinished run per cluster and machine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from kctl.base import journal, paths, run_files
from kctl.base.journal import Journal
from kctl.errors import Busy, Reason, Refused
from kctl.model import Broker
from kctl.restart.steps import ROLLING_RESTART, RestartState, RestartStep, begin_entry, follow, replay

_KIND = "restarts"


def find_unfinished(cluster_id: str) -> Path | None:
    """Return the journal of the cluster's unfinished run."""
    return _unfinished(run_files.folder(_KIND, cluster_id))


def find_unfinished_by_name(cluster: str) -> Path | None:
    """Find the journal of an unfinished run by the cluster's name, when no broker can report the cluster's id."""
    for where in sorted((paths.state_dir() / _KIND).glob("*")):
        path = _unfinished(where)
        if path is not None and replay(journal.read(path), name=str(path)).cluster == cluster:
            return path
    return None


def _unfinished(where: Path) -> Path | None:
    return next((path for path in run_files.runs(where) if not run_files.ended(path, RestartStep.END.value)), None)


def begin(cluster: str, cluster_id: str, brokers: Sequence[Broker], purpose: str = ROLLING_RESTART) -> Journal:
    """Create and lock a journal. Raises Refused if there is an unfinished run, Busy if a process works on it."""
    where = run_files.folder(_KIND, cluster_id)
    with run_files.one_at_a_time(where):
        other = _unfinished(where)
        if other is not None:
            refuse_while_held(other)
            raise Refused(
                "another rolling restart of this cluster has started",
                hint="run the same command again to resume it",
                reason=Reason.RUN_STATE,
            )
        run_journal = journal.create(where / run_files.new_name(where))
        try:
            entry = begin_entry(cluster, cluster_id, brokers, purpose)
            run_journal.append(RestartStep.BEGIN.value, **entry, pid=os.getpid())
        except BaseException:
            run_journal.close()
            raise
    return run_journal


def reopen(path: Path) -> tuple[Journal, RestartState]:
    """Lock the journal of an unfinished run, and return its state. Raises Busy."""
    refuse_while_held(path)
    run_journal = journal.resume(path)
    try:
        state = replay(run_journal.entries, name=str(path))
    except BaseException:
        run_journal.close()
        raise
    return run_journal, state


def begin_or_resume(
    cluster: str, cluster_id: str, brokers: Sequence[Broker], path: Path | None, purpose: str = ROLLING_RESTART
) -> tuple[Journal, RestartState]:
    """Lock the journal of a new run, or of the unfinished run in `path`; return its state. Raises Refused, Busy."""
    if path is None:
        run_journal = begin(cluster, cluster_id, brokers, purpose)
        return run_journal, replay(run_journal.entries, name=str(run_journal.path))
    run_journal, state = reopen(path)
    try:
        if state.outcome is not None:
            raise Refused("the rolling restart to resume has ended in the meantime", reason=Reason.RUN_STATE)
        run_journal.append(RestartStep.RESUME.value, pid=os.getpid())
        follow(state, RestartStep.RESUME, run_journal.entries[-1])
    except BaseException:
        run_journal.close()
        raise
    return run_journal, state


def abandon(path: Path) -> RestartState:
    """End an unfinished run without further work. Return its state. Raises Busy."""
    run_journal, state = reopen(path)
    with run_journal:
        run_journal.append(RestartStep.END.value, outcome="abandoned")
    return state


def refuse_while_held(path: Path) -> None:
    """Raise Busy if a process is working on the run."""
    if journal.is_locked(path):
        raise Busy(f"another kctl is restarting the brokers of this cluster ({path.stem})", hint="wait until it ends")
