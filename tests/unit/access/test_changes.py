"""Changes of ACLs, users and quotas: in which order, what is refused as a whole, what is asked before."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from kctl.access import changes, quotas, users
from kctl.access.acl_syntax import parse_acls, parse_all
from kctl.access.changes import as_stored, plan_changes, similar
from kctl.access.model import Acl
from kctl.commands.acl.commands import confirm_changes
from kctl.commands.quota.tables import confirm_quotas
from kctl.commands.terminal.invocation import Invocation
from kctl.errors import KctlError, NotAuthorized, NotConfirmed, OperationFailed, OutcomeUnknown
from kctl.protocol.target import Target

CLIENT: Any = None  # what the stubs below never look at
OLD, NEW, OTHER = parse_all(
    ["allow alice read topic orders", "allow alice read topic orders*", "allow bob read topic t"]
)


class Cluster:
    """ACLs that are there; those that it fails to add, with the error."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, there: Sequence[Acl], fails: dict[Acl, KctlError]) -> None:
        self.there = set(there)
        self.fails = fails
        monkeypatch.setattr(changes, "add_acls", self._add)
        monkeypatch.setattr(changes, "remove_acls", self._remove)
        monkeypatch.setattr(changes, "list_acls", lambda _client: sorted(self.there))

    def _add(self, _client: object, acls: Sequence[Acl]) -> dict[Acl, KctlError | None]:
        self.there |= {acl for acl in acls if acl not in self.fails}
        return {acl: self.fails.get(acl) for acl in acls}

    def _remove(self, _client: object, acls: Sequence[Acl]) -> dict[Acl, KctlError | None]:
        self.there -= set(acls)
        return dict.fromkeys(acls)


