"""A member that does not get into its group: is that a rebalance, or a coordinator that does not answer?

JoinGroup may be answered after minutes, when other members are slow; so silence alone is no failure. The state of the
group, asked over a connection of kctl's own, tells.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from kctl.errors import ConnectionTimedOut, KctlError
from kctl.groups.describe import describe_groups

if TYPE_CHECKING:
    from kctl.client import ClusterClient

# A member that asked to join is waited for, or will be.
_REBALANCING = {"preparingrebalance", "completingrebalance", "stable", "assigning", "reconciling"}


class Joining:
    """For one member. limit_s: after how long without being one the group is looked at, again and again."""

    def __init__(self, client: ClusterClient, group: str, limit_s: float) -> None:
        self._client, self._group, self._limit_s = client, group, limit_s
        self._since = time.monotonic()

    def check(self, *, is_member: bool) -> None:
        """Raise ConnectionTimedOut where no rebalance explains the wait, or the error of asking for the state."""
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
                    hint="is the coordinator overloaded? --timeout gives it more time",
                )

    def _state(self) -> str:
        found = describe_groups(self._client, [self._group])
        failure: KctlError | None = found.failed_groups.get(self._group)
        if failure is not None:
            raise failure
        group = found.groups.get(self._group)
        return "not known" if group is None else group.state
