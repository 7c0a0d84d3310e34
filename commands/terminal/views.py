"""What several commands show alike: lag rows and their verdict, numbers as ranges, results that lack something."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

from kctl.commands.terminal import output
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.errors import KctlError, NotFound, NotHealthy, OperationFailed

if TYPE_CHECKING:
    from kctl.lag.collect import LagReport


NONE_CURRENT = "no context is current now; choose one with `kctl context use NAME`"
MAX_LAG_HELP = (
    "Exit 1 if a row has more unread messages, or a commit beyond the end of the log; exit 4 if no lag is known."
)
_NAMED = 5

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class By(str, Enum):
    """What a row is."""

    PARTITION = "partition"
    TOPIC = "topic"
    GROUP = "group"


def incomplete(failures: Sequence[str]) -> OperationFailed:
    """The error for a result that was shown and lacks something: exit code 5."""
    for line in failures[1:]:
        output.warn(line)
    more = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
    return OperationFailed(f"the result is not complete: {failures[0]}{more}", hint="what was read is shown")


@contextmanager
def told_if_incomplete(failures: Sequence[str]) -> Iterator[None]:
    """Around what judges a result that was shown and may lack something: unhealthy counts for more than incomplete, but
    both are told."""
    try:
        yield
    except NotHealthy:
        for line in failures:
            output.warn(f"the result is not complete: {line}")
        raise
    except NotFound:
        if not failures:
            raise  # else it may be in what could not be read
    if failures:
        raise incomplete(failures)


def apart(found: Mapping[_Key, _Value | KctlError]) -> tuple[dict[_Key, _Value], list[str]]:
    """What was read, and why the rest was not. Raises the first failure when nothing was."""
    good = {key: each for key, each in found.items() if not isinstance(each, KctlError)}
    failures = [each for each in found.values() if isinstance(each, KctlError)]
    if failures and not good:
        raise failures[0]
    return good, [each.message for each in failures]


def warn_if_overruled(name: str) -> None:
    """Where a context has become the current one: say that KCTL_CONTEXT comes first, when it names another."""
    from kctl.contexts.choose import list_contexts, overruled_by

    override = overruled_by(name)
    if override:
        go = f"commands go to {override}" if override in list_contexts() else f"there is no context {override}"
        output.warn(f"{go}: KCTL_CONTEXT={override} in the environment wins; `unset KCTL_CONTEXT`")


def ranges(numbers: Sequence[int]) -> str:
    """Sorted numbers as people write them: «0-3,7»."""
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans(numbers))


def spans(numbers: Sequence[int]) -> list[list[int]]:
    """The same for programs: [first, last] of each run."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found


def alarm(key: str) -> Callable[[Mapping[str, Any]], str | None]:
    """A column's style: red when the row's `key` is set and not zero."""
    return lambda row: "red" if row.get(key) else None


def lag_columns(*, with_group: bool = True, with_members: bool = True) -> list[Column]:
    """The columns of lag rows, one partition each."""
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
        key for key, shown in (("group", with_group), ("client_id", with_members), ("host", with_members)) if not shown
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


def rows_of(report: LagReport, by: By) -> Sequence[Any]:
    """The report's rows, added up as asked."""
    from kctl.lag.rules import by_group, by_topic

    if by is By.TOPIC:
        return by_topic(report.rows)
    return by_group(report.rows) if by is By.GROUP else report.rows


def row_type(by: By) -> type:
    """What `rows_of` gives."""
    from kctl.lag.rules import GroupLag, LagRow, TopicLag

    return {By.PARTITION: LagRow, By.TOPIC: TopicLag, By.GROUP: GroupLag}[by]


def lag_table(rows: Sequence[Any], by: By, *, members: bool) -> Table:
    """The rows of `rows_of` for people."""
    known = jsonable(rows)
    if by is By.PARTITION:
        shown = members and any(row["client_id"] for row in known)
        return Table(with_rare(lag_columns(with_members=shown), known), known, empty="no commits")
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
    return Table(with_rare(columns, known), known, empty="no commits")


