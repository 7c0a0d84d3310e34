"""API versions, features, releases and log levels: pure parts."""

from __future__ import annotations

import pytest
from kafka.protocol.broker_version_data import BROKER_API_VERSIONS

from kctl.brokers.loggers import by_logger, parse_levels, plan_levels
from kctl.cluster.api_versions import BrokerApis, Feature, VersionRange, compare_apis, features_of, release_of
from kctl.errors import NotFound, UsageError
from kctl.protocol.codes import api_name

NEWEST = max(BROKER_API_VERSIONS)


@pytest.mark.parametrize("release", [r for r in BROKER_API_VERSIONS if (0, 10) < r < NEWEST])
def test_each_release_is_told_from_the_others(release: tuple[int, ...]) -> None:
    """By what its brokers said (kafka-python's tables), also of brokers that have more requests than it knows."""
    versions = {key: VersionRange(*found) for key, found in BROKER_API_VERSIONS[release].items()}
    assert release_of(versions) == ".".join(map(str, release))
    assert release_of({55: VersionRange(0, 0), 200: VersionRange(0, 9), **versions}) == ".".join(map(str, release))


def test_a_release_that_is_too_new_or_too_old() -> None:
    newest = {key: VersionRange(low, high + 1) for key, (low, high) in BROKER_API_VERSIONS[NEWEST].items()}
    assert release_of(newest) == f"{'.'.join(map(str, NEWEST))}+"
    assert release_of({}) is None


def test_api_names() -> None:
    assert [api_name(key) for key in (0, 3, 18, 55, 74, 92)] == [
        "Produce", "Metadata", "ApiVersions", "DescribeQuorum", "ListConfigResources", "DeleteShareGroupOffsets",
    ]  # fmt: skip
    assert api_name(200) == "api 200"


def _apis(versions: dict[int, tuple[int, int]], *features: Feature, epoch: int | None = None) -> BrokerApis:
    return BrokerApis({key: VersionRange(*found) for key, found in versions.items()}, features, epoch)


def test_brokers_that_differ() -> None:
    rows = compare_apis({1: _apis({0: (0, 9), 3: (0, 12)}), 2: _apis({0: (0, 11), 3: (0, 12)}), 3: _apis({3: (0, 12)})})
    produce, metadata = rows
    assert (produce.api, produce.same) == ("Produce", False)
    assert [(v.brokers, v.min_version, v.max_version) for v in produce.versions] == [
        ((1,), 0, 9), ((2,), 0, 11), ((3,), None, None),
    ]  # fmt: skip
    assert (metadata.same, [v.brokers for v in metadata.versions]) == (True, [(1, 2, 3)])


def test_features_of_brokers_that_differ() -> None:
    old, new = Feature("metadata.version", 1, 20, 20), Feature("metadata.version", 1, 25, 20)
    rows = features_of({3: _apis({}, new, epoch=7), 1: _apis({}, old, epoch=6), 2: _apis({}, old, epoch=7)})
    assert [(r.brokers, r.max_version, r.finalized_version, r.finalized_epoch) for r in rows] == [
        ((1, 2), 20, 20, 7), ((3,), 25, 20, 7),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("texts", "levels"),
    [
        (["a.b=DEBUG"], {"a.b": "DEBUG"}),
        ([" a = trace ", "root=warn"], {"a": "TRACE", "root": "WARN"}),
        (["a"], None),
        (["=INFO"], None),
        (["a="], None),
        (["a=OFF"], None),
        (["a=INFO", "a=WARN"], None),
    ],
)
def test_levels(texts: list[str], levels: dict[str, str] | None) -> None:
    if levels is None:
        with pytest.raises(UsageError):
            parse_levels(texts)
    else:
        assert parse_levels(texts) == levels


def test_a_plan_of_levels() -> None:
    current = {2: {"a": "INFO", "b": "WARN"}, 1: {"a": "DEBUG", "b": "WARN"}}
    rows = plan_levels(current, {"a": "DEBUG"})
    assert [(r.broker, r.before, r.after, r.result) for r in rows] == [
        (1, "DEBUG", "DEBUG", "unchanged"), (2, "INFO", "DEBUG", "would set"),
    ]  # fmt: skip
    with pytest.raises(NotFound) as unknown:
        plan_levels({1: {"logger.a": "INFO"}, 2: {}}, {"logger.b": "DEBUG"})
    assert unknown.value.hint == "did you mean logger.a?"
    assert "on broker 1, 2" in unknown.value.message
    assert [(r.logger, r.level, r.brokers) for r in by_logger(current)] == [
        ("a", "DEBUG", (1,)), ("a", "INFO", (2,)), ("b", "WARN", (1, 2)),
    ]  # fmt: skip
