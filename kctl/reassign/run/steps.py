"""The steps of a run, the state that a journal describes, and the next step. Pure.

Each step has an entry before it (the intent) and one after it. Steps are idempotent: an intent without its second entry
is repeated after reading the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from kctl.errors import InvalidFile
from kctl.reassign.run.run_plan import RunPlan, plan_of


class RunStep(str, Enum):
    """The `step` of an entry, in the order of a run."""

    BEGIN = "begin"
    THROTTLE_SET = "throttle_set"
    THROTTLE_DONE = "throttle_done"
    BATCH_START = "batch_start"
    BATCH_DONE = "batch_done"
    PAUSE = "pause"
    BATCH_CANCEL = "batch_cancel"
    BATCH_CANCELLED = "batch_cancelled"
    RESUME = "resume"
    CANCEL_START = "cancel_start"
    CANCEL_DONE = "cancel_done"
    THROTTLE_RESTORE = "throttle_restore"
    THROTTLE_RESTORED = "throttle_restored"
    ELECT_START = "elect_start"
    ELECT_DONE = "elect_done"
    END = "end"


class Mode(Enum):
    """The operator's intent; the value is used in messages."""

    RUNNING = "running"
    PAUSED = "paused"
    CANCELLED = "cancelled"


class ReassignmentOutcome(str, Enum):
    """The outcome of a run. The value is the text of `outcome` in JSON and journals."""

    COMPLETED = "completed"
    INCOMPLETE = "incomplete"
    CANCELLED = "cancelled"
    PAUSED = "paused"  # in results only: a paused run has not ended


class ReassignmentPhase(str, Enum):
    """The phase of a run in `status`. The value is the text of `state` in JSON."""

    RUNNING = "running"
    STOPPED = "stopped"
    PAUSING = "pausing"
    PAUSED = "paused"
    CANCELLING = "cancelling"
    COMPLETED = "completed"
    INCOMPLETE = "incomplete"
    CANCELLED = "cancelled"


class ThrottlePhase(Enum):
    """The phase of a throttle. OFF: as before the run. SETTING, RESTORING: started, perhaps not finished."""

    OFF = "off"
    SETTING = "setting"
    ON = "on"
    RESTORING = "restoring"


@dataclass
class RunState:
    """The state of a run.

    rate_bytes: the requested throttle; throttle, throttle_rate: the throttle that was set, perhaps not everywhere
    (kctl.reassign.run.throttle as JSON). batches_done: completed batches; batch_open: the next one has started;
    batch_cancelling: its cancellation has started. throttle_left: throttles not restored because brokers are down;
    left_tried: this run has tried to restore them. taken_back: partitions returned to their original replicas since the
    run was last resumed. outcome: how the run ended, None if it has not.
    """

    plan: RunPlan
    began_at: str
    last_at: str
    pid: int | None
    rate_bytes: int | None
    mode: Mode = Mode.RUNNING
    pause_now: bool = False
    throttle_phase: ThrottlePhase = ThrottlePhase.OFF
    throttle: dict[str, Any] | None = None
    throttle_rate: int | None = None
    throttle_left: dict[str, Any] | None = None
    left_tried: bool = False
    batches_done: int = 0
    batch_open: bool = False
    batch_cancelling: bool = False
    cancelled: bool = False
    taken_back: int = 0
    elected: bool = False
    not_elected: dict[str, str] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    outcome: ReassignmentOutcome | None = None
    end: dict[str, Any] | None = None

    @property
    def batch(self) -> int | None:
        """Return the number of the current or next batch, from 0; None if there is none."""
        return self.batches_done if self.batches_done < len(self.plan.batches) else None

    @property
    def throttled(self) -> bool:
        """Return True if a throttle of this run may be on a live broker."""
        return self.throttle_phase is not ThrottlePhase.OFF

    @property
    def to_restore(self) -> bool:
        """Return True if a throttle must be restored before the end."""
        return self.throttled or (self.throttle_left is not None and not self.left_tried)


