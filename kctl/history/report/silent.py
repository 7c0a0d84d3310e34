"""Brokers that the newest pass could not ask, and times without passes: why figures may be old. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import median

from kctl.history.report.model import Gap, SilentBroker
from kctl.history.snapshots.passes import PassInfo
from kctl.lag.retention import at

_DOWN = re.compile(r"broker (\d+) is down\b")  # as kctl.history.snapshots.collect says it


def silent_brokers(
    passes: Sequence[PassInfo], answered_ms: Mapping[int, int], log_dirs: Iterable[int]
) -> list[SilentBroker]:
    """Brokers that did not answer the newest pass and have not left: no complete pass was without them.

    passes: of the span, in order of time, at least one. answered_ms: when each broker last told of its log dirs.
    log_dirs: the broker of each that is known.
    """
    newest, dirs = passes[-1], list(log_dirs)
    found = []
    for broker, last_ms in sorted(answered_ms.items()):
        later = [each for each in passes if each.at_ms > last_ms]
        if later and not any(each.complete for each in later):
            found.append(SilentBroker(broker, at(later[0].at_ms), dirs.count(broker)))
    down = {int(match[1]) for text in newest.failures if (match := _DOWN.search(text))}
    found += [SilentBroker(broker, None, dirs.count(broker)) for broker in sorted(down - answered_ms.keys())]
    return sorted(found, key=lambda each: each.broker)


def gaps_of(
    passes: Sequence[PassInfo],
    missed: Mapping[int, int],
    *,
    from_ms: int | None = None,
    until_ms: int,
    ended: bool = True,
) -> list[Gap]:
    """When passes were due and none were made, by the collector's interval, else by the usual one.

    passes: as above; missed: by the time of a pass, how many before it were left out because one took too long (they
    are told apart). from_ms: the span's beginning, if there were passes before it. until_ms: the end of what was asked
    for, at most now; ended: and there are no later passes.
    """
    steps = [after.at_ms - before.at_ms for before, after in pairwise(passes)]
    usual = int(median(steps)) if steps else None
    found = []
    for before, after in pairwise(passes):
        interval = max(before.interval_ms or 0, after.interval_ms or 0) or usual
        due = _due(after.at_ms - before.at_ms, interval) - missed.get(after.at_ms, 0)
        if due > 0:
            found.append(_gap(before.at_ms, after.at_ms, due))
    first, last = passes[0], passes[-1]
    if from_ms is not None and (due := _due(first.at_ms - from_ms, first.interval_ms or usual)) > 0:
        found.insert(0, _gap(from_ms, first.at_ms, due))
    late_ms = until_ms - last.at_ms
    if (due := _due(late_ms, last.interval_ms or usual)) > _LATE and late_ms >= _LATE_MS:
        found.append(_gap(last.at_ms, until_ms, due, open_=ended))
    return found


_LATE, _LATE_MS = 1, 60_000  # what a collector that runs may be behind by: a pass may be on its way


def _due(step_ms: int, interval_ms: int | None) -> int:
    """The passes that are missing within a time between two."""
    return 0 if not interval_ms else round(step_ms / interval_ms) - 1


def _gap(from_ms: int, to_ms: int, due: int, *, open_: bool = False) -> Gap:
    begin, end = at(from_ms), at(to_ms)
    assert begin is not None
    assert end is not None
    return Gap(begin, end, due, open_)
