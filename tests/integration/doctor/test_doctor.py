"""kctl doctor on a cluster with ZooKeeper: findings match the problems that the tests cause."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

from kctl_testing import Kctl, TestCluster, eventually, within


def _doctor(kctl: Kctl, *rules: str, more: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the report of kctl doctor, limited to some rules."""
    named = [word for rule in rules for word in ("--rule", rule)]
    result = kctl("doctor", "--fail-on", "never", "-o", "json", *named, *more)
    assert result.code == 0, str(result)
    found: dict[str, Any] = json.loads(result.out)
    return found


def _subjects(found: dict[str, Any], rule: str) -> set[str]:
    return {subject for each in found["findings"] if each["rule"] == rule for subject in each["subjects"]}


def test_new_cluster(kctl: Kctl, cluster: TestCluster) -> None:
    found = _doctor(kctl)
    assert (found["broker_count"], found["releases"], found["unknown"], found["notes"]) == (3, ["3.9"], [], [])
    outcomes = {each["rule"]: each["outcome"] for each in found["rules"]}
    fine = {
        "unclean-election", "auto-create-topics", "default-replicas", "default-min-isr", "flush-settings",
        "internal-topics-settings", "log-cleaner", "mixed-broker-settings", "replica-fetch-size", "zookeeper-servers",
        "zookeeper-even", "zookeeper-credentials", "internal-topic-replicas", "protocol-version",
    }  # fmt: skip
    assert {rule: outcomes[rule] for rule in fine} == dict.fromkeys(fine, "ok")
    seen = {"no-authorizer", "advertised-listeners", "zookeeper-open", "zookeeper-single", "zookeeper-ends"}
    assert {rule: outcomes[rule] for rule in seen} == dict.fromkeys(seen, "found")
    # Rules for other releases, and rules for files.
    away = {"topic-min-isr-refuses", "replica-fetch-size-hard", "producer-acks-none", "anonymous-super-user"}
    assert {rule: outcomes[rule] for rule in away} == dict.fromkeys(away, "skipped")
    by_rule = {each["rule"]: each for each in found["findings"]}
    assert by_rule["zookeeper-open"]["subjects"][:2] == ["/brokers/ids", "/brokers/topics"]
    assert by_rule["advertised-listeners"]["severity"] == "info"


def test_without_zookeeper_address(kctl: Kctl, cluster: TestCluster) -> None:
    result = kctl("doctor", "--rule", "zookeeper-single", "--bootstrap-server", cluster.bootstrap, "-o", "json")
    assert result.code == 4, str(result)  # nothing was checked, so there is no result
    assert json.loads(result.err.splitlines()[-1])["message"] == "none of the selected rules applies to the input"


def test_wrong_chroot_is_unknown(kctl: Kctl, cluster: TestCluster) -> None:
    """Without the chroot, the nodes that the rules check do not exist."""
    servers, slash, _ = cluster.zookeeper.partition("/")
    assert slash
    result = kctl("doctor", "--about", "zookeeper", "--zookeeper", servers, "-o", "json")
    assert (result.code, "check the chroot" in result.err) == (5, True)
    outcomes = {each["rule"]: each["outcome"] for each in json.loads(result.out)["rules"]}
    assert (outcomes["zookeeper-open"], outcomes["zookeeper-credentials"]) == ("unknown", "unknown")


def test_topics(kctl: Kctl, topic: Callable[..., str]) -> None:
    unclean = topic(1, 3, unclean_leader_election_enable="true", min_insync_replicas="1")
    single = topic(2, 1)
    blocked = topic(1, 3, min_insync_replicas="3", retention_ms="3600000", segment_ms="86400000", flush_messages="1")
    rules = ("topic-unclean-election", "topic-min-isr", "topic-one-replica", "topic-min-isr-blocks")
    more = ("topic-min-isr-over", "topic-retention", "topic-flush")
    found = _doctor(kctl, *rules, *more)
    assert unclean in _subjects(found, "topic-unclean-election")
    assert unclean in _subjects(found, "topic-min-isr")
    assert single in _subjects(found, "topic-one-replica") & _subjects(found, "topic-min-isr-over")
    own = ("topic-min-isr-blocks", "topic-retention", "topic-flush")
    assert all(blocked in _subjects(found, rule) for rule in own)
    assert not {single, blocked} & _subjects(found, "topic-unclean-election")
    failed = kctl("doctor", "--rule", "topic-unclean-election")
    assert (failed.code, "error: topic-unclean-election: unclean.leader.election.enable=true" in failed.err) == (
        1,
        True,
    )
    kctl.ok("topic", "delete", unclean, single, blocked, "--yes")


def test_brokers_that_differ(kctl: Kctl, cluster: TestCluster) -> None:
    kctl.ok("config", "set", "broker/1", "background.threads=11", "--yes")
    try:
        found = _doctor(kctl, "mixed-broker-settings")
        messages = [each["message"] for each in found["findings"]]
        assert "background.threads: 11 (broker 1), 10 (broker 2, broker 3)" in messages
    finally:
        kctl.ok("config", "unset", "broker/1", "background.threads", "--yes")


def test_groups(kctl: Kctl, topic: Callable[..., str]) -> None:
    name = topic()
    group = f"doctor-{os.getpid()}"
    kctl.ok("produce", name, stdin="a\nb\n")
    with kctl.running("consume", name, "--group", group, "--from-beginning") as reader:

        def stable() -> bool:
            found = kctl("group", "list", "--match", group, "-o", "json")  # 4 before there is one
            return found.code == 0 and [row["state"] for row in json.loads(found.out)] == ["Stable"]

        eventually(stable, seconds=within(20), what="the group is stable")
        with kctl.running("consume", name, "--group", group) as other:

            def idle() -> bool:
                found = _doctor(kctl, "group-more-members", "group-idle-members")
                return f"group {group}" in _subjects(found, "group-more-members")

            eventually(idle, seconds=within(20), what="a member has nothing to do")
            other.terminate()
            other.wait(within(20))
        reader.terminate()
        reader.wait(within(20))
    kctl.ok("produce", name, stdin="c\nd\n")
    assert f"group {group}" in _subjects(_doctor(kctl, "group-abandoned"), "group-abandoned")
    watched = _doctor(kctl, "group-rebalances-often", more=("--watch-for", "1s"))
    assert [each["outcome"] for each in watched["rules"]] == ["ok"]
    kctl.ok("group", "delete", group, "--yes")


def test_readable_scram_credentials(kctl: Kctl, cluster: TestCluster) -> None:
    user = f"doctor-{os.getpid()}"
    kctl.ok("user", "add", user, "--password-file", "-", stdin="secret-of-doctor")
    try:
        result = kctl("doctor", "--rule", "zookeeper-credentials", "-o", "json")
        assert result.code == 1, str(result)
        (found,) = json.loads(result.out)["findings"]
        assert f"/config/users/{user}" in found["subjects"]
        assert "stored_key" not in result.out + result.err
    finally:
        kctl.ok("user", "remove", user, "--yes")
