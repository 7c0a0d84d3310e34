"""Plan a change of the voters from the facts of now."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from kctl.base.deadline import Deadline
from kctl.errors import NotFound, Reason, Refused
from kctl.quorum.facts import read_facts
from kctl.quorum.own_controller import find_own
from kctl.quorum.plan import VoterChange, plan_add, plan_remove

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_JOIN_S = 20.0
_POLL_S = 0.5


def prepare_add(client: ClusterClient, node_id: int) -> VoterChange:
    """Plan to add a voter. Waits for a controller that kctl has just started; see `plan_add` for the errors."""
    deadline = Deadline(_JOIN_S)
    while True:
        facts = read_facts(client, watch=True)
        own = find_own(facts, node_id)
        try:
            return plan_add(facts, node_id, own)
        except Refused as exc:
            may_join = isinstance(exc, NotFound) or exc.reason == Reason.NOT_READY.value
            if own is None or node_id not in own.running or not may_join or deadline.expired:
                raise
        time.sleep(_POLL_S)


def prepare_remove(client: ClusterClient, node_id: int, *, while_running: bool) -> VoterChange:
    """Plan to remove a voter; see `plan_remove` for the errors."""
    facts = read_facts(client, watch=True)
    return plan_remove(facts, node_id, find_own(facts, node_id), while_running=while_running)
