"""Explicit offsets for a reset: from a file, or the commits of another group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kctl.errors import Reason, Refused, UsageError
from kctl.groups.commit import OffsetToCommit
from kctl.groups.export import exported
from kctl.groups.offsets_file import FileOffset, by_group
from kctl.groups.reset import ExplicitOffsets
from kctl.groups.topic_choice import TopicChoice
from kctl.model import TopicPartition

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


def offsets_of_file(lines: Sequence[FileOffset], groups: Sequence[str]) -> ExplicitOffsets:
    """Return the file's offsets of each group. Raises UsageError if a group has none."""
    offsets = by_group(lines, default_group=groups[0] if len(groups) == 1 else None)
    missing = [name for name in groups if name not in offsets]
    if missing:
        available = ", ".join(repr(name) for name in sorted(offsets)[:5])
        raise UsageError(f"the file has no offsets for group {missing[0]!r}", hint=f"it has offsets for {available}")
    return {name: offsets[name] for name in groups}


def offsets_of_group(
    client: ClusterClient, source: str, groups: Sequence[str], choices: Sequence[TopicChoice]
) -> ExplicitOffsets:
    """Return the commits of the group `source` for each of `groups`.

    Raises NotFound, Refused if it has no commits, NotAuthorized.
    """
    committed = exported(client, [source], choices)
    if not committed:
        scope = " for the selected topics" if choices else ""
        raise Refused(
            f"group {source!r} has no commits{scope}", hint="nothing was changed", reason=Reason.NOTHING_TO_DO
        )
    offsets = {TopicPartition(row.topic, row.partition): OffsetToCommit(row.committed_offset) for row in committed}
    return dict.fromkeys(groups, offsets)
