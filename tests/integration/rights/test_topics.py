"""kctl topic as a user without rights: what may not be seen is said, and nothing is changed."""

from __future__ import annotations

import json
from pathlib import Path

from java_tools import java_tool
from kctl_testing import Kctl
from secure_cluster import SecureCluster

NAME, SEEN = "rights-topics", "rights-seen"


def test_a_user_without_rights(own_kctl: Kctl, secure: SecureCluster) -> None:
    kctl, admin, nobody = own_kctl, secure.options(secure.admin), secure.options(secure.nobody)
    kctl.ok("topic", "create", NAME, "--partitions", "2", *admin)
    kctl.ok("produce", NAME, "--partition", "0", *admin, stdin="x\n" * 3)
    assert kctl.json("topic", "list", *nobody) == [], "brokers leave out what a user may not describe"
    listed = kctl.ok("topic", "list", *nobody)
    assert "no topic, or none that this user may describe" in listed.err
    alarm = kctl("topic", "describe", "--unavailable", *nobody)
    assert alarm.code == 5, "nobody looked at anything"
    for arguments in (
        ("describe", NAME),
        ("offsets", NAME),
        ("export", NAME),
        ("alter", NAME, "--partitions", "3", "--yes"),
        ("truncate", NAME, "--all", "--yes"),
        ("clone", NAME, f"{NAME}.copy", "--data"),
        ("delete", NAME, "--yes"),
    ):
        refused = kctl("topic", *arguments, *nobody)
        assert (refused.code, refused.out) == (4, ""), str(refused)
        assert "not authorized to describe it" in refused.err, str(refused)
    (topic,) = kctl.json("topic", "describe", NAME, "--offsets", *admin)
    assert [p["offsets"]["messages"] for p in topic["partitions"]] == [3, 0]
    assert [row["topic"] for row in kctl.json("topic", "list", *admin) if row["topic"].startswith(NAME)] == [NAME]
    kctl.ok("topic", "delete", NAME, "--yes", *admin)


def _acl(secure: SecureCluster, kafka_home: Path, *action: str) -> None:
    java_tool(
        kafka_home, "kafka.admin.AclCommand", "--bootstrap-server", secure.bootstrap,
        "--command-config", secure.admin, *action, "--allow-principal", "User:nobody", "--operation", "Describe",
        "--topic", SEEN,
    )  # fmt: skip


def test_a_user_who_may_describe_topics_only(own_kctl: Kctl, secure: SecureCluster, kafka_home: Path) -> None:
    """Sizes and configs are not known then, which is said; who may not alter changes nothing."""
    kctl, admin, nobody = own_kctl, secure.options(secure.admin), secure.options(secure.nobody)
    kctl.ok("topic", "create", SEEN, *admin)
    try:
        _acl(secure, kafka_home, "--add")
        listed = kctl("topic", "list", "--size", "--count", "-o", "json", *nobody)
        assert listed.code == 5, "a part is lacking"
        (row,) = json.loads(listed.out)
        assert (row["topic"], row["size_bytes"], row["messages"]) == (SEEN, None, 0)
        assert "sizes of broker 1" in listed.err
        filtered = kctl("topic", "describe", "--under-min-isr", *nobody)
        assert filtered.code == 5, "which partitions are under it is not known"
        assert "no partition is known to be under-min-isr" in filtered.err
        assert "TOPIC_AUTHORIZATION_FAILED" in filtered.err
        plain = kctl("topic", "describe", SEEN, *nobody)
        assert plain.code == 0
        assert "unknown whether partitions are being reassigned" in plain.err
        losses = kctl("topic", "delete", SEEN, "--dry-run", "-o", "json", *nobody)
        assert json.loads(losses.out)[0]["readers"] is None, "groups are not shown to it"
        assert "groups that this user may not describe are omitted" in losses.err
        for what in ("--dry-run", "--yes"):
            kept = kctl("topic", "truncate", SEEN, "--all", what, *nobody)
            assert (kept.code, kept.out) == (4, ""), str(kept)
            assert "requires Delete on the topic" in kept.err
        for arguments in (("alter", SEEN, "--config", "retention.ms=1", "--yes"), ("delete", SEEN, "--yes")):
            assert kctl("topic", *arguments, *nobody).code != 0
        assert len(kctl.json("topic", "describe", SEEN, *admin)) == 1
    finally:
        kctl.ok("topic", "delete", SEEN, "--yes", *admin)
        _acl(secure, kafka_home, "--remove", "--force")
