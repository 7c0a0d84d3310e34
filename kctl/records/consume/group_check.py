"""The check of a group's type before a consumer joins.

kctl joins with the classic protocol. A 4.x broker accepts such a member in a group of the consumer protocol (KIP-848),
and turns a group without members into a classic group. The owner of the group wants neither. Share groups and streams
groups only accept members of their own type.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from kctl.base.deadline import Deadline
from kctl.base.text import counted
from kctl.cluster.groups.describe import describe_groups
from kctl.cluster.groups.model import CONSUMER, SHARE, STREAMS, WITHOUT_MEMBERS, Group
from kctl.errors import AuthenticationFailed, ConnectionFailed, KctlError, Reason, Refused
from kctl.protocol.codes import ApiKey

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_PAUSE_S = 0.2
_HINT = "nothing was changed; read without --group, or as a member of another group"


def check_group(client: ClusterClient, name: str, *, as_classic_member: bool) -> str | None:
    """Raise Refused for a group that a classic member would change; with as_classic_member, return a warning instead.

    A missing group, and a group that the user may not describe, pass: the broker decides. While the coordinator is not
    available, the type is unknown: raises ConnectionFailed after the client's timeout, before kctl has joined.
    """
    if client.api_version(ApiKey.CONSUMER_GROUP_DESCRIBE) is None:
        return None
    group = _describe(client, name)
    return None if group is None else verdict(group, as_classic_member=as_classic_member)


def _describe(client: ClusterClient, name: str) -> Group | None:
    """Return the group; None if it does not exist, or if a broker will not describe it."""
    deadline = Deadline(client.timeout_s)
    while True:
        try:
            described = describe_groups(client, [name])
        except KctlError as exc:
            error: KctlError | None = exc
        else:
            error = described.failed_groups.get(name)
            if error is None:
                return described.groups.get(name)
        if not isinstance(error, ConnectionFailed):
            return None
        if deadline.expired or isinstance(error, AuthenticationFailed):  # repeated failures could lock the account
            raise error
        time.sleep(min(_PAUSE_S, deadline.left_s))


def verdict(group: Group, *, as_classic_member: bool) -> str | None:
    """Judge one group as `check_group` does. Pure."""
    if group.type in {SHARE, STREAMS}:
        raise Refused(
            f"group {group.group!r} is a {group.type} group, which a consumer cannot join",
            hint=_HINT,
            reason=Reason.WRONG_TYPE,
        )
    if group.type != CONSUMER:
        return None
    what = f"group {group.group!r} uses the consumer protocol (KIP-848)"
    if group.state in WITHOUT_MEMBERS:
        what += " and has no members: kctl, a classic member, would turn it into a classic group"
    else:
        count = "" if group.members is None else f" and has {counted(len(group.members), 'member')}"
        what += f"{count}: kctl would be a classic member"
    if as_classic_member:
        return what.replace("would be", "is").replace("would turn", "turns")
    raise Refused(what, hint=f"join anyway with --as-classic-member; {_HINT}")
