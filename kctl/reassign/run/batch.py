"""Moving one batch: compare, ask for what is missing, wait until all of it is there.

What is asked for is found by looking at the cluster, so a batch that was begun by a process that is gone is taken up
where it is: what moves to our target is adopted, what is there is done, what is as before is asked for again.
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
from kctl.reassign.run.compare import Standing, View, misplaced, reason, standing
from kctl.reassign.run.observe import Observer, copies_of
from kctl.reassign.run.progress import Copy, Progress, StallWatch, eta_ms, waits_for
from kctl.reassign.run.run_state import CANCEL_ONLY, Run, transient
from kctl.reassign.run.steps import Mode, Step
from kctl.reassign.run.throttle_steps import ThrottleWatch

_POLL_S, _SLOW_POLL_S = 0.5, 5.0
_AGAIN_S = 5.0  # between two requests for the same thing
_SETTLE_S = 10.0  # brokers may tell of a change this much later than the controller
_SHOWN = 3
_LOST = frozenset({Standing.CHANGED, Standing.GONE, Standing.ANEW})  # the plan can no longer be carried out
_BY_OTHERS = _LOST | {Standing.FOREIGN}  # nothing that passes


def move_batch(run: Run) -> None:
    """Carry out the next batch, or go on with the one that is open.

    Raises Stopped: something else has changed its partitions (nothing is asked for then), some were refused, or
    nothing gets nearer to its end.
    """
    number = run.state.batch
    assert number is not None
    rows = run.state.plan.batch(number)
    mover = _Mover(run, rows)
    todo = mover.compare()
    if not run.state.batch_open:
        if run.state.mode is not Mode.RUNNING:
            return  # asked to pause while it looked
        run.write(Step.BATCH_START, batch=number)
    run.in_flight = None
    mover.ask(todo)
    mover.wait()
    run.in_flight = 0
    run.write(Step.BATCH_DONE, batch=number)
    run.count_batch(number)


class _Mover:
    """One batch in work. failed: partitions that will not get there → why; lost: those of them that are elsewhere."""

    def __init__(self, run: Run, rows: list[Reassignment]) -> None:
        self.run, self.rows = run, rows
        self.observer = Observer(run.client)
        self.failed: dict[TopicPartition, str] = {}
        self.copies: list[Copy] = []  # of partitions that are there, so that they are not asked about again
        self.asked_dirs_at: dict[TopicPartition, float] = {}
        self.lost: dict[TopicPartition, Standing] = {}
        self.lost_since: dict[TopicPartition, float] = {}
        self.reported_down: dict[int, int] = {}

    def look(self, rows: Sequence[Reassignment], *, fresh: bool = False) -> View:
        return self.run.retry_transient(lambda: self.observer.look(rows, fresh=fresh), "looking at the partitions")

    # --- before -------------------------------------------------------------------------------------------------------

    def compare(self) -> list[Reassignment]:
        """What has to be asked for. Raises Stopped when a partition is not as the plan or this run left it.

        What may pass by itself (a broker that is restarted, say) is waited for as long as a standstill may last.
        """
        since, told = time.monotonic(), False
        while True:
            view = self.look(self.rows, fresh=True)
            found = {r.tp: standing(r, view) for r in self.rows}
            self.run.in_flight = sum(1 for each in found.values() if each is Standing.MOVING)
            problems = self._problems(view, found)
            if not problems:
                return [r for r in self.rows if found[r.tp] not in {Standing.REACHED, Standing.MOVING}]
            passing = not any(each in _BY_OTHERS for each in found.values())
            waited = time.monotonic() - since
            if waited > (self.run.limit_s if passing else _SETTLE_S):
                lost = self._lose(found.values())
                raise self.run.stopped(
                    f"the next moves cannot be made as the cluster is: {some(problems)}",
                    hint=None if lost else "put it right and resume, or cancel and make a new plan",
                    problems=problems,
                )
            if waited > _SETTLE_S and not told:
                self.run.listener.warn(f"waiting before the next moves: {some(problems)}")
                told = True
            self.run.wait(_POLL_S)

    def _lose(self, standings: Collection[Standing]) -> bool:
        """Can the plan no longer be carried out? Going on would stop at the same again, so that is not offered then."""
        lost = not _LOST.isdisjoint(standings)
        if lost:
            self.run.ways_out = CANCEL_ONLY
        return lost

    def _problems(self, view: View, found: dict[TopicPartition, Standing]) -> list[str]:
        """What speaks against this batch: everything, before it is begun; later only what others have done to it."""
        if not self.run.state.batch_open:
            plan = PlanFile(tuple(self.rows), None, None, (), complete=True, digest="")
            return [str(problem) for problem in check(plan, view.live)]
        problems = [reason(r, view, found[r.tp]) for r in self.rows if found[r.tp] in _BY_OTHERS]
        for r in self.rows:
            down = [node for node in r.adding if found[r.tp] is Standing.BEFORE and node not in view.live.brokers]
            problems += [f"{r.tp}: broker {node}, which is to get a replica, is down or not there" for node in down]
        return problems

    # --- asking -------------------------------------------------------------------------------------------------------

    def ask(self, todo: Sequence[Reassignment]) -> None:
        """Log dirs first, so that brokers know them when the replicas come; then the replicas."""
        since = time.monotonic()
        rest = list(todo)
        while rest:
            view = self.look(rest)
            found = {r.tp: standing(r, view) for r in rest}
            rest = [r for r in rest if found[r.tp] in {Standing.BEFORE, Standing.ORDER, Standing.LOG_DIRS}]
            errors = self._ask_log_dirs(rest, view)
            errors |= self._ask_moves([r for r in rest if found[r.tp] is not Standing.LOG_DIRS and r.tp not in errors])
            late = time.monotonic() - since > self.run.limit_s
            for tp, error in errors.items():
                if late or not _again(error):
                    self.failed[tp] = error.message
            rest = [r for r in rest if r.tp in errors and r.tp not in self.failed]
            if rest:
                self.run.wait(1.0)
        if self.failed:
            self.run.listener.warn(f"{self._refused()}; waiting for the others: {some(list(self.failed.values()))}")

    def _ask_moves(self, rows: Sequence[Reassignment]) -> dict[TopicPartition, KctlError]:
        targets = {r.tp: r.after for r in rows}
        if not targets:
            return {}
        return self.run.retry_transient(lambda: alter_reassignments(self.run.client, targets), "asking for moves")

    def _ask_log_dirs(self, rows: Iterable[Reassignment], view: View) -> dict[TopicPartition, KctlError]:
        """Ask for log dirs that are not as planned, unless their replicas are on the way there."""
        wanted: dict[int, dict[str, list[TopicPartition]]] = {}
        now = time.monotonic()
        for r in rows:
            for node, path in misplaced(r, view.places):
                place = view.places.get((node, r.tp))
                if place is None or place.future_path != path:
                    wanted.setdefault(node, {}).setdefault(path, []).append(r.tp)
                    self.asked_dirs_at[r.tp] = now
        errors = alter_log_dirs(self.run.client, wanted) if wanted else {}
        return {tp: error for (_, tp), error in errors.items()}

    def _refused(self) -> str:
        total = len(self.rows)
        return f"{len(self.failed):,} of {total:,} partition{'' if total == 1 else 's'} did not get through"

    # --- waiting ------------------------------------------------------------------------------------------------------

    def wait(self) -> None:
        """Until every partition is there. Raises Stopped when some never will be, or when nothing gets on."""
        watch = StallWatch(self.run.state.plan.stall_after_ms)
        throttle_watch = ThrottleWatch(self.run, self.rows)
        open_rows = [r for r in self.rows if r.tp not in self.failed]
        while open_rows:
            throttle_watch.look()
            began = time.monotonic()
            view = self.look(open_rows)
            now = time.monotonic()
            if now - began > self.run.limit_s / 2:
                watch.forget()  # the cluster was away: what follows is compared with this
            open_rows = self._open_rows(open_rows, view, now)
            copies = copies_of(open_rows, view, ())
            self.run.in_flight = len(open_rows)
            self._report(open_rows, copies, view, now)
            watch.add(now, copies, waiting=len(open_rows))
            if open_rows and watch.stalled:
                raise self._stalled(watch, copies, open_rows, view)
            if open_rows:
                self.run.wait(min(max(_POLL_S, 4 * (now - began)), _SLOW_POLL_S))
        self.run.in_flight = 0
        if self.failed:
            reasons = list(self.failed.values())
            self._lose(self.lost.values())
            raise self.run.stopped(f"{self._refused()}: {some(reasons)}", problems=reasons)

    def _open_rows(self, rows: list[Reassignment], view: View, now: float) -> list[Reassignment]:
        """The rows that are still to be waited for."""
        left = []
        for r in rows:
            found = standing(r, view)
            if found is Standing.REACHED:
                self.copies += copies_of([r], view, {r.tp})
                continue
            if found is Standing.LOG_DIRS and now - self.asked_dirs_at.get(r.tp, -_AGAIN_S) >= _AGAIN_S:
                # Not where it was asked to: the broker forgot it by a restart, or was not asked yet.
                for tp, error in self._ask_log_dirs([r], view).items():
                    if not _again(error):
                        self.failed[tp] = error.message
            if found in {Standing.MOVING, Standing.LOG_DIRS}:
                self.lost_since.pop(r.tp, None)
            elif now - self.lost_since.setdefault(r.tp, now) > _SETTLE_S:
                self.failed[r.tp], self.lost[r.tp] = reason(r, view, found), found
            if r.tp not in self.failed:
                left.append(r)
        return left

    def _report(self, rows: list[Reassignment], copies: list[Copy], view: View, now: float) -> None:
        run = self.run
        everything = [*self.copies, *copies]
        done_bytes = run.done_bytes + sum(min(c.copied_bytes, c.size_bytes or 0) for c in everything)
        planned = run.state.plan.bytes_of(run.state.batches_done)
        total = run.total_bytes - planned + sum(c.size_bytes or 0 for c in everything)
        rate = run.meter.add(now, done_bytes)
        run.listener.progress(
            Progress(
                batch=run.state.batches_done + 1,
                batches=len(run.state.plan.batches),
                copies_done=run.done_copies + sum(c.done for c in everything),
                copies=run.total_copies,
                done_bytes=done_bytes,
                total_bytes=max(total, done_bytes),
                rate_bytes=rate,
                eta_ms=eta_ms(max(0, total - done_bytes), rate),
            )
        )
        down = missing(rows, view.live.brokers.keys())
        for node in down.keys() - self.reported_down.keys():
            run.listener.warn(f"{waits_for({node: down[node]})}; it goes on when the broker is back")
        for node in self.reported_down.keys() - down.keys():
            run.listener.note(f"broker {node} is back")
        self.reported_down = down

    def _stalled(self, watch: StallWatch, copies: list[Copy], rows: list[Reassignment], view: View) -> KctlError:
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
            "broker_down": "start it",
            "no_leader": "start the brokers of its replicas",
            "throttle": "`kctl topic reassign resume --throttle RATE` with a higher rate",
            "unknown": None,
        }[stall.cause.value]
        rates = {"copy_rate_bytes": round(stall.copy_rate), "growth_rate_bytes": round(stall.growth_rate)}
        return self.run.stopped(stall.message, hint=hint, cause=stall.cause.value, **rates)


def missing(rows: Iterable[Reassignment], up: Collection[int]) -> dict[int, int]:
    """Brokers that are down → how many of these partitions are to be on them: none ends before all are in sync."""
    return _count(node for r in rows for node in r.after if node not in up)


def _silent(rows: Iterable[Reassignment], view: View) -> set[int]:
    """Leaders of these partitions that did not tell of their log dirs, though ZooKeeper still counts them as up."""
    leaders = {partition.leader for r in rows if (partition := view.live.partition(r.tp)) is not None}
    return {node for node in leaders if isinstance(view.live.log_dirs.get(node), KctlError)}


def _behind(rows: Iterable[Reassignment], view: View) -> dict[int, int]:
    """Brokers that are up and not in sync → how many of these partitions are to be on them."""
    found = ((r, view.live.partition(r.tp)) for r in rows)
    return _count(
        node
        for r, partition in found
        for node in r.after
        if node in view.live.brokers and (partition is None or node not in partition.isr)
    )


def _count(nodes: Iterable[int]) -> dict[int, int]:
    return dict(sorted(Counter(nodes).items()))


def _again(error: KctlError) -> bool:
    """Is it worth asking again? Kafka has not said no."""
    return transient(error) or "kafka_error_code" not in error.details


def some(lines: Sequence[str]) -> str:
    """The first few of many reasons."""
    more = f"; and {len(lines) - _SHOWN:,} more" if len(lines) > _SHOWN else ""
    return "; ".join(lines[:_SHOWN]) + more
