"""Going on with a run that did not come to its end, and what there is of runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kctl.base import journal
from kctl.base.suggestions import did_you_mean
from kctl.errors import ExitCode, KctlError, NotFound, Refused, UsageError
from kctl.playbook.load import examine_text, without_errors
from kctl.playbook.model import Playbook
from kctl.playbook.operations import Operations
from kctl.playbook.run import run_journal
from kctl.playbook.run.run_journal import RunState, without_items

_ENDED = {0: "complete", int(ExitCode.INTERRUPTED): "interrupted"}


@dataclass(frozen=True, slots=True)
class RunOverview:
    """state: running, complete, failed, interrupted, or stopped when its process ended without a word. steps_done of
    `steps` (those of its part «steps», without includes'). at: the steps that began and have no end, or that failed;
    without such the one that comes next.
    unsure: those among them that are not done again unasked."""

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


def overview(path: Path, state: RunState) -> RunOverview:
    """A run as its journal shows it."""
    ended = state.ended
    running = journal.held(path)
    ids = list(state.header.get("steps", []))
    failed = [key for key, done in state.done.items() if done.fatal and "/" not in key and "[" not in key]
    left = [] if state.complete else [each for each in ids if each not in state.done]
    again = run_journal.state_of(path)
    again.take_up()
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
        at=list(dict.fromkeys([*map(without_items, state.open), *failed])) or left[:1],
        unsure=[without_items(each.key) for each in again.unsure()],
        exit_code=None if ended is None else ended["exit_code"],
        message=None if ended is None else ended["message"],
        file=str(state.header["file"]),
        kctl_version=str(state.header["version"]),
    )


def overviews() -> tuple[list[RunOverview], list[KctlError]]:
    """All runs of this machine, the newest first; and what is wrong with journals that cannot be read."""
    found, failed = run_journal.read_all()
    return [overview(path, state) for path, state in found], failed


def to_resume(run: str | None) -> Path:
    """The run that is meant: without a name the newest one that is not complete.

    Raises NotFound; Refused when it is complete, or was given up: the same playbook came to its end on the same target
    since; and the error of a journal that cannot be read, as that may be the run.
    """
    if run is not None:
        path = run_journal.path_of(run)
        state = run_journal.state_of(path)
        if state.complete:
            raise _complete(path, state)
        return path
    found, failed = run_journal.read_all()
    if failed:
        failed[0].hint = "; ".join(filter(None, [failed[0].hint, "or name a run: kctl playbook resume RUN"]))
        raise failed[0]
    for number, (path, state) in enumerate(found):
        if state.complete:
            continue
        later = next((each for each in found[:number] if _takes_its_place(each[1], state)), None)
        if later is not None:
            raise _complete(*later, older=path)
        return path
    if not found:
        raise NotFound("no playbook has run on this machine")
    raise _complete(*found[0])


def _takes_its_place(later: RunState, run: RunState) -> bool:
    """Whether a later run of the same playbook completed what a failed run left. A killed run reported nothing."""
    same = all(later.header[key] == run.header[key] for key in ("name", "cluster_id", "target"))
    return run.ended is not None and later.complete and same


def _complete(path: Path, state: RunState, older: Path | None = None) -> Refused:
    before = "" if older is None else f", and {older.stem} failed before it; name that run to resume it"
    return Refused(
        f"run {path.stem} of {state.header['name']} is complete{before}", hint="kctl playbook status lists all runs"
    )


def playbook_of(state: RunState, known: Operations | None = None) -> Playbook:
    """The playbook as it was when the run began. Raises InvalidFile when this kctl cannot run it any more."""
    header = state.header
    source = None if header["source"] is None else Path(header["source"])
    playbook, problems = examine_text(header["text"], source=source, file=header["file"], known=known)
    return without_errors(playbook, problems, header["file"])


def check_names(state: RunState, playbook: Playbook, given: Sequence[str]) -> None:
    """Raise UsageError for steps of --redo and --skip that the run does not have."""
    known = {each.id for each in playbook.all_steps()} | {without_items(key) for key in (*state.done, *state.begun)}
    for name in given:
        if name not in known:
            raise UsageError(
                f"the run has no step {name}",
                hint=did_you_mean(name, known) or "kctl playbook status RUN shows where it is",
            )


def check_unsure(state: RunState) -> None:
    """Raise Refused while there are steps of which nobody knows whether they were done, and which must not be done
    twice. state: with --redo and --skip taken into account."""
    unsure = state.unsure()
    if not unsure:
        return
    first = unsure[0]
    step = without_items(first.key)
    more = f" (and {len(unsure) - 1} more)" if len(unsure) > 1 else ""
    raise Refused(
        f"{first.key} ({first.kind}) began at {first.at} and has no good end: it may have been done{more}",
        hint=f"look, then --redo {step} does it again, --skip {step} takes it for done",
        details={"steps": [without_items(each.key) for each in unsure]},
    )


def check_cluster(state: RunState, cluster_id: str | None) -> bool:
    """Raise Refused for another cluster than the run's; False when that cannot be told, as one does not answer."""
    before: Any = state.header["cluster_id"]
    if before is None or cluster_id is None:
        return before is None
    if before != cluster_id:
        raise Refused(
            f"the run is on the cluster {before}, and this is {cluster_id}",
            hint=f"it began on {state.header['target']}; give the options that name it",
        )
    return True
