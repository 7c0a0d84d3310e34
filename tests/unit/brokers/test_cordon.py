"""Cordoned log dirs: which are cordoned after a change, how the config then reads, and what is warned of."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kctl.brokers.cordon import edit_for, states_after, warnings_of
from kctl.brokers.log_dir_rows import log_dir_rows
from kctl.cluster.log_dirs import CORDONED, LogDir
from kctl.cluster.topic_configs import ConfigSource
from kctl.configs.model import Config, Synonym
from kctl.errors import NotFound, NotSupported

OPEN, CLOSED = LogDir("/a", 9, 5, []), LogDir("/a", 9, 5, [], cordoned=True)
B, B_CLOSED = LogDir("/b", 9, 5, []), LogDir("/b", 9, 5, [], cordoned=True)
FAILED = LogDir("/b", None, None, [], error="offline")


@pytest.mark.parametrize(
    ("dirs", "paths", "cordon", "after"),
    [
        ([OPEN, B], [], True, {"/a": True, "/b": True}),
        ([OPEN, B], ["/b"], True, {"/a": False, "/b": True}),
        ([CLOSED, B], ["/b/"], True, {"/a": True, "/b": True}),
        ([CLOSED, B_CLOSED], ["/b"], False, {"/a": True, "/b": False}),
        ([CLOSED, B_CLOSED], [], False, {"/a": False, "/b": False}),
    ],
)
def test_states_after(dirs: list[LogDir], paths: list[str], cordon: bool, after: dict[str, bool]) -> None:
    assert states_after(1, dirs, paths, cordon=cordon) == after


def test_an_unknown_log_dir() -> None:
    with pytest.raises(NotFound, match="broker 1 has no log dir /c") as caught:
        states_after(1, [OPEN, B], ["/c"], cordon=True)
    assert caught.value.hint == "its log dirs: /a, /b"


def _config(*values: tuple[str, ConfigSource]) -> Config:
    synonyms = tuple(Synonym(CORDONED, value, source) for value, source in values)
    first = synonyms[0] if synonyms else None
    return Config(
        CORDONED, first.value if first else "", first.source if first else ConfigSource.DEFAULT, "", "list", False,
        False, synonyms,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("after", "everything", "values", "edit"),
    [
        ({"/a": True, "/b": True}, True, [], ("set", "*")),
        ({"/a": True, "/b": True}, False, [], ("set", "/a,/b")),
        ({"/a": False, "/b": True}, False, [("*", ConfigSource.DYNAMIC_BROKER)], ("set", "/b")),
        ({"/a": False, "/b": False}, False, [("/a", ConfigSource.DYNAMIC_BROKER)], ("unset", None)),
        # Without a value of the broker's own, the one of all brokers or of server.properties would cordon it again.
        (
            {"/a": False}, False, [("/a", ConfigSource.DYNAMIC_BROKER), ("*", ConfigSource.DYNAMIC_DEFAULT_BROKER)],
            ("set", ""),
        ),
        ({"/a": False}, False, [("/a", ConfigSource.STATIC_BROKER)], ("set", "")),
        (
            {"/a": False}, False, [("/a", ConfigSource.DYNAMIC_BROKER), ("", ConfigSource.DEFAULT)], ("unset", None)
        ),
    ],
)  # fmt: skip
def test_the_config(
    after: dict[str, bool], everything: bool, values: list[tuple[str, ConfigSource]], edit: tuple[str, str | None]
) -> None:
    found = edit_for(1, after, {CORDONED: _config(*values)}, everything=everything)
    assert (found.name, found.operation, found.value) == (CORDONED, *edit)


def test_a_broker_that_cannot() -> None:
    with pytest.raises(NotSupported) as caught:
        edit_for(1, {"/a": True}, {}, everything=True)
    assert "Kafka 4.3" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("own", "after", "others", "warning"),
    [
        ([OPEN, B], {"/a": True, "/b": False}, [], None),
        ([OPEN, B], {"/a": True, "/b": True}, [], "no broker receives new replicas: topics"),
        ([OPEN, FAILED], {"/a": True, "/b": False}, [], "no broker receives new replicas: topics"),
        ([OPEN], {"/a": True}, [[CLOSED, B_CLOSED]], "no broker receives new replicas: topics"),
        ([OPEN], {"/a": True}, [[CLOSED, B]], "only broker 2 receives new replicas: new topics have at most 1 replica"),
        ([OPEN], {"/a": True}, [[OPEN], [OPEN]], "only brokers 2, 3 receive new replicas"),
        ([OPEN], {"/a": True}, [[OPEN], [OPEN], [OPEN]], None),
    ],
)  # fmt: skip
def test_warnings(
    own: Sequence[LogDir], after: dict[str, bool], others: list[Sequence[LogDir]], warning: str | None
) -> None:
    lines = warnings_of(1, after, {1: own, **dict(enumerate(others, start=2))})
    assert (lines == []) if warning is None else (len(lines) == 1 and lines[0].startswith(warning))


def test_rows_name_them() -> None:
    assert [(row.log_dir, row.cordoned) for row in log_dir_rows({1: [B, CLOSED]})] == [("/a", True), ("/b", False)]
