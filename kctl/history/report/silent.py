"""Brokers that the newest pass could not reach, and gaps without passes: why values may be stale. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import median

from kctl.history.report.model import Gap, SilentBroker
from kctl.history.snapshots.passes import PassInfo
from kctl.lag.retention import at

_DOWN = re.compile(r"broker (\d+) is down\b")  # matches messages of kctl.history.snapshots.collect


def silent_brokers(
    passes: Sequence[PassInfo], reported_ms: Mapping[int, int], log_dirs: Iterable[int]
) -> list[SilentBroker]:
    """Return brokers that did not respond to the newest pass and have not left the cluster.

    A broker has left if a later complete pass does not include it. passes: of the span, ordered by time, at least one.
    reported_ms: time of each broker's last log dirs. log_dirs: broker of each known log dir.
    """
    newest, dirs = passes[-1], list(log_dirs)
    silent = []
    for broker, last_ms in sorted(reported_ms.items()):
        later = [each for each in passes if each.at_ms > last_ms]
        if later and not any(each.complete for each in later):
            silent.append(SilentBroker(broker, at(later[0].at_ms), dirs.count(broker)))
    down = {int(match[1]) for text in newest.failures if (match := _DOWN.search(text))}
    silent += [SilentBroker(broker, None, dirs.count(broker)) for broker in sorted(down - reported_ms.keys())]
    return sorted(silent, key=lambda each: each.broker)


def gaps_of(
    passes: Sequence[PassInfo],
    missed: Mapping[int, int],
    *,
    from_ms: int | None = None,
    until_ms: int,
    ended: bool = True,
) -> list[Gap]:
    """Return the times when passes were due, by the collector's interval or the median one, but are missing.

    passes: as in silent_brokers. missed: skipped passes before a pass, by its time; they are reported separately.
    from_ms: start of the span, if there are earlier passes. until_ms: end of the requested span, at most now. ended: no
    later passes exist.
    """
    steps = [after.at_ms - before.at_ms for before, after in pairwise(passes)]
    usual = int(median(steps)) if steps else None
    gaps = []
    for before, after in pairwise(passes):
        interval = max(before.interval_ms or 0, after.interval_ms or 0) or usual
        due = _due(after.at_ms - before.at_ms, interval) - missed.get(after.at_ms, 0)
        if due > 0:
            gaps.append(_gap(before.at_ms, after.at_ms, due))
    first, last = passes[0], passes[-1]
    if from_ms is not None and (due := _due(first.at_ms - from_ms, first.interval_ms or usual)) > 0:
        gaps.insert(0, _gap(from_ms, first.at_ms, due))
    late_ms = until_ms - last.at_ms
    if (due := _due(late_ms, last.interval_ms or usual)) > _LATE and late_ms >= _LATE_MS:
        gaps.append(_gap(last.at_ms, until_ms, due, open_=ended))
    return gaps


_LATE, _LATE_MS = 1, 60_000  # tolerance: a pass may be in progress


def _due(step_ms: int, interval_ms: int | None) -> int:
    """Return the number of passes missing between two times."""
    return 0 if not interval_ms else round(step_ms / interval_ms) - 1


def _gap(from_ms: int, to_ms: int, due: int, *, open_: bool = False) -> Gap:
    begin, end = at(from_ms), at(to_ms)
    assert begin is not None
    assert end is not None
    return Gap(begin, end, due, open_)
