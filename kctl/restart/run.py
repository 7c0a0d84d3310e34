"""Carrying a rolling restart out, entry by entry of its journal; begun or gone on with, it is the same code.

For each broker (with --max-unavailable: a few of one rack): gate → stop → seen to be gone → start → it answers → N
looks in a row with every replica in sync. A broker that does not come back ends the run: the next is never touched.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from kctl.errors import ConnectionFailed, KctlError, OperationFailed, TimedOut
from kctl.journal import Journal
from kctl.restart.control import BrokerControl
from kctl.restart.gate import Blocker, blockers, fits_together, quorum_blocker, unsettled
from kctl.restart.look import Cluster, Seen
from kctl.restart.order import next_batch
from kctl.restart.steps import Phase, RestartState, Step, follow
from kctl.text import counted

_POLL_S = 0.25
_NAMED = 3
DEFAULT_TIMEOUT_S = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Options:
    """broker_timeout_s: for each wait of one broker: gate, stop, start, in sync. timeout_s: no broker is taken down
    after it; one that is down is brought back first."""

    max_unavailable: int = 1
    stable_checks: int = 3
    stable_interval_s: float = 2.0
    broker_timeout_s: float = 600.0
    timeout_s: float = DEFAULT_TIMEOUT_S
    elect: bool = True


class Clock(Protocol):
    """Time as the run takes it, so that tests need none."""

    def now(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...


class RealClock:
    def now(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class Told(Protocol):
    """Who hears of it."""

    def note(self, line: str) -> None: ...

    def update(self, message: str, done: float | None = None, total: float | None = None) -> None: ...


class Silent:
    """Nobody."""

    def note(self, line: str) -> None:
        pass

    def update(self, message: str, done: float | None = None, total: float | None = None) -> None:
        pass


class NotFinished(OperationFailed):
    """A rolling restart has begun and stands still: its journal says where."""

    code = "not_finished"


@dataclass
class Run:
    """One process's work on a run. state: follows the journal."""

    cluster: Cluster
    control: BrokerControl
    journal: Journal
    state: RestartState
    options: Options
    told: Told
    clock: Clock
    elected_left: Sequence[str] = ()
    elected_count: int | None = None

    def entry(self, step: Step, **fields: object) -> None:
        """Write it down, then take it for true."""
        self.journal.append(step.value, **fields)
        follow(self.state, step, self.journal.entries[-1])


def carry_out(run: Run) -> None:
    """To the end of the run. Raises NotFinished with what to do."""
    try:
        _carry_out(run)
    except NotFinished:
        raise
    except KctlError as exc:
        raise _not_finished(run, exc) from exc


def _carry_out(run: Run) -> None:
    ends_at = run.clock.now() + run.options.timeout_s
    down = _to_bring_back(run)
    if down:
        run.told.note(f"broker {_ids(down)} first: {_why_first(run, down)}")
        _bring_back(run, down, began=run.clock.now())
    while run.state.pending:
        batch = _next(run)
        if run.clock.now() >= ends_at:
            raise TimedOut(f"not finished within {run.options.timeout_s:g} s", hint="give it longer with --timeout")
        _gate(run, batch, min(ends_at, run.clock.now() + run.options.broker_timeout_s))
        _restart(run, batch)
    if run.options.elect and not run.state.elected:
        _elect(run)
    run.entry(Step.END, outcome="done")


def _next(run: Run) -> tuple[int, ...]:
    """Who goes next: looked up anew each time, the controller may be another one by now."""
    racks = {node: row.broker.rack for node, row in run.state.brokers.items()}
    fits: Callable[[Collection[int]], bool] = lambda _brokers: True  # noqa: E731
    if run.options.max_unavailable > 1:
        seen = run.cluster.look(run.state.pending)
        fits = lambda brokers: fits_together(seen.state, seen.min_isr, brokers)  # noqa: E731
    return next_batch(
        run.state.pending, racks, run.cluster.controller(), max_unavailable=run.options.max_unavailable, fits=fits
    )


# --- what an earlier process left -------------------------------------------------------------------------------------


def _to_bring_back(run: Run) -> list[int]:
    """Brokers that an earlier process took down, and others that are down. One whose stop was begun and that is there
    waits for its turn again."""
    there = run.cluster.registered()
    for node, row in run.state.brokers.items():
        if row.phase is Phase.STOPPING and node in there:
            row.phase = Phase.PENDING
    return [node for node, row in run.state.brokers.items() if row.open or node not in there]


