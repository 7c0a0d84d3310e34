"""Export all committed offsets of groups."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.cluster.groups.model import SHARE
from kctl.cluster.groups.names import describe_existing
from kctl.cluster.rights import refuse_hidden_topics
from kctl.errors import KctlError, Reason, Refused
from kctl.groups.group_offsets import fetch_commits
from kctl.groups.topic_choice import TopicChoice, matching

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


@dataclass(frozen=True, slots=True)
class ExportedOffset:
    """A committed offset. The field names are the JSON keys, which `group import` reads."""

    group: str
    topic: str
    partition: int
    committed_offset: int
    leader_epoch: int | None
    metadata: str


def exported(client: ClusterClient, groups: Sequence[str], choices: Sequence[TopicChoice] = ()) -> list[ExportedOffset]:
    """Return the committed offsets of the groups, in the selected topics, sorted.

    Raises NotFound for an unknown group or topic, NotAuthorized if brokers may omit offsets, and any other error: an
    export must be complete.
    """
    described = describe_existing(client, groups)
    for group in described.values():
        if group.type == SHARE:
            raise Refused(
                f"{group.group!r} is a share group, which has no committed offsets",
                hint="to save its start offsets, save a plan: kctl group reset-offsets GROUP --all-topics --to-current"
                " --dry-run -o json",
                reason=Reason.WRONG_TYPE,
            )
    if not choices:
        refuse_hidden_topics(client, hint="use --topic to select topics that this user may describe")
    coordinators = {name: group.coordinator for name, group in described.items()}
    rows: list[ExportedOffset] = []
    for name, commits in sorted(fetch_commits(client, groups, coordinators=coordinators).items()):
        if isinstance(commits, KctlError):
            raise commits
        for tp in matching(commits, choices):
            commit = commits[tp]
            epoch = commit.leader_epoch if commit.leader_epoch >= 0 else None
            rows.append(ExportedOffset(name, *tp, commit.offset, epoch, commit.metadata))
    _check_topics(client, {choice.topic for choice in choices} - {row.topic for row in rows})
    return rows


def _check_topics(client: ClusterClient, without: Collection[str]) -> None:
    """Raise if a topic without commits is hidden or does not exist."""
    from kctl.cluster.topics import known_topics

    if without:
        known_topics(client, sorted(without))
