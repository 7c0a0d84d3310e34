"""Which groups a command is for; and what is said where brokers do not tell all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from kctl.commands.terminal import output

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

MATCH = typer.Option("--match", metavar="REGEX", help="Groups whose whole id this fits; repeatable.")
TYPE = typer.Option(
    "--type", metavar="TYPE", help="Of those that --match fits: classic, consumer, share or streams; repeatable."
)
_NAMED = 5


def choose(
    client: ClusterClient,
    names: Sequence[str] | None,
    match: Sequence[str] | None,
    types: Sequence[str] | None,
    *,
    with_commits: bool = False,
    quiet: bool = False,
) -> list[str]:
    """As kctl.cluster.groups.names.chosen_groups.

    Unless quiet, a note tells which groups a regular expression did not choose.
    """
    from kctl.cluster.groups.names import chosen_groups

    found = chosen_groups(client, names or (), match or (), types or (), with_commits=with_commits)
    if match and not quiet:
        for line in hidden(client, groups=True):
            output.warn(line)
    if found.left_out:
        more = f" and {len(found.left_out) - _NAMED:,} more" if len(found.left_out) > _NAMED else ""
        output.note(f"left out, because share groups commit nothing: {', '.join(found.left_out[:_NAMED])}{more}")
    return found.names


def hidden(client: ClusterClient, *, groups: bool = False, commits: bool = False) -> list[str]:
    """What brokers leave out of groups that are listed, and of what groups have committed, a line each."""
    from kctl.cluster.rights import may_describe_all_topics, may_describe_cluster

    lines = []
    if groups and may_describe_cluster(client) is False:
        lines.append("only groups that this user may describe are shown: all need an ACL for Describe on the cluster")
    if commits and may_describe_all_topics(client) is False:
        lines.append("only commits for topics that this user may describe are shown: there may be more")
    return lines
