"""The groups that `kctl consume --group` joins without --as-classic-member."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from kctl.cluster.groups.coordinators import CoordinatorMoved
from kctl.cluster.groups.model import Group, Groups, Member
from kctl.errors import ConnectionFailed, ConnectionRefused, KctlError, NotAuthorized, NotFound, Refused
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
        (0, NotAuthorized("group g"), False),  # joining reports it
    ],
)
def test_groups_that_cannot_be_described_are_left_to_the_broker(
    version: int | None, answer: Group | KctlError, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def described(_client: object, names: list[str]) -> Groups:
        assert names == ["g"]
        return Groups({}, {}, {"g": answer}) if isinstance(answer, KctlError) else Groups({"g": answer}, {}, {})

    monkeypatch.setattr(group_check, "describe_groups", described)
    client: Any = cast(ClusterClient, SimpleNamespace(api_version=lambda _key: version, timeout_s=5.0))
    if refused:
        with pytest.raises(Refused):
            check_group(client, "g", as_classic_member=False)
    else:
        assert check_group(client, "g", as_classic_member=False) is None


class _Loading:
    """Describes the group with each of these answers in turn, the last one again and again."""

    def __init__(self, *answers: Group | KctlError) -> None:
        self._answers = list(answers)

    def __call__(self, _client: object, _names: list[str]) -> Groups:
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, ConnectionRefused):
            raise answer
        return Groups({}, {}, {"g": answer}) if isinstance(answer, KctlError) else Groups({"g": answer}, {}, {})


def test_a_group_of_unknown_type_is_not_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    """A coordinator that is loading, or moves to another broker, may have a group of the consumer protocol."""
    moved = CoordinatorMoved("the coordinator of group g is not available")
    client: Any = SimpleNamespace(api_version=lambda _key: 1, timeout_s=0.3)
    monkeypatch.setattr(group_check, "_PAUSE_S", 0.01)
    monkeypatch.setattr(group_check, "describe_groups", _Loading(moved, ConnectionRefused("gone"), _group("consumer")))
    with pytest.raises(Refused, match="would be a classic member"):
        check_group(client, "g", as_classic_member=False)
    monkeypatch.setattr(group_check, "describe_groups", _Loading(moved))
    with pytest.raises(ConnectionFailed, match="the coordinator of group g is not available"):
        check_group(client, "g", as_classic_member=False)
