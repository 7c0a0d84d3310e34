"""The order in which brokers restart. Pure.

One at a time by id, the controller last: when it stops, all partitions wait for the election of another one. With
--max-unavailable, several at once if they are in one rack, because clusters with racks are laid out to survive the loss
of one. Brokers without a rack restart one at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

Fits = Callable[[Collection[int]], bool]


def next_batch(
    pending: Collection[int],
    racks: Mapping[int, str | None],
    controller: int | None,
    *,
    max_unavailable: int = 1,
    fits: Fits = lambda _brokers: True,
) -> tuple[int, ...]:
    """Return the next brokers of `pending`; () if none are left.

    controller: the current controller; it restarts last, and alone. fits: returns True if the replicas allow stopping
    these brokers together.
    """
    others = [broker for broker in pending if broker != controller]
    if not others:
        return tuple(pending)[:1]
    ordered = sorted(others, key=lambda broker: (racks.get(broker) or "", broker))
    if max_unavailable == 1:
        return (min(others),)
    first = ordered[0]
    batch: tuple[int, ...] = (first,)
    for broker in ordered[1:]:
        if len(batch) == max_unavailable or racks.get(first) is None:
            break
        if racks.get(broker) == racks.get(first) and fits((*batch, broker)):
            batch = (*batch, broker)
    return batch


def whole_order(
    brokers: Collection[int],
    racks: Mapping[int, str | None],
    controller: int | None,
    *,
    max_unavailable: int = 1,
    fits: Fits = lambda _brokers: True,
) -> list[tuple[int, ...]]:
    """Return all batches, assuming that the controller does not change."""
    pending, batches = set(brokers), []
    while batch := next_batch(pending, racks, controller, max_unavailable=max_unavailable, fits=fits):
        batches.append(batch)
        pending -= set(batch)
    return batches
