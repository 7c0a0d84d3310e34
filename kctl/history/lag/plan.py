"""The plan of a lag report: the passes of its span, the history before them, and the groups of each task.

kctl's main process creates the plan; with `kctl spark`, while Spark starts. A live report takes a pass over the cluster
here (0.2 s for a small cluster), because starting a Python worker takes longer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from kctl.base.text import counted
from kctl.cluster.groups.model import SHARE
from kctl.errors import KctlError, NotFound, Reason, Refused
from kctl.history.evaluate.group_ranges import EVERY_GROUP, GroupRange, group_ranges, split
from kctl.history.lag.live_pass import LivePass, live_pass
from kctl.history.lag.request import PARTITION, LagQuery
from kctl.history.lag.status import DEFAULT_STANDING_RULES, StandingRules
from kctl.history.lag.window import MINUTE_MS, WindowRules
from kctl.history.snapshots import moment, schema
from kctl.history.snapshots.collect import Collector, Pass
from kctl.history.snapshots.passes import PassInfo, iso, newest_ms, oldest_ms, passes, usual_interval_ms
from kctl.history.snapshots.read import read_table
from kctl.history.snapshots.remote import as_given, text_of
from kctl.history.snapshots.rows import BATCH_ROWS
from kctl.history.snapshots.store import Damaged, Store, open_store
from kctl.history.snapshots.whole import check_files
from kctl.lag import log_times
from kctl.lag.control_records import MAX_LAG, fetch_markers
from kctl.lag.log_times import fetch_points
from kctl.lag.selection import Names
from kctl.model import TopicPartition

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_ROWS_PER_TASK = 5_000  # reading these costs as much as starting a Python worker
_LONG_AGO_BACK_MS = 120 * MINUTE_MS
_MOMENT_BACK_MS = 60 * MINUTE_MS  # maximum age of the snapshot for a point in time


@dataclass(frozen=True)
class LagRequest:
    """The request of a lag command. observations, allowed_lag: see kctl.history.lag.window.WindowRules.

    lookback_ms: how far back history is read; at least the span of a window. offsets_logs: see LagQuery. commit_times:
    commit times are added to the plan later (kctl.history.commits.live_commit_times).
    """

    groups: Names
    topics: Names
    states: frozenset[str] | None = None
    by: str = PARTITION
    observations: int = 10
    allowed_lag: int = 0
    lookback_ms: int = 60 * MINUTE_MS
    tasks: int = 1
    offsets_logs: tuple[str, ...] = ()
    commit_times: bool = False
    standing: StandingRules = DEFAULT_STANDING_RULES


@dataclass(frozen=True)
class LagPlan:
    """The plan of a lag report.

    failures: why the report is incomplete. notes: remarks for the user. silent: groups without rows. share: requested
    share groups, whose lag is not in snapshots. root: the store as the user named it; the query has the form that tasks
    need. partition_count: number of partitions in the last pass, of all groups.
    """

    query: LagQuery
    ranges: tuple[GroupRange, ...]
    failures: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    share: tuple[str, ...] = ()
    root: Path | None = None
    partition_count: int = 0

    def lacking(self, errors: Iterable[str]) -> list[str]:
        """Return the distinct reasons why the report is incomplete, including read failures of tasks."""
        return as_given([*self.failures, *errors], self.root)


# --- live -----------------------------------------------------------------------------------------------------------


def plan_live(
    client: ClusterClient, store: Path | None, request: LagRequest, *, now_ms: Callable[[], int], observe_s: float = 0.0
) -> LagPlan:
    """Return a plan for the cluster's current state, with the store's earlier passes as history.

    observe_s: take two passes this long apart, to get rates without a store (Spark starts meanwhile). Raises NotFound
    for an exact group or topic name that does not exist, Refused if the store belongs to another cluster, and the
    errors of ClusterClient and kctl.history.snapshots.store.open_store.
    """
    opened = None if store is None else open_store(store)
    cluster_id = client.metadata(()).cluster_id
    if opened is not None and opened.cluster_id != cluster_id:
        raise Refused(
            f"{store} has snapshots of cluster {opened.cluster_id}, but this is cluster {cluster_id}",
            hint="set --store to the store of this cluster",
            reason=Reason.WRONG_CLUSTER,
        )
    collector = Collector(cluster_id)
    earlier: list[LivePass] = []
    at_ms = now_ms()
    snapshot = collector.take_pass(client, at_ms)
    _check_names(snapshot, request)
    if observe_s > 0:
        earlier.append(live_pass(snapshot, at_ms))
        time.sleep(observe_s)
        at_ms = max(now_ms(), at_ms + 1)
        snapshot = collector.take_pass(client, at_ms)
    points, point_errors = fetch_points(client, _behind(snapshot, request), at_ms)
    for tp, error in point_errors.items():
        snapshot.failed(f"timestamps of {tp}: {error.message}")
    markers, marker_errors = fetch_markers(client, _behind(snapshot, request, max_lag=MAX_LAG))
    last = live_pass(snapshot, at_ms, _by_name(points), _by_name(markers))
    plan = _live_plan(opened, (*earlier, last), snapshot, request)
    return replace(plan, notes=(*plan.notes, *_marker_notes(marker_errors)))


_Value = TypeVar("_Value")


def _by_name(by_partition: Mapping[TopicPartition, _Value]) -> dict[tuple[str, int], _Value]:
    return {(tp.topic, tp.partition): each for tp, each in by_partition.items()}


def _marker_notes(errors: Mapping[TopicPartition, KctlError]) -> list[str]:
    """Return a note if control records are unknown. This is not a failure: the lag is known without them."""
    if not errors:
        return []
    tp = min(errors)
    return [
        f"control records cannot be excluded from the lag in {counted(len(errors), 'partition')}: {errors[tp].message}"
    ]


def _behind(
    snapshot: Pass, request: LagRequest, *, max_lag: int | None = None
) -> dict[TopicPartition, log_times.UnreadLog]:
    """Return the logs on which groups lag (by at most max_lag messages), with their smallest unread offset."""
    leaders = {(row[0], row[1]): row[3] for row in snapshot.rows.get(schema.LOGS, ())}
    behind: dict[TopicPartition, log_times.UnreadLog] = {}
    for group, topic, partition, committed, start, end, *_ in snapshot.rows.get(schema.COMMITS, ()):
        if committed is None or start is None or end is None or max(committed, start) >= end:
            continue
        if group not in request.groups or topic not in request.topics or leaders.get((topic, partition), -1) < 0:
            continue
        tp, offset = TopicPartition(topic, partition), max(committed, start)
        if max_lag is not None and end - offset > max_lag:
            continue
        if tp not in behind or offset < behind[tp].offset:
            behind[tp] = log_times.UnreadLog(leaders[topic, partition], offset, end)
    return behind


def _live_plan(store: Store | None, live: tuple[LivePass, ...], snapshot: Pass, request: LagRequest) -> LagPlan:
    """Return the plan of a live report. snapshot: the last pass in `live`."""
    at_ms = live[-1].at_ms
    damaged: list[Damaged] = []
    before = [] if store is None else passes(store, max(at_ms - request.lookback_ms, 0), at_ms, damaged=damaged.append)
    rules, lookback_ms = _windows(before, request)
    if store is not None and lookback_ms > request.lookback_ms:
        before = passes(store, max(at_ms - lookback_ms, 0), at_ms, damaged=damaged.append)
    passes_ms = [*(each.at_ms for each in before), *(each.at_ms for each in live)]
    long_ago_ms = None if store is None else _long_ago_ms(store, at_ms, passes_ms[0], request, damaged)
    query = LagQuery(
        store=text_of(store.root) if store is not None and before else None,
        from_ms=at_ms,
        to_ms=at_ms + 1,
        lookback_ms=lookback_ms,
        since_ms=at_ms if live[-1].complete else None,
        began_ms=passes_ms[0],
        rules=rules,
        groups=request.groups,
        topics=request.topics,
        states=request.states,
        by=request.by,
        judged=bool(before),
        live=live,
        standing=request.standing,
        long_ago_ms=long_ago_ms,
        offsets_logs=request.offsets_logs,
        passes=_timed_passes(passes_ms, long_ago_ms, request),
    )
    notes = [] if store is None or before else [_no_history(store, at_ms, lookback_ms)]
    rows = [(row[0], 1) for row in snapshot.rows.get(schema.COMMITS, ())]
    ranges = tuple(split(rows, _tasks(len(rows), request))) if rows else (EVERY_GROUP,)
    failures = (*live[-1].failures, *map(str, dict.fromkeys(damaged)))
    requested = [row for row in snapshot.rows.get(schema.GROUPS, ()) if _is_requested(row[0], row[1], request)]
    silent = _silent(snapshot, requested)
    share = tuple(sorted(row[0] for row in requested if row[2] == SHARE))
    root = None if store is None else store.root
    return LagPlan(query, ranges, failures, tuple(notes), silent, share, root, len(rows))


def _windows(before: list[PassInfo], request: LagRequest) -> tuple[WindowRules, int]:
    """Return rules whose windows hold the requested observations at the interval of these passes, and the lookback."""
    default = WindowRules()
    span_ms = max(default.span_ms, 2 * request.observations * (usual_interval_ms(before) or 0))
    rules = WindowRules(
        observations=request.observations,
        span_ms=span_ms,
        history=max(default.history, request.observations),
        allowed_lag=request.allowed_lag,
    )
    return rules, max(request.lookback_ms, span_ms)


def _long_ago_ms(store: Store, at_ms: int, began_ms: int, request: LagRequest, damaged: list[Damaged]) -> int | None:
    """Return the last complete pass at least stale_after_ms before at_ms.

    None if there is none in the two hours before that time, or if the other passes (from began_ms) already go back that
    far.
    """
    due_ms = at_ms - request.standing.stale_after_ms
    if due_ms < 0 or began_ms <= due_ms:
        return None
    candidates = passes(store, max(due_ms - _LONG_AGO_BACK_MS, 0), due_ms + 1, damaged=damaged.append)
    return max((each.at_ms for each in candidates if each.complete), default=None)


def _timed_passes(passes_ms: list[int], long_ago_ms: int | None, request: LagRequest) -> tuple[int, ...]:
    """Return the passes whose commits get commit times."""
    if not request.offsets_logs and not request.commit_times:
        return ()
    return tuple(passes_ms) if long_ago_ms is None else (long_ago_ms, *passes_ms)


def _no_history(store: Store, at_ms: int, lookback_ms: int) -> str:
    newest = newest_ms(store)
    if newest is None:
        return f"{store.root} has no snapshots yet: status and rates are unknown"
    if newest >= at_ms:
        return f"the snapshots of {store.root} are in the future ({iso(newest)}) and are ignored: check the clocks"
    return (
        f"the last snapshot of {store.root}, of {iso(newest)}, is older than {lookback_ms // MINUTE_MS} minutes:"
        " status and rates are unknown"
    )


def _check_names(snapshot: Pass, request: LagRequest) -> None:
    groups = {row[0] for row in snapshot.rows.get(schema.GROUPS, ())}
    topics = {row[0] for row in snapshot.rows.get(schema.LOGS, ())} | {row[1] for row in snapshot.rows[schema.COMMITS]}
    if snapshot.complete:
        _check("group", set(request.groups.exact) - groups, "`kctl group list` shows the groups")
        _check("topic", set(request.topics.exact) - topics, "`kctl topic list` shows the topics")


def _check(noun: str, missing: set[str], hint: str) -> None:
    if len(missing) == 1:
        raise NotFound(f"{noun} {min(missing)!r} does not exist", hint=hint)
    if missing:
        raise NotFound(f"{noun}s {', '.join(map(repr, sorted(missing)))} do not exist", hint=hint)


def _is_requested(group: str, state: str, request: LagRequest) -> bool:
    return group in request.groups and (request.states is None or state.lower() in request.states)


def _silent(snapshot: Pass, requested: Iterable[tuple[Any, ...]]) -> tuple[str, ...]:
    """Return the requested groups with no commits and no assigned partitions."""
    with_rows = {row[0] for row in snapshot.rows.get(schema.COMMITS, ())}
    return tuple(sorted(row[0] for row in requested if row[0] not in with_rows and row[2] != SHARE))


# --- over a store ---------------------------------------------------------------------------------------------------


def plan_span(path: Path, from_ms: int, to_ms: int, request: LagRequest) -> LagPlan:
    """Return a plan for the stored passes with from_ms ≤ at_ms < to_ms.

    Raises NotFound if there are none, or if an exact group or topic name is in none of them.
    """
    store = open_store(path)
    damaged: list[Damaged] = []
    back_ms = max(request.lookback_ms, WindowRules().span_ms)
    available = passes(store, max(from_ms - back_ms, 0), to_ms, damaged=damaged.append)
    inside = [each for each in available if each.at_ms >= from_ms]
    if not inside:
        raise _no_snapshots(store, from_ms, to_ms)
    return _plan(store, from_ms, to_ms, available, request, damaged)


def plan_moment(path: Path, at_ms: int, request: LagRequest) -> LagPlan:
    """Return a plan for the state of the store at a point in time: its last complete pass and later partial ones.

    Raises the errors of `plan_span`. A pass more than one hour older is not used.
    """
    store = open_store(path)
    damaged: list[Damaged] = []
    from_ms = max(at_ms - _MOMENT_BACK_MS, 0)
    candidates = passes(store, from_ms, at_ms + 1, damaged=damaged.append)
    if not candidates:
        raise _no_snapshots(store, from_ms, at_ms + 1)
    first = next((each for each in reversed(candidates) if each.complete), candidates[-1])
    back_ms = max(request.lookback_ms, WindowRules().span_ms)
    available = passes(store, max(first.at_ms - back_ms, 0), at_ms + 1, damaged=damaged.append)
    return _plan(store, first.at_ms, at_ms + 1, available, request, damaged)


def _plan(
    store: Store, from_ms: int, to_ms: int, available: list[PassInfo], request: LagRequest, damaged: list[Damaged]
) -> LagPlan:
    inside = [each for each in available if each.at_ms >= from_ms]
    last = inside[-1]
    to_ms = min(to_ms, last.at_ms + 1)  # otherwise a pass stored from now on would be seen by only some tasks
    check_files(store, moment.TABLES, from_ms, to_ms, damaged=damaged.append)
    _check_stored_names(store, inside, request, damaged)
    rules, lookback_ms = _windows(available, request)
    available = passes(store, max(from_ms - lookback_ms, 0), to_ms, damaged=damaged.append)
    long_ago_ms = _long_ago_ms(store, last.at_ms, available[0].at_ms, request, damaged)
    query = LagQuery(
        store=text_of(store.root),  # tasks have working directories of their own
        from_ms=from_ms,
        to_ms=to_ms,
        lookback_ms=lookback_ms,
        since_ms=max((each.at_ms for each in inside if each.complete), default=None),
        began_ms=available[0].at_ms,
        rules=rules,
        groups=request.groups,
        topics=request.topics,
        states=request.states,
        by=request.by,
        judged=available[0].at_ms < last.at_ms,
        standing=request.standing,
        long_ago_ms=long_ago_ms,
        offsets_logs=request.offsets_logs,
        passes=_timed_passes([each.at_ms for each in available], long_ago_ms, request),
    )
    rows = sum(
        batch.num_rows
        for batch in read_table(
            store, schema.COMMITS, last.at_ms, last.at_ms + 1, damaged=damaged.append, columns=["at_ms"]
        )
    )
    tasks = _tasks(max(rows, rows * len(available) // (BATCH_ROWS // _ROWS_PER_TASK)), request)
    ranges = group_ranges(store, query.from_ms, to_ms, tasks, damaged=damaged.append)
    failures = [f"the snapshot of {iso(last.at_ms)} is incomplete: {text}" for text in last.failures]
    if not last.complete and not failures:
        failures = [f"the snapshot of {iso(last.at_ms)} is incomplete"]
    partial = sum(not each.complete for each in inside[:-1])
    notes = [f"{partial} of {len(inside)} snapshots are incomplete"] if partial else []
    reasons = (*failures, *map(str, dict.fromkeys(damaged)))
    share = _stored_share_groups(store, last.at_ms, request)
    return LagPlan(query, tuple(ranges), reasons, tuple(notes), (), share, store.root, rows)


def _stored_share_groups(store: Store, at_ms: int, request: LagRequest) -> tuple[str, ...]:
    """Return the requested share groups. Damaged files are already among the plan's failures."""
    batches = read_table(
        store, schema.GROUPS, at_ms, at_ms + 1, damaged=lambda _: None, columns=["group", "state", "type"]
    )
    rows = (tuple(row.values()) for batch in batches for row in batch.to_pylist())
    return tuple(sorted(group for group, state, kind in rows if kind == SHARE and _is_requested(group, state, request)))


