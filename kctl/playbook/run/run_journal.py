"""The journal of a run, for resuming and displaying it.

File: `playbooks/<UTC yyyymmddThhmmss.mmmZ>-<pid>.jsonl` in kctl's state folder. The key of a step has the ids of the
enclosing includes and the step's own id, with the index of a loop item: "prepare/topics[2]". Journals hold no secrets.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from kctl.base import journal, paths, run_files
from kctl.base.journal import Journal
from kctl.base.secrets import Redactor
from kctl.deploy.interrupts import deferred_interrupts
from kctl.errors import ExitCode, InvalidFile, KctlError, NotFound, OperationFailed, Reason, Refused
from kctl.playbook.builtin_step_table import BUILTIN_STEPS
from kctl.playbook.run.states import StepResult, StepState, as_entry, from_entry

FORMAT = 1
MAX_VALUE_BYTES = 256 << 10  # of a result; larger values are not stored
_INDEX = re.compile(r"\[[0-9]+\]")
_NOTHING_CHANGED = frozenset({ExitCode.USAGE, ExitCode.UNREACHABLE, ExitCode.REFUSED})
_BY_HAND = frozenset({"--skip", "--step"})  # skipped by the user
_TAKES_TIME = frozenset({"wait", "confirm"})  # change nothing, but are not repeated


class EntryType(str, Enum):
    """Types of journal entries. STEP_BEGAN without STEP_ENDED: outcome unknown."""

    RUN_BEGAN = "run began"
    STEP_BEGAN = "step began"
    STEP_ENDED = "step ended"
    RUN_RESUMED = "run resumed"
    RUN_ENDED = "run ended"


@dataclass(frozen=True, slots=True)
class EndedStep:
    """A step that ended.

    whole: the complete value is stored. fatal: the failure ended the part (steps, on_failure or finally). handler: the
    step belongs to on_failure or finally.
    """

    result: StepResult
    whole: bool
    fatal: bool
    handler: bool


@dataclass(frozen=True, slots=True)
class StartedStep:
    """A step that started. read_only: the step is an operation that changes nothing. handler: as in EndedStep."""

    key: str
    name: str
    kind: str
    repeatable: bool
    read_only: bool
    handler: bool
    at: str
    item_digest: str | None
    included: Mapping[str, Any] | None

    @property
    def may_have_changed(self) -> bool:
        """Return True if the step may have changed something before it was interrupted."""
        return BUILTIN_STEPS[self.kind].changes if self.kind in BUILTIN_STEPS else not self.read_only


@dataclass(slots=True)
class RecordedRun:
    """The content of a journal. ended: the last entry, if the last process ended normally."""

    header: dict[str, Any]
    done: dict[str, EndedStep] = field(default_factory=dict)
    started: dict[str, StartedStep] = field(default_factory=dict)  # including ended steps
    open: dict[str, StartedStep] = field(default_factory=dict)  # did not end, or failed and may have changed something
    ended: dict[str, Any] | None = None
    last_at: str = ""

    @property
    def complete(self) -> bool:
        """Return True if nothing remains to be done."""
        return self.ended is not None and self.ended.get("exit_code") == 0

    def prepare_resume(self, redo: Iterable[str] = (), skip: Iterable[str] = ()) -> None:
        """Prepare the state for resuming.

        After a normal end, these run again: failed steps, on_failure and final steps, and read-only steps since the
        last change.
        """
        if self.ended is not None:
            self._retry()
        self.ended = None
        redone = set(redo)
        for key in [key for key in {*self.done, *self.open} if _matches(key, redone)]:
            self.done.pop(key, None)
            self.open.pop(key, None)
        for name in skip:
            for key in [key for key in self.open if without_items(key) == name] or [name]:
                self.open.pop(key, None)
                self.done[key] = EndedStep(
                    StepResult(StepState.SKIPPED, message="--skip"), whole=True, fatal=False, handler=False
                )

    def _retry(self) -> None:
        again = {key: done for key, done in self.done.items() if done.fatal or done.handler}
        for key in again:
            del self.done[key]
        for key, done in again.items():
            within_done = any(outer in self.done for outer in _includes_of(key))
            if not done.handler and not within_done and key in self.started and _may_have_acted(done.result):
                self.open[key] = self.started[key]
        self.open = {key: step for key, step in self.open.items() if not step.handler}
        self._forget_reads()

    def _forget_reads(self) -> None:
        """Forget read-only steps before the failed one: the cause of a failed check may have been fixed since."""
        for key in reversed(list(self.done)):
            step = self.started.get(key) or self.started.get(f"{key}[0]")
            if self.done[key].result.message in _BY_HAND:
                continue
            if step is None or step.read_only:  # no start entry: assert, set, or skipped
                del self.done[key]
            elif step.kind not in _TAKES_TIME:
                break

    def unsure(self) -> list[StartedStep]:
        """Return the steps that may have run and must not be repeated silently."""
        return [each for each in self.open.values() if not each.repeatable]


def _may_have_acted(result: StepResult) -> bool:
    return result.exit_code not in _NOTHING_CHANGED


def _includes_of(key: str) -> list[str]:
    """Return the keys of the includes around a step, outermost first."""
    parts = key.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts))]


def without_items(key: str) -> str:
    """Return a step's path: its key without loop indexes."""
    return _INDEX.sub("", key)


