"""Commit times as a column `commit_ms` of snapshot rows, by the rule of kctl.history.commits.matching.

    times = times_of_logs(logs, passes, Span(lower=…, upper=…), report=…)
    judge_batches(times.beside(batches), rules)

The windows of kctl.history.evaluate.windows then use commit times for Burrow's STOP.
tests/support/commit_time_oracle.py has the rule in plain Python.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kctl.errors import KctlError, NotFound, UsageError
from kctl.history.commits.commit_log import Span, read_fetched, read_logs
from kctl.history.commits.matching import SLACK_MS
from kctl.history.evaluate.column_arrays import differs, nullable, numbers, numeric
from kctl.history.evaluate.window_rules import Flags, Ints
from kctl.lag.offsets_topic import OffsetsLog, fetch_log, offsets_logs
from kctl.segment.format.offset_commits import TOPIC
from kctl.segment.log.partition_log import PartitionLog

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_Key = tuple[str, str, int]
COLUMN = "commit_ms"
NAMES = ("group", "topic", "partition")


@dataclass(frozen=True, slots=True)
class CommitTimes:
    """Commits grouped by key, in the order of the log. begin: index of each key's first commit, then the total.

    A commit takes about 33 bytes. thinned_to drops the commits that some passes do not need.
    """

    codes: dict[_Key, int]
    begin: Ints
    at_ms: Ints
    committed: Ints
    commit_ms: Ints
    is_known: Flags

    @classmethod
    def of(cls, batches: Iterable[pa.RecordBatch]) -> CommitTimes:
        """Return the commits in batches of commits.commit_log.ARROW, from any logs. Rows with an error are skipped."""
        codes: dict[_Key, int] = {}
        parts: list[tuple[Ints, ...]] = []
        for batch in batches:
            valid = batch.column("error").null_count == batch.num_rows
            rows = batch if valid else batch.filter(pc.is_null(batch.column("error")))
            if rows.num_rows:
                committed, commit = nullable(rows.column("committed_offset")), nullable(rows.column("commit_ms"))
                parts.append((
                    _codes(rows, codes, grow=True),
                    numbers(rows.column("at_ms")).copy(),
                    np.where(committed.valid, committed.value, -1),
                    commit.value,
                    commit.valid.astype(np.int64),
                ))  # fmt: skip
        none = np.zeros(0, dtype=np.int64)
        code, at, committed_offset, commit_ms, is_known = (
            (np.concatenate(column) for column in zip(*parts, strict=True)) if parts else [none] * 5
        )
        order = np.argsort(code, kind="stable")
        code = code[order]
        begin = np.searchsorted(code, np.arange(len(codes) + 1))
        at = _non_decreasing(at[order], begin)
        return cls(codes, begin, at, committed_offset[order], commit_ms[order], is_known[order].astype(bool))

    @classmethod
    def merged(cls, parts: Iterable[CommitTimes]) -> CommitTimes:
        """Return the union of logs that share no group. Raises UsageError if a group is in two logs."""
        codes: dict[_Key, int] = {}
        none = np.zeros(0, dtype=np.int64)
        begins, columns = [none], [(none, none, none, none.astype(bool))]
        size = 0
        for part in parts:
            for key in part.codes:
                codes.setdefault(key, len(codes))
            begins.append(part.begin[:-1] + size)
            columns.append((part.at_ms, part.committed, part.commit_ms, part.is_known))
            size += len(part)
        if len(codes) != sum(len(each) for each in begins):
            raise UsageError(
                "the commits of a group are in two logs",
                hint="use one replica of each partition of __consumer_offsets",
            )
        begin = np.append(np.concatenate(begins), size)
        at, committed, commit_ms, is_known = (np.concatenate(column) for column in zip(*columns, strict=True))
        return cls(codes, begin, at, committed, commit_ms, is_known)

    def __len__(self) -> int:
        return len(self.at_ms)

    def thinned_to(self, passes: Iterable[int], *, slack_ms: int = SLACK_MS) -> CommitTimes:
        """Return only the commits that `beside` needs for passes at these times.

        These are the last commit of each key up to a pass, and the commits within the slack after it.
        """
        times = np.unique(np.fromiter(passes, dtype=np.int64))
        if not len(self) or not len(times):
            return CommitTimes.of(())
        before = np.searchsorted(times, self.at_ms, side="left")  # the first pass at or after each commit
        ends = self.begin[1:][np.diff(self.begin) > 0] - 1
        following = np.searchsorted(times, np.append(self.at_ms[1:], 0), side="left")
        following[ends] = len(times) + 1
        last = (before < len(times)) & (following > before)
        soon = (before > 0) & (self.at_ms - times[np.maximum(before - 1, 0)] <= slack_ms)
        places = np.flatnonzero(last | soon)
        begin = np.searchsorted(places, self.begin)
        return CommitTimes(
            self.codes, begin, self.at_ms[places], self.committed[places], self.commit_ms[places], self.is_known[places]
        )

    def beside(self, batches: Iterable[pa.RecordBatch], *, slack_ms: int = SLACK_MS) -> Iterator[pa.RecordBatch]:
        """Yield rows of the store's table `commits` with a column `commit_ms`; null: unknown."""
        for batch in batches:
            value, is_known = self._match(batch, slack_ms)
            result = numeric(value, pa.int64(), is_known)
            wider = pa.schema([*batch.schema, pa.field(COLUMN, pa.int64())])
            yield pa.RecordBatch.from_arrays([*batch.columns, result], schema=wider)

    def _match(self, batch: pa.RecordBatch, slack_ms: int) -> tuple[Ints, Flags]:
        at, committed = numbers(batch.column("at_ms")), nullable(batch.column("committed_offset"))
        code = _codes(batch, self.codes, grow=False)
        value, is_known = np.zeros(batch.num_rows, dtype=np.int64), np.zeros(batch.num_rows, dtype=bool)
        rows = np.flatnonzero((code >= 0) & committed.valid)
        begin, end = self.begin[code[rows]], self.begin[code[rows] + 1]
        # Try the last commit up to the row's time (begin - 1: none), then each commit within the slack.
        place = _last_until(self.at_ms, at[rows], begin, end) - 1
        open_ = np.flatnonzero(end > begin)
        while len(open_):
            here, row = place[open_], rows[open_]
            exists = here >= begin[open_]
            hit = exists & (self.committed[np.maximum(here, 0)] == committed.value[row])
            value[row[hit]], is_known[row[hit]] = self.commit_ms[here[hit]], self.is_known[here[hit]]
            place[open_] += 1
            open_ = open_[~hit & (place[open_] < end[open_])]
            open_ = open_[self.at_ms[place[open_]] <= at[rows[open_]] + slack_ms]
        return np.where(is_known, value, 0), is_known


