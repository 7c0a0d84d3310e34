"""Levels of features: names, releases, dependencies. Pure.

feature_levels.json is generated from Kafka's classes MetadataVersion and Feature by tests/support/feature_levels.py.
Levels that it lacks, of newer releases, are shown as numbers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from kctl.base.suggestions import did_you_mean
from kctl.errors import NotFound, UsageError
from kctl.features.level_texts import TEXTS

METADATA_VERSION = "metadata.version"
KRAFT_VERSION = "kraft.version"
ELR_VERSION = "eligible.leader.replicas.version"
_HIGHEST = 32767  # int16 of UpdateFeatures
_PATCH = re.compile(r"(\d+\.\d+)\.\d+")


@dataclass(frozen=True, slots=True)
class MetadataLevel:
    """A level of metadata.version. changes_metadata: it changes the format, so no downgrade crosses it."""

    level: int
    name: str
    release: str
    changes_metadata: bool


@dataclass(frozen=True, slots=True)
class FeatureLevel:
    """A level of another feature. metadata_version: --release includes it from this level on. requires: by feature."""

    level: int
    metadata_version: int
    requires: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class LevelTable:
    """All levels. latest_production: the newest level of metadata.version that is not for tests only."""

    latest_production: int
    metadata_versions: Mapping[int, MetadataLevel]
    features: Mapping[str, tuple[FeatureLevel, ...]]


@lru_cache(maxsize=1)
def level_table() -> LevelTable:
    """Return the table of all levels that this kctl knows."""
    document = json.loads(Path(__file__).with_name("feature_levels.json").read_text(encoding="utf-8"))
    return LevelTable(
        document["latest_production"],
        {row["level"]: MetadataLevel(**row) for row in document["metadata_versions"]},
        {name: tuple(FeatureLevel(**row) for row in entry["levels"]) for name, entry in document["features"].items()},
    )


def level_name(feature: str, level: int) -> str:
    """Return the name of a level, e.g. "4.4-IV2" for 33; the number for other features and unknown levels."""
    entry = level_table().metadata_versions.get(level) if feature == METADATA_VERSION else None
    return str(level) if entry is None else entry.name


def brings(feature: str, level: int) -> str | None:
    """Return what a level brings, in one line; None if unknown."""
    return TEXTS.get(feature, {}).get(level)


def known_levels(feature: str) -> tuple[int, ...]:
    """Return the known levels of a feature, ascending; () for an unknown feature."""
    table = level_table()
    if feature == METADATA_VERSION:
        return tuple(table.metadata_versions)
    return tuple(each.level for each in table.features.get(feature, ()))


def release_of_level(level: int) -> str | None:
    """Return the release of a level of metadata.version, e.g. "4.4"; "4.4+": newer or unknown.

    None for level 0, i.e. for nodes without the feature.
    """
    table = level_table()
    if level > table.latest_production:
        return f"{table.metadata_versions[table.latest_production].release}+"
    entry = table.metadata_versions.get(level)
    return None if entry is None else entry.release


def requirements(feature: str, level: int) -> Mapping[str, int]:
    """Return the levels of other features that a level requires (Feature.validateVersion of Kafka)."""
    if feature == METADATA_VERSION:
        return {}
    lowest = {METADATA_VERSION: 7} if level else {}  # MetadataVersion.MINIMUM_VERSION
    entry = next((each for each in level_table().features.get(feature, ()) if each.level == level), None)
    return lowest if entry is None else {**lowest, **entry.requires}


def lowest_reachable(level: int) -> int:
    """Return the lowest level of metadata.version that a downgrade from this level can reach.

    Kafka refuses to cross a level that changes the format of the metadata, and implements no unsafe downgrade
    (FeatureControlManager.updateMetadataVersion, up to 4.4).
    """
    versions = level_table().metadata_versions
    reachable = level
    while (entry := versions.get(reachable)) is not None and not entry.changes_metadata and reachable - 1 in versions:
        reachable -= 1
    return reachable


def levels_of_release(release: str) -> dict[str, int]:
    """Return the level of each feature in a release ("4.4", "4.4.0" or "4.4-IV1"), as kafka-features maps it.

    Raises NotFound.
    """
    table = level_table()
    metadata_level = _metadata_level(release)
    if metadata_level is None:
        newest = table.metadata_versions[table.latest_production].release
        raise NotFound(
            f"release {release!r} is unknown", hint=f"known releases: 3.3 to {newest}, e.g. {newest} or {newest}-IV0"
        )
    return {METADATA_VERSION: metadata_level} | {
        name: max(each.level for each in levels if each.metadata_version <= metadata_level or not each.level)
        for name, levels in table.features.items()
    }


def parse_level(feature: str, text: str) -> int:
    """Parse a level: a number, or for metadata.version also a name ("4.4-IV2") or a release ("4.4").

    Raises UsageError.
    """
    if text.isascii() and text.isdigit() and int(text) <= _HIGHEST:
        return int(text)
    if feature == METADATA_VERSION:
        level = _metadata_level(text)
        if level is not None:
            return level
        names = [each.name for each in level_table().metadata_versions.values()]
        raise UsageError(
            f"{feature}: {text!r} is not a level", hint=did_you_mean(text, names) or "e.g. 4.4-IV2, 4.4 or 33"
        )
    raise UsageError(f"{feature}: {text!r} is not a level", hint="a level is a number, e.g. 1")


def parse_levels(texts: list[str]) -> dict[str, int]:
    """Parse FEATURE=LEVEL arguments. Raises UsageError."""
    levels: dict[str, int] = {}
    for text in texts:
        feature, equals, level = text.partition("=")
        feature = feature.strip()
        if not equals or not feature:
            raise UsageError(f"{text!r} is not FEATURE=LEVEL", hint="e.g. metadata.version=4.4-IV2")
        if feature in levels:
            raise UsageError(f"{feature} is set twice", hint="remove one of them")
        levels[feature] = parse_level(feature, level.strip())
    return levels


def _metadata_level(text: str) -> int | None:
    """Return the level of a name, or the highest production level of a release; None if unknown."""
    table = level_table()
    patch = _PATCH.fullmatch(text)
    name = patch.group(1) if patch else text
    matching = [each.level for each in table.metadata_versions.values() if name in (each.name, each.release)]
    production = [level for level in matching if level <= table.latest_production]
    return max(production or matching, default=None)
