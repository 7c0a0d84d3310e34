"""What is said of a quorum that cannot be read."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from kctl.base.deadline import Deadline
from kctl.errors import ConnectionTimedOut, KctlError
from kctl.protocol.quorum import Quorum
from kctl.quorum import facts

HANGS = ConnectionTimedOut("the broker did not respond to DescribeQuorum within 2.5 s")
NO_LEADER = Quorum(None, -1, -1, (), (), (), "1 of 3 controllers responds")


@pytest.mark.parametrize(
    ("answers", "controllers", "error", "message"),
    [
        ([HANGS, HANGS], False, ConnectionTimedOut, "the broker did not respond"),
        ([NO_LEADER, HANGS], False, facts.NoLeader, "no active controller: 1 of 3 controllers responds"),
        ([HANGS, NO_LEADER], False, facts.NoLeader, "no active controller: 1 of 3 controllers responds"),
        ([HANGS, HANGS], True, facts.NoLeader, "the metadata quorum has no leader"),
    ],
)
def test_brokers_that_hang_are_not_called_a_quorum_without_a_leader(
    answers: list[Quorum | KctlError],
    controllers: bool,
    error: type[KctlError],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pending = list(answers)

    def describe(_client: object) -> Quorum:
        answer = pending.pop(0)
        if not pending:
            monkeypatch.setattr(Deadline, "expired", property(lambda _self: True))
        if isinstance(answer, KctlError):
            raise answer
        return answer

    monkeypatch.setattr(facts, "describe_quorum", describe)
    monkeypatch.setattr(facts, "_POLL_S", 0.0)
    client: Any = SimpleNamespace(target=SimpleNamespace(controllers=controllers), ending_by=nullcontext)
    with pytest.raises(error, match=message):
        facts.read_facts(client)
