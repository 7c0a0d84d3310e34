"""What can be done to a broker's process: kctl's own clusters by signals, any other by commands that the user gives."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, Protocol

Act = Literal["stop", "start", "kill", "pause", "unpause"]


class BrokerControl(Protocol):
    """Acts on one broker. Each returns when it is done: the process is gone, is there, is still.

    acts: what this control can do. Each act raises Refused for one that it cannot do or a broker that it does not know,
    TimedOut and OperationFailed when it was begun and did not succeed.
    """

    acts: Collection[Act]

    def stop(self, broker: int, *, timeout_s: float) -> None:
        """A clean stop: the broker hands its leaders over. Harmless when it does not run."""

    def start(self, broker: int, *, timeout_s: float) -> None:
        """Start its process, after its ZooKeeper session has expired where that is needed. Harmless when it runs."""

    def kill(self, broker: int) -> None:
        """kill -9."""

    def pause(self, broker: int) -> None:
        """It keeps its connections and is silent (SIGSTOP)."""

    def unpause(self, broker: int) -> None:
        """It goes on. Harmless when it was not paused."""
