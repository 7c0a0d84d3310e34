"""Carry out a rolling restart, and record each step in its journal. New and resumed runs share this code.

For each broker (with --max-unavailable: a few of one rack): gate → stop → no longer listed → start → responds → N
consecutive checks with every replica in sync. If a broker does not come back, the run ends and stops no other broker.
"""

from __future__ import annotations

from collections.abc import Sequence

from kctl.errors import ConnectionFailed, KctlError, OperationFailed, TimedOut
from kctl.restart.bring_back import bring_all_back, bring_back, start_all
from kctl.restart.gate import Blocker, can_stop_together, gate, summary
from kctl.restart.live_cluster import ReplicaWatch
from kctl.restart.order import next_batch
from kctl.restart.restart_run import POLL_S, NotFinished, RestartRun, done_and_total, ms, named
from kctl.restart.snapshot import GateSnapshot
from kctl.restart.steps import BrokerPhase, RestartStep, situation


def carry_out(run: RestartRun) -> None:
    """Run the restart until it is complete. Raises NotFinished with the next steps."""
    try:
        _carry_out(run)
    except NotFinished:
        raise
    except KctlError as exc:
        raise _not_finished(run, exc) from exc


def _carry_out(run: RestartRun) -> None:
    ends_at = run.clock.now() + run.options.timeout_s
    bring_all_back(run)
    _check_cluster(run)
    while _remaining(run):
        if run.clock.now() >= ends_at:
            raise TimedOut(f"not finished within {run.options.timeout_s:g} s", hint="raise --timeout")
        batch, watch = _gate(run, min(ends_at, run.clock.now() + run.options.broker_timeout_s))
        if watch is not None:
            _restart(run, batch, watch)
        else:
            run.clock.sleep(POLL_S)
            bring_all_back(run)
    if run.options.elect:
        _elect(run)
    run.entry(RestartStep.END, outcome="done")


def _remaining(run: RestartRun) -> list[int]:
    """Return the brokers still to restart, including those that a started stop has not taken down."""
    return [node for node, row in run.state.brokers.items() if row.phase in {BrokerPhase.PENDING, BrokerPhase.STOPPING}]


def _check_cluster(run: RestartRun) -> None:
    """Raise OperationFailed if a run that was found by name, while all brokers were down, is another cluster's run."""
    live_id = run.cluster.snapshot(()).state.cluster_id
    if live_id != run.state.cluster_id:
        raise OperationFailed(
            f"this is cluster {live_id}, but the run is of {run.state.cluster_id}",
            hint="add --abandon to discard the run",
        )


# --- gate -------------------------------------------------------------------------------------------------------------


def _gate(run: RestartRun, until: float) -> tuple[tuple[int, ...], ReplicaWatch | None]:
    """Wait until brokers can be stopped. Return them and the watch; () if a remaining broker went down by itself."""
    while True:
        batch: tuple[int, ...] = ()
        try:
            batch, problems = _next_stop(run)
            if not batch:
                return (), None
            if not problems:
                watch = run.cluster.watch(batch)
                problems = _recheck(run, batch, watch)
                if not problems:
                    return batch, watch
        except ConnectionFailed as exc:
            problems = [Blocker(None, None, exc.message)]
        subject = f"{named(run, batch)}" if batch else "the next broker"
        if run.clock.now() >= until:
            raise TimedOut(
                f"{subject} cannot be stopped: {summary(problems)}", hint="find the cause: `kctl cluster health`"
            )
        run.reporter.update(f"waiting to stop {subject}: {summary(problems)}", *done_and_total(run))
        run.clock.sleep(POLL_S * 4)


def _next_stop(run: RestartRun) -> tuple[tuple[int, ...], list[Blocker]]:
    """Return the next brokers and their blockers; the controller may have changed. () if one went down by itself."""
    controller = run.cluster.controller()  # first: with ZooKeeper, every broker is queried, which may take time
    current = run.cluster.snapshot(_remaining(run))
    if not current.up >= set(_remaining(run)):
        return (), []
    batch = next_batch(
        _remaining(run),
        {node: row.broker.rack for node, row in run.state.brokers.items()},
        controller,
        max_unavailable=run.options.max_unavailable,
        fits=lambda brokers: can_stop_together(current, brokers, run.state.brokers),
    )
    return batch, _blockers_now(run, current, batch)


