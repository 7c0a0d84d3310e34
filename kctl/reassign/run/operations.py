"""Operations on runs, each in one call: apply, rollback, cancel, pause, resume, verify.

The operator (a terminal, a playbook, a script) receives warnings and progress, and confirms. No change is made before
`confirm` returns.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from kctl.base import journal
from kctl.base.deadline import Deadline
from kctl.base.journal import Journal
from kctl.cluster import unchanged
from kctl.cluster.unchanged import Basis
from kctl.errors import NotFound, OperationFailed, Reason, Refused, TimedOut
from kctl.reassign.plan_file.read import PlanFile, reversed_plan
from kctl.reassign.planner.warnings import about_one_replica, lowered_by
from kctl.reassign.run import journals, take_over
from kctl.reassign.run import run as runs
from kctl.reassign.run.journals import RunRequest
from kctl.reassign.run.outcome import RunResult, result_of, result_without_run
from kctl.reassign.run.prepare import Prepared, RunOptions, prepare
from kctl.reassign.run.run_plan import RunPlan
from kctl.reassign.run.run_state import WAYS_OUT, Run, RunListener, open_run
from kctl.reassign.run.run_status import LastRun, RunSummary, last_run, read_run, read_status, with_throttle_left
from kctl.reassign.run.steps import RunState
from kctl.reassign.run.take_over import PlanInFlight
from kctl.reassign.run.verify import PlanVerification, compare_plan

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_YIELD_S = 120.0
_YIELD_POLL_S = 0.2
_MAX_WARNINGS = 20  # of a plan: an external file may have any number


class Operator(Protocol):
    """A watcher of an operation. The context managers wrap long waits."""

    def note(self, line: str) -> None: ...

    def warn(self, line: str) -> None: ...

    def watching(self) -> AbstractContextManager[RunListener]:
        """Enter before a run starts or resumes in this process, leave when it has ended or stopped."""
        ...

    def waiting(self) -> AbstractContextManager[Callable[[], None]]:
        """Enter before waiting for another process; the function is called repeatedly."""
        ...


@dataclass(frozen=True, slots=True)
class ApplyRequest:
    """A plan to apply. source: the plan's name, for messages. dry_run: check only."""

    file: PlanFile
    source: str
    options: RunOptions = field(default_factory=RunOptions)
    kind: str = "apply"
    dry_run: bool = False


# --- starting a run -------------------------------------------------------------------------------------------------


def apply(
    client: ClusterClient, request: ApplyRequest, operator: Operator, confirm: Callable[[Prepared, Basis], None]
) -> Prepared | RunResult:
    """Check a plan, confirm, and run it; return the prepared run if it is a dry run.

    Raises Refused with all reasons why the plan cannot run, the errors of `confirm`, and Stopped.
    """
    refuse_while_unfinished(client)
    prepared = prepare(
        client, request.file, request.options, kind=request.kind, source=request.source, cluster=client.target.name
    )
    for line in _warnings(request.file, prepared):
        operator.warn(line)
    topic_ids = {r.topic: r.topic_id for r in prepared.plan.reassignments}
    basis = unchanged.topics(client, topic_ids, ids=topic_ids, replicas=True)
    if request.dry_run:
        return prepared
    if not prepared.todo:
        operator.note(f"nothing to do: every partition of {prepared.plan.source} is at its target")
        return result_without_run(client, prepared.plan)
    confirm(prepared, basis)
    with journals.begin(with_throttle_left(prepared.plan)) as locked:
        return continue_run(client, locked, operator, runs.carry_out)


def _warnings(file: PlanFile, prepared: Prepared) -> list[str]:
    lines = [*prepared.unchecked, *(f"plan: {line}" for line in file.warnings[:_MAX_WARNINGS])]
    lines += [f"plan: {line}" for line in file.unmet[:_MAX_WARNINGS]]
    if not file.warnings:  # files of Kafka's tool and rollbacks have no warnings
        lines += about_one_replica(lowered_by(prepared.todo))
    if not file.complete and not file.unmet:
        lines.append("the plan does not reach all its goals")
    return lines


