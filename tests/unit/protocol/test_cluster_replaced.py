"""A command talks to one cluster from its beginning to its end, whoever answers at an address later."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from kctl.base.address import Address
from kctl.base.deadline import Deadline
from kctl.errors import ClusterReplaced, KctlError
from kctl.model import Broker, ClusterState
from kctl.protocol import preflight
from kctl.protocol.brokers import Brokers


class _Connection:
    def __init__(self, *, usable: bool = True) -> None:
        self.address = Address("h", 1)
        self.usable = usable
        self.closed = False

    def close(self) -> None:
        self.closed = True


def _state(cluster_id: str | None) -> ClusterState:
    return ClusterState(cluster_id, 1, {1: Broker(1, "h", 1), 2: Broker(2, "h", 2)}, {})


CASES = [("A", "A", False), ("A", "B", True), (None, "B", False), ("A", None, False), (None, None, False)]


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    def make(first: str | None, later: str | None) -> tuple[Brokers, _Connection]:
        """Brokers whose first connection breaks; what answers then is of the cluster `later`."""
        again = _Connection()
        reached = [
            preflight.PreflightResult(_Connection(usable=False), _state(first)),  # type: ignore[arg-type]  # as a connection
            preflight.PreflightResult(again, _state(later)),  # type: ignore[arg-type]
        ]
        monkeypatch.setattr(preflight, "preflight", lambda *_, **__: reached.pop(0))
        return Brokers(("h:1",), SimpleNamespace(), 1.0), again  # type: ignore[arg-type]

    return make


@pytest.mark.parametrize(("first", "later", "refused"), CASES)
def test_a_connection_is_made_again(brokers: Any, first: str | None, later: str | None, refused: bool) -> None:
    known, again = brokers(first, later)
    if not refused:
        assert known.any_connection(Deadline(1)) is again
        return
    with pytest.raises(ClusterReplaced, match="now belongs to cluster B; this command started with cluster A"):
        known.any_connection(Deadline(1))
    assert again.closed


@pytest.mark.parametrize(("first", "later", "refused"), CASES)
def test_a_broker_that_advertises_itself(
    brokers: Any, monkeypatch: pytest.MonkeyPatch, first: str | None, later: str | None, refused: bool
) -> None:
    known, _ = brokers(first, later)
    monkeypatch.setattr(preflight, "Connection", lambda *_: _Connection())
    monkeypatch.setattr(preflight, "_open", lambda *_: _state(later))
    outcome = known.connections([2], Deadline(1))[2]
    assert isinstance(outcome, KctlError) == refused
    assert isinstance(outcome, ClusterReplaced) == refused
