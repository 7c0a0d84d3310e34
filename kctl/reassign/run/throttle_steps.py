"""The throttle of a run: set, checked while it is on, and restored."""

from __future__ import annotations

import time
from collections.abc import Iterable

from kctl.configs.dynamic import Resource, try_read_dynamic
from kctl.errors import KctlError, OperationFailed, TimedOut
from kctl.reassign.planner.assignment import Reassignment
from kctl.reassign.run import throttle
from kctl.reassign.run.run_state import Run
from kctl.reassign.run.steps import RunState, RunStep, ThrottlePhase
from kctl.reassign.run.throttle import NAMES, Throttle
from kctl.reassign.run.throttle_changes import Renewal, renew, tampering

_CHECK_EVERY_S = 10.0


def set_throttle(run: Run) -> None:
    """Set the requested rate for all remaining batches, or change it. Settings by others stay."""
    state, rate = run.state, run.state.rate_bytes
    assert rate is not None
    if state.throttle is None:
        new = _new_throttle(run, rate)
        renewal = Renewal(new, new.set)
    else:
        active = Throttle.from_json(state.throttle)
        current = run.retry_transient(lambda: throttle.read_current(run.client, active), "reading throttles")
        renewal = renew(active, rate, current)
    for line in renewal.remarks:
        run.listener.warn(line)
    run.write(RunStep.THROTTLE_SET, rate_bytes=rate, throttle=renewal.throttle.to_json(), remarks=renewal.remarks)
    run.retry_transient(lambda: throttle.set_throttle(run.client, renewal.writes), "setting throttles")
    run.tampering.clear()
    run.write(RunStep.THROTTLE_DONE)


def _new_throttle(run: Run, rate: int) -> Throttle:
    """Return the throttle of the remaining batches.

    If a broker still has a throttle of this run, the values before that throttle are recorded as the ones to restore.
    """
    plan = run.state.plan
    rest = [r for number in range(run.state.batches_done, len(plan.batches)) for r in plan.batch(number)]
    current = run.retry_transient(lambda: throttle.read_throttles(run.client, rest), "reading throttles")
    for resource, before in _throttle_left(run.state).before.items():
        if resource in current:
            current[resource] = {**current[resource], **before}
    return throttle.plan_throttle(rest, rate, current)


def _throttle_left(state: RunState) -> Throttle:
    return Throttle() if state.throttle_left is None else Throttle.from_json(state.throttle_left)


# --- checking it ----------------------------------------------------------------------------------------------------


class ThrottleWatch:
    """A periodic check for changes that others make to the throttle while moves run."""

    def __init__(self, run: Run, rows: Iterable[Reassignment]) -> None:
        self._run = run
        self._resources = set(throttle.throttled_resources(rows))
        self._next_at = 0.0

    def check(self) -> None:
        """Report changes since the last check; ignore brokers that do not respond."""
        state, started = self._run.state, time.monotonic()
        if state.throttle_phase is not ThrottlePhase.ON or state.throttle is None or started < self._next_at:
            return
        _report(self._run, Throttle.from_json(state.throttle), self._resources)
        duration_s = time.monotonic() - started
        self._next_at = started + max(_CHECK_EVERY_S, 20 * duration_s)


def _report(run: Run, throttle_set: Throttle, resources: Iterable[Resource]) -> None:
    """Warn about changes by others since the last check."""
    checked_resources = [resource for resource in resources if resource in throttle_set.set]
    try:
        responses = try_read_dynamic(run.client, checked_resources, NAMES)
    except KctlError:
        return
    current = {resource: values for resource, values in responses.items() if not isinstance(values, KctlError)}
    changes = tampering(throttle_set, current)
    for setting, change in changes.items():
        if run.tampering.get(setting) != change:
            run.listener.warn(change.line)
    run.tampering.update(changes)


# --- restoring it ----------------------------------------------------------------------------------------------------


def restore_throttle(run: Run) -> None:
    """Restore throttles. Report and record each broker that is down and keeps its throttle."""
    current = Throttle() if run.state.throttle is None else Throttle.from_json(run.state.throttle)
    throttle_set = throttle.merge_throttles(_throttle_left(run.state), current)
    if run.state.throttle_phase is not ThrottlePhase.RESTORING:
        if run.state.throttle_phase is ThrottlePhase.ON:
            _report(run, current, current.set)
        # If someone else replaced a value of kctl, it is reported below, when the settings are read again.
        removed = [change.line for change in run.tampering.values() if change.removed]
        run.write(RunStep.THROTTLE_RESTORE, remarks=removed)
    remarks, down = run.retry_transient(lambda: _restore_reachable(run, throttle_set), "restoring throttles")
    for line in remarks:
        run.listener.warn(line)
    remaining = throttle.without(throttle_set, throttle_set.set.keys() - down).to_json() if down else None
    run.write(RunStep.THROTTLE_RESTORED, remarks=remarks, left=remaining)


def _restore_reachable(run: Run, throttle_set: Throttle) -> tuple[list[str], set[Resource]]:
    """Restore; return the remarks, and the brokers that are down. Raises TimedOut if other resources failed."""
    try:
        return throttle.restore_throttle(run.client, throttle_set), set()
    except OperationFailed as exc:
        down = _down(run, exc)
        if not down:  # the broker may be going down: its session has not expired yet
            raise TimedOut(exc.message, hint=exc.hint, details=exc.details) from exc
    remarks = throttle.restore_throttle(run.client, throttle.without(throttle_set, down))
    names = ", ".join(map(str, sorted(down)))
    one = len(down) == 1
    status = "is down and keeps its throttle" if one else "are down and keep their throttles"
    remarks.append(f"{names} {status}; restore {'it' if one else 'them'} later with `kctl topic reassign resume`")
    return remarks, down


def _down(run: Run, exc: OperationFailed) -> set[Resource]:
    """Return the brokers that kept their throttles because they are down; empty if something else failed."""
    rows = exc.details.get("resources")
    failed = {(row["kind"], row["name"]) for row in rows} if isinstance(rows, list) else set()
    up = {str(node) for node in run.client.metadata(()).brokers}
    if not failed or any(kind != "broker" or name in up for kind, name in failed):
        return set()
    return {Resource("broker", name) for _, name in failed}
