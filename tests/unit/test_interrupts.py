"""Ctrl-C that is kept for later."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from kctl.deploy.interrupts import deferred_interrupts


def interrupted(done: list[str], error: Exception | None = None) -> None:
    with deferred_interrupts():
        os.kill(os.getpid(), signal.SIGINT)
        done.append("the rest of the block")
        if error is not None:
            raise error


def test_kept_until_the_end() -> None:
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted(done)
    assert done == ["the rest of the block"]


def test_it_takes_effect_though_the_block_failed() -> None:
    """Whoever polls passes over a lost connection, and must not pass over Ctrl-C with it."""
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt) as caught:
        interrupted([], ValueError("mine"))
    assert isinstance(caught.value.__context__, ValueError)
    assert signal.getsignal(signal.SIGINT) is before


def test_other_threads_do_nothing() -> None:
    errors: list[BaseException] = []

    def work() -> None:
        try:
            with deferred_interrupts():
                pass
        except BaseException as exc:  # noqa: BLE001 - whatever it is
            errors.append(exc)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert errors == []
