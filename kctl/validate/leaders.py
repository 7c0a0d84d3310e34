"""Leaders of other topics, which faults move away: those that were preferred before are so again at the end."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import TYPE_CHECKING

from kctl.base.deadline import Deadline
from kctl.base.outcomes import ItemResult
from kctl.health.partitions import partitions_of
from kctl.leader.election import Election, carry_out, plan_preferred
from kctl.model import ClusterState, TopicPartition
from kctl.validate.leftovers import PREFIX

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_WAIT_S = 15.0  # for preferred replicas that are not in sync yet
_POLL_S = 1.0


def astray(state: ClusterState) -> frozenset[TopicPartition]:
    """Partitions that another than their preferred replica leads, or none. Pure."""
    return frozenset(row.tp for row in plan_preferred(state, list(partitions_of(state))))


def moved(state: ClusterState, before: Collection[TopicPartition]) -> list[Election]:
    """Of topics that no validation made: elections of what is `astray` now and was not before. Pure."""
    others = [p for p in partitions_of(state) if p.tp not in before and not p.topic.startswith(PREFIX)]
    return plan_preferred(state, others)


def put_back(client: ClusterClient, before: Collection[TopicPartition], *, wait_s: float = _WAIT_S) -> list[Election]:
    """Elect the preferred leaders of what was moved; those that could not be, with the reason.

    before: `astray` of then. wait_s: for preferred replicas to be in sync. Raises what `carry_out` does.
    """
    deadline = Deadline(wait_s)
    while True:
        plan = moved(client.metadata(), before)
        if deadline.expired or all(row.result is ItemResult.WOULD_ELECT for row in plan):
            return [row for row in carry_out(client, plan) if row.result is not ItemResult.ELECTED]
        time.sleep(_POLL_S)
