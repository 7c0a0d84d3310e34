"""What `kctl lag --max-lag` and `kctl spark lag --max-lag` make of rows: the verdict as a table."""

from __future__ import annotations

import pytest

from kctl.errors import KctlError, NotFound, NotHealthy
from kctl.lag.gate import By, check_lag
from kctl.lag.rules import LagRow, by_group, by_topic


def _row(committed: int | None, end: int | None, group: str = "g", control: int | None = None) -> LagRow:
    lag = None if committed is None or end is None else max(end - committed, 0)
    ahead = None if committed is None or end is None else max(committed - end, 0)
    return LagRow(group, "Empty", "t", 0, committed, 0, end, lag, 0, ahead=ahead, control_records=control)


BEHIND, THERE, AHEAD, NO_COMMIT, GONE = _row(5, 9), _row(9, 9), _row(12, 9), _row(None, 9), _row(9, None)


@pytest.mark.parametrize(
    ("rows", "limit", "named", "error", "text"),
    [
        ([THERE], 0, ["g"], None, ""),
        ([BEHIND], 4, ["g"], None, ""),
        ([BEHIND], 3, ["g"], NotHealthy, "1 partition over the limit of 3: group g, t, partition 0 has a lag of 4"),
        ([BEHIND, BEHIND], 0, [], NotHealthy, "2 partitions over the limit of 0"),
        # Markers of transactions, and what compaction removed.
        ([_row(5, 6, control=1)], 0, ["g"], None, ""),
        ([_row(5, 9, control=4)], 0, ["g"], None, ""),
        ([_row(5, 9, control=3)], 0, ["g"], NotHealthy, "has a lag of 4"),
        ([_row(5, 9, control=3)], 1, ["g"], None, ""),
        ([_row(5, 9, control=0)], 3, ["g"], NotHealthy, "has a lag of 4"),
        # Committed beyond the end of the log: a topic made anew.
        ([AHEAD], 0, ["g"], NotHealthy, "the committed offset is 3 beyond the end of the log"),
        ([AHEAD], 10**12, [], NotHealthy, "beyond the end"),
        ([AHEAD, BEHIND], 0, [], NotHealthy, "over the limit of 0"),
        # Nothing that could be checked.
        ([], 0, [], NotFound, "no group has a known lag"),
        ([NO_COMMIT], 0, [], NotFound, "no group has a known lag"),
        ([GONE], 0, [], NotFound, "no group has a known lag"),
        ([], 0, ["g"], NotHealthy, "it is unknown for group g"),
        ([NO_COMMIT], 0, ["g"], NotHealthy, "it is unknown for group g"),
        ([GONE], 0, ["g"], NotHealthy, "it is unknown for group g"),
        ([THERE], 0, ["g", "h"], NotHealthy, "it is unknown for group h"),
        ([THERE, _row(None, 9, "h")], 0, ["g", "h"], NotHealthy, "it is unknown for group h"),
        ([THERE, _row(None, 9, "h")], 0, [], None, ""),  # of all groups: a warning
        ([THERE, NO_COMMIT], 0, ["g"], None, ""),
        ([BEHIND, NO_COMMIT], None, ["g", "h"], None, ""),  # no limit, no verdict
    ],
)
def test_verdict(
    rows: list[LagRow], limit: int | None, named: list[str], error: type[KctlError] | None, text: str
) -> None:
    for by, rows_of in ((By.PARTITION, list), (By.TOPIC, by_topic), (By.GROUP, by_group)):
        if by is not By.PARTITION and len({row.group for row in rows}) < len(rows):
            continue  # added up, it is another row
        if error is None:
            check_lag(rows_of(rows), by, limit, named)
            continue
        with pytest.raises(error) as caught:
            check_lag(rows_of(rows), by, limit, named)
        if by is By.PARTITION:
            assert text in caught.value.message


def test_what_was_not_checked_is_told() -> None:
    unchecked = check_lag([THERE, NO_COMMIT], By.PARTITION, 0, ["g"])
    assert unchecked == "lag not checked for 1 partition, because it is unknown: group g, t, partition 0"
    assert check_lag([THERE], By.PARTITION, 0, ["g"]) is None
