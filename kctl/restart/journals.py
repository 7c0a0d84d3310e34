"""The journals of rolling restarts: one file for each run, one unfinished run for each cluster and machine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from kctl.base import journal, paths, run_files
from kctl.base.journal import Journal
from kctl.errors import Busy, Refused
from kctl.model import Broker
from kctl.restart.steps import RestartState, Step, begin_entry, follow, replay

_KIND = "restarts"


def unfinished(cluster_id: str) -> Path | None:
    """The journal of the run of a cluster that has not ended."""
    return _unfinished(run_files.folder(_KIND, cluster_id))


def unfinished_of(cluster: str) -> Path | None:
    """The same by the name of the target: for a cluster of which no broker is up, and so none that tells its id."""
    for where in sorted((paths.state_dir() / _KIND).glob("*")):
        path = _unfinished(where)
        if path is not None and replay(journal.read(path), name=str(path)).cluster == cluster:
            return path
    return None


def _unfinished(where: Path) -> Path | None:
    return next((path for path in run_files.runs(where) if not run_files.ended(path, Step.END.value)), None)


def begin(cluster: str, cluster_id: str, brokers: Sequence[Broker]) -> Journal:
    """A new journal, held. Raises Refused when a run has not ended (Busy: when it is at work)."""
    where = run_files.folder(_KIND, cluster_id)
    with run_files.one_at_a_time(where):
        other = _unfinished(where)
        if other is not None:
            refuse_while_held(other)
            raise Refused(
                "a rolling restart of this cluster has begun meanwhile", hint="the same command again goes on with it"
            )
        held = journal.create(where / run_files.new_name(where))
        try:
            held.append(Step.BEGIN.value, **begin_entry(cluster, cluster_id, brokers), pid=os.getpid())
        except BaseException:
            held.close()
            raise
    return held


def take_up(path: Path) -> tuple[Journal, RestartState]:
    """Hold an unfinished run's journal. Raises Busy."""
    refuse_while_held(path)
    held = journal.resume(path)
    try:
        state = replay(held.entries, name=str(path))
    except BaseException:
        held.close()
        raise
    return held, state


def begin_or_go_on(
    cluster: str, cluster_id: str, brokers: Sequence[Broker], path: Path | None
) -> tuple[Journal, RestartState]:
    """A held journal and what it says: of a new run, or of the unfinished one of `path`. Raises Refused (Busy)."""
    if path is None:
        held = begin(cluster, cluster_id, brokers)
        return held, replay(held.entries, name=str(held.path))
    held, state = take_up(path)
    try:
        if state.outcome is not None:
            raise Refused("the rolling restart that was to be gone on with has ended meanwhile")
        held.append(Step.RESUME.value, pid=os.getpid())
        follow(state, Step.RESUME, held.entries[-1])
    except BaseException:
        held.close()
        raise
    return held, state


def abandon(path: Path) -> RestartState:
    """End an unfinished run where it stands; what it was. Raises Busy."""
    held, state = take_up(path)
    with held:
        held.append(Step.END.value, outcome="abandoned")
    return state


def refuse_while_held(path: Path) -> None:
    """Raise Busy while a process works on it."""
    if journal.held(path):
        raise Busy(
            f"another kctl is restarting the brokers of this cluster ({path.stem})", hint="wait until it has ended"
        )
