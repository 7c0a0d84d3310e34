"""Which group ids a broker can be asked about, and which groups people mean.

A group id is any text, the empty one included (GroupCoordinatorService.isGroupIdNotEmpty: only old clients commit
with it); its UTF-8 has at most 32,767 bytes, which is what a string of the protocol holds.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kctl.cluster.groups.model import CLASSIC, SHARE, TYPES
from kctl.errors import NotFound, Refused, UsageError

if TYPE_CHECKING:
    from kctl.cluster.groups.model import Group
    from kctl.protocol.client import ClusterClient

MAX_ID_BYTES = 32_767


def check_group_id(name: str) -> str:
    """`name` itself. Raises UsageError when no broker can be asked about it."""
    return check_id(name, "group id")


def check_id(name: str, noun: str) -> str:
    """The same for any text of the protocol."""
    try:
        size = len(name.encode("utf-8"))
    except UnicodeEncodeError:
        shown = name.encode("utf-8", "backslashreplace").decode()
        raise UsageError(f"{shown!r} is not a {noun}: it is not UTF-8 text") from None
    if size > MAX_ID_BYTES:
        raise UsageError(f"{name[:40] + '…'!r} is not a {noun}: it has {size:,} bytes, {MAX_ID_BYTES:,} are allowed")
    return name


def known_types(types: Collection[str] | None) -> frozenset[str] | None:
    """`types` in lower case. Raises UsageError for a type that no broker has."""
    if not types:
        return None
    wanted = frozenset(kind.lower() for kind in types)
    for kind in sorted(wanted - frozenset(TYPES)):
        raise UsageError(f"{kind!r} is not a type of group", hint=f"known: {', '.join(TYPES)}")
    return wanted


class Chosen(NamedTuple):
    """left_out: share groups that match, where groups with commits are meant."""

    names: list[str]
    left_out: list[str]


def chosen_groups(
    client: ClusterClient,
    names: Sequence[str],
    match: Sequence[str] = (),
    types: Collection[str] = (),
    *,
    with_commits: bool = False,
) -> Chosen:
    """The groups named, in that order, and those whose whole id a regular expression in `match` fits and whose type is
    one of `types`, where some are given.

    with_commits: share groups are left out of what matches. Names are not looked up: whoever asks their coordinators
    is told. Raises UsageError when nothing is named and for what is no group id, type or expression, NotFound when no
    group matches, Refused when only share groups do, the error of what did not tell its groups: they might match
    too.
    """
    from kctl.base.name_patterns import parse_patterns, select
    from kctl.cluster.groups.describe import list_groups

    patterns = parse_patterns("--match", match)
    wanted = known_types(types)
    exact = list(dict.fromkeys(check_group_id(name) for name in names))
    if not exact and not patterns:
        raise UsageError("name a group, or give --match")
    if wanted and not patterns:
        raise UsageError("--type goes with --match: groups that are named are what they are")
    if not patterns:
        return Chosen(exact, [])
    listed = list_groups(client)
    for error in listed.unlisted.values():
        raise error
    found = select(listed.groups, patterns=patterns, noun="group")
    kind = {name: listed.groups[name].type or CLASSIC for name in found}  # brokers before 3.8 do not tell types
    of_type = [name for name in found if wanted is None or kind[name] in wanted]
    left_out = [name for name in of_type if with_commits and kind[name] == SHARE]
    rest = list(dict.fromkeys([*exact, *(name for name in of_type if name not in left_out)]))
    if not of_type and not exact:
        raise NotFound(f"no group that matches is of type {' or '.join(sorted(wanted or ()))}")
    if not rest:
        raise Refused(f"{left_out[0]!r} is a share group, which has no committed offsets", hint="nothing was changed")
    return Chosen(rest, left_out)


def missing_groups(client: ClusterClient, names: Sequence[str]) -> NotFound:
    """The error for groups that are not there, with what was probably meant."""
    from kctl.base.name_patterns import not_there
    from kctl.cluster.groups.describe import list_groups
    from kctl.errors import KctlError

    try:
        known = list(list_groups(client).groups)
    except KctlError:
        known = []
    return not_there(names, known, noun="group", show=repr)


def describe_existing(client: ClusterClient, names: Sequence[str]) -> dict[str, Group]:
    """The groups named, each of which must be there and answer. Raises NotFound, and the error of one that does not."""
    from kctl.cluster.groups.describe import describe_groups

    found = describe_groups(client, [check_group_id(name) for name in names])
    missing = [name for name, error in found.failed_groups.items() if isinstance(error, NotFound)]
    if missing:
        raise missing_groups(client, missing)
    for error in found.failed_groups.values():
        raise error
    return found.groups
