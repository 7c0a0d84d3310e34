"""Operations on runs without a terminal: which journal is held, and when an operator waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kctl.base import journal
from kctl.errors import Busy, TimedOut
from kctl.reassign.planner.assignment import Reassignment
from kctl.reassign.run import journals
from kctl.reassign.run.journals import RunRequest
from kctl.reassign.run.operations import lock_journal
from kctl.reassign.run.run_plan import RunPlan
from kctl.reassign.run.run_state import RunListener

PLAN = RunPlan("apply", "p.json", "d", "c1", "dev", (Reassignment("t", 0, after=(2,), before=(1,)),), ((0,),))


class _Script:
    """An operator that lets go of a journal after some waits."""

    def __init__(self, held: journal.Journal, waits: int) -> None:
        self._held, self._waits = held, waits

    def note(self, line: str) -> None: ...

    def warn(self, line: str) -> None: ...

    @contextmanager
    def watching(self) -> Iterator[RunListener]:
        raise AssertionError("no run goes on here")
        yield

    @contextmanager
    def waiting(self) -> Iterator[Callable[[], None]]:
        yield self._wait

    def _wait(self) -> None:
        self._waits -= 1
        if self._waits == 0:
            self._held.close()


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def test_a_journal_is_held_when_the_other_process_lets_go() -> None:
    other = journals.begin(PLAN)
    with lock_journal(other.path, _Script(other, 2), RunRequest.CANCEL) as held:
        assert held.path == other.path
        assert journals.read_request(other.path) is None, "the request is withdrawn"


@pytest.mark.parametrize(
    ("request_", "error"), [(None, Busy), (RunRequest.CANCEL, TimedOut), (RunRequest.PAUSE, TimedOut)]
)
def test_a_process_that_does_not_let_go(request_: RunRequest | None, error: type[Exception]) -> None:
    with journals.begin(PLAN) as other:
        with pytest.raises(error):
            lock_journal(other.path, _Script(other, 0), request_, timeout_s=0.01)
        assert journals.read_request(other.path) is request_