def replay(entries: Iterable[Mapping[str, Any]], *, name: str = "the journal") -> RunState:
    """Return the state that a journal describes. name: of its file. Raises InvalidFile."""
    try:
        return _replay(entries)
    except InvalidFile as exc:
        hint = (
            exc.hint or "the journal is damaged: check the moves with `kctl topic reassign status`, then move it away"
        )
        raise InvalidFile(f"{name}: {exc.message}", hint=hint) from None


def _replay(entries: Iterable[Mapping[str, Any]]) -> RunState:
    rest = iter(entries)
    first = next(rest, None)
    if first is None or first.get("step") != RunStep.BEGIN:
        raise InvalidFile("the first entry is not the start of a run")
    plan, at = plan_of(first), str(first.get("at"))
    state = RunState(plan, at, at, _pid(first), plan.throttle_bytes, throttle_left=plan.throttle_left)
    for entry in rest:
        advance(state, entry)
    return state


def advance(state: RunState, entry: Mapping[str, Any]) -> None:
    """Apply the next entry. Raises InvalidFile if the entry cannot follow."""
    try:
        step = RunStep(entry["step"])
        reopens = step is RunStep.RESUME and state.throttle_left is not None
        if step is RunStep.BEGIN or (state.outcome is not None and not reopens):
            raise ValueError("no entry can follow here")
        _ADVANCE[step](state, entry)
        state.last_at = str(entry.get("at"))
    except (KeyError, TypeError, ValueError) as exc:
        raise InvalidFile(f"the entry {entry.get('step')!r} does not fit: {exc}") from None


def next_step(state: RunState) -> RunStep | None:
    """Return the next step; None if there is none because the run ended or is paused."""
    if state.outcome is not None:
        return None
    if state.mode is Mode.CANCELLED:
        if not state.cancelled:
            return RunStep.CANCEL_START
        return RunStep.THROTTLE_RESTORE if state.to_restore else RunStep.END
    if state.batch_cancelling:
        return RunStep.BATCH_CANCEL
    return _paused_step(state) if state.mode is Mode.PAUSED else _running_step(state)


def _paused_step(state: RunState) -> RunStep | None:
    if state.batch_open:
        return RunStep.BATCH_CANCEL if state.pause_now else RunStep.BATCH_START
    return RunStep.THROTTLE_RESTORE if state.throttled else None


def _running_step(state: RunState) -> RunStep:
    if state.throttle_phase is ThrottlePhase.RESTORING:
        return RunStep.THROTTLE_RESTORE
    if state.batch is not None:
        return _throttle_step(state) or RunStep.BATCH_START
    if state.to_restore:
        return RunStep.THROTTLE_RESTORE
    if state.plan.elect and not state.elected:
        return RunStep.ELECT_START
    return RunStep.END


def _throttle_step(state: RunState) -> RunStep | None:
    if state.rate_bytes is None:
        return RunStep.THROTTLE_RESTORE if state.throttled else None
    if state.throttle_phase is ThrottlePhase.ON and state.throttle_rate == state.rate_bytes:
        return None
    return RunStep.THROTTLE_SET


# --- entries ----------------------------------------------------------------------------------------------------------


def _pid(entry: Mapping[str, Any]) -> int | None:
    pid = entry.get("pid")
    return pid if isinstance(pid, int) else None


def _throttle_set(state: RunState, entry: Mapping[str, Any]) -> None:
    if not isinstance(entry["throttle"], dict):
        raise TypeError("its throttle is not an object")
    state.throttle = entry["throttle"]
    state.throttle_rate = int(entry["rate_bytes"])
    state.throttle_phase = ThrottlePhase.SETTING
    _remark(state, entry)


def _throttle_done(state: RunState, _entry: Mapping[str, Any]) -> None:
    state.throttle_phase = ThrottlePhase.ON


def _throttle_restore(state: RunState, entry: Mapping[str, Any]) -> None:
    state.throttle_phase = ThrottlePhase.RESTORING
    _remark(state, entry)


