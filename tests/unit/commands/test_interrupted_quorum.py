"""An interrupted change of the voters says that it may be unfinished, and how to continue."""

from __future__ import annotations

import os
import signal
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from kctl.base.address import Address
from kctl.commands.quorum import change as command
from kctl.quorum import change as change_module
from kctl.quorum.plan import VoterAction, VoterChange, VoterStep

CHANGE = VoterChange(
    VoterAction.ADD, 104, "dir", "CONTROLLER", Address("host", 9104), (101,), (101, 104), (VoterStep.ADD,)
)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_change_says_how_to_continue(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(change_module, "carry_out", lambda *_, **__: os.kill(os.getpid(), number))
    client = SimpleNamespace(target=SimpleNamespace(name="dev"))
    inv: Any = SimpleNamespace(
        connect=lambda **_: nullcontext(client), confirm=lambda *_, **__: None, timeout_s=lambda seconds: seconds
    )
    with pytest.raises(KeyboardInterrupt):
        command._change(inv, lambda _client: CHANGE, dry_run=False)
    error = capsys.readouterr().err
    assert "the change of controller 104 may be unfinished: run the same command again to continue" in error