def times_of_logs(
    logs: Iterable[PartitionLog], passes: Sequence[int], span: Span, *, report: Callable[[str], None]
) -> CommitTimes:
    """Return the commit times for snapshots of these passes. Logs are read one by one, which limits memory.

    span: a range of groups; it should have no start time, because the last commits of stopped groups are old. report:
    called for each unreadable part of a log.
    """

    return _times_of((read_logs([log], span) for log in logs), passes, report)


def times_of_cluster(
    client: ClusterClient,
    partitions: Collection[int] | None,
    passes: Sequence[int],
    span: Span,
    *,
    report: Callable[[str], None],
) -> CommitTimes:
    """Return `times_of_logs` by Fetch from a live cluster, one partition of the topic at a time (None: all).

    report: also called for each unreadable partition. Raises the errors of ClusterClient if nothing is readable.
    """
    try:
        logs, failed = offsets_logs(client, partitions)
    except NotFound:  # nothing was ever committed
        return CommitTimes.of(())
    for text in failed:
        report(text)
    return _times_of((_fetch(client, log, span, report) for log in logs), passes, report)


def _fetch(
    client: ClusterClient, log: OffsetsLog, span: Span, report: Callable[[str], None]
) -> Iterator[pa.RecordBatch]:
    try:
        yield from read_fetched(fetch_log(client, log), log.partition, span)
    except KctlError as exc:  # e.g. a broker goes down: other partitions remain valid
        report(f"{TOPIC}-{log.partition}: {exc.message}")


def _times_of(
    logs: Iterable[Iterable[pa.RecordBatch]], passes: Sequence[int], report: Callable[[str], None]
) -> CommitTimes:
    return CommitTimes.merged(CommitTimes.of(_report_errors(log, report)).thinned_to(passes) for log in logs)


def _report_errors(batches: Iterable[pa.RecordBatch], report: Callable[[str], None]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for text in batch.column("error").to_pylist() if batch.column("error").null_count < batch.num_rows else ():
            if text is not None:
                report(text)
        yield batch


def _non_decreasing(at: Ints, begin: Ints) -> Ints:
    """Return times that never decrease within a key."""
    if not len(at):
        return at
    sizes = np.diff(begin)
    # One running maximum over all keys: the times of each key are shifted above those of the previous key.
    low = int(at.min())
    span = int(at.max()) - low + 1
    number = np.repeat(np.arange(len(sizes)), sizes)
    if span < 2**62 // max(len(sizes), 1):
        lifted: Ints = np.maximum.accumulate(at - low + number * span)
        return lifted - number * span + low
    for first, last in zip(begin[:-1].tolist(), begin[1:].tolist(), strict=True):
        at[first:last] = np.maximum.accumulate(at[first:last])
    return at


def _last_until(times: Ints, moment: Ints, low: Ints, high: Ints) -> Ints:
    """Return, for each moment, the end index of the sorted times in [low, high) that are not after it."""
    low, high = low.copy(), high.copy()
    open_ = np.flatnonzero(low < high)
    while len(open_):
        middle = (low[open_] + high[open_]) >> 1
        until = times[middle] <= moment[open_]
        low[open_[until]] = middle[until] + 1
        high[open_[~until]] = middle[~until]
        open_ = open_[low[open_] < high[open_]]
    return low


def _codes(batch: pa.RecordBatch, codes: dict[_Key, int], *, grow: bool) -> Ints:
    """Return the code of each row's group, topic and partition. grow: add new keys; else their code is -1."""
    begins = differs(batch.column("partition"))
    for name in NAMES[:2]:
        begins |= differs(batch.column(name))
    places = numeric(np.flatnonzero(begins), pa.int64())
    keys = zip(*(batch.column(name).take(places).to_pylist() for name in NAMES), strict=True)
    code = [codes.setdefault(key, len(codes)) if grow else codes.get(key, -1) for key in keys]
    result: Ints = np.array(code, dtype=np.int64)[np.cumsum(begins) - 1]
    return result
