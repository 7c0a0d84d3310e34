"""Rows of features and levels, and the answers of nodes that they come from."""

from __future__ import annotations

from feature_facts import KAFKA_4_3, KAFKA_4_4, cluster, node
from kctl.cluster.api_versions import BrokerApis, Feature
from kctl.errors import ConnectionTimedOut
from kctl.features.facts import NodeRole, SilentNode, assemble
from kctl.features.min_insync_replicas import BrokerMinIsr, warnings_for
from kctl.features.rows import LevelStatus, feature_rows, level_rows

MIXED = cluster(
    {"metadata.version": 27, "group.version": 1},
    node(1, KAFKA_4_4), node(2, KAFKA_4_4), node(101, KAFKA_4_3, NodeRole.CONTROLLER),
)  # fmt: skip


def test_a_row_has_the_level_by_name_and_what_each_node_supports() -> None:
    rows = {row.feature: row for row in feature_rows(MIXED)}
    assert list(rows)[:2] == ["metadata.version", "kraft.version"]
    row = rows["metadata.version"]
    assert (row.finalized_version, row.finalized_name, row.finalized_epoch) == (27, "4.1-IV1", 7)
    assert (row.min_version, row.max_version, row.max_name) == (7, 30, "4.3-IV0")
    assert [(each.brokers, each.controllers, each.max_name, each.releases) for each in row.supported] == [
        ((), (101,), "4.3-IV0", ("4.3",)),
        ((1, 2), (), "4.4-IV2", ("4.4",)),
    ]
    assert rows["kraft.version"].finalized_version == 0
    assert len(rows["kraft.version"].supported) == 1


def test_levels_show_what_is_in_force_and_what_is_not_yet_possible() -> None:
    levels = {row.name: row for row in level_rows(MIXED) if row.feature == "metadata.version"}
    assert levels["4.1-IV1"].status is LevelStatus.IN_FORCE
    assert levels["4.3-IV0"].status is LevelStatus.AVAILABLE
    assert levels["4.4-IV0"].status is LevelStatus.UNSUPPORTED
    assert levels["4.4-IV1"].changes_metadata
    assert "4.5-IV0" not in levels
    assert [row.level for row in level_rows(MIXED) if row.feature == "share.version"] == [1, 2]


def test_a_level_of_a_newer_release_is_a_number() -> None:
    newer = cluster({"metadata.version": 60}, node(1, {"metadata.version": 61, "brand.new": 4}))
    rows = {row.feature: row for row in feature_rows(newer)}
    assert (rows["metadata.version"].finalized_name, rows["metadata.version"].max_name) == ("60", "61")
    assert (rows["brand.new"].max_name, rows["brand.new"].brings) == ("4", None)
    assert [row.level for row in level_rows(newer) if row.feature == "metadata.version"][-2:] == [60, 61]


def test_the_finalized_levels_are_those_of_the_newest_epoch() -> None:
    def apis(level: int, epoch: int | None) -> BrokerApis:
        return BrokerApis({}, (Feature("metadata.version", 7, 33, level), Feature("kraft.version", 0, 1, None)), epoch)

    features = assemble(
        {
            (NodeRole.CONTROLLER, 101): ConnectionTimedOut("no response in time"),
            (NodeRole.BROKER, 2): apis(25, 4),
            (NodeRole.BROKER, 1): apis(33, 9),
            (NodeRole.BROKER, 3): apis(0, None),
        }
    )
    assert features.finalized == {"metadata.version": 33}
    assert (features.epoch, [each.name for each in features.nodes]) == (9, ["broker 1", "broker 2", "broker 3"])
    assert features.silent == (SilentNode(NodeRole.CONTROLLER, 101, "no response in time"),)
    assert {each.release for each in features.nodes} == {"4.4"}


def test_min_insync_replicas_that_eligible_leader_replicas_would_change() -> None:
    assert list(warnings_for({1: BrokerMinIsr("1", None, None)})) == []
    assert list(warnings_for({1: BrokerMinIsr("2", None, "2"), 2: BrokerMinIsr("2", None, "2")})) == []
    (lost,) = warnings_for({1: BrokerMinIsr("2", None, None), 2: BrokerMinIsr("2", None, None)})
    assert "is 2, but not set for all brokers" in lost
    assert "kctl config set brokers min.insync.replicas=2" in lost
    removed, lost = warnings_for({1: BrokerMinIsr("10", "10", None), 2: BrokerMinIsr("9", None, None)})
    assert removed == "min.insync.replicas is removed from single brokers: 10 on broker 1"
    assert "is 9 and 10, but not set" in lost
