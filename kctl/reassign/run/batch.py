"""Move one batch: compare it with the cluster, request the missing moves, wait until the batch is complete.

Requests are derived from the cluster, so a batch that a killed process started is resumed: moves to the planned target
are adopted, completed moves are skipped, and partitions with the original replicas are requested again.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from kctl.errors import KctlError
from kctl.model import TopicPartition
from kctl.reassign.plan_file.read import PlanFile
from kctl.reassign.planner.assignment import Reassignment
from kctl.reassign.run.alter import alter_log_dirs, alter_reassignments
from kctl.reassign.run.checks import check
from kctl.reassign.run.compare import PlanPosition, PlanView, misplaced, position_of, reason
from kctl.reassign.run.observe import PartitionObserver, copies_of
from kctl.reassign.run.progress import ReplicaCopy, RunProgress, StallWatch, eta_ms, move_phase, waits_for
from kctl.reassign.run.run_state import CANCEL_ONLY, Run, transient
from kctl.reassign.run.steps import Mode, RunStep
from kctl.reassign.run.throttle_steps import ThrottleWatch

_POLL_S, _SLOW_POLL_S = 0.5, 5.0
_RETRY_S = 5.0  # between two requests for the same replica
_SETTLE_S = 10.0  # brokers may report a change this much later than the controller
_SHOWN = 3
_UNREACHABLE = frozenset({PlanPosition.CHANGED, PlanPosition.GONE, PlanPosition.ANEW})  # the target is unreachable
_BY_OTHERS = _UNREACHABLE | {PlanPosition.FOREIGN}  # does not resolve by itself


def move_batch(run: Run) -> None:
    """Run the next batch, or resume the open one.

    Raises Stopped if partitions were changed by others (nothing is requested then), if requests were refused, or if
    there is no progress.
    """
    number = run.state.batch
    assert number is not None
    rows = run.state.plan.batch(number)
    mover = _Mover(run, rows)
    todo = mover.compare()
    if not run.state.batch_open:
        if run.state.mode is not Mode.RUNNING:
            return  # a pause was requested in the meantime
        run.write(RunStep.BATCH_START, batch=number)
    run.in_flight = None
    mover.request(todo)
    mover.wait()
    run.in_flight = 0
    run.write(RunStep.BATCH_DONE, batch=number)
    run.count_batch(number)


class _Mover:
    """The mover of one batch. failed, failed_at: partitions that cannot reach their target → reason, position."""

    def __init__(self, run: Run, rows: list[Reassignment]) -> None:
        self.run, self.rows = run, rows
        self.observer = PartitionObserver(run.client)
        self.failed: dict[TopicPartition, str] = {}
        self.copies: list[ReplicaCopy] = []  # of partitions at their target; these are not read again
        self.dirs_requested_at: dict[TopicPartition, float] = {}
        self.failed_at: dict[TopicPartition, PlanPosition] = {}
        self.off_track_since: dict[TopicPartition, float] = {}
        self.reported_down: dict[int, int] = {}

    def read_view(self, rows: Sequence[Reassignment], *, fresh: bool = False) -> PlanView:
        return self.run.retry_transient(lambda: self.observer.observe(rows, fresh=fresh), "reading the partitions")

    # --- checks -------------------------------------------------------------------------------------------------------

    def compare(self) -> list[Reassignment]:
        """Return the partitions to request. Raises Stopped if someone else has changed a partition.

        Wait up to the stall limit for transient problems to resolve, e.g. a broker that restarts.
        """
        since, reported = time.monotonic(), False
        while True:
            view = self.read_view(self.rows, fresh=True)
            positions = {r.tp: position_of(r, view) for r in self.rows}
            self.run.in_flight = sum(1 for each in positions.values() if each is PlanPosition.MOVING)
            problems = self._problems(view, positions)
            if not problems:
                return [r for r in self.rows if positions[r.tp] not in {PlanPosition.REACHED, PlanPosition.MOVING}]
            is_transient = not any(each in _BY_OTHERS for each in positions.values())
            waited = time.monotonic() - since
            if waited > (self.run.limit_s if is_transient else _SETTLE_S):
                is_final = self._offer_cancel(positions.values())
                raise self.run.stopped(
                    f"cannot start the next moves: {some(problems)}",
                    hint=None if is_final else "fix the cause and resume, or cancel and make a new plan",
                    problems=problems,
                )
            if waited > _SETTLE_S and not reported:
                self.run.listener.warn(f"waiting to start the next moves: {some(problems)}")
                reported = True
            self.run.wait(_POLL_S)

    def _offer_cancel(self, positions: Collection[PlanPosition]) -> bool:
        """Return True if the target is unreachable; resuming would fail again, so offer only to cancel."""
        is_final = not _UNREACHABLE.isdisjoint(positions)
        if is_final:
            self.run.ways_out = CANCEL_ONLY
        return is_final

    def _problems(self, view: PlanView, positions: dict[TopicPartition, PlanPosition]) -> list[str]:
        """Return all problems before the batch starts; after that, only changes by others and missing brokers."""
        if not self.run.state.batch_open:
            plan = PlanFile(tuple(self.rows), None, None, (), complete=True, digest="")
            return [str(problem) for problem in check(plan, view.live)]
        problems = [reason(r, view, positions[r.tp]) for r in self.rows if positions[r.tp] in _BY_OTHERS]
        for r in self.rows:
            down = [
                node for node in r.adding if positions[r.tp] is PlanPosition.BEFORE and node not in view.live.brokers
            ]
            problems += [f"{r.tp}: broker {node}, the target of a replica, is down or unknown" for node in down]
        return problems

    # --- requests -----------------------------------------------------------------------------------------------------

    def request(self, todo: Sequence[Reassignment]) -> None:
        """Request log dirs first, so that brokers know them when the replicas arrive; then the replicas."""
        since = time.monotonic()
        rest = list(todo)
        while rest:
            view = self.read_view(rest)
            positions = {r.tp: position_of(r, view) for r in rest}
            rest = [
                r for r in rest if positions[r.tp] in {PlanPosition.BEFORE, PlanPosition.ORDER, PlanPosition.LOG_DIRS}
            ]
            errors = self._request_log_dirs(rest, view)
            errors |= self._request_moves(
                [r for r in rest if positions[r.tp] is not PlanPosition.LOG_DIRS and r.tp not in errors]
            )
            late = time.monotonic() - since > self.run.limit_s
            for tp, error in errors.items():
                if late or not _is_retriable(error):
                    self.failed[tp] = error.message
            rest = [r for r in rest if r.tp in errors and r.tp not in self.failed]
            if rest:
                self.run.wait(1.0)
        if self.failed:
            self.run.listener.warn(
                f"{self._failure_count()}; waiting for the other partitions: {some(list(self.failed.values()))}"
            )

    def _request_moves(self, rows: Sequence[Reassignment]) -> dict[TopicPartition, KctlError]:
        targets = {r.tp: r.after for r in rows}
        if not targets:
            return {}
        return self.run.retry_transient(lambda: alter_reassignments(self.run.client, targets), "requesting moves")

    def _request_log_dirs(self, rows: Iterable[Reassignment], view: PlanView) -> dict[TopicPartition, KctlError]:
        """Request log dirs that are not as planned, unless a copy to them is in progress."""
        requests: dict[int, dict[str, list[TopicPartition]]] = {}
        now = time.monotonic()
        for r in rows:
            for node, path in misplaced(r, view.places):
                place = view.places.get((node, r.tp))
                if place is None or place.future_path != path:
                    requests.setdefault(node, {}).setdefault(path, []).append(r.tp)
                    self.dirs_requested_at[r.tp] = now
        errors = alter_log_dirs(self.run.client, requests) if requests else {}
        return {tp: error for (_, tp), error in errors.items()}

    def _failure_count(self) -> str:
        total = len(self.rows)
        return f"{len(self.failed):,} of {total:,} partition{'' if total == 1 else 's'} failed"

    # --- progress -----------------------------------------------------------------------------------------------------

    def wait(self) -> None:
        """Wait until each partition is at its target. Raises Stopped if one cannot reach it, or if progress stalls."""
        watch = StallWatch(self.run.state.plan.stall_after_ms)
        throttle_watch = ThrottleWatch(self.run, self.rows)
        open_rows = [r for r in self.rows if r.tp not in self.failed]
        while open_rows:
            throttle_watch.check()
            started = time.monotonic()
            view = self.read_view(open_rows)
            now = time.monotonic()
            if now - started > self.run.limit_s / 2:
                watch.reset()  # the cluster was unreachable: measure progress from now
            open_rows = self._open_rows(open_rows, view, now)
            copies = copies_of(open_rows, view, ())
            self.run.in_flight = len(open_rows)
            self._report(open_rows, copies, view, now)
            watch.add(now, copies, waiting=len(open_rows))
            if open_rows and watch.stalled:
                raise self._stalled(watch, copies, open_rows, view)
            if open_rows:
                self.run.wait(min(max(_POLL_S, 4 * (now - started)), _SLOW_POLL_S))
        self.run.in_flight = 0
        if self.failed:
            reasons = list(self.failed.values())
            self._offer_cancel(self.failed_at.values())
            raise self.run.stopped(f"{self._failure_count()}: {some(reasons)}", problems=reasons)

    def _open_rows(self, rows: list[Reassignment], view: PlanView, now: float) -> list[Reassignment]:
        """Return the rows that are still in progress."""
        open_rows = []
        for r in rows:
            position = position_of(r, view)
            if position is PlanPosition.REACHED:
                self.copies += copies_of([r], view, {r.tp})
                continue
            if position is PlanPosition.LOG_DIRS and now - self.dirs_requested_at.get(r.tp, -_RETRY_S) >= _RETRY_S:
                # Not in the requested log dir: the broker restarted and lost the request, or has received none yet.
                for tp, error in self._request_log_dirs([r], view).items():
                    if not _is_retriable(error):
                        self.failed[tp] = error.message
            if position in {PlanPosition.MOVING, PlanPosition.LOG_DIRS}:
                self.off_track_since.pop(r.tp, None)
            elif now - self.off_track_since.setdefault(r.tp, now) > _SETTLE_S:
                self.failed[r.tp], self.failed_at[r.tp] = reason(r, view, position), position
            if r.tp not in self.failed:
                open_rows.append(r)
        return open_rows

    def _report(self, rows: list[Reassignment], copies: list[ReplicaCopy], view: PlanView, now: float) -> None:
        run = self.run
        all_copies = [*self.copies, *copies]
        done_bytes = run.done_bytes + sum(min(c.copied_bytes, c.size_bytes or 0) for c in all_copies)
        planned = run.state.plan.bytes_of(run.state.batches_done)
        total = run.total_bytes - planned + sum(c.size_bytes or 0 for c in all_copies)
        rate = run.meter.add(now, done_bytes)
        run.listener.progress(
            RunProgress(
                phase=move_phase(rows, copies),
                batch=run.state.batches_done + 1,
                batches=len(run.state.plan.batches),
                partitions_done=run.done_partitions + len(self.rows) - len(rows) - len(self.failed),
                partition_count=run.total_partitions,
                done_bytes=done_bytes,
                total_bytes=max(total, done_bytes),
                rate_bytes=rate,
                eta_ms=eta_ms(max(0, total - done_bytes), rate),
            )
        )
        down = missing(rows, view.live.brokers.keys())
        for node in down.keys() - self.reported_down.keys():
            run.listener.warn(f"{waits_for({node: down[node]})}; the moves continue when the broker is back")
        for node in self.reported_down.keys() - down.keys():
            run.listener.note(f"broker {node} is back")
        self.reported_down = down

    def _stalled(
        self, watch: StallWatch, copies: list[ReplicaCopy], rows: list[Reassignment], view: PlanView
    ) -> KctlError:
        leaderless = [r.tp for r in rows if (p := view.live.partition(r.tp)) is not None and p.offline]
        state = self.run.state
        stall = watch.explain(
            copies,
            down=missing(rows, view.live.brokers.keys()),
            behind=_behind(rows, view),
            leaderless=leaderless,
            silent=_silent(rows, view),
            throttle_bytes=state.throttle_rate if state.throttled else None,
        )
        hint = {
            "broker_down": "start the broker",
            "no_leader": "start the brokers of its replicas",
            "throttle": "raise the rate with `kctl topic reassign resume --throttle RATE`",
            "unknown": None,
        }[stall.cause.value]
        rates = {"copy_rate_bytes": round(stall.copy_rate), "growth_rate_bytes": round(stall.growth_rate)}
        return self.run.stopped(stall.message, hint=hint, cause=stall.cause.value, **rates)


def missing(rows: Iterable[Reassignment], up: Collection[int]) -> dict[int, int]:
    """Return brokers that are down → number of partitions that wait for them to be in sync."""
    return _count(node for r in rows for node in r.after if node not in up)


def _silent(rows: Iterable[Reassignment], view: PlanView) -> set[int]:
    """Return leaders of the partitions that did not report their log dirs, although the cluster lists them as up."""
    leaders = {partition.leader for r in rows if (partition := view.live.partition(r.tp)) is not None}
    return {node for node in leaders if isinstance(view.live.log_dirs.get(node), KctlError)}


def _behind(rows: Iterable[Reassignment], view: PlanView) -> dict[int, int]:
    """Return brokers that are up and not in sync → number of partitions that wait for them."""
    positions = ((r, view.live.partition(r.tp)) for r in rows)
    return _count(
        node
        for r, partition in positions
        for node in r.after
        if node in view.live.brokers and (partition is None or node not in partition.isr)
    )


def _count(nodes: Iterable[int]) -> dict[int, int]:
    return dict(sorted(Counter(nodes).items()))


def _is_retriable(error: KctlError) -> bool:
    """Return True if a retry may succeed: Kafka did not reject the request."""
    return transient(error) or "kafka_error_code" not in error.details


def some(lines: Sequence[str]) -> str:
    """Return the first reasons, and the number of remaining ones."""
    more = f"; and {len(lines) - _SHOWN:,} more" if len(lines) > _SHOWN else ""
    return "; ".join(lines[:_SHOWN]) + more
