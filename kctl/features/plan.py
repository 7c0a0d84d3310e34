"""Plans that raise or lower levels of features. Pure: the facts are ClusterFeatures.

The rules are those of Kafka's controller (FeatureControlManager, 4.4) and of kafka-features, so that a plan is refused
before any request is sent. In addition, a downgrade must leave all requirements of other features satisfied, which the
controller does not check.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from kctl.base.outcomes import ItemResult, any_changed
from kctl.base.suggestions import did_you_mean
from kctl.base.text import some_of
from kctl.errors import NotFound, NotSupported, Reason, Refused
from kctl.features.facts import ClusterFeatures
from kctl.features.levels import (
    ELR_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    brings,
    known_levels,
    level_name,
    level_table,
    levels_of_release,
    lowest_reachable,
    requirements,
)

_STATIC_TO_DYNAMIC = 26  # 4.1-IV0: controllers before 4.1 cannot turn static voters into dynamic ones (KAFKA-16538)


class ChangeType(Enum):
    """The type of a change, with its code in UpdateFeatures."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


@dataclass(frozen=True, slots=True)
class CrossedLevel:
    """A level that a change puts in force or, with a downgrade, removes."""

    level: int
    name: str
    brings: str


@dataclass(frozen=True, slots=True)
class FeatureChange:
    """A planned change of one feature. before, after: levels, also by name.

    levels: what changes, level by level. reversible: a later downgrade to `before` is possible.
    """

    feature: str
    result: ItemResult
    before: int
    after: int
    before_name: str
    after_name: str
    levels: tuple[CrossedLevel, ...]
    reversible: bool


@dataclass(frozen=True, slots=True)
class FeaturePlan:
    """All changes, which the controller applies together or not at all. warnings: what cannot be undone, and traps."""

    type: ChangeType
    changes: tuple[FeatureChange, ...]
    warnings: tuple[str, ...]

    @property
    def changed(self) -> bool:
        return any_changed(self.changes)

    @property
    def targets(self) -> dict[str, int]:
        """Return the new level of each feature that changes."""
        return {each.feature: each.after for each in self.changes if each.result.changed}

    def raises_to(self, feature: str, level: int) -> bool:
        """Return True if the plan raises a feature from below this level to this level or above."""
        return any(each.feature == feature and each.before < level <= each.after for each in self.changes)


def plan_upgrade(features: ClusterFeatures, levels: Mapping[str, int]) -> FeaturePlan:
    """Plan to raise features to these levels. Levels that are already in force are unchanged.

    Raises NotFound, NotSupported (a node is too old), Refused.
    """
    _check_known(features, levels)
    for feature, level in levels.items():
        if level < features.level(feature):
            raise Refused(
                f"{feature} is at {level_name(feature, features.level(feature))}, above {level_name(feature, level)}",
                hint=f"to lower it, use `kctl feature downgrade {feature}={level_name(feature, level)}`",
                reason=Reason.IMPOSSIBLE,
            )
    return _plan(features, levels, ChangeType.UPGRADE)


def plan_release_upgrade(features: ClusterFeatures, release: str) -> FeaturePlan:
    """Plan to raise all features to the levels of a release; features above these levels stay.

    Raises NotFound, NotSupported (a node is too old), Refused.
    """
    levels = levels_of_release(release)
    return plan_upgrade(
        features,
        {
            name: level if name == METADATA_VERSION else max(level, features.level(name))
            for name, level in levels.items()
            if level or features.level(name)
        },
    )


def plan_downgrade(features: ClusterFeatures, levels: Mapping[str, int], *, unsafe: bool = False) -> FeaturePlan:
    """Plan to lower features to these levels. Levels that are already in force are unchanged.

    unsafe: leave it to the controller whether a downgrade that loses metadata is possible. Raises NotFound,
    NotSupported, Refused.
    """
    _check_known(features, levels)
    for feature, level in levels.items():
        _check_downgrade(feature, features.level(feature), level, unsafe=unsafe)
    return _plan(features, levels, ChangeType.UNSAFE_DOWNGRADE if unsafe else ChangeType.SAFE_DOWNGRADE)


def plan_release_downgrade(features: ClusterFeatures, release: str, *, unsafe: bool = False) -> FeaturePlan:
    """Plan to lower all features to the levels of a release; features below these levels stay.

    Raises as `plan_downgrade` does.
    """
    levels = levels_of_release(release)
    return plan_downgrade(
        features,
        {
            name: level if name == METADATA_VERSION else min(level, features.level(name))
            for name, level in levels.items()
            if features.level(name)
        },
        unsafe=unsafe,
    )


# --- checks -------------------------------------------------------------------------------------------------------


def _check_known(features: ClusterFeatures, levels: Iterable[str]) -> None:
    for feature in levels:
        if feature not in features.names and not known_levels(feature):
            names = ", ".join(features.names)
            raise NotFound(
                f"no node of the cluster has a feature {feature!r}",
                hint=did_you_mean(feature, features.names) or f"features: {names}",
            )


def _check_downgrade(feature: str, before: int, after: int, *, unsafe: bool) -> None:
    names = level_name(feature, before), level_name(feature, after)
    if after > before:
        raise Refused(
            f"{feature} is at {names[0]}, below {names[1]}",
            hint=f"to raise it, use `kctl feature upgrade {feature}={names[1]}`",
            reason=Reason.IMPOSSIBLE,
        )
    if after == before:
        return
    if feature == KRAFT_VERSION:
        raise Refused(
            "kraft.version cannot be lowered", hint="Kafka cannot return to static voters",
            reason=Reason.IMPOSSIBLE,
        )  # fmt: skip
    lowest = lowest_reachable(before)
    if feature == METADATA_VERSION and after < lowest and not unsafe:
        raise Refused(
            f"metadata.version cannot go from {names[0]} to {names[1]}: {level_name(feature, lowest)} changed the "
            "format of the metadata",
            hint=f"the lowest level that can be reached is {level_name(feature, lowest)}"
            if lowest < before
            else "no downgrade is possible from this level",
            reason=Reason.IMPOSSIBLE,
        )


