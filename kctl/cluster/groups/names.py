"""Valid group ids, and the selection of groups by name or pattern.

A group id is any string, even empty (GroupCoordinatorService.isGroupIdNotEmpty: only old clients commit with it), of up
to 32,767 bytes of UTF-8, the maximum of a string in the protocol.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kctl.cluster.groups.model import CLASSIC, SHARE, TYPES
from kctl.errors import NotFound, Reason, Refused, UsageError

if TYPE_CHECKING:
    from kctl.cluster.groups.model import Group
    from kctl.protocol.client import ClusterClient

MAX_ID_BYTES = 32_767


def check_group_id(name: str) -> str:
    """Return `name`. Raises UsageError if it cannot be a group id."""
    return check_id(name, "group id")


def check_id(name: str, noun: str) -> str:
    """Return `name`. Raises UsageError if it cannot be a string of the protocol."""
    try:
        size = len(name.encode("utf-8"))
    except UnicodeEncodeError:
        printable = name.encode("utf-8", "backslashreplace").decode()
        raise UsageError(f"{printable!r} is not a {noun}: it is not UTF-8 text") from None
    if size > MAX_ID_BYTES:
        raise UsageError(f"{name[:40] + '…'!r} is not a {noun}: it has {size:,} bytes; the maximum is {MAX_ID_BYTES:,}")
    return name


def known_types(types: Collection[str] | None) -> frozenset[str] | None:
    """Return `types` in lower case. Raises UsageError for an unknown type."""
    if not types:
        return None
    lower = frozenset(kind.lower() for kind in types)
    for kind in sorted(lower - frozenset(TYPES)):
        raise UsageError(f"{kind!r} is not a group type", hint=f"use {', '.join(TYPES)}")
    return lower


class GroupSelection(NamedTuple):
    """The selected groups. left_out: matching share groups, if only groups with commits are selected."""

    names: list[str]
    left_out: list[str]


def chosen_groups(
    client: ClusterClient,
    names: Sequence[str],
    match: Sequence[str] = (),
    types: Collection[str] = (),
    *,
    with_commits: bool = False,
) -> GroupSelection:
    """Return the named groups in that order, and those whose whole id matches a pattern in `match`.

    types: only matches of these types. with_commits: leave share groups out of the matches. Names are not looked up
    here. Raises UsageError if nothing is selected and for an invalid id, type or pattern, NotFound if no group matches,
    Refused if only share groups match, and the error of a broker that could not list its groups, since more groups
    might match.
    """
    from kctl.base.name_patterns import parse_patterns, select
    from kctl.cluster.groups.describe import list_groups

    patterns = parse_patterns("--match", match)
    selected_types = known_types(types)
    exact = list(dict.fromkeys(check_group_id(name) for name in names))
    if not exact and not patterns:
        raise UsageError("no group is selected", hint="name groups, or set --match REGEX")
    if selected_types and not patterns:
        raise UsageError("--type requires --match", hint="name groups without --type")
    if not patterns:
        return GroupSelection(exact, [])
    listed = list_groups(client)
    for error in listed.unlisted.values():
        raise error
    matches = select(listed.groups, patterns=patterns, noun="group")
    kind = {name: listed.groups[name].type or CLASSIC for name in matches}  # brokers before 3.8 do not report types
    of_type = [name for name in matches if selected_types is None or kind[name] in selected_types]
    left_out = [name for name in of_type if with_commits and kind[name] == SHARE]
    rest = list(dict.fromkeys([*exact, *(name for name in of_type if name not in left_out)]))
    if not of_type and not exact:
        raise NotFound(f"no matching group is of type {' or '.join(sorted(selected_types or ()))}")
    if not rest:
        raise Refused(
            f"{left_out[0]!r} is a share group, which has no committed offsets",
            hint="nothing was changed",
            reason=Reason.WRONG_TYPE,
        )
    return GroupSelection(rest, left_out)


def missing_groups(client: ClusterClient, names: Sequence[str]) -> NotFound:
    """Return the error for groups that do not exist, with suggestions."""
    from kctl.base.name_patterns import not_there
    from kctl.cluster.groups.describe import list_groups
    from kctl.errors import KctlError

    try:
        existing = list(list_groups(client).groups)
    except KctlError:
        existing = []
    return not_there(names, existing, noun="group", show=repr)


def describe_existing(client: ClusterClient, names: Sequence[str]) -> dict[str, Group]:
    """Return the named groups.

    Raises NotFound if one does not exist, or the error of one that could not be described.
    """
    from kctl.cluster.groups.describe import describe_groups

    described = describe_groups(client, [check_group_id(name) for name in names])
    missing = [name for name, error in described.failed_groups.items() if isinstance(error, NotFound)]
    if missing:
        raise missing_groups(client, missing)
    for error in described.failed_groups.values():
        raise error
    return described.groups
