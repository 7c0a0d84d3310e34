"""Plans that raise and lower levels, and why they are refused."""

from __future__ import annotations

import pytest

from feature_facts import KAFKA_3_9, KAFKA_4_0, KAFKA_4_3, KAFKA_4_4, cluster, node
from kctl.base.outcomes import ItemResult
from kctl.errors import KctlError, NotFound, NotSupported, Refused
from kctl.features.facts import ClusterFeatures, NodeRole, SilentNode
from kctl.features.levels import levels_of_release
from kctl.features.plan import (
    ChangeType,
    plan_downgrade,
    plan_release_downgrade,
    plan_release_upgrade,
    plan_upgrade,
)

FINAL_4_4 = levels_of_release("4.4")


def _without_zeros(levels: dict[str, int]) -> dict[str, int]:
    return {name: level for name, level in levels.items() if level}


@pytest.mark.parametrize("release", ["3.9", "4.0", "4.1", "4.2", "4.3", "4.4"])
def test_a_release_raises_all_its_features(release: str) -> None:
    plan = plan_release_upgrade(cluster({"metadata.version": 20}), release)
    assert plan.type is ChangeType.UPGRADE
    assert plan.targets == _without_zeros(levels_of_release(release))
    assert {each.result for each in plan.changes} == {ItemResult.WOULD_SET}


def test_levels_that_are_reached_are_no_change() -> None:
    plan = plan_release_upgrade(cluster(FINAL_4_4), "4.4")
    assert not plan.changed
    assert plan.targets == {}
    assert plan.warnings == ()
    assert {each.result for each in plan.changes} == {ItemResult.UNCHANGED}


def test_a_release_keeps_features_that_are_above_it() -> None:
    features = cluster({"metadata.version": 25, "share.version": 2})
    plan = plan_release_upgrade(features, "4.2")
    assert "share.version" not in plan.targets
    assert plan.targets["metadata.version"] == 29


def test_what_a_change_crosses() -> None:
    (change,) = plan_upgrade(cluster({"metadata.version": 30}), {"metadata.version": 32}).changes
    assert (change.before_name, change.after_name) == ("4.3-IV0", "4.4-IV1")
    assert [level.name for level in change.levels] == ["4.4-IV0", "4.4-IV1"]
    assert "KIP-1276" in change.levels[1].brings
    assert not change.reversible


@pytest.mark.parametrize(
    ("finalized", "levels", "words"),
    [
        (
            {"metadata.version": 30},
            {"metadata.version": 33},
            ["cannot be lowered below 4.4-IV2 afterwards", "before 4.4"],
        ),
        ({"metadata.version": 22}, {"metadata.version": 29}, ["cannot be lowered below 4.0-IV1 afterwards"]),
        ({"metadata.version": 33}, {"kraft.version": 1}, ["kraft.version cannot be lowered afterwards"]),
        ({"metadata.version": 33}, {"eligible.leader.replicas.version": 1}, ["min.insync.replicas"]),
        ({"metadata.version": 25}, {"metadata.version": 29}, []),
        ({"metadata.version": 33}, {"group.version": 1}, []),
    ],
)
def test_warnings(finalized: dict[str, int], levels: dict[str, int], words: list[str]) -> None:
    warnings = plan_upgrade(cluster(finalized), levels).warnings
    assert len(warnings) == (1 if words else 0)
    assert all(word in warnings[0] for word in words)


def test_a_silent_node_is_named() -> None:
    silent = (SilentNode(NodeRole.CONTROLLER, 102, "connection refused"),)
    plan = plan_upgrade(cluster({"metadata.version": 33}, silent=silent), {"group.version": 1})
    assert plan.warnings == (
        "the levels of controller 102 were not read: connection refused; the active controller checks them",
    )


MIXED = cluster(
    {"metadata.version": 30}, node(1, KAFKA_4_4), node(2, KAFKA_4_3), node(101, KAFKA_4_3, NodeRole.CONTROLLER)
)