def _matches(key: str, names: set[str]) -> bool:
    """Return True if the key, or an include around it, is among the names."""
    path = without_items(key)
    return path in names or any(path.startswith(f"{name}/") for name in names)


def replay(entries: Sequence[Mapping[str, Any]], name: str) -> RecordedRun:
    """Return the state that results from a journal's entries. Raises InvalidFile if it is not a playbook journal."""
    try:
        if not entries or entries[0]["step"] != EntryType.RUN_BEGAN or entries[0]["format"] != FORMAT:
            raise KeyError("format")
        state = RecordedRun(dict(entries[0]), last_at=str(entries[-1]["at"]))
        for entry in entries[1:]:
            _apply(state, entry)
    except (KeyError, ValueError, TypeError, AttributeError) as exc:
        raise InvalidFile(f"{name} is not a playbook journal of this kctl version", hint=f"{exc!r}") from exc
    return state


def _apply(state: RecordedRun, entry: Mapping[str, Any]) -> None:
    kind = EntryType(entry["step"])
    if kind is EntryType.STEP_BEGAN:
        step = StartedStep(
            entry["key"], entry["name"], entry["kind"], entry["repeatable"], entry["looks"], entry["handler"],
            entry["at"],
            entry.get("item_digest"), entry.get("included"),
        )  # fmt: skip
        state.started[step.key] = state.open[step.key] = step
    elif kind is EntryType.STEP_ENDED:
        state.open.pop(entry["key"], None)
        state.done[entry["key"]] = EndedStep(from_entry(entry), entry["whole"], entry["fatal"], entry["handler"])
    elif kind is EntryType.RUN_RESUMED:
        state.prepare_resume(entry["redo"], entry["skip"])
    elif kind is EntryType.RUN_ENDED:
        state.ended = dict(entry)


# --- writing ----------------------------------------------------------------------------------------------------------


