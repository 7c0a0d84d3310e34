"""Turn snapshots into rows of the lag report, for one range of groups, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from kctl.history.commits.matching import SLACK_MS
from kctl.history.evaluate.column_arrays import Watch, chosen, nullable
from kctl.history.evaluate.group_ranges import GroupRange
from kctl.history.evaluate.spans import spans
from kctl.history.evaluate.store_access import store_here
from kctl.history.evaluate.window_rules import Flags
from kctl.history.evaluate.windows import COMMIT_TIME, judge_batches
from kctl.history.lag.span import LagSpan
from kctl.history.lag.status import Status
from kctl.history.lag.status_rows import Key, Offsets, PartitionStatus, Surroundings, partition_status, unchanged_ms
from kctl.history.lag.window import Reading
from kctl.history.snapshots import read_progress, schema
from kctl.history.snapshots.merge import merged
from kctl.history.snapshots.moment import COLUMNS, TABLES, Moment, TopicPartitionLog, moment_of
from kctl.history.snapshots.read import read_sorted, read_table
from kctl.history.snapshots.store import Damaged, Store
from kctl.lag.selection import Names

if TYPE_CHECKING:
    from kctl.history.commits.commit_times import CommitTimes
    from kctl.history.lag.request import LagQuery

_ENDS = frozenset({"log_start_offset", "log_end_offset"})
CONFIGS_BACK_MS = 2 * 3_600_000  # each topic's configs are stored once an hour
_READING = tuple(field.name for field in fields(Reading))
_STATES = tuple(Status)


class _LastReading(NamedTuple):
    """The last reading of a partition, and its span."""

    key: Key
    offsets: Offsets
    deleted: bool
    commit_ms: int | None
    reading: Reading
    span: LagSpan


def partition_rows(
    query: LagQuery,
    groups: GroupRange,
    damaged: list[Damaged],
    *,
    errors: list[str] | None = None,
    watch: Watch | None = None,
) -> Iterator[list[PartitionStatus]]:
    """Yield the rows of each group in the range.

    damaged, errors: receive read failures of the store and of commit times. watch: receives all readings and passes
    them on. Raises KctlError if the store cannot be read, and kctl.history.evaluate.windows.NotSorted.
    """
    store = None if query.store is None else store_here(query.store)
    groups = narrowed(groups, query.groups)
    moment = moment_of({table: list(_cluster_rows(query, store, table, groups, damaged)) for table in TABLES})
    commits = _commits(query, store, groups, damaged)
    if query.commit_times is not None:
        commits = query.commit_times.beside(commits)
    elif query.offsets_logs:
        time_errors: list[str] = [] if errors is None else errors
        commits = _commit_times(query, groups, time_errors).beside(commits)
    readings = judge_batches(commits, query.rules, last_timed=watch is None, from_ms=query.from_ms)
    if watch is not None:
        readings = watch(readings)
    last_readings = (last for batch in spans(readings) for last in _last_readings(batch))
    for _, of_group in groupby(last_readings, key=lambda last: last.key.group):
        rows = list(_rows(list(of_group), moment, query))
        if rows:
            read_progress.advance(len(rows))
            yield rows


def narrowed(groups: GroupRange, names: Names) -> GroupRange:
    """Return the part of the range that can contain the requested names."""
    lower, upper = names.bounds
    lowers = [text for text in (lower, groups.lower) if text is not None]
    uppers = [text for text in (upper, groups.upper) if text is not None]
    return GroupRange(max(lowers, default=None), min(uppers, default=None))


# --- reading ---------------------------------------------------------------------------------------------------------


def _commits(
    query: LagQuery, store: Store | None, groups: GroupRange, damaged: list[Damaged]
) -> Iterator[pa.RecordBatch]:
    """Yield the commits of the selected groups and topics, sorted: those of the store, then the live ones."""
    streams: list[Iterable[pa.RecordBatch]] = [
        [_with_dictionaries(batch, schema.COMMITS) for batch in live.batches(schema.COMMITS)] for live in query.live
    ]
    if store is not None:
        read_from = max(query.from_ms - query.lookback_ms, 0)
        until = min([query.to_ms, *(live.at_ms for live in query.live)])
        stored = read_sorted(
            store, schema.COMMITS, read_from, until, damaged=damaged.append, lower=groups.lower, upper=groups.upper
        )
        streams.insert(0, stored)
        if query.long_ago_ms is not None:
            streams.insert(0, _long_ago(query.long_ago_ms, store, groups, damaged))
    batches: Iterable[pa.RecordBatch] = streams[0] if len(streams) == 1 else _merged(streams)
    for batch in batches:
        rows = _chosen(batch, query, groups)
        if rows.num_rows:
            yield rows


def _long_ago(at_ms: int, store: Store, groups: GroupRange, damaged: list[Damaged]) -> Iterator[pa.RecordBatch]:
    """Yield the commits of one much older pass, without log ends: interpolating time lags that far would be a guess."""
    for batch in read_sorted(
        store, schema.COMMITS, at_ms, at_ms + 1, damaged=damaged.append, lower=groups.lower, upper=groups.upper
    ):
        columns = [
            pa.nulls(batch.num_rows, field.type) if field.name in _ENDS else column
            for field, column in zip(batch.schema, batch.columns, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _commit_times(query: LagQuery, groups: GroupRange, errors: list[str]) -> CommitTimes:
    """Return the commit times that the snapshots need."""
    # Imported only if needed: importing the segment code costs each task 0.1 s.
    from kctl.history.commits.commit_log import Span, offsets_logs
    from kctl.history.commits.commit_times import times_of_logs

    logs = offsets_logs([Path(text) for text in query.offsets_logs])
    span = Span(None, query.to_ms + SLACK_MS, groups.lower, groups.upper)
    return times_of_logs(logs, query.passes, span, report=errors.append)


def _merged(streams: Sequence[Iterable[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    for table in merged(streams, schema.SORT_KEYS[schema.COMMITS]):
        yield from table.to_batches()


def _with_dictionaries(batch: pa.RecordBatch, table: str) -> pa.RecordBatch:
    """Return a batch with dictionary-encoded text, like batches from the store."""
    encoded, arrays = [], []
    for field, array in zip(schema.arrow_schema(table), batch.columns, strict=True):
        text = field.type == pa.string()
        arrays.append(array.dictionary_encode() if text else array)
        encoded.append(pa.field(field.name, arrays[-1].type, nullable=field.nullable))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(encoded))


def _chosen(batch: pa.RecordBatch, query: LagQuery, groups: GroupRange) -> pa.RecordBatch:
    """Return the rows of the selected groups and topics in the range."""
    mask = np.ones(batch.num_rows, dtype=bool)
    if query.live or not query.groups.everything:
        mask &= _mask(batch.column("group"), lambda text: text in query.groups and _inside(text, groups))
    if not query.topics.everything:
        mask &= _mask(batch.column("topic"), lambda text: text in query.topics)
    places = np.flatnonzero(mask)
    if len(places) == batch.num_rows:
        return batch
    return pa.RecordBatch.from_arrays(chosen(batch, batch.schema.names, places), schema=batch.schema)


def _mask(column: pa.Array, is_selected: Callable[[str], bool]) -> Flags:
    """Return a mask of the rows whose text in a dictionary column is selected."""
    assert isinstance(column, pa.DictionaryArray)
    selected = [is_selected(text) for text in column.dictionary.to_pylist()]
    indices = nullable(column.indices.cast(pa.int64()))
    mask: Flags = np.array([*selected, False], dtype=bool)[np.where(indices.valid, indices.value, len(selected))]
    return mask


def _inside(text: str, groups: GroupRange) -> bool:
    return (groups.lower is None or text >= groups.lower) and (groups.upper is None or text < groups.upper)


def _cluster_rows(
    query: LagQuery, store: Store | None, table: str, groups: GroupRange, damaged: list[Damaged]
) -> Iterator[tuple[Any, ...]]:
    """Yield a table's rows about the cluster for the selected groups and topics, in the form that moment_of needs."""
    columns = COLUMNS[table]
    of_groups = table in {schema.GROUPS, schema.OWNERS}
    bounds = groups if of_groups else query.topics.bounds
    batches = [batch.select(list(columns)) for live in query.live for batch in live.batches(table)]
    if store is not None and not query.live:
        since = query.from_ms if query.since_ms is None else query.since_ms
        if table == schema.CONFIGS:
            since = min(since, query.to_ms - CONFIGS_BACK_MS)
        lower, upper = bounds
        batches += read_table(
            store,
            table,
            since,
            query.to_ms,
            damaged=damaged.append,
            columns=columns,
            lower=lower,
            upper=upper,
        )
    group, topic = (columns.index(name) if name in columns else None for name in ("group", "topic"))
    for batch in batches:
        for row in zip(*(batch.column(name).to_pylist() for name in columns), strict=True):
            if group is not None and not (row[group] in query.groups and _inside(row[group], groups)):
                continue
            if topic is None or row[topic] in query.topics:
                yield row