def _why_first(run: Run, down: Collection[int]) -> str:
    if run.state.open:
        return "the run that ended early left it there, and nothing else goes before it is back"
    return "it is down" if len(down) == 1 else "they are down"


# --- gate -------------------------------------------------------------------------------------------------------------


def gate(seen: Seen, batch: Collection[int], brokers: Collection[int]) -> list[Blocker]:
    """Why `batch` may not go now. brokers: all of the run. Pure."""
    found = blockers(seen.state, seen.min_isr, batch, seen.adding)
    quorum = None if seen.quorum is None else quorum_blocker(seen.quorum, batch)
    found += [quorum] if quorum else []
    named = {(b.topic, b.partition) for b in found}
    found += [
        Blocker(tp.topic, tp.partition, "has a replica that is not in sync")
        for tp in unsettled(seen.state, seen.adding, brokers)
        if (tp.topic, tp.partition) not in named
    ]
    if seen.state.controller_id is None:
        found.append(Blocker(None, None, "the cluster has no controller"))
    return found


def said(found: Sequence[Blocker]) -> str:
    """The first of them, and how many more."""
    more = f"; and {len(found) - _NAMED:,} more" if len(found) > _NAMED else ""
    return "; ".join(str(each) for each in found[:_NAMED]) + more


def _gate(run: Run, batch: Sequence[int], until: float) -> None:
    while True:
        try:
            found = gate(run.cluster.look(batch), batch, list(run.state.brokers))
        except ConnectionFailed as exc:
            found = [Blocker(None, None, exc.message)]
        if not found:
            return
        if run.clock.now() >= until:
            why = f"broker {_ids(batch)} cannot be taken down: {said(found)}"
            raise TimedOut(why, hint="kctl cluster health tells what is wrong")
        run.told.update(f"waiting before broker {_ids(batch)}: {said(found)}", *_share(run))
        run.clock.sleep(_POLL_S * 4)


# --- one broker, or a few of a rack -----------------------------------------------------------------------------------


def _restart(run: Run, batch: Sequence[int]) -> None:
    began = run.clock.now()
    watch = run.cluster.watch(batch)
    try:
        for node in batch:
            _stop(run, node)
        _bring_back(run, batch, began=began, watched=watch.end)
    finally:
        watch.end()


def _stop(run: Run, node: int) -> None:
    began = run.clock.now()
    until = began + run.options.broker_timeout_s
    run.told.update(f"broker {node}: stopping", *_share(run))
    run.entry(Step.STOP, broker=node)
    run.control.stop(node, timeout_s=max(1.0, until - run.clock.now()))
    _until_gone(run, node, until)
    run.entry(Step.STOPPED, broker=node, stop_ms=_ms(run, began))


def _until_gone(run: Run, node: int, until: float) -> None:
    """A broker that was not shut down cleanly is there until its session ends."""
    while not _is_gone(run, node):
        if run.clock.now() >= until:
            raise TimedOut(
                f"broker {node} was stopped and the cluster still lists it",
                hint="does the command to stop it really end its process?",
            )
        run.told.update(f"broker {node}: waiting until the cluster no longer lists it", *_share(run))
        run.clock.sleep(_POLL_S)


def _is_gone(run: Run, node: int) -> bool:
    try:
        return node not in run.cluster.registered()
    except ConnectionFailed:
        return False


def _bring_back(
    run: Run, batch: Sequence[int], *, began: float, watched: Callable[[], int | None] = lambda: None
) -> None:
    """Start, wait until each answers, and until all is in sync. began: since when they are away."""
    for node in batch:
        if run.state.brokers[node].phase is Phase.STOPPING:  # it may hang in its shutdown
            run.control.stop(node, timeout_s=run.options.broker_timeout_s)
            run.entry(Step.STOPPED, broker=node)
    for node in batch:
        if run.state.brokers[node].phase is not Phase.STARTED:
            _start(run, node)
    in_sync_at = _settle(run, batch)
    longest, away_ms = watched(), round((in_sync_at - began) * 1000)
    for node in batch:
        run.entry(Step.IN_SYNC, broker=node, in_sync_ms=away_ms, longest_under_replicated_ms=longest)
        run.told.note(f"broker {node} is back, and all in sync after {away_ms / 1000:.1f} s")


