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
from kctl.restart.gate import NAMED, Blocker, fit, gate, said, unsettled
from kctl.restart.look import Cluster, Seen
from kctl.restart.order import next_batch
from kctl.restart.steps import Phase, RestartState, Step, follow, situation
from kctl.text import counted

_POLL_S = 0.25
_LOOKS = 3
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
    _bring_all_back(run)
    _same_cluster(run)
    while _to_do(run):
        if run.clock.now() >= ends_at:
            raise TimedOut(f"not finished within {run.options.timeout_s:g} s", hint="give it longer with --timeout")
        batch = _gate(run, min(ends_at, run.clock.now() + run.options.broker_timeout_s))
        if batch:
            _restart(run, batch)
        else:
            run.clock.sleep(_POLL_S)
            _bring_all_back(run)
    if run.options.elect:
        _elect(run)
    run.entry(Step.END, outcome="done")


# --- what is down before anything is taken down -----------------------------------------------------------------------


def _to_do(run: Run) -> list[int]:
    """Whose turn is to come: also those whose stop was begun and that never went."""
    return [node for node, row in run.state.brokers.items() if row.phase in {Phase.PENDING, Phase.STOPPING}]


def _bring_all_back(run: Run) -> None:
    """Brokers that an earlier process took down, and others that are down, before anything else."""
    absent = _absent(run)
    left = {node for node, row in run.state.brokers.items() if row.open and row.phase is not Phase.STOPPING}
    down = [node for node in run.state.brokers if node in absent or node in left]
    if not down:
        return
    run.told.note(f"broker {_ids(down)} first: {_why_first(run, down)}")
    _bring_back(run, down, began=run.clock.now())


def _absent(run: Run) -> set[int]:
    """Brokers that the cluster does not list, each of three times: one that has just come up does not know all yet, and
    a broker that was only overlooked would count as restarted."""
    absent = set(run.state.brokers)
    for look in range(_LOOKS):
        if look:
            run.clock.sleep(_POLL_S * 2)
        absent -= run.cluster.registered()
        if not absent:
            break
    return absent


def _why_first(run: Run, down: Collection[int]) -> str:
    if any(run.state.brokers[node].open for node in down):
        return "the run that ended early left it there, and nothing else goes before it is back"
    return "it is down" if len(down) == 1 else "they are down"


def _same_cluster(run: Run) -> None:
    """A run that was found by the cluster's name, with all brokers down, may be another cluster's of that name."""
    found = run.cluster.look(()).state.cluster_id
    if found != run.state.cluster_id:
        raise OperationFailed(
            f"this is cluster {found}, and the run is of {run.state.cluster_id}", hint="--abandon forgets the run"
        )


# --- gate -------------------------------------------------------------------------------------------------------------


def _gate(run: Run, until: float) -> tuple[int, ...]:
    """Wait until some may go: who. () when one whose turn is to come has gone by itself."""
    while True:
        batch: tuple[int, ...] = ()
        try:
            seen = run.cluster.look(_to_do(run))
            if not seen.state.brokers.keys() >= set(_to_do(run)):
                return ()
            batch = _next(run, seen)
            found = _gone(run, seen) or gate(seen, batch, list(run.state.brokers))
        except ConnectionFailed as exc:
            found = [Blocker(None, None, exc.message)]
        if not found:
            return batch
        who = f"broker {_ids(batch)}" if batch else "the next broker"
        if run.clock.now() >= until:
            raise TimedOut(f"{who} cannot be taken down: {said(found)}", hint="kctl cluster health tells what is wrong")
        run.told.update(f"waiting before {who}: {said(found)}", *_share(run))
        run.clock.sleep(_POLL_S * 4)


def _next(run: Run, seen: Seen) -> tuple[int, ...]:
    """Who goes next: the controller may be another one by now."""
    return next_batch(
        _to_do(run),
        {node: row.broker.rack for node, row in run.state.brokers.items()},
        run.cluster.controller(),
        max_unavailable=run.options.max_unavailable,
        fits=lambda brokers: fit(seen, brokers),
    )


def _gone(run: Run, seen: Seen) -> list[Blocker]:
    """Brokers that were restarted, and are down again: whatever that is, the next must not meet it."""
    return [
        Blocker(None, None, f"broker {node} was restarted, and is down again")
        for node, row in run.state.brokers.items()
        if row.phase is Phase.DONE and node not in seen.state.brokers
    ]


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
            _stop_again(run, node)
    for node in batch:
        if run.state.brokers[node].phase is not Phase.STARTED:
            _start(run, node)
    in_sync_at = _settle(run, batch)
    longest, away_ms = watched(), round((in_sync_at - began) * 1000)
    for node in batch:
        run.entry(Step.IN_SYNC, broker=node, in_sync_ms=away_ms, longest_under_replicated_ms=longest)
        run.told.note(f"broker {node} is back, and all in sync after {away_ms / 1000:.1f} s")


def _stop_again(run: Run, node: int) -> None:
    """Of a broker that is gone, to be sure of its process. A command that fails without one keeps nobody down."""
    try:
        run.control.stop(node, timeout_s=run.options.broker_timeout_s)
    except TimedOut:
        raise
    except OperationFailed as exc:
        run.told.note(f"{exc.message}; the cluster does not list broker {node} any more, so it is started")
    run.entry(Step.STOPPED, broker=node)


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
        seen = run.cluster.look(())
    except ConnectionFailed as exc:
        return exc.message
    away = set(batch).difference(seen.state.brokers)
    if away:
        return f"broker {_ids(sorted(away))} is gone again"
    behind = unsettled(seen.state, seen.adding, list(run.state.brokers))
    if not behind:
        return None
    more = ", …" if len(behind) > NAMED else ""
    return f"{counted(len(behind), 'partition')} not in sync ({', '.join(map(str, behind[:NAMED]))}{more})"


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


def _ids(nodes: Collection[int]) -> str:
    return ", ".join(map(str, nodes))


def _ms(run: Run, began: float) -> int:
    return round((run.clock.now() - began) * 1000)


def _share(run: Run) -> tuple[float, float]:
    done = sum(row.phase is Phase.DONE for row in run.state.brokers.values())
    return done, len(run.state.brokers)
