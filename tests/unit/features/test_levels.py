"""Names, releases and requirements of levels."""

from __future__ import annotations

import pytest

from kctl.errors import KctlError, NotFound, UsageError
from kctl.features.level_texts import TEXTS
from kctl.features.levels import (
    brings,
    known_levels,
    level_name,
    level_table,
    levels_of_release,
    lowest_reachable,
    parse_level,
    parse_levels,
    release_of_level,
    requirements,
)


@pytest.mark.parametrize(
    ("feature", "level", "name"),
    [
        ("metadata.version", 33, "4.4-IV2"),
        ("metadata.version", 21, "3.9-IV0"),
        ("metadata.version", 1, "3.0-IV1"),
        ("metadata.version", 900, "900"),  # of a newer release
        ("metadata.version", 0, "0"),
        ("kraft.version", 1, "1"),
        ("unheard.of", 3, "3"),
    ],
)
def test_names(feature: str, level: int, name: str) -> None:
    assert level_name(feature, level) == name


@pytest.mark.parametrize(
    ("release", "levels"),
    [
        ("3.9", {"metadata.version": 21, "kraft.version": 1}),
        ("4.0", {"metadata.version": 25, "kraft.version": 1, "transaction.version": 2, "group.version": 1}),
        ("4.1", {"metadata.version": 27, "eligible.leader.replicas.version": 1, "share.version": 0}),
        ("4.2", {"metadata.version": 29, "share.version": 1, "streams.version": 1}),
        ("4.3", {"metadata.version": 30, "share.version": 1}),
        ("4.4", {"metadata.version": 33, "share.version": 2}),
        ("4.4.0", {"metadata.version": 33}),
        ("4.0-IV1", {"metadata.version": 23, "group.version": 1, "transaction.version": 0}),
        ("3.3", {"metadata.version": 7, "kraft.version": 0, "group.version": 0}),
    ],
)
def test_releases(release: str, levels: dict[str, int]) -> None:
    found = levels_of_release(release)
    assert {name: found[name] for name in levels} == levels
    assert found.keys() == {"metadata.version", *level_table().features}


@pytest.mark.parametrize("release", ["5.7", "", "4", "four", "4.4-IV9"])
def test_unknown_releases(release: str) -> None:
    with pytest.raises(NotFound):
        levels_of_release(release)


@pytest.mark.parametrize(
    ("level", "release"), [(33, "4.4"), (30, "4.3"), (21, "3.9"), (34, "4.4+"), (99, "4.4+"), (0, None)]
)
def test_the_release_of_a_node(level: int, release: str | None) -> None:
    assert release_of_level(level) == release


@pytest.mark.parametrize(
    ("level", "lowest"), [(33, 33), (32, 32), (31, 30), (30, 30), (29, 23), (25, 23), (23, 23), (22, 17), (900, 900)]
)
def test_a_downgrade_ends_at_a_level_that_changed_the_metadata(level: int, lowest: int) -> None:
    assert lowest_reachable(level) == lowest


@pytest.mark.parametrize(
    ("text", "level"), [("33", 33), ("4.4-IV2", 33), ("4.4", 33), ("4.0.1", 25), ("0", 0), ("900", 900)]
)
def test_levels_as_text(text: str, level: int) -> None:
    assert parse_level("metadata.version", text) == level


@pytest.mark.parametrize(
    "texts",
    [
        ["metadata.version"],
        ["=3"],
        ["metadata.version=4.4-IV7"],
        ["kraft.version=4.4"],
        ["kraft.version=-1"],
        ["kraft.version=99999999"],
        ["kraft.version=²"],
        ["kraft.version="],
        ["kraft.version=1", "kraft.version=0"],
    ],
)
def test_wrong_levels(texts: list[str]) -> None:
    with pytest.raises(UsageError):
        parse_levels(texts)


def test_a_wrong_name_gets_a_suggestion() -> None:
    with pytest.raises(KctlError) as caught:
        parse_level("metadata.version", "4.4-IV")
    assert "4.4-IV" in (caught.value.hint or "")


def test_requirements() -> None:
    assert requirements("eligible.leader.replicas.version", 1) == {"metadata.version": 23}
    assert requirements("group.version", 1) == {"metadata.version": 7}
    assert requirements("group.version", 0) == {}
    assert requirements("metadata.version", 33) == {}


def test_every_production_level_says_what_it_brings() -> None:
    """A level that a new release adds to the table needs a line."""
    table = level_table()
    levels = {("metadata.version", level) for level in table.metadata_versions if level <= table.latest_production}
    levels |= {(name, each.level) for name, of in table.features.items() for each in of if each.level}
    assert [each for each in sorted(levels) if not brings(*each)] == []
    assert [(name, level) for name, of in TEXTS.items() for level in of if level not in known_levels(name)] == []
    assert max(len(text) for of in TEXTS.values() for text in of.values()) < 90