def last_run_reversed(client: ClusterClient) -> tuple[PlanFile, str]:
    """Return the reverse of the last run on this machine, and its name. Raises NotFound, Refused."""
    refuse_while_unfinished(client)
    last = last_run(cluster_id(client))
    refuse_second_rollback(last.plan)
    return reversed_plan(last.file), f"{last.path.stem} ({last.plan.kind} of {last.plan.source})"


def refuse_second_rollback(last: RunPlan) -> None:
    """Raise Refused if the last run was a rollback: its reverse would apply the plan under the name of a rollback."""
    if last.kind == "rollback":
        raise Refused(
            f"the last run was itself a rollback of {last.source}",
            hint="name the plan: `kctl topic reassign apply PLAN` applies it again, `rollback PLAN` rolls it back",
            reason=Reason.RUN_STATE,
        )


def cancel_plan(
    client: ClusterClient,
    file: PlanFile,
    source: str,
    operator: Operator,
    *,
    report: Callable[[PlanInFlight], None],
    confirm: Callable[[PlanInFlight, Basis], None] | None,
) -> PlanInFlight | RunResult:
    """Cancel the moves in flight of a plan whose journal is on another machine; confirm None: only report them.

    report: called first, with the moves in flight and their throttles. Raises like `apply`.
    """
    refuse_while_unfinished(client)
    basis = unchanged.topics(client, {r.topic for r in file.reassignments})
    in_flight = take_over.read_in_flight(client, file, source=source, cluster=client.target.name)
    report(in_flight)
    if confirm is None or not (in_flight.in_flight or in_flight.throttle):
        return in_flight
    confirm(in_flight, basis)
    with take_over.begin(in_flight) as locked:
        return continue_run(client, locked, operator, runs.cancel)


# --- the unfinished run ---------------------------------------------------------------------------------------------


def cancel(
    client: ClusterClient,
    operator: Operator,
    confirm: Callable[[Path, RunSummary | None], None],
    *,
    timeout_s: float | None = None,
) -> RunResult:
    """Cancel the moves in flight of the unfinished run, and end the run. timeout_s: see `lock_journal`."""
    path = unfinished_run(client)
    confirm(path, read_status(client).run)
    with lock_journal(path, operator, RunRequest.CANCEL, timeout_s=timeout_s) as locked:
        return continue_run(client, locked, operator, runs.cancel)


def pause(client: ClusterClient, operator: Operator, *, now: bool, timeout_s: float | None = None) -> RunResult:
    """Pause the unfinished run after its batch, or `now`. timeout_s: see `lock_journal`."""

    def act(run: Run) -> None:
        if run.state.outcome is None:
            runs.pause(run, now=now)

    path = unfinished_run(client)
    with lock_journal(path, operator, RunRequest.PAUSE_NOW if now else RunRequest.PAUSE, timeout_s=timeout_s) as locked:
        return continue_run(client, locked, operator, act)


@dataclass(frozen=True, slots=True)
class NewRate:
    """The new throttle; None: no throttle."""

    rate_bytes: int | None


def resume(
    client: ClusterClient,
    operator: Operator,
    confirm: Callable[[RunState], None],
    *,
    begin: Callable[[RunState], None],
    new_rate: NewRate | None = None,
) -> RunResult:
    """Resume the unfinished run, or a run that left throttles on brokers that were down. new_rate: None to keep it.

    begin: called when the journal is locked, immediately before the run continues.
    """

    def act(run: Run) -> None:
        begin(run.state)
        runs.resume(run, rate_bytes=new_rate.rate_bytes if new_rate else None, new_rate=new_rate is not None)

    path = unfinished_run(client, reopen=True)
    confirm(read_run(path).state)
    with lock_journal(path, operator) as locked:
        return continue_run(client, locked, operator, act)


@dataclass(frozen=True, slots=True)
class Verified:
    """The result of `verify`. own_run: the last run on this machine, if it ran this plan."""

    verification: PlanVerification
    own_run: LastRun | None


