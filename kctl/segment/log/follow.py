"""A log that a broker writes to while it is read: what comes is read as soon as it is whole."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kctl.segment.format.batch import V2_HEADER, Batch
from kctl.segment.log.partition import next_segment
from kctl.segment.log.source import Source
from kctl.segment.log.walk import Damage, batch_at, batches

POLL_S = 0.2


class Shortened(NamedTuple):
    """The file ends at `position` now and did not before: a follower truncates its log after a change of leaders."""

    position: int
    length: int


class Rolled(NamedTuple):
    """The broker writes to a new segment."""

    path: Path


Event = Batch | Damage | Shortened | Rolled | None


def follow(source: Source, *, idle_s: float | None = None) -> Iterator[Event]:
    """Batches and damage as `batches` has them, then what comes; None when there is nothing more for the moment.

    A batch that is not whole yet is waited for. Ends when there is a newer segment (the last item is Rolled), or when
    nothing came for `idle_s`.
    """
    position, since = 0, time.monotonic()
    while True:
        source.load(position, V2_HEADER)  # what was read before may have been written over
        unfinished = None
        for item in batches(source, position):
            if isinstance(item, Damage) and item.position + item.length >= source.size:
                unfinished = item  # a batch that is being written, or the zeros of a preallocated file
                break
            yield item
            position = item.next_position if isinstance(item, Batch) else item.position + item.length
            since = time.monotonic()
        yield None
        before = source.size
        while source.refresh() == before and not _more(source, position):
            newer = next_segment(source.path)
            if newer is not None and source.refresh() == before:  # nothing more comes to this one
                if unfinished is not None:
                    yield unfinished
                yield Rolled(newer)
                return
            if idle_s is not None and time.monotonic() - since >= idle_s:
                return
            time.sleep(POLL_S)
        if source.size < position:
            yield Shortened(source.size, position - source.size)
            position = source.size


def _more(source: Source, position: int) -> bool:
    source.load(position, V2_HEADER)
    return isinstance(batch_at(source, position, source.size), Batch)