# --- rows -----------------------------------------------------------------------------------------------------------


def _last_readings(batch: pa.RecordBatch) -> Iterator[_LastReading]:
    """Yield the rows of `spans` as plain values."""
    columns = {name: batch.column(name).to_pylist() for name in batch.schema.names if name not in {"group", "topic"}}
    columns |= {name: batch.column(name).cast(pa.string()).to_pylist() for name in ("group", "topic")}
    deleted = columns.get("deleted", [False] * batch.num_rows)
    times = columns.get(COMMIT_TIME, [None] * batch.num_rows)
    spans_ = zip(
        *(columns[name] for name in ("first_at_ms", "readings", "lag_before", "peak_lag")),
        *([_STATES[state] for state in columns[name]] for name in ("worst_status", "worst_owned")),
        strict=True,
    )
    for name in ("status", "status_owned"):
        columns[name] = [_STATES[state] for state in columns[name]]
    readings = zip(*(columns[name] for name in _READING), strict=True)
    keys = zip(columns["group"], columns["topic"], columns["partition"], strict=True)
    offsets = zip(*(columns[f"{name}_offset"] for name in ("committed", "log_start", "log_end")), strict=True)
    for key, values, flag, time, reading, span in zip(keys, offsets, deleted, times, readings, spans_, strict=True):
        valid = (value if value is not None and value >= 0 else None for value in values)
        yield _LastReading(Key(*key), Offsets(*valid), bool(flag), time, Reading(*reading), LagSpan(*span))


