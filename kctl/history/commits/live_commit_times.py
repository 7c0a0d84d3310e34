"""Commit times for a report, read from the live cluster: for hosts that cannot read the brokers' log dirs.

kctl's main process reads the log of __consumer_offsets, keeps what the passes of the report need (about 33 bytes per
partition and pass) and adds it to the plan. This suits reports of a few thousand partitions; for larger ones the tasks
read the logs (LagQuery.offsets_logs).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kctl.errors import Reason, Refused
from kctl.history.commits.commit_log import Span
from kctl.history.commits.commit_times import times_of_cluster
from kctl.history.commits.matching import SLACK_MS
from kctl.history.snapshots.remote import parse_location
from kctl.history.snapshots.store import open_store
from kctl.lag.offsets_topic import partition_of
from kctl.lag.selection import Names
from kctl.segment.format.offset_commits import TOPIC

if TYPE_CHECKING:
    from kctl.history.lag.plan import LagPlan
    from kctl.protocol.client import ClusterClient


def with_commit_times(client: ClusterClient, plan: LagPlan) -> LagPlan:
    """Return the plan with the commit times of the offsets in its passes. Read failures are added to its failures.

    Raises Refused for the store of another cluster, and the errors of ClusterClient.
    """
    query, failures = plan.query, list(plan.failures)
    if query.store is not None:
        _check_cluster(client, open_store(parse_location(query.store)).cluster_id)
    span = Span(None, query.to_ms + SLACK_MS, *query.groups.bounds)
    partitions = _partitions(client, query.groups)
    times = times_of_cluster(client, partitions, query.passes, span, report=failures.append)
    return replace(plan, query=replace(query, commit_times=times), failures=tuple(failures))


def _check_cluster(client: ClusterClient, stored: str | None) -> None:
    result = client.metadata(()).cluster_id
    if result != stored:
        raise Refused(
            f"the store has snapshots of cluster {stored}, but this is cluster {result}",
            hint="select the cluster of the store with --context NAME or --bootstrap-server",
            reason=Reason.WRONG_CLUSTER,
        )


def _partitions(client: ClusterClient, groups: Names) -> set[int] | None:
    """Return the topic's partitions that hold the groups' commits; None: all, if groups are selected by pattern."""
    topic = client.metadata([TOPIC]).topics.get(TOPIC)
    if topic is None or not groups.exact or len(groups.exact) < len(groups.patterns):
        return None
    return {partition_of(name, len(topic.partitions)) for name in groups.exact}
