"""What a lag report is to read: the passes that its span has, the history before them, and which task has which groups.

The plan is made in kctl's own process; with `kctl spark`, while Spark starts. A live report makes a pass over the
cluster here (kctl.history.snapshots: 0.2 s for a small cluster), because starting a Python worker costs more than that.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from kctl.base.text import counted
from kctl.cluster.groups.model import SHARE
from kctl.errors import KctlError, NotFound, Refused
from kctl.history.evaluate.group_ranges import EVERY_GROUP, GroupRange, group_ranges, split
from kctl.history.lag.live_pass import LivePass, live_pass
from kctl.history.lag.request import PARTITION, LagQuestion
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
from kctl.lag.control_records import MOST_LAG, fetch_markers
from kctl.lag.log_times import fetch_points
from kctl.lag.selection import Names
from kctl.model import TopicPartition

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_ROWS_PER_TASK = 5_000  # of a report; a Python worker costs as much
_LONG_AGO_BACK_MS = 120 * MINUTE_MS
_MOMENT_BACK_MS = 60 * MINUTE_MS  # how old a snapshot may be that tells of a moment


@dataclass(frozen=True)
class Wanted:
    """What the command line asks for. observations, allowed_lag: kctl.history.lag.window.WindowRules.

    lookback_ms: how far back history is read, beside what windows need. offsets_logs: as LagQuestion has them.
    commit_times: the plan will be given some (kctl.history.commits.live_commit_times).
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
    """failures: why the report is not complete. notes: what is to be known of it. silent: groups that have no rows.
    share: share groups that are asked for, whose lag snapshots do not have.

    root: the store's place as it was given; the question has it as tasks need it.
    """

    question: LagQuestion
    ranges: tuple[GroupRange, ...]
    failures: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    share: tuple[str, ...] = ()
    root: Path | None = None

    def lacking(self, errors: Iterable[str]) -> list[str]:
        """Why the report is not complete, with what tasks could not read: each once."""
        return as_given([*self.failures, *errors], self.root)


# --- live -----------------------------------------------------------------------------------------------------------


def plan_live(
    client: ClusterClient, store: Path | None, wanted: Wanted, *, now_ms: Callable[[], int], observe_s: float = 0.0
) -> LagPlan:
    """The cluster as it is now, with the store's passes before as history.

    observe_s: look twice, so long apart: rates without a store (Spark starts meanwhile). Raises NotFound for a group or
    topic that was written out and does not exist, Refused for another cluster's store, and what ClusterClient and
    kctl.history.snapshots.store.open_store raise.
    """
    opened = None if store is None else open_store(store)
    cluster_id = client.metadata(()).cluster_id
    if opened is not None and opened.cluster_id != cluster_id:
        raise Refused(
            f"{store} holds snapshots of cluster {opened.cluster_id}, and this is cluster {cluster_id}",
            hint="give the store of this cluster",
        )
    collector = Collector(cluster_id)
    earlier: list[LivePass] = []
    at_ms = now_ms()
    found = collector.look(client, at_ms)
    _check_names(found, wanted)
    if observe_s > 0:
        earlier.append(live_pass(found, at_ms))
        time.sleep(observe_s)
        at_ms = max(now_ms(), at_ms + 1)
        found = collector.look(client, at_ms)
    points, failed = fetch_points(client, _behind(found, wanted), at_ms)
    for tp, error in failed.items():
        found.failed(f"timestamps of {tp}: {error.message}")
    markers, unread = fetch_markers(client, _behind(found, wanted, most=MOST_LAG))
    last = live_pass(found, at_ms, _by_name(points), _by_name(markers))
    plan = _live_plan(opened, (*earlier, last), found, wanted)
    return replace(plan, notes=(*plan.notes, *_without_markers(unread)))


_Value = TypeVar("_Value")


def _by_name(found: Mapping[TopicPartition, _Value]) -> dict[tuple[str, int], _Value]:
    return {(tp.topic, tp.partition): each for tp, each in found.items()}


def _without_markers(unread: Mapping[TopicPartition, KctlError]) -> list[str]:
    """Lag is told all the same: no failure."""
    if not unread:
        return []
    tp = min(unread)
    return [f"control records are not told apart in {counted(len(unread), 'partition')}: {unread[tp].message}"]