def _check_nodes(features: ClusterFeatures, feature: str, level: int) -> None:
    """Raise NotSupported if a node does not support a level."""
    lacking = [
        f"{node.name} ({_software(node.release)}, {_range_text(feature, *node.range_of(feature))})"
        for node in features.nodes
        if not node.range_of(feature).lowest <= level <= node.range_of(feature).highest
    ]
    if lacking:
        raise NotSupported(
            f"{feature} {level_name(feature, level)} is not supported by {some_of(lacking)}",
            hint="upgrade the software of these nodes first; see `kctl feature list`",
            reason=Reason.VERSION_UNSUPPORTED,
        )


def _software(release: str | None) -> str:
    return "unknown release" if release is None else f"Kafka {release}"


def _range_text(feature: str, lowest: int, highest: int) -> str:
    return f"{level_name(feature, lowest)} to {level_name(feature, highest)}" if highest else "without this feature"


def _check_static_to_dynamic(features: ClusterFeatures) -> None:
    older = [
        f"{node.name} ({_software(node.release)})"
        for node in features.nodes
        if node.range_of(METADATA_VERSION).highest < _STATIC_TO_DYNAMIC
    ]
    if older:
        raise NotSupported(
            f"kraft.version cannot be raised because of {some_of(older)}: only Kafka 4.1 and later can turn static "
            "voters into dynamic ones",
            hint="upgrade the software of these nodes first",
            reason=Reason.VERSION_UNSUPPORTED,
        )


def _check_requirements(features: ClusterFeatures, levels: Mapping[str, int]) -> None:
    """Raise Refused unless the requirements of all features are satisfied after the change."""
    after = {**features.finalized, **levels}
    for feature, level in after.items():
        for required, least in requirements(feature, level).items():
            if after.get(required, 0) >= least or not levels.keys() & {feature, required}:
                continue  # satisfied, or violated already before the change
            change = "would be" if required in levels else "is"
            raise Refused(
                f"{feature} {level_name(feature, level)} requires {required} {level_name(required, least)} or later, "
                f"which {change} {level_name(required, after.get(required, 0))}",
                hint=f"add {required}={level_name(required, least)} to the command"
                if feature in levels
                else f"lower {feature} first",
                reason=Reason.NOT_READY,
            )


# --- the plan -----------------------------------------------------------------------------------------------------


def _plan(features: ClusterFeatures, levels: Mapping[str, int], change_type: ChangeType) -> FeaturePlan:
    changing = {name: level for name, level in levels.items() if level != features.level(name)}
    for feature, level in changing.items():
        _check_nodes(features, feature, level)
    if KRAFT_VERSION in changing:
        _check_static_to_dynamic(features)
    if changing:
        _check_requirements(features, changing)
    changes = tuple(_change(name, features.level(name), level) for name, level in levels.items())
    return FeaturePlan(change_type, changes, (*_warnings(changes), *_silence(features)) if changing else ())


def _change(feature: str, before: int, after: int) -> FeatureChange:
    low, high = sorted((before, after))
    return FeatureChange(
        feature=feature,
        result=ItemResult.UNCHANGED if before == after else ItemResult.WOULD_SET,
        before=before,
        after=after,
        before_name=level_name(feature, before),
        after_name=level_name(feature, after),
        levels=tuple(_crossed(feature, low, high)),
        reversible=_reversible(feature, before, after),
    )


def _crossed(feature: str, low: int, high: int) -> Iterable[CrossedLevel]:
    for level in known_levels(feature):
        text = brings(feature, level)
        if low < level <= high and text is not None:
            yield CrossedLevel(level, level_name(feature, level), text)


def _reversible(feature: str, before: int, after: int) -> bool:
    if feature == METADATA_VERSION and before < after:
        return lowest_reachable(after) <= before
    return feature != KRAFT_VERSION or before == after


def _warnings(changes: Iterable[FeatureChange]) -> Iterable[str]:
    for change in changes:
        if not change.reversible and change.before < change.after:
            yield _no_way_back(change)
        if change.feature == METADATA_VERSION and change.after > level_table().latest_production:
            yield f"metadata.version {change.after_name} is newer than this kctl, or for tests only"
        if change.feature == ELR_VERSION and change.before < 1 <= change.after:
            yield (
                "with eligible leader replicas, min.insync.replicas can be set for all brokers (`kctl config set "
                "brokers`) and for topics, but no longer for a single broker"
            )


def _no_way_back(change: FeatureChange) -> str:
    if change.feature == KRAFT_VERSION:
        return (
            "kraft.version cannot be lowered afterwards; set controller.quorum.bootstrap.servers in place of "
            "controller.quorum.voters on all nodes after the change"
        )
    lowest = lowest_reachable(change.after)
    entry = level_table().metadata_versions.get(lowest)
    software = "" if entry is None else f", and nodes with releases before {entry.release} can no longer run"
    return f"metadata.version cannot be lowered below {level_name(METADATA_VERSION, lowest)} afterwards{software}"


def _silence(features: ClusterFeatures) -> Iterable[str]:
    for node in features.silent:
        yield f"the levels of {node.name} were not read: {node.reason}; the active controller checks them"
