"""Topics that this user may not describe. Metadata of all topics leaves them out without a word; the brokers' disks,
which are told with Describe on the cluster alone, show that they are there."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from kctl.base.text import counted
from kctl.cluster.log_dirs import LogDir
from kctl.cluster.rights import NEED_ALL_TOPICS, may_describe_all_topics
from kctl.errors import KctlError, NotAuthorized
from kctl.health.model import Check, Facts, Status
from kctl.model import ClusterState

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


def hidden_topics(
    client: ClusterClient, state: ClusterState, log_dirs: Mapping[int, Sequence[LogDir] | KctlError]
) -> tuple[str, ...] | KctlError:
    """Topics on the disks that this user may not describe, by name; or why that is not known.

    Those that are on disks and not in `state` are asked for by name: they may have come or gone meanwhile. log_dirs:
    with all replicas. Where this user may not read them, it is asked whether topics can be hidden at all.
    """
    unseen = sorted(_on_disks(log_dirs) - state.topics.keys())
    if not unseen:
        kept = any(isinstance(found, NotAuthorized) for found in log_dirs.values())
        if kept and may_describe_all_topics(client) is False:
            return NotAuthorized(f"only topics that this user may describe are judged: {NEED_ALL_TOPICS}")
        return ()
    try:
        failed = client.metadata(unseen, keep_errors=True).failed
    except KctlError as exc:
        return exc
    return tuple(sorted(name for name, error in failed.items() if isinstance(error, NotAuthorized)))


def _on_disks(log_dirs: Mapping[int, Sequence[LogDir] | KctlError]) -> set[str]:
    told = (found for found in log_dirs.values() if not isinstance(found, KctlError))
    return {replica.topic for dirs in told for log_dir in dirs for replica in log_dir.replicas}


def hidden_line(hidden: Collection[str]) -> str:
    """In words, for what is not complete because of them."""
    return f"{counted(len(hidden), 'topic')} on the brokers' disks may not be described by this user"


def check_topics(facts: Facts) -> Check:
    """Whether the partitions that the other rules judge are all that there are."""
    if isinstance(facts.hidden, KctlError):
        summary = f"{counted(len(facts.state.topics), 'topic')} seen; whether there are more is not known"
        return Check("topics", Status.UNKNOWN, summary, reasons=(facts.hidden.message,))
    if facts.hidden:
        line = hidden_line(facts.hidden)
        return Check("topics", Status.UNKNOWN, line, tuple(facts.hidden), (f"{line}: nothing is known of them",))
    return Check("topics", Status.OK, f"{counted(len(facts.state.topics), 'topic')} seen")
