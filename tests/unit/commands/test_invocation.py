"""What the options of every command mean for the requests of one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kctl.commands.terminal.invocation import Invocation
from kctl.protocol import client


@pytest.mark.parametrize(
    ("given", "request_s"),
    [(None, 30.0), ("5s", 5.0), ("2m", 120.0), ("24h", 300.0)],
    ids=["not given", "shorter", "longer", "longer than a silent broker is waited for"],
)
def test_a_request_has_a_limit_of_its_own(given: str | None, request_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[float] = []

    def connected(_target: Any, *, timeout_s: float) -> Any:
        limits.append(timeout_s)
        return SimpleNamespace(warnings=())

    monkeypatch.setattr(client, "connect", connected)
    inv = Invocation(bootstrap_server="127.0.0.1:1", timeout=given)
    inv.connect()
    assert limits == [request_s]
    if given == "24h":
        assert inv.timeout_s(30.0) == 86_400
