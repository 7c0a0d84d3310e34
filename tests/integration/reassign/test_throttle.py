"""Throttles on real brokers: set beside an operator's own, seen by the brokers, and put back to the letter."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from kctl.configs.dynamic import Resource, alter_dynamic, read_dynamic
from kctl.errors import OperationFailed
from kctl.protocol.client import ClusterClient, connect
from kctl.protocol.target import Target
from kctl.reassign.planner.assignment import Reassignment
from kctl.reassign.run.throttle import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    LOG_DIR_RATE,
    NAMES,
    Throttle,
    plan_throttle,
    read_current,
    read_throttles,
    restore_throttle,
    set_throttle,
)
from kctl.reassign.run.throttle_changes import renew
from kctl_testing import Kctl, TestCluster, eventually

B1, B2, B3 = (Resource.broker(node) for node in (1, 2, 3))


@pytest.fixture
def client(cluster: TestCluster) -> Iterator[ClusterClient]:
    with connect(Target("tests", tuple(cluster.bootstrap.split(",")))) as client:
        yield client
        nothing: dict[str, str | None] = dict.fromkeys((LEADER_RATE, FOLLOWER_RATE, LOG_DIR_RATE))
        assert alter_dynamic(client, {B1: nothing, B2: nothing, B3: nothing}) == {}


def test_throttles_go_back_to_what_an_operator_had(
    client: ClusterClient, topic: Callable[..., str], kctl: Kctl
) -> None:
    kept, gone = topic(2, 2), topic(1, 2)
    t, d = Resource.topic(kept), Resource.topic(gone)
    theirs: dict[Resource, dict[str, str | None]] = {
        B1: {LEADER_RATE: "5000"}, t: {LEADER_REPLICAS: "*", FOLLOWER_REPLICAS: "1:1"},
    }  # fmt: skip
    assert alter_dynamic(client, theirs) == {}
    moves = [
        Reassignment(kept, 0, after=(3, 2), before=(1, 2)),
        Reassignment(gone, 0, after=(3, 2), before=(1, 2)),
        Reassignment(kept, 1, (1, 2), (1, 2), log_dirs=("/b", None), log_dirs_before=("/a", None)),
    ]
    before = read_dynamic(client, [B1, B2, B3, t, d], NAMES)
    throttle = plan_throttle(moves, 1_000_000, read_throttles(client, moves))
    for _ in range(2):  # twice is harmless
        set_throttle(client, throttle.set)
    now = read_dynamic(client, [B1, B2, B3, t, d], NAMES)
    assert (now[B1][LEADER_RATE], now[B1][LOG_DIR_RATE], now[B3][FOLLOWER_RATE]) == ("1000000",) * 3
    assert (now[t][LEADER_REPLICAS], now[t][FOLLOWER_REPLICAS]) == ("*", "1:1,0:3")
    assert (now[d][LEADER_REPLICAS], now[d][FOLLOWER_REPLICAS]) == ("0:1,0:2", "0:3")

    again = renew(throttle, 2_000_000, read_current(client, throttle))
    throttle = Throttle.from_json(again.throttle.to_json())  # never applied: killed in between
    kctl.ok("topic", "delete", gone, "--yes")
    assert alter_dynamic(client, {B3: {FOLLOWER_RATE: "7"}}) == {}
    eventually(
        lambda: read_dynamic(client, [B3], [FOLLOWER_RATE])[B3][FOLLOWER_RATE] == "7", what="broker 3 tells its rate"
    )
    told = restore_throttle(client, throttle)
    assert told == [
        f'broker 3: someone else changed {FOLLOWER_RATE} to "7"; kctl left the value as is; it was not set before'
    ]
    assert read_dynamic(client, [B1, B2, t], NAMES) == {r: before[r] for r in (B1, B2, t)}
    assert restore_throttle(client, throttle) == told
    assert read_dynamic(client, [B1, B2, t], NAMES) == {r: before[r] for r in (B1, B2, t)}


def test_a_broker_that_is_not_there_is_named_and_the_others_are_restored(client: ClusterClient) -> None:
    nowhere = Resource.broker(99)
    throttle = Throttle(
        before={B2: {LEADER_RATE: None}, nowhere: {LEADER_RATE: None}},
        set={B2: {LEADER_RATE: "1000"}, nowhere: {LEADER_RATE: "1000"}},
    )
    with pytest.raises(OperationFailed, match=r"could not be set on broker 99: .*not in the cluster"):
        set_throttle(client, throttle.set)
    assert read_dynamic(client, [B2], [LEADER_RATE]) == {B2: {LEADER_RATE: "1000"}}
    with pytest.raises(OperationFailed, match="could not be restored on broker 99") as failure:
        restore_throttle(client, throttle)
    assert [row["name"] for row in failure.value.details["resources"]] == ["99"]  # type: ignore[attr-defined]
    assert read_dynamic(client, [B2], [LEADER_RATE]) == {B2: {LEADER_RATE: None}}