@pytest.mark.parametrize(
    ("features", "levels", "error", "words"),
    [
        (MIXED, {"metadata.version": 33}, NotSupported,
         "4.4-IV2 is not supported by broker 2 (Kafka 4.3, 3.3-IV3 to 4.3-IV0), controller 101 (Kafka 4.3"),
        (cluster({"metadata.version": 21}, node(1, KAFKA_3_9)), {"share.version": 1}, NotSupported,
         "share.version 1 is not supported by broker 1 (Kafka 3.9, without this feature)"),
        (cluster({"metadata.version": 25}, node(1, KAFKA_4_4), node(2, KAFKA_4_0)), {"kraft.version": 1}, NotSupported,
         "kraft.version cannot be raised because of broker 2 (Kafka 4.0)"),
        (cluster({"metadata.version": 33}), {"metadata.version": 34}, NotSupported, "4.5-IV0 is not supported"),
        (cluster({"metadata.version": 33}), {"metadata.version": 21}, Refused, "is at 4.4-IV2, above 3.9-IV0"),
        (cluster({"metadata.version": 33}), {"nosuch.version": 1}, NotFound, "no node of the cluster has a feature"),
        (cluster({"metadata.version": 21}), {"eligible.leader.replicas.version": 1}, Refused,
         "requires metadata.version 4.0-IV1 or later, which is 3.9-IV0"),
        (cluster({"metadata.version": 21}), {"eligible.leader.replicas.version": 1, "metadata.version": 22}, Refused,
         "requires metadata.version 4.0-IV1 or later, which would be 4.0-IV0"),
    ],
)  # fmt: skip
def test_refused_upgrades(
    features: ClusterFeatures, levels: dict[str, int], error: type[KctlError], words: str
) -> None:
    with pytest.raises(error) as caught:
        plan_upgrade(features, levels)
    assert words in caught.value.message
    assert caught.value.hint


def test_a_requirement_can_be_met_by_the_same_command() -> None:
    levels = {"eligible.leader.replicas.version": 1, "metadata.version": 25}
    assert plan_upgrade(cluster({"metadata.version": 21}), levels).targets == levels


@pytest.mark.parametrize("level", [24, 23])
def test_metadata_version_can_go_back_to_the_same_format(level: int) -> None:
    plan = plan_downgrade(cluster({"metadata.version": 29}), {"metadata.version": level})
    assert plan.type is ChangeType.SAFE_DOWNGRADE
    assert plan.targets == {"metadata.version": level}


@pytest.mark.parametrize(
    ("finalized", "levels", "words"),
    [
        ({"metadata.version": 33}, {"metadata.version": 30}, "4.4-IV2 changed the format of the metadata"),
        ({"metadata.version": 29}, {"metadata.version": 22}, "4.0-IV1 changed the format of the metadata"),
        ({"metadata.version": 33, "kraft.version": 1}, {"kraft.version": 0}, "kraft.version cannot be lowered"),
        ({"metadata.version": 33}, {"group.version": 1}, "group.version is at 0, below 1"),
        ({"metadata.version": 25, "eligible.leader.replicas.version": 1, "group.version": 1},
         {"metadata.version": 6}, "4.0-IV1 changed the format"),
    ],
)  # fmt: skip
def test_refused_downgrades(finalized: dict[str, int], levels: dict[str, int], words: str) -> None:
    with pytest.raises(Refused) as caught:
        plan_downgrade(cluster(finalized), levels)
    assert words in caught.value.message
    assert caught.value.hint


def test_other_features_keep_what_they_require() -> None:
    """Kafka's controller checks this only for the features that it changes."""
    features = cluster({"metadata.version": 24, "eligible.leader.replicas.version": 1})
    with pytest.raises(Refused) as caught:
        plan_downgrade(features, {"metadata.version": 22}, unsafe=True)
    assert caught.value.message == (
        "eligible.leader.replicas.version 1 requires metadata.version 4.0-IV1 or later, which would be 4.0-IV0"
    )
    assert caught.value.hint == "lower eligible.leader.replicas.version first"


def test_unsafe_leaves_the_decision_to_the_controller() -> None:
    plan = plan_downgrade(cluster({"metadata.version": 33}), {"metadata.version": 30}, unsafe=True)
    assert plan.type is ChangeType.UNSAFE_DOWNGRADE
    assert plan.targets == {"metadata.version": 30}


def test_a_release_lowers_all_its_features() -> None:
    finalized = {**levels_of_release("4.2"), "kraft.version": 1}
    plan = plan_release_downgrade(cluster(finalized), "4.1")
    assert plan.targets == {"metadata.version": 27, "share.version": 0, "streams.version": 0}
    assert not plan_release_downgrade(cluster(levels_of_release("4.1")), "4.1").changed