def _rows(last_readings: Sequence[_LastReading], moment: Moment, query: LagQuery) -> Iterator[PartitionStatus]:
    """Yield the rows of one group."""
    group = last_readings[0].key.group
    state = moment.states.get(group, None if query.since_ms is None else "Dead")
    if query.states is not None and (state or "").lower() not in query.states:
        return
    unchanged: dict[str, int] = {}
    for last in last_readings:
        same_ms = unchanged_ms(last.reading, last.commit_ms)
        if same_ms is not None:
            unchanged[last.key.topic] = min(same_ms, unchanged.get(last.key.topic, same_ms))
    no_log = TopicPartitionLog()
    default = Surroundings()
    points = query.live[-1].points if query.live else {}
    markers = query.live[-1].markers if query.live else {}
    for key, offsets, deleted, commit_ms, reading, span in last_readings:
        log = moment.logs.get((key.topic, key.partition), no_log)
        around = Surroundings(
            state=state,
            commit_deleted=query.since_ms is not None and reading.at_ms < query.since_ms,
            deleted=deleted,
            owner=moment.owners.get(key),
            topic_owned=(group, key.topic) in moment.owned if group in moment.states else None,
            topic_unchanged_ms=unchanged.get(key.topic),
            last_stable_offset=log.last_stable_offset,
            oldest_timestamp_ms=log.oldest_timestamp_ms,
            size_bytes=log.size_bytes,
            points=points.get((key.topic, key.partition), ()),
            markers=markers.get((key.topic, key.partition)),
            allowed_lag=query.rules.allowed_lag,
            limits=moment.limits.get(key.topic, default.limits),
            began_ms=query.began_ms,
            judged=query.judged,
            commit_ms=commit_ms,
            standing_rules=query.standing,
        )
        yield partition_status(key, offsets, reading, span, around)
