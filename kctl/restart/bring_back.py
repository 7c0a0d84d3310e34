"""Bringing brokers back: those that are down before anything is taken down, and those that a run has stopped."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from kctl.base.text import counted
from kctl.errors import ConnectionFailed, KctlError, OperationFailed, TimedOut
from kctl.restart.gate import NAMED, unsettled
from kctl.restart.running import POLL_S, Run, ids, ms, share
from kctl.restart.steps import Phase, Step

_LOOKS = 3


def bring_all_back(run: Run) -> None:
    """Brokers that an earlier process took down, and others that are down, before anything else."""
    absent = _absent(run)
    left = {node for node, row in run.state.brokers.items() if row.open and row.phase is not Phase.STOPPING}
    down = [node for node in run.state.brokers if node in absent or node in left]
    if not down:
        return
    run.told.note(f"broker {ids(down)} first: {_why_first(run, down)}")
    bring_back(run, down, began=run.clock.now())


def _absent(run: Run) -> set[int]:
    """Brokers that the cluster does not list, each of three times: one that has just come up does not know all yet, and
    a broker that was only overlooked would count as restarted."""
    absent = set(run.state.brokers)
    for look in range(_LOOKS):
        if look:
            run.clock.sleep(POLL_S * 2)
        absent -= run.cluster.registered()
        if not absent:
            break
    return absent


def _why_first(run: Run, down: Collection[int]) -> str:
    if any(run.state.brokers[node].open for node in down):
        return "the run that ended early left it there, and nothing else goes before it is back"
    return "it is down" if len(down) == 1 else "they are down"


def bring_back(
    run: Run, batch: Sequence[int], *, began: float, watched: Callable[[], int | None] = lambda: None
) -> None:
    """Start, wait until each answers, and until all is in sync. began: since when they are away.

    Raises the first failure after all of them were tried: one that cannot start keeps no other one down.
    """
    back = start_all(run, batch)
    if not back:
        return
    in_sync_at = _settle(run, back)
    longest, away_ms = watched(), round((in_sync_at - began) * 1000)
    for node in back:
        run.entry(Step.IN_SYNC, broker=node, in_sync_ms=away_ms, longest_under_replicated_ms=longest)
        run.told.note(f"broker {node} is back, and all in sync after {away_ms / 1000:.1f} s")


def start_all(run: Run, batch: Sequence[int]) -> list[int]:
    """Start each, then wait for all: brokers that vote in the metadata quorum answer when a majority is there.

    Without those that were not taken down and are there after all; what this returns was brought back. Raises the first
    failure when all have been tried.
    """
    back: list[int] = []
    begun: dict[int, float] = {}
    failed: dict[int, KctlError] = {}
    for node in batch:
        if _is_there_after_all(run, node):
            run.told.note(f"broker {node} is there after all")
            continue
        back.append(node)
        if run.state.brokers[node].phase is Phase.STARTED:
            continue
        try:
            if run.state.brokers[node].phase is Phase.STOPPING:  # it may hang in its shutdown
                _stop_again(run, node)
            begun[node] = run.clock.now()
            _start(run, node)
        except KctlError as exc:
            failed[node] = exc
            begun.pop(node, None)
    failed |= _until_they_answer(run, begun)
    failures = [failed[node] for node in batch if node in failed]
    for other in failures[1:]:
        run.told.note(other.message)
    if failures:
        raise failures[0]
    return back


def _is_there_after_all(run: Run, node: int) -> bool:
    """Nobody may have been reached, and so all taken for down: one that this run has not stopped is left as it is."""
    taken_down = run.state.brokers[node].phase in {Phase.STOPPED, Phase.STARTING, Phase.STARTED}
    return not taken_down and run.cluster.answers(node)


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
    run.told.update(f"broker {node}: starting", *share(run))
    run.entry(Step.START, broker=node)
    if not run.cluster.answers(node):
        run.control.start(node, timeout_s=max(1.0, run.options.broker_timeout_s))


def _until_they_answer(run: Run, begun: Mapping[int, float]) -> dict[int, KctlError]:
    """Wait for all at once, each for its own time. begun: when its start was; what did not come."""
    waiting, failed = dict(begun), dict[int, KctlError]()
    while waiting:
        for node, began in list(waiting.items()):
            if run.cluster.answers(node):
                run.entry(Step.STARTED, broker=node, start_ms=ms(run, began))
                del waiting[node]
            elif run.clock.now() >= began + run.options.broker_timeout_s:
                why = f"broker {node} was started and does not answer, or does not know the others"
                failed[node] = TimedOut(why, hint="its log says why")
                del waiting[node]
        if waiting:
            run.told.update(f"broker {ids(waiting)}: waiting until it answers", *share(run))
            run.clock.sleep(POLL_S)
    return failed


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
                f"broker {ids(batch)} is started, and after {run.options.broker_timeout_s:g} s: {what}",
                hint="kctl cluster diagnose tells what is behind; --broker-timeout gives it longer",
            )
        run.told.update(f"broker {ids(batch)}: {what or 'in sync, looking again'}", *share(run))
        run.clock.sleep(run.options.stable_interval_s if good else min(POLL_S * 2, run.options.stable_interval_s))


def _not_settled(run: Run, batch: Sequence[int]) -> str | None:
    """What is not as it should be after a restart; None when all is."""
    try:
        seen = run.cluster.look(())
    except ConnectionFailed as exc:
        return exc.message
    away = set(batch).difference(seen.state.brokers)
    if away:
        return f"broker {ids(sorted(away))} is gone again"
    behind = unsettled(seen.state, seen.adding, list(run.state.brokers))
    if not behind:
        return None
    more = ", …" if len(behind) > NAMED else ""
    return f"{counted(len(behind), 'partition')} not in sync ({', '.join(map(str, behind[:NAMED]))}{more})"
