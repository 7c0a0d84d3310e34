"""Wait to join a group, and decide whether a rebalance or an unresponsive coordinator causes the delay.

If other members are slow, the response to JoinGroup may take minutes, so a silent coordinator alone is not a failure.
kctl reads the state of the group over a separate connection to decide.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from kctl.cluster.groups.describe import describe_groups
from kctl.errors import ConnectionTimedOut, KctlError

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

# States in which the coordinator waits, or will wait, for the new member.
_REBALANCING = {"preparingrebalance", "completingrebalance", "stable", "assigning", "reconciling"}


class Joining:
    """The wait of one member. limit_s: how long to wait before each look at the group's state."""

    def __init__(self, client: ClusterClient, group: str, limit_s: float) -> None:
        self._client, self._group, self._limit_s = client, group, limit_s
        self._since = time.monotonic()

    def check(self, *, is_member: bool) -> None:
        """Raise ConnectionTimedOut if no rebalance explains the wait, or the error of reading the state."""
        now = time.monotonic()
        if is_member:
            self._since = now
        elif now - self._since > self._limit_s:
            self._since = now
            state = self._state()
            if state.lower().replace("_", "") not in _REBALANCING:
                raise ConnectionTimedOut(
                    f"group {self._group}: its coordinator did not let this member join within {self._limit_s:g} s "
                    f"(the group is {state})",
                    hint="check the load of the coordinator, or raise --timeout to wait longer",
                )

    def _state(self) -> str:
        description = describe_groups(self._client, [self._group])
        failure: KctlError | None = description.failed_groups.get(self._group)
        if failure is not None:
            raise failure
        group = description.groups.get(self._group)
        return "unknown" if group is None else group.state
