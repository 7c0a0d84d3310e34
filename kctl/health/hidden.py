"""Topics that the user may not describe.

Metadata silently omits them. The brokers' log dirs, which require only DESCRIBE on the cluster, show that they exist.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from kctl.base.text import counted
from kctl.cluster.log_dirs import LogDir
from kctl.cluster.rights import NEED_ALL_TOPICS, may_describe_all_topics
from kctl.errors import KctlError, NotAuthorized
from kctl.health.model import Check, CheckStatus, Facts
from kctl.model import ClusterState

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


def hidden_topics(
    client: ClusterClient, state: ClusterState, log_dirs: Mapping[int, Sequence[LogDir] | KctlError]
) -> tuple[str, ...] | KctlError:
    """Return topics in the log dirs that the user may not describe, by name; or why they are unknown.

    Topics in log dirs but not in `state` are requested by name, since they may have been created or deleted meanwhile.
    log_dirs: with all replicas. If they are not readable, brokers are asked whether any topic can be hidden.
    """
    unlisted = sorted(_on_disks(log_dirs) - state.topics.keys())
    if not unlisted:
        denied = any(isinstance(each, NotAuthorized) for each in log_dirs.values())
        if denied and may_describe_all_topics(client) is False:
            return NotAuthorized(f"only topics that this user may describe are checked; {NEED_ALL_TOPICS}")
        return ()
    try:
        failed = client.metadata(unlisted, keep_errors=True).failed
    except KctlError as exc:
        return exc
    return tuple(sorted(name for name, error in failed.items() if isinstance(error, NotAuthorized)))


def _on_disks(log_dirs: Mapping[int, Sequence[LogDir] | KctlError]) -> set[str]:
    readable = (each for each in log_dirs.values() if not isinstance(each, KctlError))
    return {replica.topic for dirs in readable for log_dir in dirs for replica in log_dir.replicas}


def hidden_line(hidden: Collection[str]) -> str:
    """Return the message about hidden topics."""
    verb = "is" if len(hidden) == 1 else "are"
    return f"{counted(len(hidden), 'topic')} on the brokers' disks {verb} hidden from this user"


def check_topics(facts: Facts) -> Check:
    """Check that no topics are hidden from the other rules."""
    if isinstance(facts.hidden, KctlError):
        summary = f"{counted(len(facts.state.topics), 'topic')} visible; there may be more"
        return Check("topics", CheckStatus.UNKNOWN, summary, reasons=(facts.hidden.message,))
    if facts.hidden:
        line = hidden_line(facts.hidden)
        return Check("topics", CheckStatus.UNKNOWN, line, tuple(facts.hidden), (f"{line}: their health is unknown",))
    return Check("topics", CheckStatus.OK, f"{counted(len(facts.state.topics), 'topic')} visible")
