"""Bring brokers back: those that are down before the first stop, and those that a run stopped."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from kctl.base.text import counted
from kctl.errors import ConnectionFailed, KctlError, OperationFailed, TimedOut
from kctl.restart.gate import NAMED, out_of_sync
from kctl.restart.restart_run import POLL_S, RestartRun, done_and_total, ms, named
from kctl.restart.steps import BrokerPhase, RestartStep

_READS = 3


def bring_all_back(run: RestartRun) -> None:
    """Bring back the brokers that an earlier process stopped and other brokers that are down, before anything else."""
    absent = _absent(run)
    unfinished = {node for node, row in run.state.brokers.items() if row.open and row.phase is not BrokerPhase.STOPPING}
    down = [node for node in run.state.brokers if node in absent or node in unfinished]
    if not down:
        return
    run.reporter.note(f"starting {named(run, down)} first: {_why_first(run, down)}")
    bring_back(run, down, began=run.clock.now())


def _absent(run: RestartRun) -> set[int]:
    """Return the brokers that are missing from each of three reads of the cluster.

    A broker that has just started does not know all brokers yet, and a live broker that is missing from one read would
    count as restarted.
    """
    absent = set(run.state.brokers)
    for attempt in range(_READS):
        if attempt:
            run.clock.sleep(POLL_S * 2)
        absent -= run.cluster.registered()
        if not absent:
            break
    return absent


def _why_first(run: RestartRun, down: Collection[int]) -> str:
    if any(run.state.brokers[node].open for node in down):
        return "an earlier run stopped before it was back, and no other broker is stopped until then"
    return "it is down" if len(down) == 1 else "they are down"


def bring_back(
    run: RestartRun, batch: Sequence[int], *, began: float, watched: Callable[[], int | None] = lambda: None
) -> None:
    """Start brokers, then wait until each responds and all partitions are in sync. began: when the brokers went down.

    watched: returns the longest under-replication in ms. Raises the first failure, but only after all brokers were
    tried: one that cannot start does not keep the others down.
    """
    back = start_all(run, batch)
    if not back:
        return
    in_sync_at = _wait_in_sync(run, back)
    longest, away_ms = watched(), round((in_sync_at - began) * 1000)
    for node in back:
        run.entry(RestartStep.IN_SYNC, broker=node, in_sync_ms=away_ms, longest_under_replicated_ms=longest)
        run.reporter.note(f"{named(run, [node])} is back; all partitions in sync after {away_ms / 1000:.1f} s")


def start_all(run: RestartRun, batch: Sequence[int]) -> list[int]:
    """Start each broker, then wait for all: voters of the metadata quorum respond only with a majority.

    Returns the brokers that were started; a broker that is up and was never stopped by the run is left alone. Raises
    the first failure, but only after all brokers were tried.
    """
    back: list[int] = []
    started_at: dict[int, float] = {}
    failed: dict[int, KctlError] = {}
    for node in batch:
        if _is_unexpectedly_up(run, node):
            run.reporter.note(f"{named(run, [node])} is up, so it is not started")
            continue
        back.append(node)
        if run.state.brokers[node].phase is BrokerPhase.STARTED:
            continue
        try:
            if run.state.brokers[node].phase is BrokerPhase.STOPPING:  # its shutdown may hang
                _stop_again(run, node)
            started_at[node] = run.clock.now()
            _start(run, node)
        except KctlError as exc:
            failed[node] = exc
            started_at.pop(node, None)
    failed |= _wait_for_responses(run, started_at)
    failures = [failed[node] for node in batch if node in failed]
    for other in failures[1:]:
        run.reporter.note(other.message)
    if failures:
        raise failures[0]
    return back


def _is_unexpectedly_up(run: RestartRun, node: int) -> bool:
    """Return True if the broker is up and this run never stopped it: after a network failure, all look down."""
    was_stopped = run.state.brokers[node].phase in {BrokerPhase.STOPPED, BrokerPhase.STARTING, BrokerPhase.STARTED}
    return not was_stopped and run.cluster.answers(node)


def _stop_again(run: RestartRun, node: int) -> None:
    """Stop a broker that the cluster no longer lists, to be sure that its process ended; a failure is not fatal."""
    try:
        run.control.stop(node, timeout_s=run.options.broker_timeout_s)
    except TimedOut:
        raise
    except OperationFailed as exc:
        run.reporter.note(
            f"{exc.message}; starting {named(run, [node])} anyway, because the cluster no longer lists it"
        )
    run.entry(RestartStep.STOPPED, broker=node)


def _start(run: RestartRun, node: int) -> None:
    run.reporter.update(f"starting {named(run, [node])}", *done_and_total(run))
    run.entry(RestartStep.START, broker=node)
    if not run.cluster.answers(node):
        run.control.start(node, timeout_s=max(1.0, run.options.broker_timeout_s))


def _wait_for_responses(run: RestartRun, started_at: Mapping[int, float]) -> dict[int, KctlError]:
    """Wait for all brokers at once, each with its own timeout. started_at: broker → start time. Return the failures."""
    waiting, failed = dict(started_at), dict[int, KctlError]()
    while waiting:
        for node, began in list(waiting.items()):
            if run.cluster.answers(node):
                run.entry(RestartStep.STARTED, broker=node, start_ms=ms(run, began))
                del waiting[node]
            elif run.clock.now() >= began + run.options.broker_timeout_s:
                why = f"{named(run, [node])} was started, but does not respond or does not know the other brokers"
                failed[node] = TimedOut(why, hint="read the broker's log")
                del waiting[node]
        if waiting:
            run.reporter.update(f"waiting until {named(run, waiting)} responds", *done_and_total(run))
            run.clock.sleep(POLL_S)
    return failed


def _wait_in_sync(run: RestartRun, batch: Sequence[int]) -> float:
    """Wait for N consecutive checks with all expected replicas in sync. Return the time of the first check."""
    until = run.clock.now() + run.options.broker_timeout_s
    passed_checks, since = 0, 0.0
    while True:
        what = _why_not_in_sync(run, batch)
        if what is None:
            since = run.clock.now() if not passed_checks else since
            passed_checks += 1
        else:
            passed_checks = 0
        if passed_checks >= run.options.stable_checks:
            return since
        if what is not None and run.clock.now() >= until:
            raise TimedOut(
                f"{named(run, batch)} was started, but after {run.options.broker_timeout_s:g} s: {what}",
                hint="run `kctl cluster diagnose` to see what is behind, or raise --broker-timeout",
            )
        run.reporter.update(f"{named(run, batch)}: {what or 'in sync, checking again'}", *done_and_total(run))
        run.clock.sleep(
            run.options.stable_interval_s if passed_checks else min(POLL_S * 2, run.options.stable_interval_s)
        )


def _why_not_in_sync(run: RestartRun, batch: Sequence[int]) -> str | None:
    """Return why replicas are not in sync after a restart; None if they are."""
    try:
        current = run.cluster.snapshot(())
    except ConnectionFailed as exc:
        return exc.message
    away = set(batch).difference(current.up)
    if away:
        return f"{named(run, sorted(away))} is down again"
    behind_controllers = [node for node in batch if node in run.controllers and not run.cluster.answers(node)]
    if behind_controllers:
        return f"{named(run, behind_controllers)} has not caught up with the metadata log"
    behind = out_of_sync(current.state, current.adding, list(run.state.brokers))
    if not behind:
        return None
    more = ", …" if len(behind) > NAMED else ""
    return f"{counted(len(behind), 'partition')} not in sync ({', '.join(map(str, behind[:NAMED]))}{more})"
