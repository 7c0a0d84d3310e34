"""Plan a change of the voters from the current state of the cluster."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from kctl.base.deadline import Deadline
from kctl.errors import KctlError, NotFound, Reason, Refused
from kctl.quorum.facts import QuorumFacts, read_facts
from kctl.quorum.node_settings import AUTO_JOIN_KEY, read_controller_settings
from kctl.quorum.own_controller import find_own
from kctl.quorum.plan import VoterChange, VoterStep, plan_add, plan_remove

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
    change = plan_remove(facts, node_id, find_own(facts, node_id), while_running=while_running)
    if while_running and VoterStep.REMOVE in change.steps:
        _refuse_auto_join(client, facts, node_id)
    return change


def _refuse_auto_join(client: ClusterClient, facts: QuorumFacts, node_id: int) -> None:
    """Raise Refused if the controller reports that it would join again. Unreadable settings are ignored."""
    address = (facts.controllers or {}).get(node_id)
    if address is None:
        return
    settings = read_controller_settings(client, {node_id: address})[node_id]
    if not isinstance(settings, KctlError) and settings.get(AUTO_JOIN_KEY) == "true":
        raise Refused(
            f"controller {node_id} runs with {AUTO_JOIN_KEY}=true: it would join again",
            hint="stop the controller, then run the command without --while-running",
            reason=Reason.UNSAFE,
        )
