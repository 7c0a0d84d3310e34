"""What lag is: the definitions of kctl.lag.rules as a table."""

from __future__ import annotations

import pytest

from kctl.lag.rules import LagRow, ahead_of, by_group, by_topic, lag_of, lost_of


@pytest.mark.parametrize(
    ("committed", "start", "end", "lag", "lost"),
    [
        (0, 0, 0, 0, 0),  # an empty log
        (5, 0, 10, 5, 0),  # behind
        (10, 0, 10, 0, 0),  # at the end
        (3, 6, 10, 4, 3),  # deleted unread: the Java tool says 7
        (0, 10, 10, 0, 10),  # all deleted unread
        (12, 0, 10, 0, 0),  # beyond the end: the log was truncated, or the topic was made anew
        (None, 0, 10, None, None),  # never committed: not known, not 0
        (3, None, None, None, None),  # the topic is gone
        (3, None, 10, None, None),
        (3, 0, None, None, 0),
        (None, None, None, None, None),
        (2**62, 0, 2**63 - 1, 2**63 - 1 - 2**62, 0),
    ],
)
def test_lag_and_lost(
    committed: int | None, start: int | None, end: int | None, lag: int | None, lost: int | None
) -> None:
    assert lag_of(committed, start, end) == lag
    assert lost_of(committed, start) == lost
    if lag is not None and lost is not None and committed is not None and end is not None:
        assert lag + lost == max(end - committed, 0), "lag + lost is the Java tool's LAG"


@pytest.mark.parametrize(
    ("committed", "end", "ahead"),
    [
        (5, 5, 0),
        (5, 6, 0),
        (6, 5, 1),
        (5, 0, 5),
        (0, 0, 0),
        (2**63 - 1, 0, 2**63 - 1),
        (None, 5, None),
        (5, None, None),
    ],
)
def test_committed_beyond_the_end(committed: int | None, end: int | None, ahead: int | None) -> None:
    assert ahead_of(committed, end) == ahead


def _row(group: str, topic: str, partition: int, committed: int | None, start: int | None, end: int | None) -> LagRow:
    lag, lost = lag_of(committed, start, end), lost_of(committed, start)
    return LagRow(group, "Empty", topic, partition, committed, start, end, lag, lost)


ROWS = [
    _row("g", "a", 0, 5, 0, 10),
    _row("g", "a", 1, None, 0, 10),
    _row("g", "b", 0, 3, 6, 10),
    _row("g", "gone", 0, 7, None, None),
    _row("h", "a", 0, 10, 0, 10),
    _row("i", "a", 0, None, 0, 1),
]


def test_by_topic() -> None:
    found = {(row.group, row.topic): row for row in by_topic(ROWS)}
    assert list(found) == [("g", "a"), ("g", "b"), ("g", "gone"), ("h", "a"), ("i", "a")]
    a = found["g", "a"]
    assert (a.partition_count, a.lag, a.max_lag, a.lost, a.not_committed, a.unknown) == (2, 5, 5, 0, 1, 0)
    gone = found["g", "gone"]
    assert (gone.lag, gone.lost, gone.not_committed, gone.unknown) == (None, None, 0, 1)
    assert found["i", "a"].lag is None


def test_by_group() -> None:
    g, h, i = by_group(ROWS)
    assert (g.topic_count, g.partition_count, g.lag, g.max_lag, g.lost) == (3, 4, 9, 5, 3)
    assert (g.not_committed, g.unknown) == (1, 1)
    assert (h.lag, h.max_lag) == (0, 0)
    assert (i.lag, i.not_committed) == (None, 1)
    assert by_group([]) == []


def test_what_is_beyond_the_end_and_no_message_is_added_up() -> None:
    rows = [
        LagRow("g", "Empty", "t", 0, 9, 0, 5, 0, 0, ahead=4),
        LagRow("g", "Empty", "t", 1, 5, 0, 9, 4, 0, ahead=0, control_records=3),
        LagRow("g", "Empty", "t", 2, 5, 0, 9, 4, 0, ahead=0),
        LagRow("g", "Empty", "t", 3, None, 0, 9, None, None),
    ]
    (row,) = by_group(rows)
    assert (row.lag, row.ahead, row.control_records, row.messages) == (8, 4, 3, 5)
    assert [each.messages for each in rows] == [0, 1, 4, None]


def test_the_keys_of_a_row_never_change() -> None:
    assert LagRow._fields == (
        "group", "state", "topic", "partition", "committed_offset", "log_start_offset", "log_end_offset",
        "lag", "lost", "client_id", "host", "ahead", "control_records",
    )  # fmt: skip
