"""Follow a log while a broker writes to it."""

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
    """The file was truncated to `position`: followers truncate their logs after a leader change."""

    position: int
    length: int


class Rolled(NamedTuple):
    """The broker rolled to a new segment."""

    path: Path


Event = Batch | Damage | Shortened | Rolled | None


def follow(source: Source, *, idle_s: float | None = None) -> Iterator[Event]:
    """Yield batches and damage like `batches`, then new ones as they arrive; None whenever there are no more for now.

    Waits for incomplete batches. Ends when there is a newer segment (the last item is Rolled), or after `idle_s`
    without new data.
    """
    position, since = 0, time.monotonic()
    while True:
        source.load(position, V2_HEADER)  # the bytes read before may have been overwritten
        unfinished = None
        for item in batches(source, position):
            if isinstance(item, Damage) and item.position + item.length >= source.size:
                unfinished = item  # a batch that is being written, or the zeros of a preallocated file
                break
            yield item
            position = item.next_position if isinstance(item, Batch) else item.position + item.length
            since = time.monotonic()
        yield None
        size_before = source.size
        while source.refresh() == size_before and not _more(source, position):
            newer = next_segment(source.path)
            if newer is not None and source.refresh() == size_before:  # this segment is complete
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
