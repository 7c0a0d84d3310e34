"""Resume unfinished runs, and list runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kctl.base import journal
from kctl.base.suggestions import did_you_mean
from kctl.errors import ExitCode, KctlError, NotFound, Reason, Refused, UsageError
from kctl.playbook.load import examine_text, without_errors
from kctl.playbook.model import Playbook
from kctl.playbook.operations import Operations
from kctl.playbook.run import run_journal
from kctl.playbook.run.run_journal import RecordedRun, without_items

_ENDED = {0: "complete", int(ExitCode.INTERRUPTED): "interrupted"}


@dataclass(frozen=True, slots=True)
class RunOverview:
    """The status of a run.

    state: running, complete, failed, interrupted; stopped if its process ended without a final entry. steps: number of
    steps in part "steps", without included ones; steps_done: those that are complete. at: failed and unfinished steps,
    else the next step. unsure: steps with an unknown outcome, which are repeated only with --redo.
    """

    run: str
    playbook: str
    state: str
    target: str | None
    cluster_id: str | None
    began_at: str
    last_at: str
    steps_done: int
    steps: int
    at: list[str]
    unsure: list[str]
    exit_code: int | None
    message: str | None
    file: str
    kctl_version: str


def overview(path: Path, state: RecordedRun) -> RunOverview:
    """Return the status of a run from its journal."""
    ended = state.ended
    running = journal.is_locked(path)
    ids = list(state.header.get("steps", []))
    failed = [key for key, done in state.done.items() if done.fatal and "/" not in key and "[" not in key]
    remaining = [] if state.complete else [each for each in ids if each not in state.done]
    again = run_journal.state_of(path)
    again.prepare_resume()
    return RunOverview(
        run=path.stem,
        playbook=str(state.header["name"]),
        state="running" if running else "stopped" if ended is None else _ENDED.get(ended["exit_code"], "failed"),
        target=state.header["target"],
        cluster_id=state.header["cluster_id"],
        began_at=str(state.header["at"]),
        last_at=state.last_at,
        steps_done=sum(1 for each in ids if each in state.done and not state.done[each].fatal),
        steps=len(ids),
        at=list(dict.fromkeys([*map(without_items, state.open), *failed])) or remaining[:1],
        unsure=[without_items(each.key) for each in again.unsure()],
        exit_code=None if ended is None else ended["exit_code"],
        message=None if ended is None else ended["message"],
        file=str(state.header["file"]),
        kctl_version=str(state.header["version"]),
    )


def overviews() -> tuple[list[RunOverview], list[KctlError]]:
    """Return all runs on this machine, newest first, and the errors of unreadable journals."""
    runs, failed = run_journal.read_all()
    return [overview(path, state) for path, state in runs], failed


def run_to_resume(run: str | None) -> Path:
    """Return the journal of the run to resume. run: None for the newest run that is not complete.

    Raises NotFound; Refused if the run is complete, or if a later run of the same playbook on the same target completed
    after it failed; and the error of an unreadable journal, because that run may be the newest.
    """
    if run is not None:
        path = run_journal.path_of(run)
        state = run_journal.state_of(path)
        if state.complete:
            raise _complete(path, state)
        return path
    runs, failed = run_journal.read_all()
    if failed:
        failed[0].hint = "; ".join(filter(None, [failed[0].hint, "or name a run: `kctl playbook resume RUN`"]))
        raise failed[0]
    for number, (path, state) in enumerate(runs):
        if state.complete:
            continue
        later = next((each for each in runs[:number] if _replaces(each[1], state)), None)
        if later is not None:
            raise _complete(*later, older=path)
        return path
    if not runs:
        raise NotFound("no playbook has been run on this machine")
    raise _complete(*runs[0])


def _replaces(later: RecordedRun, run: RecordedRun) -> bool:
    """Return True if a later run of the same playbook completed. A killed run is never replaced."""
    same = all(later.header[key] == run.header[key] for key in ("name", "cluster_id", "target"))
    return run.ended is not None and later.complete and same


def _complete(path: Path, state: RecordedRun, older: Path | None = None) -> Refused:
    before = "" if older is None else f", and the earlier run {older.stem} failed; name it to resume it"
    return Refused(
        f"run {path.stem} of {state.header['name']} is complete{before}",
        hint="see `kctl playbook status`",
        reason=Reason.RUN_STATE,
    )


def playbook_of(state: RecordedRun, definitions: Operations | None = None) -> Playbook:
    """Return the playbook as recorded in the journal. Raises InvalidFile if this kctl cannot run it."""
    header = state.header
    source = None if header["source"] is None else Path(header["source"])
    playbook, problems = examine_text(header["text"], source=source, file=header["file"], definitions=definitions)
    return without_errors(playbook, problems, header["file"])


def check_names(state: RecordedRun, playbook: Playbook, names: Sequence[str]) -> None:
    """Raise UsageError for steps of --redo and --skip that the run does not have."""
    valid = {each.id for each in playbook.all_steps()} | {without_items(key) for key in (*state.done, *state.started)}
    for name in names:
        if name not in valid:
            raise UsageError(
                f"the run has no step {name}",
                hint=did_you_mean(name, valid) or f"see `kctl playbook status {state.header['run']}`",
            )


def check_unsure(state: RecordedRun) -> None:
    """Raise Refused if any step may have run and must not be repeated without --redo or --skip.

    state: after applying --redo and --skip.
    """
    unsure = state.unsure()
    if not unsure:
        return
    first = unsure[0]
    step = without_items(first.key)
    more = f" (and {len(unsure) - 1} more)" if len(unsure) > 1 else ""
    raise Refused(
        f"outcome unknown: {first.key} ({first.kind}) started at {first.at} and may have run{more}",
        hint=f"check whether it ran, then use --redo {step} to run it again or --skip {step} to skip it",
        details={"steps": [without_items(each.key) for each in unsure]},
        reason=Reason.OUTCOME_UNKNOWN,
    )


def check_cluster(state: RecordedRun, cluster_id: str | None) -> bool:
    """Raise Refused if this is not the run's cluster. Return False if it is unreachable, so its id is unknown."""
    before: Any = state.header["cluster_id"]
    if before is None or cluster_id is None:
        return before is None
    if before != cluster_id:
        raise Refused(
            f"the run is for cluster {before}, but this is cluster {cluster_id}",
            hint=f"it started on {state.header['target']}; name that cluster in the options",
            reason=Reason.WRONG_CLUSTER,
        )
    return True
