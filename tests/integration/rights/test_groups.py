"""kctl group as a user without rights: what may not be seen is said, and nothing changes."""

from __future__ import annotations

import json

import pytest

from kctl_testing import Kctl
from secure_cluster import SecureCluster

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
