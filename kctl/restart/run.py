"""Carrying a rolling restart out, entry by entry of its journal; begun or gone on with, it is the same code.

For each broker (with --max-unavailable: a few of one rack): gate → stop → seen to be gone → start → it answers → N
looks in a row with every replica in sync. A broker that does not come back ends the run: the next is never touched.
"""

from __future__ import annotations

from collections.abc import Sequence

from kctl.errors import ConnectionFailed, KctlError, OperationFailed, TimedOut
from kctl.restart.bring_back import bring_all_back, bring_back, start_all
from kctl.restart.gate import Blocker, fit, gate, said
from kctl.restart.look import Watch
from kctl.restart.order import next_batch
from kctl.restart.running import POLL_S, NotFinished, Run, ids, ms, share
from kctl.restart.seen import Seen
from kctl.restart.steps import Phase, Step, situation

WAYS_ON = "the same command again goes on where it stopped; with --abandon it forgets the run"


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
    bring_all_back(run)
    _same_cluster(run)
    while _to_do(run):
        if run.clock.now() >= ends_at:
            raise TimedOut(f"not finished within {run.options.timeout_s:g} s", hint="give it longer with --timeout")
        batch, watch = _gate(run, min(ends_at, run.clock.now() + run.options.broker_timeout_s))
        if watch is not None:
            _restart(run, batch, watch)
        else:
            run.clock.sleep(POLL_S)
            bring_all_back(run)
    if run.options.elect:
        _elect(run)
    run.entry(Step.END, outcome="done")


def _to_do(run: Run) -> list[int]:
    """Whose turn is to come: also those whose stop was begun and that never went."""
    return [node for node, row in run.state.brokers.items() if row.phase in {Phase.PENDING, Phase.STOPPING}]


def _same_cluster(run: Run) -> None:
    """A run that was found by the cluster's name, with all brokers down, may be another cluster's of that name."""
    found = run.cluster.look(()).state.cluster_id
    if found != run.state.cluster_id:
        raise OperationFailed(
            f"this is cluster {found}, and the run is of {run.state.cluster_id}", hint="--abandon forgets the run"
        )


# --- gate -------------------------------------------------------------------------------------------------------------


def _gate(run: Run, until: float) -> tuple[tuple[int, ...], Watch | None]:
    """Wait until some may go: who, and the watch over them. () when one whose turn is to come has gone by itself."""
    while True:
        batch: tuple[int, ...] = ()
        try:
            batch, found = _who_is_next(run)
            if not batch:
                return (), None
            if not found:
                watch = run.cluster.watch(batch)
                found = _changed(run, batch, watch)
                if not found:
                    return batch, watch
        except ConnectionFailed as exc:
            found = [Blocker(None, None, exc.message)]
        who = f"broker {ids(batch)}" if batch else "the next broker"
        if run.clock.now() >= until:
            raise TimedOut(f"{who} cannot be taken down: {said(found)}", hint="kctl cluster health tells what is wrong")
        run.told.update(f"waiting before {who}: {said(found)}", *share(run))
        run.clock.sleep(POLL_S * 4)


def _who_is_next(run: Run) -> tuple[tuple[int, ...], list[Blocker]]:
    """Who goes next, and what keeps it: the controller may be another one by now. () when one has gone by itself."""
    controller = run.cluster.controller()  # before the look: it asks each broker with ZooKeeper, and may wait
    seen = run.cluster.look(_to_do(run))
    if not seen.state.brokers.keys() >= set(_to_do(run)):
        return (), []
    batch = next_batch(
        _to_do(run),
        {node: row.broker.rack for node, row in run.state.brokers.items()},
        controller,
        max_unavailable=run.options.max_unavailable,
        fits=lambda brokers: fit(seen, brokers, run.state.brokers),
    )
    return batch, _in_the_way(run, seen, batch)


def _changed(run: Run, batch: Sequence[int], watch: Watch) -> list[Blocker]:
    """What keeps them at a last look: the watch took its time to begin. It is ended when something does."""
    found: list[Blocker] | None = None
    try:
        seen = run.cluster.look(_to_do(run))
        gone = sorted(set(_to_do(run)).difference(seen.state.brokers))
        found = [Blocker(None, None, f"broker {ids(gone)} has gone")] if gone else _in_the_way(run, seen, batch)
    finally:
        if found != []:
            watch.end()
    return found


def _in_the_way(run: Run, seen: Seen, batch: Sequence[int]) -> list[Blocker]:
    return _gone(run, seen) or gate(seen, batch, list(run.state.brokers))


def _gone(run: Run, seen: Seen) -> list[Blocker]:
    """Brokers that were restarted, and are down again: whatever that is, the next must not meet it."""
    return [
        Blocker(None, None, f"broker {node} was restarted, and is down again")
        for node, row in run.state.brokers.items()
        if row.phase is Phase.DONE and node not in seen.state.brokers
    ]


# --- one broker, or a few of a rack -----------------------------------------------------------------------------------


def _restart(run: Run, batch: Sequence[int], watch: Watch) -> None:
    began = run.clock.now()
    try:
        _stop_all(run, batch)
        bring_back(run, batch, began=began, watched=watch.end)
    finally:
        watch.end()


def _stop_all(run: Run, batch: Sequence[int]) -> None:
    """One that does not stop ends the run; those that went before it do not stay down for it."""
    try:
        for node in batch:
            _stop(run, node)
    except KctlError as exc:
        stopped = [node for node in batch if run.state.brokers[node].phase is Phase.STOPPED]
        if stopped:
            run.told.note(f"{exc.message}; broker {ids(stopped)} is started again")
            try:
                start_all(run, stopped)
            except KctlError as other:
                run.told.note(other.message)
        raise


def _stop(run: Run, node: int) -> None:
    began = run.clock.now()
    until = began + run.options.broker_timeout_s
    run.told.update(f"broker {node}: stopping", *share(run))
    run.entry(Step.STOP, broker=node)
    run.control.stop(node, timeout_s=max(1.0, until - run.clock.now()))
    _until_gone(run, node, until)
    run.entry(Step.STOPPED, broker=node, stop_ms=ms(run, began))


def _until_gone(run: Run, node: int, until: float) -> None:
    """A broker that was not shut down cleanly is there until its session ends."""
    while not _is_gone(run, node):
        if run.clock.now() >= until:
            raise TimedOut(
                f"broker {node} was stopped and the cluster still lists it",
                hint="does the command to stop it really end its process?",
            )
        run.told.update(f"broker {node}: waiting until the cluster no longer lists it", *share(run))
        run.clock.sleep(POLL_S)


def _is_gone(run: Run, node: int) -> bool:
    try:
        return node not in run.cluster.registered()
    except ConnectionFailed:
        return False


def _elect(run: Run) -> None:
    why_not = run.cluster.why_no_election()
    if why_not is not None:  # of a run that was begun before this was looked at: its brokers are all back
        run.told.note(f"{why_not}: the leaders stay until the brokers rebalance them")
        return
    run.told.update("electing the preferred leaders", *share(run))
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


def where_it_stands(run: Run) -> str:
    """`situation`, after a look at who is there now: a start that failed was taken back."""
    try:
        return situation(run.state, run.cluster.registered())
    except KctlError:
        return situation(run.state)
