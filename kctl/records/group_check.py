"""What kind of group a consumer is about to join.

kctl joins with the classic protocol. A broker of 4.x lets such a member into a group of the new protocol (KIP-848), and
turns one without members into a classic group: both are changes that its owner did not ask for. Share groups and
streams groups have members of their own kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kctl.errors import KctlError, Refused
from kctl.groups.describe import describe_groups
from kctl.groups.model import CONSUMER, SHARE, STREAMS, WITHOUT_MEMBERS, Group
from kctl.text import counted

if TYPE_CHECKING:
    from kctl.client import ClusterClient

_CONSUMER_GROUP_DESCRIBE = 69  # an API key: brokers that lack it know classic groups alone
_HINT = "nothing was changed; read without --group, or as a member of another group"


def check_group(client: ClusterClient, name: str, *, as_classic_member: bool) -> str | None:
    """Raise Refused for a group that a classic member would change, unless as_classic_member; the warning then.

    A group that is not there, or that cannot be described, is the broker's to judge.
    """
    if client.api_version(_CONSUMER_GROUP_DESCRIBE) is None:
        return None
    try:
        group = describe_groups(client, [name]).groups.get(name)
    except KctlError:
        return None
    return None if group is None else verdict(group, as_classic_member=as_classic_member)


def verdict(group: Group, *, as_classic_member: bool) -> str | None:
    """As `check_group`. Pure."""
    if group.type in {SHARE, STREAMS}:
        raise Refused(f"group {group.group!r} is a {group.type} group, which no consumer can join", hint=_HINT)
    if group.type != CONSUMER:
        return None
    what = f"group {group.group!r} uses the consumer protocol (KIP-848)"
    if group.state in WITHOUT_MEMBERS:
        what += " and has no members: kctl, a classic member, would turn it into a classic group"
    else:
        count = "" if group.members is None else f" and has {counted(len(group.members), 'member')}"
        what += f"{count}: kctl would be a classic member in it"
    if as_classic_member:
        return what.replace("would be", "is").replace("would turn", "turns")
    raise Refused(what, hint=f"--as-classic-member joins all the same; {_HINT}")
