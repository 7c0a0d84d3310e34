"""The shares of a report in processes of their own: results in order, and every way to end without one."""

from __future__ import annotations

import os
import signal

import pytest

from kctl.errors import OperationFailed
from kctl.history.evaluate.processes import each_share


def test_results_are_in_the_order_of_the_shares() -> None:
    assert each_share(int, ["1", "2", "3"]) == [1, 2, 3]
    assert each_share(int, []) == []


def test_shares_have_processes_of_their_own() -> None:
    here, there = each_share(os.getpgid, [0, 0])
    assert here == os.getpgid(0) != there


def test_what_cannot_be_evaluated_is_raised_here() -> None:
    with pytest.raises(ValueError, match="'x'"):
        each_share(int, ["1", "x"])
    with pytest.raises(RuntimeError, match="TypeError"):
        each_share(int, ["1", None])  # type: ignore[arg-type]


def test_a_process_that_is_killed() -> None:
    with pytest.raises(OperationFailed, match="exit code -9"):
        each_share(signal.raise_signal, [0, signal.SIGKILL])
