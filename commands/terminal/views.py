"""Output that several commands share: lag rows and their verdict, number ranges, incomplete results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from kctl.base.text import counted
from kctl.commands.terminal import output
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.errors import KctlError, NotFound, NotHealthy, OperationFailed

if TYPE_CHECKING:
    from kctl.lag.collect import LagReport
    from kctl.lag.gate import By


NONE_CURRENT = "no context is current now; select one with `kctl context use NAME`"
MAX_LAG_HELP = (
    "Exit 1 if a row has more than N unread messages, or an offset beyond the end of the log; "
    "exit 4 if no lag is known."
)
_MAX_LINES = 5

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def incomplete(failures: Sequence[str]) -> OperationFailed:
    """Return the error for an incomplete result that was printed: exit code 5."""
    for line in failures[1:]:
        output.warn(line)
    more = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
    return OperationFailed(f"the result is incomplete: {failures[0]}{more}", hint="the readable part was printed")


def report_incomplete(failures: Sequence[str]) -> None:
    """Raise the error for a result that was printed, if it is incomplete."""
    if failures:
        raise incomplete(failures)


@contextmanager
def incomplete_after_verdict(failures: Sequence[str]) -> Iterator[None]:
    """Wrap the verdict on a printed result that may be incomplete: report both, the verdict first."""
    try:
        yield
    except NotHealthy:
        for line in failures:
            output.warn(f"the result is incomplete: {line}")
        raise
    except NotFound:
        if not failures:
            raise  # otherwise the missing object may be in the unread part
    report_incomplete(failures)


def split_failures(results: Mapping[_Key, _Value | KctlError]) -> tuple[dict[_Key, _Value], list[str]]:
    """Return what was read, and why the rest was not. Raises the first failure if nothing was read."""
    readable = {key: each for key, each in results.items() if not isinstance(each, KctlError)}
    failures = [each for each in results.values() if isinstance(each, KctlError)]
    if failures and not readable:
        raise failures[0]
    return readable, [each.message for each in failures]


def warn_if_overruled(name: str) -> None:
    """Warn if KCTL_CONTEXT overrides the context that has just become current."""
    from kctl.contexts.choose import list_contexts, overruled_by

    override = overruled_by(name)
    if override:
        effect = f"commands use {override}" if override in list_contexts() else f"there is no context {override}"
        output.warn(f"{effect}: KCTL_CONTEXT={override} takes precedence; run `unset KCTL_CONTEXT`")


def ranges(numbers: Sequence[int]) -> str:
    """Return sorted numbers as ranges: "0-3,7"."""
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans(numbers))


def spans(numbers: Sequence[int]) -> list[list[int]]:
    """Return sorted numbers as runs: [first, last] of each."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return runs


def alarm(key: str) -> Callable[[Mapping[str, Any]], str | None]:
    """Return a column style: red if the row's `key` is set and not zero."""
    return lambda row: "red" if row.get(key) else None


def lag_columns(*, with_group: bool = True, with_members: bool = True) -> list[Column]:
    """Return the columns of lag rows, one partition each."""
    columns = [
        Column("group", name=True),
        Column("topic", name=True),
        Column("partition", "PART", align="right"),
        Column("committed_offset", "COMMITTED", align="right"),
        Column("log_start_offset", "START", align="right"),
        Column("log_end_offset", "END", align="right"),
        Column("lag", align="right"),
        Column("lost", align="right", style=alarm("lost")),
        Column("client_id", "CLIENT"),
        Column("host"),
    ]
    hidden = {
        key
        for key, visible in (("group", with_group), ("client_id", with_members), ("host", with_members))
        if not visible
    }
    return [column for column in columns if column.key not in hidden]


_RARE = (
    Column("ahead", "BEYOND END", align="right", style=alarm("ahead")),
    Column("control_records", "NO MESSAGE", align="right"),
)


def with_rare(columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> list[Column]:
    """Return the columns of lag rows, with rarely used columns after the lag if a row has a value for them."""
    rare = [column for column in _RARE if any(row[column.key] for row in rows)]
    at = 1 + max(place for place, column in enumerate(columns) if column.key in {"lag", "max_lag"})
    return [*columns[:at], *rare, *columns[at:]]


def lag_table(rows: Sequence[Any], by: By, *, members: bool) -> Table:
    """Return a table of `rows_by`."""
    from kctl.lag.gate import By

    documents = jsonable(rows)
    if by is By.PARTITION:
        with_members = members and any(row["client_id"] for row in documents)
        return Table(with_rare(lag_columns(with_members=with_members), documents), documents, empty="no commits")
    columns = [
        Column("group", name=True),
        Column("state"),
        Column("topic", name=True) if by is By.TOPIC else Column("topic_count", "TOPICS", align="right"),
        Column("partition_count", "PARTITIONS", align="right"),
        Column("lag", align="right"),
        Column("max_lag", "MAX", align="right"),
        Column("lost", align="right", style=lambda row: "red" if row["lost"] else None),
        Column("not_committed", "NO COMMIT", align="right"),
        Column("unknown", align="right", style=lambda row: "yellow" if row["unknown"] else None),
    ]
    return Table(with_rare(columns, documents), documents, empty="no commits")


def remarks(report: LagReport) -> None:
    """Print notes and warnings about a lag report on stderr."""
    deleted = sorted({tp.topic for tp in report.deleted})
    for name in deleted:
        numbers = sorted(tp.partition for tp in report.deleted if tp.topic == name)
        output.note(f"there are commits for {name} {ranges(numbers)}, which no longer exists")
    empty = sorted(report.groups.keys() - {row.group for row in report.rows} - report.failed.keys())
    if empty and len(empty) <= 10:
        output.note(f"no commits and no members: {', '.join(empty)}")
    elif empty:
        output.note(f"{len(empty)} groups have no commits and no members")
    for line in beyond_end(report.rows):
        output.warn(line)


def beyond_end(rows: Sequence[Any]) -> list[str]:
    """Return a line for each of the first rows whose commit is beyond the end of the log."""
    from kctl.lag.gate import row_name

    ahead = [row for row in rows if row.ahead]
    lines = [
        f"{row_name(row)}: {_beyond(row)}; the topic was recreated or the log truncated" for row in ahead[:_MAX_LINES]
    ]
    if len(ahead) > _MAX_LINES:
        lines.append(f"and {len(ahead) - _MAX_LINES:,} more commits beyond the end of the log")
    return lines


def _beyond(row: Any) -> str:
    if hasattr(row, "committed_offset"):
        return f"committed {row.committed_offset}, but the log ends at {row.log_end_offset}"
    return f"its commits are {row.ahead} beyond the end of the log"


def brokers_up(live: int, down: int) -> str:
    """Return "3 brokers", or "2 of 3 brokers up" if one is down."""
    return f"{live:,} of {counted(live + down, 'broker')} up" if down else counted(live, "broker")
