"""Ctrl-C that is kept for later, and signals that end a command as Ctrl-C does."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kctl.commands.terminal.interrupts import call_on_interrupt, interrupt_when_terminated
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


# --- signals that end a command ---------------------------------------------------------------------------------------


@contextmanager
def _disposed(number: signal.Signals, handler: signal.Handlers) -> Iterator[None]:
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_command_is_ended(number: signal.Signals) -> None:
    with _disposed(number, signal.SIG_DFL):
        with pytest.raises(KeyboardInterrupt), interrupt_when_terminated():
            os.kill(os.getpid(), number)
        assert signal.getsignal(number) is signal.SIG_DFL


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_what_is_ignored_stays_ignored(number: signal.Signals) -> None:
    """nohup ignores SIGHUP, so that the command outlives the terminal."""
    told: list[str] = []
    with _disposed(number, signal.SIG_IGN):
        with interrupt_when_terminated(), call_on_interrupt(lambda: told.append("stop")):
            os.kill(os.getpid(), number)
        assert signal.getsignal(number) is signal.SIG_IGN
    assert told == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_others_are_told(number: signal.Signals) -> None:
    told: list[str] = []
    with _disposed(number, signal.SIG_DFL), call_on_interrupt(lambda: told.append("stop")):
        os.kill(os.getpid(), number)
    assert told == ["stop"]