def _recheck(run: RestartRun, batch: Sequence[int], watch: ReplicaWatch) -> list[Blocker]:
    """Check the gate again, because starting a watch takes time. Return blockers; if any, end the watch."""
    problems: list[Blocker] | None = None
    try:
        current = run.cluster.snapshot(_remaining(run))
        missing_ids = sorted(set(_remaining(run)).difference(current.up))
        problems = (
            [Blocker(None, None, f"{named(run, missing_ids)} is down")]
            if missing_ids
            else _blockers_now(run, current, batch)
        )
    finally:
        if problems != []:
            watch.end()
    return problems


def _blockers_now(run: RestartRun, snapshot: GateSnapshot, batch: Sequence[int]) -> list[Blocker]:
    return _down_again(run, snapshot) or gate(snapshot, batch, list(run.state.brokers))


def _down_again(run: RestartRun, snapshot: GateSnapshot) -> list[Blocker]:
    """Return blockers for brokers that were restarted and are down again: the next broker might fail as well."""
    return [
        Blocker(None, None, f"{named(run, [node])} was restarted and is down again")
        for node, row in run.state.brokers.items()
        if row.phase is BrokerPhase.DONE and node not in snapshot.up
    ]


# --- one broker, or a few of a rack -----------------------------------------------------------------------------------


def _restart(run: RestartRun, batch: Sequence[int], watch: ReplicaWatch) -> None:
    began = run.clock.now()
    try:
        _stop_all(run, batch)
        bring_back(run, batch, began=began, watched=watch.end)
    finally:
        watch.end()


def _stop_all(run: RestartRun, batch: Sequence[int]) -> None:
    """Stop the brokers. If one does not stop, start those that were stopped and end the run."""
    try:
        for node in batch:
            _stop(run, node)
    except KctlError as exc:
        stopped = [node for node in batch if run.state.brokers[node].phase is BrokerPhase.STOPPED]
        if stopped:
            run.reporter.note(f"{exc.message}; starting {named(run, stopped)} again")
            try:
                start_all(run, stopped)
            except KctlError as other:
                run.reporter.note(other.message)
        raise


def _stop(run: RestartRun, node: int) -> None:
    began = run.clock.now()
    until = began + run.options.broker_timeout_s
    run.reporter.update(f"stopping {named(run, [node])}", *done_and_total(run))
    run.entry(RestartStep.STOP, broker=node)
    run.control.stop(node, timeout_s=max(1.0, until - run.clock.now()))
    _wait_until_gone(run, node, until)
    run.entry(RestartStep.STOPPED, broker=node, stop_ms=ms(run, began))


def _wait_until_gone(run: RestartRun, node: int, until: float) -> None:
    """Wait until the cluster no longer lists the broker; after an unclean shutdown, until its session expires."""
    while not _is_gone(run, node):
        if run.clock.now() >= until:
            raise TimedOut(
                f"{named(run, [node])} was stopped, but the cluster still lists it",
                hint="check that the stop command ends the broker's process",
            )
        run.reporter.update(f"waiting until the cluster no longer lists {named(run, [node])}", *done_and_total(run))
        run.clock.sleep(POLL_S)


def _is_gone(run: RestartRun, node: int) -> bool:
    try:
        return node not in run.cluster.registered()
    except ConnectionFailed:
        return False


def _elect(run: RestartRun) -> None:
    why_not = run.cluster.why_no_election()
    if why_not is not None:  # an older kctl started the run without this check; all are back
        run.reporter.note(f"{why_not}: preferred leaders are not elected")
        return
    run.reporter.update("electing the preferred leaders", *done_and_total(run))
    run.entry(RestartStep.ELECT)
    election = run.cluster.elect()
    run.elected_count, run.elected_left = election.elected, election.not_elected
    run.entry(RestartStep.ELECTED, elected=election.elected, left=len(election.not_elected))


# --- failures ---------------------------------------------------------------------------------------------------------


def _not_finished(run: RestartRun, cause: KctlError) -> NotFinished:
    lines = [cause.hint, current_situation(run), run.how_to_resume]
    return NotFinished(
        f"the {run.state.purpose} is unfinished: {cause.message}",
        hint="\n".join(line for line in lines if line),
        details={**cause.details, "cause": cause.code},
    )


def current_situation(run: RestartRun) -> str:
    """Return `situation` with the brokers that are up now: a failed start has been undone."""
    try:
        return situation(run.state, run.cluster.registered())
    except KctlError:
        return situation(run.state)
