"""All that groups have committed, as a file keeps it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.errors import KctlError, Refused
from kctl.groups.model import SHARE
from kctl.groups.names import describe_existing
from kctl.groups.reset import fetch_commits

if TYPE_CHECKING:
    from kctl.client import ClusterClient


@dataclass(frozen=True, slots=True)
class ExportedOffset:
    """What a group committed for a partition. The field names are the JSON keys, which `group import` reads."""

    group: str
    topic: str
    partition: int
    committed_offset: int
    leader_epoch: int | None
    metadata: str


def exported(client: ClusterClient, groups: Sequence[str]) -> list[ExportedOffset]:
    """The offsets of all groups named, sorted. Raises NotFound for a group that is not there, and any error: an export
    with a hole is none."""
    found = describe_existing(client, groups)
    for group in found.values():
        if group.type == SHARE:
            raise Refused(f"{group.group!r} is a share group, which has no committed offsets")
    known = {name: group.coordinator for name, group in found.items()}
    rows: list[ExportedOffset] = []
    for name, commits in sorted(fetch_commits(client, groups, known=known).items()):
        if isinstance(commits, KctlError):
            raise commits
        for tp, commit in sorted(commits.items()):
            epoch = commit.leader_epoch if commit.leader_epoch >= 0 else None
            rows.append(ExportedOffset(name, *tp, commit.offset, epoch, commit.metadata))
    return rows