def test_nothing_is_removed_when_something_could_not_be_added(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(monkeypatch, [OLD], {NEW: OperationFailed("no answer")})
    rows = changes.carry_out(CLIENT, plan_changes([OLD], add=[NEW, OTHER], remove=[OLD]))
    assert [(row.result, row.error) for row in rows] == [
        ("failed", "no answer"),
        ("added", None),
        ("failed", "not removed because another ACL could not be added"),
    ]
    assert cluster.there == {OLD, OTHER}


def test_what_is_refused_altogether_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(monkeypatch, [OLD], {NEW: NotAuthorized("no")})
    with pytest.raises(NotAuthorized):
        changes.carry_out(CLIENT, plan_changes([OLD], add=[NEW], remove=[OLD]))
    assert cluster.there == {OLD}


def test_an_acl_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(monkeypatch, [OLD], {})
    rows = changes.carry_out(CLIENT, plan_changes([OLD], add=[NEW], remove=[OLD]))
    assert [row.result for row in rows] == ["added", "removed"]
    assert cluster.there == {NEW}


def test_addresses_are_removed_as_they_are_there() -> None:
    (typed,) = parse_acls("deny bob all topic x from 2001:db8::1", strict=False)
    (added,) = parse_acls("deny bob all topic x from 2001:db8::1")
    assert (typed.host, added.host) == ("2001:db8::1", "2001:db8:0:0:0:0:0:1")
    assert as_stored([typed], [added]) == [added]
    assert as_stored([typed], [added, typed]) == [typed], "somebody added it so, with another tool"


def test_what_was_meant() -> None:
    (row,) = plan_changes([OLD], remove=parse_acls("allow alcie read topic orders"))
    assert similar(row, [OLD, OTHER]) == "did you mean allow alice read topic orders?"


def _answers(*rounds: Any) -> Any:
    """A client that gives these answers, one after the other; an error is raised."""
    left = list(rounds)

    def send(_request: object) -> Any:
        answer = left.pop(0)
        if isinstance(answer, KctlError):
            raise answer
        return answer

    return SimpleNamespace(send_to_controller=send, send=send)


def _user_row(name: str, code: int) -> SimpleNamespace:
    return SimpleNamespace(user=name, error_code=code, error_message="said so")


def test_users_are_not_refused_when_one_may_have_been_changed() -> None:
    """The first mechanism is refused (CLUSTER_AUTHORIZATION_FAILED), of the second nobody knows."""
    plan = users.plan_add([], "a", ["SCRAM-SHA-256", "SCRAM-SHA-512"], 4096)
    refused = SimpleNamespace(results=[_user_row("a", 31)])
    rows = users.carry_out(_answers(refused, OutcomeUnknown("no answer")), plan, "secret")
    assert [row.result for row in rows] == ["failed", "failed"]
    with pytest.raises(NotAuthorized):
        users.carry_out(_answers(refused, refused), plan, "secret")


def test_quotas_are_not_refused_when_one_may_have_been_changed() -> None:
    """One is refused (CLUSTER_AUTHORIZATION_FAILED), the answer lacks the other."""
    one, two = quotas.QuotaEntity("a"), quotas.QuotaEntity("b")
    plan = quotas.plan_quotas({}, {who: {"request_percentage": 5.0} for who in (one, two)})

    def entry(name: str) -> SimpleNamespace:
        part = SimpleNamespace(entity_type="user", entity_name=name)
        return SimpleNamespace(entity=[part], error_code=31, error_message=None)

    half = SimpleNamespace(entries=[entry("a")])
    assert [row.result for row in quotas.carry_out(_answers(half), plan)] == ["failed", "failed"]
    with pytest.raises(NotAuthorized):
        quotas.carry_out(_answers(SimpleNamespace(entries=[entry("a"), entry("b")])), plan)


PLAIN: Any = SimpleNamespace(target=Target("dev", ("x:1",)))
PROTECTED: Any = SimpleNamespace(target=Target("prod", ("x:1",), protected=True))


@pytest.mark.parametrize(
    ("words", "client", "asks"),
    [
        ("allow alice read topic t", PLAIN, None),
        ("deny * all topic *", PLAIN, "Add 1 ACL on dev?"),
        ("allow alice read topic t", PROTECTED, "Add 1 ACL on prod?"),
        ("deny * all topic *", PROTECTED, "Add 1 ACL on prod?"),
    ],
)
def test_what_is_asked_before_acls_are_added(words: str, client: Any, asks: str | None) -> None:
    plan = plan_changes([], add=parse_acls(words))
    said = _asked_question(lambda inv: confirm_changes(inv, client, plan))
    assert said == asks
    done = plan_changes(parse_acls(words), add=parse_acls(words))
    assert _asked_question(lambda inv: confirm_changes(inv, client, done)) is None


def test_what_is_asked_before_acls_are_replaced() -> None:
    plan = plan_changes([OLD], add=[*parse_acls("deny bob all topic x"), NEW], remove=[OLD])
    assert _asked_question(lambda inv: confirm_changes(inv, PLAIN, plan)) == "Add 1 ACL and remove 1 ACL on dev?"
    assert _asked_question(lambda inv: confirm_changes(inv, PROTECTED, plan)) == "Add 2 ACLs and remove 1 ACL on prod?"


def test_a_first_quota_is_asked_about() -> None:
    who = quotas.QuotaEntity(quotas.DEFAULT)
    plan = quotas.plan_quotas({}, {who: {"producer_byte_rate": 1.0}})
    for client in (PLAIN, PROTECTED):
        asked = _asked_question(lambda inv, c=client: confirm_quotas(inv, c, plan))
        assert asked == f"Change 1 quota on {client.target.name}?"
    same = quotas.plan_quotas({who: {"producer_byte_rate": 1.0}}, {who: {"producer_byte_rate": 1.0}})
    assert _asked_question(lambda inv: confirm_quotas(inv, PLAIN, same)) is None


def _asked_question(ask: Any) -> str | None:
    """The question, where there is nobody to answer it."""
    try:
        ask(Invocation())
    except NotConfirmed as exc:
        return exc.message.removeprefix("not confirmed: ")
    return None
