"""Run a plan: do the next step of the journal until there is none. The process can be killed at any time.

All steps share a `Run`: the client, the journal, its state, and the listener. The steps are in kctl.reassign.run.batch
(moving), kctl.reassign.run.cancel (canceling), kctl.reassign.run.throttle_steps (throttles), and
kctl.reassign.run.outcome (the end).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kctl.errors import KctlError, Reason, Refused
from kctl.reassign.run.batch import move_batch
from kctl.reassign.run.cancel import cancel_batch, check_originals, finish_cancel, rows_in_flight
from kctl.reassign.run.outcome import elect, end
from kctl.reassign.run.run_state import Run, Stopped, Yielded
from kctl.reassign.run.steps import Mode, RunStep, next_step
from kctl.reassign.run.throttle_steps import restore_throttle, set_throttle

_PHASES = {
    RunStep.THROTTLE_SET: "setting the throttle",
    RunStep.THROTTLE_RESTORE: "restoring the throttle",
    RunStep.BATCH_START: "starting the next batch",
    RunStep.BATCH_CANCEL: "cancelling the batch",
    RunStep.CANCEL_START: "cancelling moves in flight",
    RunStep.ELECT_START: "electing preferred leaders",
    RunStep.END: "verifying the result",
}


def carry_out(run: Run) -> None:
    """Do the next step until the run has ended or is paused.

    Raises Yielded, and Stopped with the cluster's state for any other failure.
    """
    actions: dict[RunStep, Callable[[Run], None]] = {
        RunStep.THROTTLE_SET: set_throttle,
        RunStep.THROTTLE_RESTORE: restore_throttle,
        RunStep.BATCH_START: move_batch,
        RunStep.BATCH_CANCEL: cancel_batch,
        RunStep.CANCEL_START: finish_cancel,
        RunStep.ELECT_START: elect,
        RunStep.END: end,
    }
    with _with_situation(run):
        while True:
            run.handle_requests()
            step = next_step(run.state)
            if step is None:
                return
            run.listener.phase(_PHASES[step])
            actions[step](run)


def cancel(run: Run) -> None:
    """Cancel moves in flight, and end the run. Raises Refused if a partition would be lost, else like carry_out."""
    if run.state.mode is not Mode.CANCELLED:
        with _with_situation(run):
            check_originals(run, rows_in_flight(run))
            run.write(RunStep.CANCEL_START, pid=os.getpid())
    carry_out(run)


def pause(run: Run, *, now: bool) -> None:
    """Complete the batch, or cancel it (`now`), then restore throttles. Raises like `cancel`; Refused if canceled."""
    if run.state.mode is Mode.CANCELLED:
        raise Refused(
            "the run is being canceled, not paused",
            hint="to continue: `kctl topic reassign cancel`",
            reason=Reason.RUN_STATE,
        )
    if run.state.mode is not Mode.PAUSED or (now and not run.state.pause_now):
        with _with_situation(run):
            if now:
                check_originals(run, rows_in_flight(run))
            run.write(RunStep.PAUSE, now=now, pid=os.getpid())
    carry_out(run)


def resume(run: Run, *, rate_bytes: int | None, new_rate: bool) -> None:
    """Resume a run that was stopped or paused, or that ended and left throttles on brokers that were down.

    new_rate: change the throttle to `rate_bytes` (None: no throttle).
    """
    if run.state.mode is not Mode.CANCELLED or run.state.throttle_left is not None:
        with _with_situation(run):
            run.write(RunStep.RESUME, pid=os.getpid(), **({"rate_bytes": rate_bytes} if new_rate else {}))
    carry_out(run)


@contextmanager
def _with_situation(run: Run) -> Iterator[None]:
    """Add the state of the cluster to every error."""
    try:
        yield
    except (Stopped, Yielded, Refused):
        raise
    except KctlError as exc:
        raise run.stopped(exc.message, hint=exc.hint, **exc.details) from exc
