"""Tables at 80 columns: what breaks, where, and what never does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kctl.commands.terminal.table_layout import Cells, breaks_words, fit, short_paths, short_time, wrap


def test_what_fits_is_left_alone() -> None:
    assert fit([Cells("NAME", ["orders"], True), Cells("LAG", ["7"], False)], 80) == ([6, 3], 2)


def test_headers_break_first_and_only_those_that_must() -> None:
    columns = [Cells("TOPIC", ["__consumer_offsets"], True), Cells("RETENTION BYTES", ["10 MB"], False)]
    assert fit(columns, 29) == ([18, 9], 2)
    assert fit(columns, 35) == ([18, 15], 2)


def test_lists_break_behind_their_commas() -> None:
    servers = "127.0.0.1:21760,127.0.0.1:21761,127.0.0.1:21762"
    assert wrap(servers, 20) == ["127.0.0.1:21760,", "127.0.0.1:21761,", "127.0.0.1:21762"]
    fitted = fit([Cells("CONTEXT", ["trio"], True), Cells("SERVERS", [servers], True)], 50)
    assert fitted.width <= 50
    assert fitted.widths[0] == 7


def test_numbers_do_not_break_at_their_commas() -> None:
    assert wrap("= ⌈10,836 ÷ 86⌉", 8) == ["=", "⌈10,836", "÷ 86⌉"]
    assert wrap("101,102,103,104,105", 9) == ["101,102,", "103,104,", "105"]


def test_names_and_numbers_stay_whole() -> None:
    columns = [
        Cells("NODE", ["zookeeper-1"], True),
        Cells("PID", ["4194303"], False),
        Cells("NOTE", ["waits for a quorum of its ensemble"], True),
    ]
    fitted = fit(columns, 40)
    assert fitted.widths[:2] == [11, 7]
    assert fitted.width <= 40
    assert wrap("/home/ops/.local/share/kctl/clusters/dev", 22) == ["/home/ops/.local/", "share/kctl/clusters/", "dev"]


def test_names_break_at_their_separators_only_when_closer_columns_do_not_help() -> None:
    def columns(name: str, *, whole: bool) -> list[Cells]:
        return [Cells("GROUP", [name], True, whole), *(Cells("N", ["123456"], False) for _ in range(7))]

    name = 'a group <b>x</b>" u'
    assert fit(columns(name, whole=True), 68).widths[0] == len(name) == 19
    assert fit(columns(name, whole=False), 68).widths[0] < len(name)
    assert fit(columns(name, whole=True), 64).width == 64


def test_times_and_addresses_are_never_broken() -> None:
    for text in ("2026-11-22T15:30:03.644Z", "2026-11-22T15:30:03Z", "127.0.0.1:29983", "[::1]:9092"):
        columns = [Cells("AT", [text], True), Cells("N", ["1" * 70], False), Cells("WORD", ["w" * 30], True)]
        assert fit(columns, 80).widths[0] == len(text)
    servers = "127.0.0.1:21760,127.0.0.1:21761"
    assert fit([Cells("SERVERS", [servers], True), Cells("N", ["1" * 70], False)], 80).widths[0] == 16


def test_words_break_before_names_do() -> None:
    columns = [
        Cells("NAME", ["log_dir_event_notification"], True, whole=True),
        Cells("N", ["1" * 40], False),
        Cells("MEANING", ["no_longer_used_by_controllers"], True),
    ]
    assert fit(columns, 80).widths == [26, 40, 12]
    assert fit(columns, 76).widths == [26, 40, 8]
    assert fit(columns, 66).widths[0] < 26


def test_times_lose_their_milliseconds_before_words_break() -> None:
    columns = [Cells("AT", ["2026-11-22T15:30:03.644Z"], True), Cells("WORD", ["w" * 30], True)]
    assert not breaks_words(columns, 55)
    assert breaks_words(columns, 54)
    assert [short_time(text) for text in ("2026-11-22T15:30:03.644Z", "at 2026-11-22T15:30:03.644Z", "-")] == [
        "2026-11-22T15:30:03Z", "at 2026-11-22T15:30:03.644Z", "-",
    ]  # fmt: skip


def test_long_names_break_when_nothing_else_helps() -> None:
    columns = [Cells("TOPIC", ["t" * 37], True), *(Cells("N", ["123456"], False) for _ in range(7))]
    fitted = fit(columns, 80)
    assert (fitted.width, fitted.gap) == (80, 1)


def test_what_cannot_fit_is_left_too_wide() -> None:
    numbers = [Cells(f"C{n}", ["1234567890"], False) for n in range(10)]
    assert fit(numbers, 110) == ([10] * 10, 1)
    assert fit(numbers, 80) == ([10] * 10, 1)


@pytest.mark.parametrize(
    ("name", "width", "lines"),
    [
        ("log.message.timestamp.after.max.ms=unlimited", 42, ["log.message.timestamp.after.max.ms=", "unlimited"]),
        ("customer-lifecycle-events.enriched.v2", 22, ["customer-lifecycle-", "events.enriched.v2"]),
        ("a-clickstream", 8, ["a-clicks", "tream"]),  # too short a line: broken where it is full
        ("events--", 7, ["events-", "-"]),
    ],
)
def test_long_names_break_after_their_separators(name: str, width: int, lines: list[str]) -> None:
    assert wrap(name, width) == lines


def test_a_word_that_is_too_long_is_cut_anywhere() -> None:
    assert wrap("x" * 25, 10) == ["x" * 10, "x" * 10, "x" * 5]


@given(st.text(max_size=200), st.integers(1, 50))
def test_wrapping_loses_nothing_but_spaces(text: str, width: int) -> None:
    lines = wrap(text, width)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(len(line) <= width for line in lines)


@given(
    st.lists(st.tuples(st.text(max_size=20), st.lists(st.text(max_size=60), max_size=5), st.booleans()), min_size=1),
    st.integers(20, 200),
)
def test_columns_take_no_more_than_they_need(columns: list[tuple[str, list[str], bool]], width: int) -> None:
    cells = [Cells(title, texts, breakable) for title, texts, breakable in columns]
    for column, given_width in zip(cells, fit(cells, width).widths, strict=True):
        assert given_width <= max(map(len, [column.title, *column.texts]), default=0)
        assert column.breakable or all(len(text) <= given_width for text in column.texts)


def test_marks_are_never_broken_inside_a_word() -> None:
    numbers = [Cells(f"COLUMN{n}", ["1234567890123"], False) for n in range(5)]
    marks = Cells("MARKS", ["transactional control", "under-replicated"], True, keep_words=True)
    widths, _ = fit([*numbers, marks], 80)
    assert wrap("transactional control", widths[-1]) == ["transactional", "control"]
    assert wrap("under-replicated", widths[-1]) == ["under-replicated"]


def test_long_paths_lose_their_beginning_unless_two_become_equal() -> None:
    assert short_paths(["/var/lib/kafka-logs/t-0", "kafka/t-1"]) == ["…/kafka-logs/t-0", "kafka/t-1"]
    equal = ["/data/1/kafka-logs/t-0", "/data/2/kafka-logs/t-0"]
    assert short_paths(equal) == equal