def _behind(found: Pass, wanted: Wanted, *, most: int | None = None) -> dict[TopicPartition, log_times.Wanted]:
    """The logs that groups are behind on (by at most so many messages), with the least of their offsets."""
    leaders = {(row[0], row[1]): row[3] for row in found.rows.get(schema.LOGS, ())}
    behind: dict[TopicPartition, log_times.Wanted] = {}
    for group, topic, partition, committed, start, end, *_ in found.rows.get(schema.COMMITS, ()):
        if committed is None or start is None or end is None or max(committed, start) >= end:
            continue
        if group not in wanted.groups or topic not in wanted.topics or leaders.get((topic, partition), -1) < 0:
            continue
        tp, offset = TopicPartition(topic, partition), max(committed, start)
        if most is not None and end - offset > most:
            continue
        if tp not in behind or offset < behind[tp].offset:
            behind[tp] = log_times.Wanted(leaders[topic, partition], offset, end)
    return behind


def _live_plan(store: Store | None, live: tuple[LivePass, ...], found: Pass, wanted: Wanted) -> LagPlan:
    """found: what the last of `live` read."""
    at_ms = live[-1].at_ms
    damaged: list[Damaged] = []
    before = [] if store is None else passes(store, max(at_ms - wanted.lookback_ms, 0), at_ms, damaged=damaged.append)
    rules, lookback_ms = _windows(before, wanted)
    if store is not None and lookback_ms > wanted.lookback_ms:
        before = passes(store, max(at_ms - lookback_ms, 0), at_ms, damaged=damaged.append)
    read = [*(each.at_ms for each in before), *(each.at_ms for each in live)]
    long_ago_ms = None if store is None else _long_ago_ms(store, at_ms, read[0], wanted, damaged)
    question = LagQuestion(
        store=text_of(store.root) if store is not None and before else None,
        from_ms=at_ms,
        to_ms=at_ms + 1,
        lookback_ms=lookback_ms,
        since_ms=at_ms if live[-1].complete else None,
        began_ms=read[0],
        rules=rules,
        groups=wanted.groups,
        topics=wanted.topics,
        states=wanted.states,
        by=wanted.by,
        judged=bool(before),
        live=live,
        standing=wanted.standing,
        long_ago_ms=long_ago_ms,
        offsets_logs=wanted.offsets_logs,
        passes=_asked_for(read, long_ago_ms, wanted),
    )
    notes = [] if store is None or before else [_no_history(store, at_ms, lookback_ms)]
    rows = [(row[0], 1) for row in found.rows.get(schema.COMMITS, ())]
    ranges = tuple(split(rows, _tasks(len(rows), wanted))) if rows else (EVERY_GROUP,)
    told = (*live[-1].failures, *map(str, dict.fromkeys(damaged)))
    asked_for = [row for row in found.rows.get(schema.GROUPS, ()) if _is_asked_for(row[0], row[1], wanted)]
    silent = _silent(found, asked_for)
    share = tuple(sorted(row[0] for row in asked_for if row[2] == SHARE))
    return LagPlan(question, ranges, told, tuple(notes), silent, share, None if store is None else store.root)


def _windows(before: list[PassInfo], wanted: Wanted) -> tuple[WindowRules, int]:
    """Windows that hold as many observations as they shall at the pace of these passes; and how far back to read."""
    default = WindowRules()
    span_ms = max(default.span_ms, 2 * wanted.observations * (usual_interval_ms(before) or 0))
    rules = WindowRules(
        observations=wanted.observations,
        span_ms=span_ms,
        history=max(default.history, wanted.observations),
        allowed_lag=wanted.allowed_lag,
    )
    return rules, max(wanted.lookback_ms, span_ms)


def _long_ago_ms(store: Store, at_ms: int, began_ms: int, wanted: Wanted, damaged: list[Damaged]) -> int | None:
    """The last complete pass before the one of at_ms that a group must not have moved since to be stale; None: there is
    none within two hours of it, or those that are read anyhow (from began_ms on) reach as far."""
    due_ms = at_ms - wanted.standing.stale_after_ms
    if due_ms < 0 or began_ms <= due_ms:
        return None
    near = passes(store, max(due_ms - _LONG_AGO_BACK_MS, 0), due_ms + 1, damaged=damaged.append)
    return max((each.at_ms for each in near if each.complete), default=None)


