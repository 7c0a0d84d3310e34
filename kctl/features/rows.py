"""The features of a cluster as rows: one for each feature, or one for each level. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from kctl.cluster.api_versions import VersionRange
from kctl.features.facts import ClusterFeatures, NodeRole
from kctl.features.levels import METADATA_VERSION, brings, known_levels, level_name, level_table


@dataclass(frozen=True, slots=True)
class SupportedRange:
    """Nodes that support the same levels of a feature. releases: Kafka releases of these nodes."""

    brokers: tuple[int, ...]
    controllers: tuple[int, ...]
    releases: tuple[str, ...]
    min_version: int
    max_version: int
    min_name: str
    max_name: str


@dataclass(frozen=True, slots=True)
class FeatureRow:
    """A feature. finalized_version: the level in force, 0 if the feature is not in use.

    min_version, max_version: the levels that all nodes support; None if there are none. supported: by node.
    """

    feature: str
    finalized_version: int
    finalized_name: str
    finalized_epoch: int | None
    min_version: int | None
    max_version: int | None
    max_name: str | None
    brings: str | None
    supported: tuple[SupportedRange, ...]


class LevelStatus(str, Enum):
    """AVAILABLE: all nodes support the level. UNSUPPORTED: at least one node does not."""

    IN_FORCE = "in force"
    AVAILABLE = "available"
    UNSUPPORTED = "unsupported"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class LevelRow:
    """A level of a feature. changes_metadata: only for metadata.version; no downgrade crosses such a level."""

    feature: str
    level: int
    name: str
    status: LevelStatus
    changes_metadata: bool | None
    brings: str | None


def feature_rows(features: ClusterFeatures) -> list[FeatureRow]:
    """Return a row for each feature."""
    return [_row(features, name) for name in features.names]


def level_rows(features: ClusterFeatures) -> list[LevelRow]:
    """Return a row for each level above 0 that a node supports or that is in force, ascending."""
    return [row for name in features.names for row in _levels(features, name)]


def _row(features: ClusterFeatures, feature: str) -> FeatureRow:
    level, common = features.level(feature), common_range(features, feature)
    return FeatureRow(
        feature=feature,
        finalized_version=level,
        finalized_name=level_name(feature, level),
        finalized_epoch=features.epoch,
        min_version=None if common is None else common.lowest,
        max_version=None if common is None else common.highest,
        max_name=None if common is None else level_name(feature, common.highest),
        brings=brings(feature, level),
        supported=_supported(features, feature),
    )


def common_range(features: ClusterFeatures, feature: str) -> VersionRange | None:
    """Return the levels that all nodes support; None if there is none."""
    ranges = [node.range_of(feature) for node in features.nodes]
    lowest, highest = max(r.lowest for r in ranges), min(r.highest for r in ranges)
    return VersionRange(lowest, highest) if ranges and lowest <= highest else None


def _supported(features: ClusterFeatures, feature: str) -> tuple[SupportedRange, ...]:
    ranges = sorted({node.range_of(feature) for node in features.nodes})
    return tuple(_of_range(features, feature, each) for each in ranges)


def _of_range(features: ClusterFeatures, feature: str, levels: VersionRange) -> SupportedRange:
    nodes = [node for node in features.nodes if node.range_of(feature) == levels]
    return SupportedRange(
        brokers=tuple(node.node_id for node in nodes if node.role is NodeRole.BROKER),
        controllers=tuple(node.node_id for node in nodes if node.role is NodeRole.CONTROLLER),
        releases=tuple(sorted({node.release for node in nodes if node.release is not None})),
        min_version=levels.lowest,
        max_version=levels.highest,
        min_name=level_name(feature, levels.lowest),
        max_name=level_name(feature, levels.highest),
    )


def _levels(features: ClusterFeatures, feature: str) -> list[LevelRow]:
    common, in_force = common_range(features, feature), features.level(feature)
    lowest = min((node.range_of(feature).lowest for node in features.nodes), default=0)
    highest = max((node.range_of(feature).highest for node in features.nodes), default=0)
    levels = {level for level in known_levels(feature) if max(lowest, 1) <= level <= highest}
    metadata = level_table().metadata_versions if feature == METADATA_VERSION else {}
    rows = []
    for level in sorted(levels | ({in_force, highest} - {0})):
        available = common is not None and common.lowest <= level <= common.highest
        status = LevelStatus.AVAILABLE if available else LevelStatus.UNSUPPORTED
        rows.append(
            LevelRow(
                feature=feature,
                level=level,
                name=level_name(feature, level),
                status=LevelStatus.IN_FORCE if level <= in_force else status,
                changes_metadata=metadata[level].changes_metadata if level in metadata else None,
                brings=brings(feature, level),
            )
        )
    return rows
