"""Topics, groups, lag, producing and consuming while one of three brokers is dead."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest

from kctl_testing import Kctl, eventually, within

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


def test_one_broker_down(own_kctl: Kctl) -> None:
    kctl = own_kctl
    single = "offsets.topic.replication.factor=1"  # so that some groups have no coordinator then
    kctl.ok("cluster", "create", "down", "--use", "--layout", "pseudo-distributed", "--config", single, timeout=180)
    try:
        groups = _prepare(kctl)
        kctl.ok("cluster", "kill", "down", "3", "--yes")
        eventually(lambda: _offline(kctl), seconds=60, what="broker 3's session has expired")
        _look(kctl, groups)
        _look_at_groups(kctl, groups)
        _change_access(kctl)
        _write_and_read(kctl)
        _delete_and_bring_back(kctl, groups)
    finally:
        kctl("cluster", "destroy", "down", "--yes", "--confirm-cluster", "down", timeout=120)


class Groups(NamedTuple):
    """Two groups without members, that have committed for both topics; broker 3 coordinates `gone`."""

    there: str
    gone: str


def _prepare(kctl: Kctl) -> Groups:
    kctl.ok("topic", "create", "single", "--replica-assignment", "1,2,3")
    kctl.ok("topic", "create", "strict", "--replica-assignment", "3:1:2", "--config", "min.insync.replicas=3")
    for partition in range(3):
        kctl.ok("produce", "single", "--partition", str(partition), stdin="x\n" * 5)
    kctl.ok("produce", "strict", stdin="x\n" * 5)
    rows = [
        {"group": f"g{number}", "topic": topic, "partition": partition, "offset": offset}
        for number in range(12)
        for topic, partition, offset in (("single", 0, 5), ("single", 1, 5), ("single", 2, 5), ("strict", 0, 2))
    ]
    kctl.ok("group", "import", "-", "--yes", stdin=json.dumps(rows))
    by_coordinator = {row["coordinator"]: row["group"] for row in kctl.json("group", "list")}
    return Groups(there=by_coordinator[1], gone=by_coordinator[3])


def _offline(kctl: Kctl) -> bool:
    (single,) = kctl.json("topic", "describe", "single")
    return bool(single["partitions"][2]["offline"])


def _look(kctl: Kctl, groups: Groups) -> None:
    (single,) = kctl.json("topic", "describe", "single")
    assert [p["leader"] for p in single["partitions"]] == [1, 2, None]
    assert single["partitions"][2]["offline_replicas"] == [3]
    (strict,) = kctl.json("topic", "describe", "strict")
    (partition,) = strict["partitions"]
    assert partition["leader"] in {1, 2}
    assert (partition["under_replicated"], partition["under_min_isr"], partition["offline"]) == (True, True, False)

    _look_at_topics(kctl)

    result = kctl("lag", groups.there, "-o", "json")
    assert result.code == 5, "not everything could be read, and that is said"
    rows: list[dict[str, Any]] = json.loads(result.out)
    assert [(row["topic"], row["partition"], row["lag"]) for row in rows] == [
        ("single", 0, 0), ("single", 1, 0), ("single", 2, None), ("strict", 0, 3),
    ]  # fmt: skip
    assert "single-2: no leader" in json.loads(result.err)["message"]
    assert result.seconds < within(10)
    over = kctl("lag", groups.there, "--max-lag", "2")
    assert (over.code, "the result is incomplete: " in over.err) == (1, True), str(over)

    same = kctl("spark", "lag", "--group", groups.there, "-o", "json", timeout=120)
    assert same.code == 5
    assert [(row["topic"], row["partition"], row["lag"]) for row in json.loads(same.out)] == [
        (row["topic"], row["partition"], row["lag"]) for row in rows
    ]
    assert "broker 3 is down" in json.loads(same.err.splitlines()[-1])["message"]
    assert "partition single-2: no leader" in same.err

    producers = kctl("transaction", "producers", "single", "-o", "json")
    assert (producers.code, "single-2 has no leader" in producers.err) == (5, True), str(producers)
    assert {row["partition"] for row in json.loads(producers.out)} == {0, 1}
    hanging = kctl("transaction", "hanging", "--topic", "single")
    assert (hanging.code, "single-2 has no leader" in hanging.err) == (5, True), str(hanging)

    exported = kctl.ok("cluster", "export")
    document = json.loads(exported.out)
    assert [(b["id"], "log_dirs" in b) for b in document["brokers"]] == [(1, True), (2, True), (3, False)]
    refused = kctl("topic", "create", "more", "--replication-factor", "3")
    assert refused.code == 4
    assert "larger than available brokers: 2" in refused.err


def _look_at_topics(kctl: Kctl) -> None:
    """Filters find what the broker left; sizes that only it could tell are not known, which is said."""
    found = kctl.json("topic", "describe", "single", "strict", "--under-min-isr")
    assert [(t["topic"], [p["partition"] for p in t["partitions"]]) for t in found] == [
        ("single", [2]),
        ("strict", [0]),
    ]
    unavailable = kctl.json("topic", "describe", "--unavailable")
    assert [t["topic"] for t in unavailable] == ["__consumer_offsets", "single"], "some groups have no coordinator"
    assert [p["partition"] for p in unavailable[1]["partitions"]] == [2]
    listed = kctl("topic", "list", "--match", "s.*", "--unavailable", "--size", "--count", "-o", "json")
    assert listed.code == 5
    (row,) = json.loads(listed.out)
    assert (row["topic"], row["size_bytes"], row["leader_size_bytes"], row["messages"]) == ("single", None, None, None)
    assert "sizes of broker 3" in listed.err
    assert "no offsets for single-2" in listed.err
    offsets = kctl("topic", "offsets", "single", "-o", "json")
    assert (offsets.code, [row["offset"] for row in json.loads(offsets.out)]) == (5, [5, 5])
    refused = kctl("topic", "truncate", "single", "--all", "--yes")
    assert (refused.code, refused.out) == (4, ""), "not even of the partitions that could be"
    earliest = kctl("topic", "offsets", "single", "--time", "earliest", "-o", "json")
    assert [row["offset"] for row in json.loads(earliest.out)] == [0, 0]
    lost = kctl("topic", "delete", "single", "--dry-run", "-o", "json")
    (row,) = json.loads(lost.out)
    assert (row["size_bytes"], row["known_size_bytes"] > 0) == (None, True), "what broker 3 has is not nothing"
    assert "no offsets for single-2" in lost.err, "its newest record may be there"
    dirs = kctl("broker", "log-dirs", "-o", "json")
    assert (dirs.code, {row["broker"] for row in json.loads(dirs.out)}) == (5, {1, 2})
    assert "log dirs of broker 3: the broker is down" in dirs.err
    clone = kctl("topic", "clone", "single", "single-copy", "--data")
    assert (clone.code, "nothing was created" in clone.err) == (4, True)
    grown = kctl.json("topic", "alter", "strict", "--config", "retention.ms=7200000", "--yes")
    assert grown[0]["result"] == "altered"


def _look_at_groups(kctl: Kctl, groups: Groups) -> None:
    """What has no coordinator is told, and what was asked for beside it is not changed by half."""
    there, gone = groups
    listed = kctl("group", "list", "-o", "json")
    names = {row["group"] for row in json.loads(listed.out)}
    assert (listed.code, there in names, gone in names) == (5, True, False), str(listed)
    assert "no leader of __consumer_offsets, partition " in json.loads(listed.err)["message"]
    before = kctl.json("group", "export", there)
    assert len(before) == 4
    both = kctl("group", "describe", there, gone, "-o", "json")
    assert (both.code, [row["group"] for row in json.loads(both.out)]) == (5, [there]), str(both)
    assert f"the coordinator of group {gone} is not available" in both.err
    for args in (
        ("members", gone),
        ("export", there, gone),
        ("reset-offsets", there, gone, "--topic", "single:0", "--to-earliest"),
        ("delete", there, gone),
        ("delete", "--match", "g.*", "--expect", "12"),
        ("delete-offsets", gone, "--topic", "single"),
        ("remove-member", gone, "--all"),
    ):
        refused = kctl("group", *args, "--yes", "--timeout", "1s")
        assert (refused.code, refused.out) == (3, ""), str(refused)
        assert refused.seconds < within(10), "not a minute for what cannot be reached"
    hole = kctl("group", "reset-offsets", there, "--all-topics", "--to-earliest", "--yes")
    assert (hole.code, "no new offset for single-2" in hole.err) == (4, True), str(hole)
    assert kctl.json("group", "export", there) == before
    (moved,) = kctl.json("group", "reset-offsets", there, "--topic", "strict", "--to-earliest", "--yes")
    assert (moved["result"], moved["new_offset"]) == ("reset", 0), "of what can be reached, all works"


def _change_access(kctl: Kctl) -> None:
    """Users and quotas are the controller's; what `context test` finds is told by server."""
    kctl.ok("user", "add", "uma", "--password-file", "-", stdin="secret-of-uma")
    assert [row["user"] for row in kctl.json("user", "list")] == ["uma"]
    kctl.ok("quota", "set", "--user", "uma", "producer_byte_rate=1MB", "--yes")
    assert [row["value"] for row in kctl.json("quota", "list")] == [1_000_000]
    kctl.ok("quota", "unset", "--user", "uma", "producer_byte_rate", "--yes")
    kctl.ok("user", "remove", "uma", "--yes")
    without_authorizer = kctl("acl", "list")
    assert (without_authorizer.code, "SECURITY_DISABLED" in without_authorizer.err) == (4, True)
    tried = kctl("context", "test", "-o", "json")
    assert (tried.code, tried.seconds < within(10)) == (1, True), str(tried)
    found = json.loads(tried.out)
    broken = [bool(server["problem"]) for server in found["servers"] if server["role"] == "bootstrap"]
    assert broken == [False, False, True]
    assert found["principal"] == "User:ANONYMOUS"
    assert all(right["result"] != "denied" for right in found["rights"])