def _throttle_restored(state: RunState, entry: Mapping[str, Any]) -> None:
    state.throttle_phase = ThrottlePhase.OFF
    state.throttle = state.throttle_rate = None
    state.throttle_left, state.left_tried = entry.get("left"), True
    _remark(state, entry)


def _remark(state: RunState, entry: Mapping[str, Any]) -> None:
    """Record remarks once: a repeated step repeats its remarks."""
    state.remarks += [line for line in map(str, entry.get("remarks", ())) if line not in state.remarks]


def _batch_start(state: RunState, entry: Mapping[str, Any]) -> None:
    if entry["batch"] != state.batch:
        raise ValueError(f"batch {entry['batch']!r}, but the next batch is {state.batch}")
    state.batch_open = True


def _batch_done(state: RunState, entry: Mapping[str, Any]) -> None:
    if not state.batch_open or entry["batch"] != state.batch:
        raise ValueError("the batch was not started")
    state.batch_open = False
    state.batches_done += 1


def _batch_cancel(state: RunState, _entry: Mapping[str, Any]) -> None:
    state.batch_cancelling = True


def _batch_cancelled(state: RunState, entry: Mapping[str, Any]) -> None:
    state.batch_cancelling = state.batch_open = False
    state.taken_back += int(entry.get("taken_back", 0))


def _pause(state: RunState, entry: Mapping[str, Any]) -> None:
    state.mode, state.pause_now = Mode.PAUSED, bool(entry.get("now", False))
    state.pid = _pid(entry) or state.pid


def _resume(state: RunState, entry: Mapping[str, Any]) -> None:
    if state.throttle_left is not None and not state.throttled:
        state.throttle_phase = ThrottlePhase.RESTORING
    state.pid = _pid(entry) or state.pid
    if state.mode is Mode.CANCELLED or state.outcome is not None:
        state.outcome = state.end = None
        return
    state.mode, state.taken_back = Mode.RUNNING, 0
    if "rate_bytes" in entry:
        state.rate_bytes = None if entry["rate_bytes"] is None else int(entry["rate_bytes"])


def _cancel_start(state: RunState, entry: Mapping[str, Any]) -> None:
    state.mode, state.pid = Mode.CANCELLED, _pid(entry) or state.pid


def _cancel_done(state: RunState, entry: Mapping[str, Any]) -> None:
    state.cancelled, state.batch_open, state.batch_cancelling = True, False, False
    state.taken_back += int(entry.get("taken_back", 0))


def _elect_start(_state: RunState, _entry: Mapping[str, Any]) -> None:
    pass


def _elect_done(state: RunState, entry: Mapping[str, Any]) -> None:
    state.elected = True
    state.not_elected = {str(tp): str(why) for tp, why in dict(entry.get("failed", {})).items()}


def _end(state: RunState, entry: Mapping[str, Any]) -> None:
    state.outcome, state.end = ReassignmentOutcome(entry["outcome"]), dict(entry)


_ADVANCE: dict[RunStep, Callable[[RunState, Mapping[str, Any]], None]] = {
    RunStep.THROTTLE_SET: _throttle_set,
    RunStep.THROTTLE_DONE: _throttle_done,
    RunStep.BATCH_START: _batch_start,
    RunStep.BATCH_DONE: _batch_done,
    RunStep.PAUSE: _pause,
    RunStep.BATCH_CANCEL: _batch_cancel,
    RunStep.BATCH_CANCELLED: _batch_cancelled,
    RunStep.RESUME: _resume,
    RunStep.CANCEL_START: _cancel_start,
    RunStep.CANCEL_DONE: _cancel_done,
    RunStep.THROTTLE_RESTORE: _throttle_restore,
    RunStep.THROTTLE_RESTORED: _throttle_restored,
    RunStep.ELECT_START: _elect_start,
    RunStep.ELECT_DONE: _elect_done,
    RunStep.END: _end,
}