class RunJournal:
    """The journal of a run. file: the open file; None for a dry run, which writes nothing.

    If a write fails, the run fails; its final steps still run, without entries.
    """

    def __init__(self, file: Journal | None, state: RecordedRun | None = None) -> None:
        self._file = file
        self._write_failed = False
        self.state = state or RecordedRun({})
        self.redactor = Redactor(())

    @property
    def run_id(self) -> str:
        """Return the id of the run; "dry-run" for a dry run."""
        return "dry-run" if self._file is None else self._file.path.stem

    def done(self, key: str) -> EndedStep | None:
        """Return the end of the step, or None."""
        return self.state.done.get(key)

    def included(self, key: str) -> dict[str, Any] | None:
        """Return the record of an included playbook whose step started before."""
        step = self.state.started.get(key)
        return None if step is None or step.included is None else dict(step.included)

    def digest_of(self, item: Any) -> str | None:
        """Return a digest that identifies a loop item; None if it contains a secret that could be guessed from it."""
        if self.redactor.value(item) != item:
            return None
        return hashlib.sha256(json.dumps(item, sort_keys=True).encode()).hexdigest()[:32]

    def check_item(self, key: str, item: Any) -> None:
        """Raise Refused if a loop item differs from the one that was processed before."""
        step, digest = self.state.started.get(key), self.digest_of(item)
        if step is not None and digest is not None and step.item_digest not in {None, digest}:
            raise Refused(
                f"the loop item at {key} has changed",
                hint=f"use --redo {without_items(key)} to start the loop again",
                reason=Reason.CHANGED_MEANWHILE,
            )

    def step_started(self, key: str, **fields: Any) -> None:
        """Record the start of a step. Raises OperationFailed."""
        arguments, _ = self._storable(fields.pop("arguments"))
        self._append(EntryType.STEP_BEGAN, key=key, arguments=arguments, **fields)

    def step_ended(self, key: str, result: StepResult, *, fatal: bool, handler: bool) -> None:
        """Record the end of a step. Raises OperationFailed."""
        value, whole = self._storable(result.value)
        hidden = as_entry(result) | {
            each: None if text is None else self.redactor.text(text)
            for each, text in (("message", result.message), ("hint", result.hint))
        }
        self._append(
            EntryType.STEP_ENDED, key=key, **(hidden | {"value": value}), whole=whole, fatal=fatal, handler=handler
        )

    def ended(self, exit_code: int, message: str | None) -> None:
        """Record the end of the run. Raises OperationFailed."""
        text = None if message is None else self.redactor.text(message)
        self._append(EntryType.RUN_ENDED, exit_code=exit_code, message=text)

    def _storable(self, value: Any) -> tuple[Any, bool]:
        """Return the value to store, and True if it is complete."""
        if self._file is None:
            return None, True
        try:
            text = json.dumps(value)
        except (ValueError, TypeError, RecursionError):
            return None, False
        if len(text) > MAX_VALUE_BYTES:
            return None, False
        hidden = self.redactor.value(value)
        return hidden, hidden == value

    def _append(self, step: EntryType, **fields: Any) -> None:
        if self._file is None or self._write_failed:
            return
        try:
            with deferred_interrupts():  # a partial entry would corrupt the file
                self._file.append(step.value, **fields)
        except OperationFailed:
            self._write_failed = True
            raise


# --- runs -------------------------------------------------------------------------------------------------------------


def folder() -> Path:
    """Return the folder of the journals, which may not exist yet."""
    return paths.state_dir() / "playbooks"


def begin(header: Mapping[str, Any]) -> Journal:
    """Create a journal and lock it. header: fields of RUN_BEGAN. Raises Refused, OperationFailed."""
    try:
        with run_files.one_at_a_time(folder()):
            file = journal.create(folder() / run_files.new_name(folder()))
    except OperationFailed as exc:
        raise Refused(
            exc.message, hint="nothing was changed; set XDG_STATE_HOME to a writable folder", reason=Reason.INVALID_PATH
        ) from exc
    try:
        file.append(EntryType.RUN_BEGAN.value, format=FORMAT, run=file.path.stem, pid=os.getpid(), **header)
    except BaseException:
        file.close()
        raise
    return file


def record_resume(file: Journal, redo: Sequence[str], skip: Sequence[str]) -> None:
    """Record that a process resumes the run. Raises OperationFailed."""
    file.append(EntryType.RUN_RESUMED.value, pid=os.getpid(), redo=list(redo), skip=list(skip))


def runs() -> list[Path]:
    """Return the journals, newest first."""
    return sorted(folder().glob("*.jsonl"), reverse=True)


def path_of(run: str) -> Path:
    """Return the journal of a run. Raises NotFound, also for an invalid name."""
    path = folder() / f"{run}.jsonl"
    if path.name != f"{run}.jsonl" or path.parent != folder() or not path.is_file():
        raise NotFound(f"run {run} does not exist", hint="see `kctl playbook status`")
    return path


def state_of(path: Path) -> RecordedRun:
    """Return the state of a run. Raises InvalidFile, NotFound, OperationFailed."""
    return replay(journal.read(path), path.name)


def read_all() -> tuple[list[tuple[Path, RecordedRun]], list[KctlError]]:
    """Return the readable runs, newest first, and the errors of the others.

    Journals that a crash left empty are skipped.
    """
    readable: list[tuple[Path, RecordedRun]] = []
    failed: list[KctlError] = []
    for path in runs():
        try:
            entries = journal.read(path)
            if entries:
                readable.append((path, replay(entries, path.name)))
        except KctlError as exc:
            failed.append(exc)
    return readable, failed
