"""The groups that `kctl consume --group` joins without --as-classic-member."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from kctl.cluster.groups.model import Group, Groups, Member
from kctl.errors import ConnectionRefused, KctlError, NotFound, Refused
from kctl.protocol.client import ClusterClient
from kctl.records.consume import group_check
from kctl.records.consume.group_check import check_group, verdict

MEMBER = Member("m", None, "c", "h", ())


def _group(kind: str | None, state: str = "Stable", members: tuple[Member, ...] | None = (MEMBER,)) -> Group:
    return Group("g", state, "consumer", kind, 1, members=members)


@pytest.mark.parametrize(
    ("group", "refused", "warned"),
    [
        (_group("classic"), None, None),
        (_group("classic", "Empty", ()), None, None),
        (_group(None), None, None),
        (_group("consumer"), "has 1 member: kctl would be a classic member", "has 1 member: kctl is a classic member"),
        (_group("consumer", "Reconciling", None), "kctl would be a classic member", "kctl is a classic member"),
        (_group("consumer", "Empty", ()), "would turn it into a classic group", "turns it into a classic group"),
        (_group("share"), "is a share group", "refused"),
        (_group("share", "Empty", ()), "is a share group", "refused"),
        (_group("streams"), "is a streams group", "refused"),
        (_group("streams", "Empty", ()), "is a streams group", "refused"),
    ],
)
def test_verdict(group: Group, refused: str | None, warned: str | None) -> None:
    if refused is None:
        assert verdict(group, as_classic_member=False) is None
    else:
        with pytest.raises(Refused, match=refused):
            verdict(group, as_classic_member=False)
    if warned == "refused":
        with pytest.raises(Refused):
            verdict(group, as_classic_member=True)
    else:
        assert (warned or "") in (verdict(group, as_classic_member=True) or "")


@pytest.mark.parametrize(
    ("version", "answer", "refused"),
    [
        (None, _group("consumer"), False),  # no request to a broker that only has classic groups
        (0, _group("consumer"), True),
        (0, NotFound("group g"), False),
        (0, ConnectionRefused("gone"), False),  # joining reports it
    ],
)
def test_groups_that_cannot_be_described_are_left_to_the_broker(
    version: int | None, answer: Group | KctlError, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def described(_client: object, names: list[str]) -> Groups:
        assert names == ["g"]
        if isinstance(answer, ConnectionRefused):
            raise answer
        return Groups({}, {}, {"g": answer}) if isinstance(answer, KctlError) else Groups({"g": answer}, {}, {})

    monkeypatch.setattr(group_check, "describe_groups", described)
    client: Any = cast(ClusterClient, SimpleNamespace(api_version=lambda _key: version))
    if refused:
        with pytest.raises(Refused):
            check_group(client, "g", as_classic_member=False)
    else:
        assert check_group(client, "g", as_classic_member=False) is None
