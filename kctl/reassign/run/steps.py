"""The steps of a run, what a journal of them adds up to, and what has to be done next. Pure.

Every act has an entry before it (the intent) and one after it. Acts can be done again without harm, so an intent
without its second entry is simply carried out once more, after a look at the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from kctl.errors import InvalidFile
from kctl.reassign.run.run_plan import RunPlan, plan_of


class Step(str, Enum):
    """The `step` of every entry, in the order in which a run meets them."""

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
    """What the operator wants: the value is how people say it."""

    RUNNING = "running"
    PAUSED = "paused"
    CANCELLED = "cancelled"


class ThrottlePhase(Enum):
    """off: as it was before the run. setting, restoring: begun, and perhaps not finished."""

    OFF = "off"
    SETTING = "setting"
    ON = "on"
    RESTORING = "restoring"


@dataclass
class RunState:
    """Where a run is.

    rate_bytes: the throttle that is wanted; throttle and throttle_rate: what was set or begun
    (kctl.reassign.run.throttle as JSON). batches_done counts finished batches; batch_open: the next one was begun.
    batch_cancelling: taking it back was begun. throttle_left: what could not be restored, because brokers are down;
    left_tried: it was tried in this run. taken_back: partitions that were, since it ran last. outcome: how the run
    ended, None while it has not.
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
    outcome: str | None = None
    end: dict[str, Any] | None = None

    @property
    def batch(self) -> int | None:
        """The number of the batch that is in work or comes next, from 0; None when there is none."""
        return self.batches_done if self.batches_done < len(self.plan.batches) else None

    @property
    def throttled(self) -> bool:
        """May a throttle of this run be on some broker that is up?"""
        return self.throttle_phase is not ThrottlePhase.OFF

    @property
    def to_restore(self) -> bool:
        """Is there a throttle that must be taken back before the end?"""
        return self.throttled or (self.throttle_left is not None and not self.left_tried)


def replay(entries: Iterable[Mapping[str, Any]], *, name: str = "the journal") -> RunState:
    """What a journal adds up to. name: of its file. Raises InvalidFile for one that no run has written."""
    try:
        return _replay(entries)
    except InvalidFile as exc:
        hint = exc.hint or "it is damaged; move the file away to begin anew, after a look at what moves in the cluster"
        raise InvalidFile(f"{name}: {exc.message}", hint=hint) from None


def _replay(entries: Iterable[Mapping[str, Any]]) -> RunState:
    rest = iter(entries)
    first = next(rest, None)
    if first is None or first.get("step") != Step.BEGIN:
        raise InvalidFile("it does not begin with what the run was to do")
    plan, at = plan_of(first), str(first.get("at"))
    state = RunState(plan, at, at, _pid(first), plan.throttle_bytes, throttle_left=plan.throttle_left)
    for entry in rest:
        advance(state, entry)
    return state


def advance(state: RunState, entry: Mapping[str, Any]) -> None:
    """Take one more entry into account. Raises InvalidFile when it cannot follow."""
    try:
        step = Step(entry["step"])
        reopens = step is Step.RESUME and state.throttle_left is not None
        if step is Step.BEGIN or (state.outcome is not None and not reopens):
            raise ValueError("it stands where nothing can follow")
        _ADVANCE[step](state, entry)
        state.last_at = str(entry.get("at"))
    except (KeyError, TypeError, ValueError) as exc:
        raise InvalidFile(f"the entry {entry.get('step')!r} does not fit: {exc}") from None


def next_step(state: RunState) -> Step | None:
    """The intent that comes next; None when there is nothing to do (ended, or paused)."""
    if state.outcome is not None:
        return None
    if state.mode is Mode.CANCELLED:
        if not state.cancelled:
            return Step.CANCEL_START
        return Step.THROTTLE_RESTORE if state.to_restore else Step.END
    if state.batch_cancelling:
        return Step.BATCH_CANCEL
    return _paused_step(state) if state.mode is Mode.PAUSED else _running_step(state)


def _paused_step(state: RunState) -> Step | None:
    if state.batch_open:
        return Step.BATCH_CANCEL if state.pause_now else Step.BATCH_START
    return Step.THROTTLE_RESTORE if state.throttled else None


def _running_step(state: RunState) -> Step:
    if state.throttle_phase is ThrottlePhase.RESTORING:
        return Step.THROTTLE_RESTORE
    if state.batch is not None:
        return _throttle_step(state) or Step.BATCH_START
    if state.to_restore:
        return Step.THROTTLE_RESTORE
    if state.plan.elect and not state.elected:
        return Step.ELECT_START
    return Step.END


def _throttle_step(state: RunState) -> Step | None:
    if state.rate_bytes is None:
        return Step.THROTTLE_RESTORE if state.throttled else None
    if state.throttle_phase is ThrottlePhase.ON and state.throttle_rate == state.rate_bytes:
        return None
    return Step.THROTTLE_SET


# --- entries ----------------------------------------------------------------------------------------------------------


def _pid(entry: Mapping[str, Any]) -> int | None:
    pid = entry.get("pid")
    return pid if isinstance(pid, int) else None


def _throttle_set(state: RunState, entry: Mapping[str, Any]) -> None:
    if not isinstance(entry["throttle"], dict):
        raise TypeError("its throttle is no object")
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
    """An act that is done again remarks the same once more."""
    state.remarks += [line for line in map(str, entry.get("remarks", ())) if line not in state.remarks]


def _batch_start(state: RunState, entry: Mapping[str, Any]) -> None:
    if entry["batch"] != state.batch:
        raise ValueError(f"batch {entry['batch']!r} where {state.batch} comes next")
    state.batch_open = True


def _batch_done(state: RunState, entry: Mapping[str, Any]) -> None:
    if not state.batch_open or entry["batch"] != state.batch:
        raise ValueError("the batch was not begun")
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
    state.outcome, state.end = str(entry["outcome"]), dict(entry)


_ADVANCE: dict[Step, Callable[[RunState, Mapping[str, Any]], None]] = {
    Step.THROTTLE_SET: _throttle_set,
    Step.THROTTLE_DONE: _throttle_done,
    Step.BATCH_START: _batch_start,
    Step.BATCH_DONE: _batch_done,
    Step.PAUSE: _pause,
    Step.BATCH_CANCEL: _batch_cancel,
    Step.BATCH_CANCELLED: _batch_cancelled,
    Step.RESUME: _resume,
    Step.CANCEL_START: _cancel_start,
    Step.CANCEL_DONE: _cancel_done,
    Step.THROTTLE_RESTORE: _throttle_restore,
    Step.THROTTLE_RESTORED: _throttle_restored,
    Step.ELECT_START: _elect_start,
    Step.ELECT_DONE: _elect_done,
    Step.END: _end,
}
