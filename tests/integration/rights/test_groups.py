"""kctl group as a user without rights: what may not be seen is said, and nothing changes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kctl_testing import Kctl
from secure_cluster import SecureCluster, remove_acls

TOPIC, GROUP = "rights-groups", "rights-groups-reader"


@pytest.fixture(scope="module")
def reader(kctl_of_rights: Kctl, secure: SecureCluster) -> str:
    """A group that has committed the end of a topic's log."""
    admin = secure.options(secure.admin)
    kctl_of_rights.ok("topic", "create", TOPIC, "--if-not-exists", *admin)
    kctl_of_rights.ok("produce", TOPIC, *admin, stdin="a\nb\n")
    kctl_of_rights.ok("group", "reset-offsets", GROUP, "--topic", TOPIC, "--to-latest", "--create", "--yes", *admin)
    return GROUP


@pytest.fixture(scope="module")
def kctl_of_rights(tmp_path_factory: pytest.TempPathFactory, shared: dict[str, str]) -> Kctl:
    return Kctl(tmp_path_factory.mktemp("rights-groups"), shared)


def test_a_list_says_that_it_may_lack_groups(kctl_of_rights: Kctl, secure: SecureCluster, reader: str) -> None:
    seen = kctl_of_rights("group", "list", *secure.options(secure.nobody))
    assert (seen.code, seen.out) == (0, "")
    assert "only groups that this user may describe are shown" in seen.err
    everything = kctl_of_rights("group", "list", *secure.options(secure.admin))
    assert reader in everything.out
    assert "only groups" not in everything.err


def test_every_command_is_refused(kctl_of_rights: Kctl, secure: SecureCluster, reader: str) -> None:
    nobody = (*secure.options(secure.nobody), "--yes", "-o", "json")
    saved = json.dumps([{"group": reader, "topic": TOPIC, "partition": 0, "offset": 0}])
    for args in (
        ("describe", reader),
        ("members", reader),
        ("export", reader),
        ("reset-offsets", reader, "--all-topics", "--to-earliest"),
        ("import", "-"),
        ("delete", reader),
        ("delete-offsets", reader, "--topic", TOPIC),
        ("remove-member", reader, "--all"),
    ):
        refused = kctl_of_rights("group", *args, *nobody, stdin=saved)
        assert refused.code == 4, str(refused)
        error = json.loads(refused.err)
        assert (error["code"], error["kafka_error"]) == ("not_authorized", "GROUP_AUTHORIZATION_FAILED"), args
        assert refused.out == ""
    (row,) = json.loads(kctl_of_rights.ok("group", "export", reader, *secure.options(secure.admin), "-o", "json").out)
    assert row["committed_offset"] == 2


HIDDEN = "rights-groups-hidden"


@pytest.fixture
def some_topics(kctl_of_rights: Kctl, secure: SecureCluster) -> Iterator[str]:
    """A group that has committed for two topics; nobody may do everything with it, and describe one of the topics."""
    admin = secure.options(secure.admin)
    group = "rights-groups-some"
    for name in (TOPIC, HIDDEN):
        kctl_of_rights.ok("topic", "create", name, "--if-not-exists", *admin)
    both = ("--topic", TOPIC, "--topic", HIDDEN)
    kctl_of_rights.ok("group", "reset-offsets", group, *both, "--to-latest", "--create", "--yes", *admin)
    kctl_of_rights.ok("acl", "add", f"allow nobody all group {group}*", f"allow nobody read topic {TOPIC}", *admin)
    yield group
    remove_acls(kctl_of_rights, "nobody", *admin)


def test_hidden_commits_are_told_or_refused(kctl_of_rights: Kctl, secure: SecureCluster, some_topics: str) -> None:
    """OffsetFetch leaves out topics that may not be described, without a word."""
    nobody = secure.options(secure.nobody)

    def group(*args: str) -> Any:
        return kctl_of_rights("group", *args, *nobody)

    def topics(*args: str) -> set[str]:
        return {row["topic"] for row in kctl_of_rights.json("group", *args, *nobody)}

    for seen in (group("describe", some_topics), kctl_of_rights("lag", some_topics, *nobody)):
        assert (seen.code, HIDDEN in seen.out) == (0, False)
        assert "only commits for topics that this user may describe are shown" in seen.err
    deleted = group("delete", some_topics, "--dry-run")
    assert "there may be more" in deleted.err
    for args in (
        ("export", some_topics),
        ("reset-offsets", some_topics, "--all-topics", "--to-earliest", "--yes"),
        ("reset-offsets", f"{some_topics}-2", "--from-group", some_topics, "--create", "--yes"),
    ):
        refused = group(*args)
        assert (refused.code, refused.out) == (4, ""), str(refused)
        assert "brokers may omit commits" in refused.err
    assert topics("export", some_topics, "--topic", TOPIC) == {TOPIC}
    assert topics("reset-offsets", some_topics, "--topic", TOPIC, "--to-earliest", "--dry-run") == {TOPIC}
    refused = group("export", some_topics, "--topic", HIDDEN)
    assert (refused.code, f"topic '{HIDDEN}': not authorized to describe it" in refused.err) == (4, True)


def test_hidden_groups_are_told_where_groups_match(
    kctl_of_rights: Kctl, secure: SecureCluster, some_topics: str, reader: str
) -> None:
    matched = kctl_of_rights(
        "group", "delete", "--match", "rights-groups.*", "--dry-run", *secure.options(secure.nobody)
    )
    assert (matched.code, some_topics in matched.out, reader in matched.out) == (0, True, False)
    assert "only groups that this user may describe are shown" in matched.err


def test_who_may_only_look_changes_nothing(kctl_of_rights: Kctl, secure: SecureCluster, reader: str) -> None:
    """Describe on the group and its topic: plans can be made, and the coordinator refuses to carry them out."""
    admin, nobody = secure.options(secure.admin), secure.options(secure.nobody)
    kctl_of_rights.ok("acl", "add", f"allow nobody describe group {reader}", *admin)
    kctl_of_rights.ok("acl", "add", f"allow nobody describe topic {TOPIC}", *admin)
    try:
        for args in (
            ("reset-offsets", reader, "--topic", TOPIC, "--to-earliest"),
            ("delete-offsets", reader, "--topic", TOPIC),
            ("delete", reader),
        ):
            refused = kctl_of_rights("group", *args, "--yes", "-o", "json", *nobody)
            assert (refused.code, [row["result"] for row in json.loads(refused.out)]) == (4, ["failed"]), str(refused)
            assert json.loads(refused.err.splitlines()[-1])["code"] == "not_authorized"
        (row,) = kctl_of_rights.json("group", "export", reader, "--topic", TOPIC, *nobody)
        assert row["committed_offset"] == 2
    finally:
        kctl_of_rights.ok("acl", "remove", "--principal", "nobody", "--expect", "2", "--yes", *admin)