def _start(run: Run, node: int) -> None:
    began = run.clock.now()
    until = began + run.options.broker_timeout_s
    run.told.update(f"broker {node}: starting", *_share(run))
    run.entry(Step.START, broker=node)
    if not run.cluster.answers(node):
        run.control.start(node, timeout_s=max(1.0, until - run.clock.now()))
    while not run.cluster.answers(node):
        if run.clock.now() >= until:
            why = f"broker {node} was started and does not answer, or does not know the others"
            raise TimedOut(why, hint="its log says why")
        run.told.update(f"broker {node}: waiting until it answers", *_share(run))
        run.clock.sleep(_POLL_S)
    run.entry(Step.STARTED, broker=node, start_ms=_ms(run, began))


def _settle(run: Run, batch: Sequence[int]) -> float:
    """N looks in a row at which nothing lacks a replica that is to come back; the time of the first of them."""
    until = run.clock.now() + run.options.broker_timeout_s
    good, since = 0, 0.0
    while True:
        what = _not_settled(run, batch)
        if what is None:
            since = run.clock.now() if not good else since
            good += 1
        else:
            good = 0
        if good >= run.options.stable_checks:
            return since
        if what is not None and run.clock.now() >= until:
            raise TimedOut(
                f"broker {_ids(batch)} is started, and after {run.options.broker_timeout_s:g} s: {what}",
                hint="kctl cluster diagnose tells what is behind; --broker-timeout gives it longer",
            )
        run.told.update(f"broker {_ids(batch)}: {what or 'in sync, looking again'}", *_share(run))
        run.clock.sleep(run.options.stable_interval_s if good else min(_POLL_S * 2, run.options.stable_interval_s))


def _not_settled(run: Run, batch: Sequence[int]) -> str | None:
    """What is not as it should be after a restart; None when all is."""
    try:
        seen = run.cluster.look(batch)
    except ConnectionFailed as exc:
        return exc.message
    away = set(batch).difference(seen.state.brokers)
    if away:
        return f"broker {_ids(sorted(away))} is gone again"
    behind = unsettled(seen.state, seen.adding, list(run.state.brokers))
    if not behind:
        return None
    more = ", …" if len(behind) > _NAMED else ""
    return f"{counted(len(behind), 'partition')} not in sync ({', '.join(map(str, behind[:_NAMED]))}{more})"


def _elect(run: Run) -> None:
    run.told.update("electing the preferred leaders", *_share(run))
    run.entry(Step.ELECT)
    found = run.cluster.elect()
    run.elected_count, run.elected_left = found.elected, found.left
    run.entry(Step.ELECTED, elected=found.elected, left=len(found.left))


# --- failures ---------------------------------------------------------------------------------------------------------


def _not_finished(run: Run, cause: KctlError) -> NotFinished:
    lines = [cause.hint, where_it_stands(run), WAYS_ON]
    return NotFinished(
        f"the rolling restart stopped: {cause.message}",
        hint="\n".join(line for line in lines if line),
        details={**cause.details, "cause": cause.code},
    )


WAYS_ON = "the same command again goes on where it stopped; with --abandon it forgets the run"


def where_it_stands(run: Run) -> str:
    """`situation`, after a look at who is there now: a start that failed was taken back."""
    try:
        return situation(run.state, run.cluster.registered())
    except KctlError:
        return situation(run.state)


def situation(state: RestartState, there: Collection[int] | None = None) -> str:
    """Which broker is in which state, in one line. there: the brokers that are up now, where that is known."""
    rows = []
    for node, row in state.brokers.items():
        if row.open:
            now = "" if there is None else ", and up now" if node in there else ", and down now"
            rows.append(f"broker {node} is {row.phase.value}{now}")
    done = [node for node, row in state.brokers.items() if row.phase is Phase.DONE]
    if done:
        rows.append(f"restarted: {_ids(done)}")
    if state.pending:
        rows.append(f"not restarted: {_ids(state.pending)}")
    return "; ".join(rows)


def _ids(nodes: Collection[int]) -> str:
    return ", ".join(map(str, nodes))


def _ms(run: Run, began: float) -> int:
    return round((run.clock.now() - began) * 1000)


def _share(run: Run) -> tuple[float, float]:
    done = sum(row.phase is Phase.DONE for row in run.state.brokers.values())
    return done, len(run.state.brokers)
