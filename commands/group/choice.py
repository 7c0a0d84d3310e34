"""Select groups, and warn if brokers hide some."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from kctl.commands.terminal import output

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

MATCH = typer.Option("--match", metavar="REGEX", help="Groups whose whole id matches; repeatable.")
TYPE = typer.Option(
    "--type", metavar="TYPE", help="With --match: only classic, consumer, share or streams groups; repeatable."
)
_MAX_NAMES = 5


def choose(
    client: ClusterClient,
    names: Sequence[str] | None,
    match: Sequence[str] | None,
    types: Sequence[str] | None,
    *,
    with_commits: bool = False,
    quiet: bool = False,
) -> list[str]:
    """Return the selected groups, as kctl.cluster.groups.names.chosen_groups does.

    Unless quiet, warn about hidden groups. Always print a note about matching groups that are skipped.
    """
    from kctl.cluster.groups.names import chosen_groups

    selected = chosen_groups(client, names or (), match or (), types or (), with_commits=with_commits)
    if match and not quiet:
        for line in hidden(client, groups=True):
            output.warn(line)
    if selected.left_out:
        more = f" and {len(selected.left_out) - _MAX_NAMES:,} more" if len(selected.left_out) > _MAX_NAMES else ""
        output.note(
            f"share groups are skipped, because they have no commits: {', '.join(selected.left_out[:_MAX_NAMES])}{more}"
        )
    return selected.names


def hidden(client: ClusterClient, *, groups: bool = False, commits: bool = False) -> list[str]:
    """Return a warning for each kind of groups or commits that brokers hide from this user."""
    from kctl.cluster.rights import may_describe_all_topics, may_describe_cluster

    lines = []
    if groups and may_describe_cluster(client) is False:
        lines.append(
            "only groups that this user may describe are shown; all require the ACL operation DESCRIBE on the cluster"
        )
    if commits and may_describe_all_topics(client) is False:
        lines.append("only commits for topics that this user may describe are shown; there may be more")
    return lines
