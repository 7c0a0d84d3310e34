"""The throttle of a run: set, looked at while it is on, and put back as it was."""

from __future__ import annotations

import time
from collections.abc import Iterable

from kctl.configs.dynamic import Resource, try_read_dynamic
from kctl.errors import KctlError, OperationFailed, TimedOut
from kctl.reassign.planner.assignment import Reassignment
from kctl.reassign.run import throttle
from kctl.reassign.run.run_state import Run
from kctl.reassign.run.steps import RunState, Step, ThrottlePhase
from kctl.reassign.run.throttle import NAMES, Throttle
from kctl.reassign.run.throttle_changes import Renewal, renew, tampering

_LOOK_EVERY_S = 10.0


def set_throttle(run: Run) -> None:
    """Set the rate that is wanted on all that is still to be moved, or change it. What others have set stays."""
    state, rate = run.state, run.state.rate_bytes
    assert rate is not None
    if state.throttle is None:
        new = _new_throttle(run, rate)
        renewal = Renewal(new, new.set)
    else:
        there = Throttle.from_json(state.throttle)
        current = run.retry_transient(lambda: throttle.read_set(run.client, there), "reading throttles")
        renewal = renew(there, rate, current)
    for line in renewal.remarks:
        run.listener.warn(line)
    run.write(Step.THROTTLE_SET, rate_bytes=rate, throttle=renewal.throttle.to_json(), remarks=renewal.remarks)
    run.retry_transient(lambda: throttle.set_throttle(run.client, renewal.writes), "setting throttles")
    run.tampering.clear()
    run.write(Step.THROTTLE_DONE)


def _new_throttle(run: Run, rate: int) -> Throttle:
    """For the batches that are not done. What kctl itself has left on a broker is not what was there before."""
    plan = run.state.plan
    rest = [r for number in range(run.state.batches_done, len(plan.batches)) for r in plan.batch(number)]
    current = run.retry_transient(lambda: throttle.read_throttles(run.client, rest), "reading throttles")
    for resource, before in _left(run.state).before.items():
        if resource in current:
            current[resource] = {**current[resource], **before}
    return throttle.plan_throttle(rest, rate, current)


def _left(state: RunState) -> Throttle:
    return Throttle() if state.throttle_left is None else Throttle.from_json(state.throttle_left)


# --- while it is on -------------------------------------------------------------------------------------------------


class ThrottleWatch:
    """A periodic check whether others have changed the throttle while moves run."""

    def __init__(self, run: Run, rows: Iterable[Reassignment]) -> None:
        self._run = run
        self._resources = set(throttle.throttled_resources(rows))
        self._next_at = 0.0

    def look(self) -> None:
        """Report what changed since the last look; harmless when brokers do not answer."""
        state, began = self._run.state, time.monotonic()
        if state.throttle_phase is not ThrottlePhase.ON or state.throttle is None or began < self._next_at:
            return
        _report(self._run, Throttle.from_json(state.throttle), self._resources)
        took_s = time.monotonic() - began
        self._next_at = began + max(_LOOK_EVERY_S, 20 * took_s)


def _report(run: Run, whole: Throttle, resources: Iterable[Resource]) -> None:
    """Warn about changes by others since the last check."""
    asked = [resource for resource in resources if resource in whole.set]
    try:
        answers = try_read_dynamic(run.client, asked, NAMES)
    except KctlError:
        return
    current = {resource: values for resource, values in answers.items() if not isinstance(values, KctlError)}
    found = tampering(whole, current)
    for setting, seen in found.items():
        if run.tampering.get(setting) != seen:
            run.listener.warn(seen.line)
    run.tampering.update(found)


# --- putting it back ------------------------------------------------------------------------------------------------


def restore_throttle(run: Run) -> None:
    """Restore throttles. A broker that is down keeps the throttle; that is reported and recorded."""
    own = Throttle() if run.state.throttle is None else Throttle.from_json(run.state.throttle)
    whole = throttle.joined(_left(run.state), own)
    if run.state.throttle_phase is not ThrottlePhase.RESTORING:
        if run.state.throttle_phase is ThrottlePhase.ON:
            _report(run, own, own.set)
        # A value that someone else set in place of kctl's is reported when it is read again below.
        gone = [seen.line for seen in run.tampering.values() if seen.removed]
        run.write(Step.THROTTLE_RESTORE, remarks=gone)
    remarks, down = run.retry_transient(lambda: _restored(run, whole), "restoring throttles")
    for line in remarks:
        run.listener.warn(line)
    left = throttle.without(whole, whole.set.keys() - down).to_json() if down else None
    run.write(Step.THROTTLE_RESTORED, remarks=remarks, left=left)


def _restored(run: Run, whole: Throttle) -> tuple[list[str], set[Resource]]:
    """Return the remarks, and the brokers that are down. Raises TimedOut for others that could not be restored."""
    try:
        return throttle.restore_throttle(run.client, whole), set()
    except OperationFailed as exc:
        down = _down(run, exc)
        if not down:  # the broker may be going down: its session has not expired yet
            raise TimedOut(exc.message, hint=exc.hint, details=exc.details) from exc
    remarks = throttle.restore_throttle(run.client, throttle.without(whole, down))
    names = ", ".join(map(str, sorted(down)))
    remarks.append(f"{names} is down and keeps its throttle; restore it later with `kctl topic reassign resume`")
    return remarks, down


def _down(run: Run, exc: OperationFailed) -> set[Resource]:
    """Return the brokers that kept their throttles because they are down; empty if something else failed."""
    rows = exc.details.get("resources")
    failed = {(row["kind"], row["name"]) for row in rows} if isinstance(rows, list) else set()
    up = {str(node) for node in run.client.metadata(()).brokers}
    if not failed or any(kind != "broker" or name in up for kind, name in failed):
        return set()
    return {Resource("broker", name) for _, name in failed}
