"""In which order brokers are restarted. Pure.

One at a time by id, the controller last: each time that it goes, all partitions wait for another one to be elected.
With --max-unavailable several at once, if they are of one rack: a cluster that is laid out by racks is made to lose one
of them. Brokers that do not tell a rack go one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

Fits = Callable[[Collection[int]], bool]


def next_batch(
    left: Collection[int],
    racks: Mapping[int, str | None],
    controller: int | None,
    *,
    max_unavailable: int = 1,
    fits: Fits = lambda _brokers: True,
) -> tuple[int, ...]:
    """The brokers that go next, of those `left`; () when none is.

    controller: as it is now; it goes when nobody else is left, and alone. fits: whether brokers can go together as far
    as the replicas of the partitions tell.
    """
    others = [broker for broker in left if broker != controller]
    if not others:
        return tuple(left)[:1]
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
    """All batches, as they would be if the controller stayed who it is."""
    left, found = set(brokers), []
    while batch := next_batch(left, racks, controller, max_unavailable=max_unavailable, fits=fits):
        found.append(batch)
        left -= set(batch)
    return found