def _asked_for(read: list[int], long_ago_ms: int | None, wanted: Wanted) -> tuple[int, ...]:
    """The passes whose commits are given times."""
    if not wanted.offsets_logs and not wanted.commit_times:
        return ()
    return tuple(read) if long_ago_ms is None else (long_ago_ms, *read)


def _no_history(store: Store, at_ms: int, lookback_ms: int) -> str:
    newest = newest_ms(store)
    if newest is None:
        return f"{store.root} has no snapshots yet: there is no status, and there are no rates"
    if newest >= at_ms:
        return f"the snapshots of {store.root} are of the future ({iso(newest)}): clocks differ, and none is used"
    return (
        f"the last snapshot of {store.root} is of {iso(newest)}, longer ago than {lookback_ms // MINUTE_MS} minutes:"
        " there is no status, and there are no rates"
    )


def _check_names(found: Pass, wanted: Wanted) -> None:
    groups = {row[0] for row in found.rows.get(schema.GROUPS, ())}
    topics = {row[0] for row in found.rows.get(schema.LOGS, ())} | {row[1] for row in found.rows[schema.COMMITS]}
    if found.complete:
        _check("group", set(wanted.groups.exact) - groups, "`kctl group list` shows the groups")
        _check("topic", set(wanted.topics.exact) - topics, "`kctl topic list` shows the topics")


def _check(noun: str, missing: set[str], hint: str) -> None:
    if len(missing) == 1:
        raise NotFound(f"{noun} {min(missing)!r} does not exist", hint=hint)
    if missing:
        raise NotFound(f"{noun}s {', '.join(map(repr, sorted(missing)))} do not exist", hint=hint)


def _is_asked_for(group: str, state: str, wanted: Wanted) -> bool:
    return group in wanted.groups and (wanted.states is None or state.lower() in wanted.states)


def _silent(found: Pass, asked_for: Iterable[tuple[Any, ...]]) -> tuple[str, ...]:
    """Groups that are asked for, and have committed nothing and been given nothing."""
    with_rows = {row[0] for row in found.rows.get(schema.COMMITS, ())}
    return tuple(sorted(row[0] for row in asked_for if row[0] not in with_rows and row[2] != SHARE))


# --- over a store ---------------------------------------------------------------------------------------------------


def plan_span(path: Path, from_ms: int, to_ms: int, wanted: Wanted) -> LagPlan:
    """The store's passes with from_ms ≤ at_ms < to_ms.

    Raises NotFound when there are none, and for a group or topic that was written out and is in none of them.
    """
    store = open_store(path)
    damaged: list[Damaged] = []
    back_ms = max(wanted.lookback_ms, WindowRules().span_ms)
    found = passes(store, max(from_ms - back_ms, 0), to_ms, damaged=damaged.append)
    inside = [each for each in found if each.at_ms >= from_ms]
    if not inside:
        raise _nothing_there(store, from_ms, to_ms)
    return _plan(store, from_ms, to_ms, found, wanted, damaged)


def plan_moment(path: Path, at_ms: int, wanted: Wanted) -> LagPlan:
    """The store as of a moment: what its last complete pass until then tells, and what later ones add.

    Raises as `plan_span`; a pass that is an hour older tells nothing of the moment.
    """
    store = open_store(path)
    damaged: list[Damaged] = []
    from_ms = max(at_ms - _MOMENT_BACK_MS, 0)
    near = passes(store, from_ms, at_ms + 1, damaged=damaged.append)
    if not near:
        raise _nothing_there(store, from_ms, at_ms + 1)
    first = next((each for each in reversed(near) if each.complete), near[-1])
    back_ms = max(wanted.lookback_ms, WindowRules().span_ms)
    found = passes(store, max(first.at_ms - back_ms, 0), at_ms + 1, damaged=damaged.append)
    return _plan(store, first.at_ms, at_ms + 1, found, wanted, damaged)