def _no_snapshots(store: Store, from_ms: int, to_ms: int) -> NotFound:
    newest = newest_ms(store)
    if newest is None:
        return NotFound(
            f"{store.root} has no snapshots", hint="collect snapshots with `kctl history snapshot --store DIR`"
        )
    return NotFound(
        f"{store.root} has no snapshots from {iso(from_ms)} to {iso(to_ms)}",
        hint=f"the store has snapshots from {iso(oldest_ms(store) or newest)} to {iso(newest)}",
    )


def _check_stored_names(store: Store, inside: Sequence[PassInfo], request: LagRequest, damaged: list[Damaged]) -> None:
    """Raise NotFound for an exact name that is in no pass of the span."""
    first, last = inside[0].at_ms, inside[-1].at_ms + 1
    hint = "use names that existed at that time, or globs"
    for noun, table, names in (("group", schema.GROUPS, request.groups), ("topic", schema.LOGS, request.topics)):
        missing = set(names.exact)
        for name in names.exact:
            batches = read_table(
                store, table, first, last, damaged=damaged.append, columns=[noun], lower=name, upper=f"{name}\0"
            )
            if next(iter(batches), None) is not None:
                missing.discard(name)
        if missing and noun == "topic":  # commits outlive a deleted topic
            for batch in read_table(store, schema.COMMITS, last - 1, last, damaged=damaged.append, columns=[noun]):
                missing.difference_update(batch.column(noun).to_pylist())
        if not damaged:
            _check(noun, missing, hint)


def _tasks(rows: int, request: LagRequest) -> int:
    return max(1, min(request.tasks, -(-rows // _ROWS_PER_TASK)))