def remarks(report: LagReport) -> None:
    """What the rows do not say by themselves, on stderr."""
    deleted = sorted({tp.topic for tp in report.deleted})
    for name in deleted:
        numbers = sorted(tp.partition for tp in report.deleted if tp.topic == name)
        output.note(f"there are commits for {name} {ranges(numbers)}, which does not exist any more")
    silent = sorted(report.groups.keys() - {row.group for row in report.rows} - report.failed.keys())
    if silent and len(silent) <= 10:
        output.note(f"nothing committed and no members: {', '.join(silent)}")
    elif silent:
        output.note(f"{len(silent)} groups have committed nothing and have no members")
    for line in beyond_end(report.rows):
        output.warn(line)


def beyond_end(rows: Sequence[Any]) -> list[str]:
    """Return a line for each of the first rows whose commit is beyond the end of the log."""
    ahead = [row for row in rows if row.ahead]
    lines = [
        f"{row_name(row)}: {_beyond(row)}; was the topic recreated, or the log truncated?" for row in ahead[:_NAMED]
    ]
    if len(ahead) > _NAMED:
        lines.append(f"and {len(ahead) - _NAMED:,} more commits beyond the end of the log")
    return lines


def _beyond(row: Any) -> str:
    if hasattr(row, "committed_offset"):
        return f"committed {row.committed_offset}, but the log ends at {row.log_end_offset}"
    return f"its commits are {row.ahead} beyond the end of the log"


def judge(rows: Sequence[Any], by: By, max_lag: int | None) -> None:
    """Check each row against `max_lag`, in messages.

    Raises NotHealthy if a row is over the limit, or its commit is beyond the end of the log.
    """
    if max_lag is None:
        return
    over = [row for row in rows if row.lag is not None and row.messages > max_lag]
    beyond = [row for row in rows if row.ahead]
    if over:
        worst = max(over, key=lambda row: row.messages)
        what = by.value if len(over) == 1 else f"{by.value}s"
        raise NotHealthy(
            f"{len(over)} {what} over the limit of {max_lag}: {row_name(worst)} has a lag of {worst.lag}",
            hint="",
            details={"over_limit": len(over), "max_lag": max_lag, "beyond_end": len(beyond)},
        )
    if beyond:
        raise NotHealthy(
            f"{row_name(beyond[0])}: the committed offset is {beyond[0].ahead} beyond the end of the log",
            hint="consumers restart according to auto.offset.reset; set the offset with `kctl group reset-offsets`",
            details={"over_limit": 0, "max_lag": max_lag, "beyond_end": len(beyond)},
        )


def require_known(rows: Sequence[Any], by: By, named: Collection[str] = ()) -> None:
    """Fail a gate that has nothing to check.

    named: groups given by name. Raises NotHealthy if a group in `named` has no known lag, NotFound if no lag is
    known at all. Warns about rows that were not checked.
    """
    known = {row.group for row in rows if row.lag is not None}
    unknown = [name for name in dict.fromkeys(named) if name not in known]
    if unknown:
        raise NotHealthy(
            f"lag not checked: it is unknown for group {', '.join(unknown[:_NAMED])}",
            hint="has the group committed offsets? see `kctl group describe`",
            details={"unknown": unknown},
        )
    if not known:
        raise NotFound("lag not checked: no group has a known lag", hint="see `kctl group list` and `kctl lag`")
    without = [row for row in rows if row.lag is None]
    if without:
        what = by.value if len(without) == 1 else f"{by.value}s"
        output.warn(f"lag not checked for {len(without)} {what}, because it is unknown: {row_name(without[0])}")


def row_name(row: Any) -> str:
    """What a row of a lag report is of."""
    parts = [f"group {row.group}"]
    if hasattr(row, "topic"):
        parts.append(row.topic)
    if hasattr(row, "partition"):
        parts.append(f"partition {row.partition}")
    return ", ".join(parts)