def _write_and_read(kctl: Kctl) -> None:
    result = kctl("produce", "strict", "--timeout", "5s", "-o", "json", stdin="a\nb\n")
    body = json.loads(result.out)
    assert result.code == 5
    # The leader refuses before it writes: nothing is unknown.
    assert (body["acknowledged"], body["failed"], body["unknown"], body["not_acknowledged"]) == (0, 2, 0, [[1, 2]])
    assert "min.insync.replicas" in json.loads(result.err)["hint"]
    assert result.seconds < within(20)
    whole = kctl("consume", "single", "--from-beginning", "--exit-eof")
    assert whole.code == 4
    assert "single-2 cannot be read: no leader" in whole.err
    parts = kctl.ok("consume", "single", "--from-beginning", "--exit-eof", "--partition", "0", "--partition", "1")
    assert parts.out == "x\n" * 10


def _delete_and_bring_back(kctl: Kctl, groups: Groups) -> None:
    """With a replica on a dead broker a deletion cannot finish; when the broker is back, it does."""
    grown = kctl("topic", "alter", "single", "--partitions", "4", "--yes", "--timeout", "60s", "-o", "json")
    assert grown.code == 0, str(grown)
    (row,) = json.loads(grown.out)
    assert (row["result"], row["partition_count_after"], row["error"]) == ("altered", 4, None)
    assert grown.seconds < within(20), "partition 2 is without a leader as before, and nobody waits for it"
    marked = kctl("topic", "delete", "single", "--yes", "--timeout", "4s", "-o", "json")
    assert marked.code == 5
    assert json.loads(marked.out)[0]["result"] == "marked"
    kctl.ok("cluster", "start", "down", timeout=180)
    eventually(
        lambda: kctl("topic", "create", "single", "--dry-run").code == 0, seconds=60, what="the name is free again"
    )
    eventually(lambda: kctl("group", "members", groups.gone).code == 0, seconds=60, what="its coordinator is back")
    assert {row["committed_offset"] for row in kctl.json("group", "export", groups.gone, "--topic", "strict")} == {2}