def _plan(
    store: Store, from_ms: int, to_ms: int, found: list[PassInfo], wanted: Wanted, damaged: list[Damaged]
) -> LagPlan:
    inside = [each for each in found if each.at_ms >= from_ms]
    last = inside[-1]
    to_ms = min(to_ms, last.at_ms + 1)  # a pass that is stored from now on would be seen by some tasks only
    check_files(store, moment.TABLES, from_ms, to_ms, damaged=damaged.append)
    _check_stored_names(store, inside, wanted, damaged)
    rules, lookback_ms = _windows(found, wanted)
    found = passes(store, max(from_ms - lookback_ms, 0), to_ms, damaged=damaged.append)
    long_ago_ms = _long_ago_ms(store, last.at_ms, found[0].at_ms, wanted, damaged)
    question = LagQuestion(
        store=text_of(store.root),  # tasks have working directories of their own
        from_ms=from_ms,
        to_ms=to_ms,
        lookback_ms=lookback_ms,
        since_ms=max((each.at_ms for each in inside if each.complete), default=None),
        began_ms=found[0].at_ms,
        rules=rules,
        groups=wanted.groups,
        topics=wanted.topics,
        states=wanted.states,
        by=wanted.by,
        judged=found[0].at_ms < last.at_ms,
        standing=wanted.standing,
        long_ago_ms=long_ago_ms,
        offsets_logs=wanted.offsets_logs,
        passes=_asked_for([each.at_ms for each in found], long_ago_ms, wanted),
    )
    rows = sum(
        batch.num_rows
        for batch in read_table(
            store, schema.COMMITS, last.at_ms, last.at_ms + 1, damaged=damaged.append, columns=["at_ms"]
        )
    )
    tasks = _tasks(max(rows, rows * len(found) // (BATCH_ROWS // _ROWS_PER_TASK)), wanted)
    ranges = group_ranges(store, question.from_ms, to_ms, tasks, damaged=damaged.append)
    failures = [f"the snapshot of {iso(last.at_ms)} lacks something: {text}" for text in last.failures]
    if not last.complete and not failures:
        failures = [f"the snapshot of {iso(last.at_ms)} is not complete"]
    thin = sum(not each.complete for each in inside[:-1])
    notes = [f"{thin} of {len(inside)} snapshots are not complete"] if thin else []
    told = (*failures, *map(str, dict.fromkeys(damaged)))
    share = _stored_share_groups(store, last.at_ms, wanted)
    return LagPlan(question, tuple(ranges), told, tuple(notes), share=share, root=store.root)


def _stored_share_groups(store: Store, at_ms: int, wanted: Wanted) -> tuple[str, ...]:
    """What is damaged is among the failures of the plan already."""
    batches = read_table(
        store, schema.GROUPS, at_ms, at_ms + 1, damaged=lambda _: None, columns=["group", "state", "type"]
    )
    rows = (tuple(row.values()) for batch in batches for row in batch.to_pylist())
    return tuple(sorted(group for group, state, kind in rows if kind == SHARE and _is_asked_for(group, state, wanted)))


def _nothing_there(store: Store, from_ms: int, to_ms: int) -> NotFound:
    newest = newest_ms(store)
    if newest is None:
        return NotFound(f"{store.root} has no snapshots", hint="`kctl history snapshot --store DIR` collects them")
    return NotFound(
        f"{store.root} has no snapshots from {iso(from_ms)} to {iso(to_ms)}",
        hint=f"it has some from {iso(oldest_ms(store) or newest)} to {iso(newest)}",
    )


def _check_stored_names(store: Store, inside: Sequence[PassInfo], wanted: Wanted, damaged: list[Damaged]) -> None:
    """Names that are written out are in some pass of the span."""
    first, last = inside[0].at_ms, inside[-1].at_ms + 1
    hint = "give names that were there, or globs"
    for noun, table, names in (("group", schema.GROUPS, wanted.groups), ("topic", schema.LOGS, wanted.topics)):
        missing = set(names.exact)
        for name in names.exact:
            batches = read_table(
                store, table, first, last, damaged=damaged.append, columns=[noun], lower=name, upper=f"{name}\0"
            )
            if next(iter(batches), None) is not None:
                missing.discard(name)
        if missing and noun == "topic":  # a topic that is gone lives on in commits
            for batch in read_table(store, schema.COMMITS, last - 1, last, damaged=damaged.append, columns=[noun]):
                missing.difference_update(batch.column(noun).to_pylist())
        if not damaged:
            _check(noun, missing, hint)


def _tasks(rows: int, wanted: Wanted) -> int:
    return max(1, min(wanted.tasks, -(-rows // _ROWS_PER_TASK)))
