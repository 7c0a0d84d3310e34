"""Actions on a broker's process: signals for clusters that kctl set up, the user's commands for any other."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, Protocol

Act = Literal["stop", "start", "kill", "pause", "unpause"]


class BrokerControl(Protocol):
    """Actions on one broker. Each returns when it has taken effect: the process ended, runs, or is paused.

    acts: the supported actions. An action raises NotFound for an unknown broker, Refused if it is not supported, and
    TimedOut or OperationFailed if it was started and did not succeed.
    """

    acts: Collection[Act]

    def stop(self, broker: int, *, timeout_s: float) -> None:
        """Shut the broker down in a controlled way. No effect if it does not run."""

    def start(self, broker: int, *, timeout_s: float) -> None:
        """Start the broker, if necessary after its old ZooKeeper session has expired. No effect if it runs."""

    def kill(self, broker: int) -> None:
        """Kill the broker with SIGKILL."""

    def pause(self, broker: int) -> None:
        """Pause the broker with SIGSTOP: it keeps its connections but does not respond."""

    def unpause(self, broker: int) -> None:
        """Resume the broker. No effect if it is not paused."""
