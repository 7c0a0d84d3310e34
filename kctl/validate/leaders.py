"""Leaders of other topics: faults move them, and the preferred leaders are elected again at the end."""

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


def non_preferred(state: ClusterState) -> frozenset[TopicPartition]:
    """Return the partitions that are not led by their preferred replica. Pure."""
    return frozenset(row.tp for row in plan_preferred(state, list(partitions_of(state))))


def moved_leaders(state: ClusterState, before: Collection[TopicPartition]) -> list[Election]:
    """Return the elections for partitions of other topics that lost their preferred leader since `before`. Pure."""
    others = [p for p in partitions_of(state) if p.tp not in before and not p.topic.startswith(PREFIX)]
    return plan_preferred(state, others)


def restore_leaders(
    client: ClusterClient, before: Collection[TopicPartition], *, wait_s: float = _WAIT_S
) -> list[Election]:
    """Elect the preferred leaders of moved partitions. Return the elections that failed.

    before: `non_preferred` at the start. wait_s: maximum time for preferred replicas to be in sync. Raises
    like `carry_out`.
    """
    deadline = Deadline(wait_s)
    while True:
        plan = moved_leaders(client.metadata(), before)
        if deadline.expired or all(row.result is ItemResult.WOULD_ELECT for row in plan):
            return [row for row in carry_out(client, plan) if row.result is not ItemResult.ELECTED]
        time.sleep(_POLL_S)