def verify(client: ClusterClient, file: PlanFile | None, report: Callable[[LastRun], None]) -> Verified:
    """Compare a plan with the cluster; file None: the plan of the last run on this machine, which is reported.

    Raises NotFound if there is no last run.
    """
    last: LastRun | None
    try:
        last = last_run(cluster_id(client))
    except NotFound:
        if file is None:
            raise
        last = None
    if file is None:
        assert last is not None, "raised above"
        file = last.file
        report(last)
    own_run = last if last is not None and last.plan.digest == file.digest else None
    throttle = None if own_run is None else own_run.last_throttle
    return Verified(compare_plan(client, file.reassignments, file.remove_brokers, throttle), own_run)


# --- which run ------------------------------------------------------------------------------------------------------


def cluster_id(client: ClusterClient) -> str:
    """Return the cluster id, which names the folder of the cluster's journals."""
    name = client.metadata(()).cluster_id
    if name is None:
        raise OperationFailed("the cluster does not report its id")
    return name


def unfinished_run(client: ClusterClient, *, reopen: bool = False) -> Path:
    """Return the journal of the unfinished run. Raises NotFound.

    reopen: accept a run that has ended, but left throttles on brokers that were down.
    """
    path = journals.unfinished(cluster_id(client))
    if path is None and reopen:
        path = _with_throttle_left(cluster_id(client))
    if path is None:
        raise NotFound(
            f"no unfinished reassignment of {client.target.name} was started on this machine",
            hint="`kctl topic reassign status` shows the moves in the cluster; resume a run on the machine that started"
            " it, or cancel its moves with `kctl topic reassign cancel --plan FILE`",
        )
    return path


def _with_throttle_left(cluster: str) -> Path | None:
    try:
        last = last_run(cluster)
    except NotFound:
        return None
    return last.path if last.state.throttle_left is not None else None


def refuse_while_unfinished(client: ClusterClient) -> None:
    """Raise Refused if a run of this cluster has not ended."""
    other = journals.unfinished(cluster_id(client))
    if other is not None:
        journals.refuse_second(other)


# --- locking the journal -------------------------------------------------------------------------------------------


def lock_journal(
    path: Path, operator: Operator, request: RunRequest | None = None, *, timeout_s: float | None = None
) -> Journal:
    """Lock the journal; with `request`, ask the process that holds it to release it, and wait.

    timeout_s: the limit of that wait; None: no limit for the end of a batch (PAUSE), else two minutes. Raises TimedOut
    if that process does not release the journal; Busy if a process holds it and there is no request.
    """
    if request is not None and journal.is_locked(path):
        limit_s = _YIELD_S if timeout_s is None and request is not RunRequest.PAUSE else timeout_s
        journals.write_request(path, request)
        with operator.waiting() as waiting:
            _wait_until_free(path, limit_s, waiting)
    elif journal.is_locked(path):
        journals.refuse_second(path)
    locked = journal.resume(path)
    journals.withdraw_request(path)  # not earlier: the other process would miss the request
    return locked


def _wait_until_free(path: Path, limit_s: float | None, waiting: Callable[[], None]) -> None:
    deadline = None if limit_s is None else Deadline(limit_s)
    while journal.is_locked(path):
        if deadline is not None and deadline.expired:
            raise TimedOut(
                f"the kctl process that runs {path.stem} did not release it within {deadline.seconds:g} s",
                hint="run this command again when the process responds, or wait longer with --timeout",
            )
        waiting()
        time.sleep(_YIELD_POLL_S)


def continue_run(client: ClusterClient, locked: Journal, operator: Operator, act: Callable[[Run], None]) -> RunResult:
    """Let `act` continue the run of a journal. If interrupted, report the moves in flight and how to resume."""
    with operator.watching() as listener:
        run = open_run(client, locked, listener)
        try:
            act(run)
        except KeyboardInterrupt:
            if run.state.outcome is None:
                listener.note(run.situation())
                listener.note(WAYS_OUT)
            raise
        return result_of(run)
