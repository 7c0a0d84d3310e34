"""Cut a plan into batches that run one after another.

Pure and deterministic. Each batch contains an equal share of the data that each broker receives, so that no disk or
network card is busy while others are idle.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from operator import attrgetter
from typing import NamedTuple

from kctl.reassign.planner.assignment import Reassignment

REORDER_BATCH_SIZE = 1_000  # partitions in a batch that copies nothing
_OPEN = 32  # batches to try for a partition that does not fit into the first one


def default_concurrency(brokers: int) -> int:
    """Return the replica copies per batch for a number of brokers."""
    return max(50, 5 * brokers)


class _Item(NamedTuple):
    position: int
    copies: int
    size_bytes: int  # of all copies
    receiver: int
    source: int


def make_batches(
    reassignments: Sequence[Reassignment], *, max_concurrent_moves: int, batch_bytes: int | None
) -> tuple[tuple[int, ...], ...]:
    """Return batches of positions in `reassignments`, each position in exactly one.

    A batch copies at most max_concurrent_moves replicas and batch_bytes (None: no limit), unless a single partition
    exceeds them. Partitions that copy nothing (reorders, fewer replicas) come last, in their own batches. If `before`
    is unknown, each replica counts as a copy; an unknown size counts as 0.
    """
    items, reorders = [], []
    for position, r in enumerate(reassignments):
        receivers = receivers_of(r)
        if not receivers:
            reorders.append(position)
            continue
        size = len(receivers) * (r.size_bytes or 0)
        source = r.before[0] if r.before else -1
        items.append(_Item(position, len(receivers), size, receivers[0], source))
    ordered = _spread(items, attrgetter("source"))
    copy_batches = _pack(_spread(ordered, attrgetter("receiver")), max(1, max_concurrent_moves), batch_bytes)
    rest = (tuple(reorders[i : i + REORDER_BATCH_SIZE]) for i in range(0, len(reorders), REORDER_BATCH_SIZE))
    return (*(tuple(sorted(batch)) for batch in copy_batches), *rest)


def receivers_of(reassignment: Reassignment) -> list[int]:
    """Return the brokers that copy the partition: new replicas, and replicas that change their log dir."""
    r = reassignment
    if r.before is None:
        return list(r.after)
    before = r.before
    receivers = [node for node in r.after if node not in before]
    if r.log_dirs is not None:
        dirs_before = dict(zip(r.before, r.log_dirs_before or (), strict=False))
        for node, path in zip(r.after, r.log_dirs, strict=True):
            if path is not None and node in r.before and dirs_before.get(node) != path:
                receivers.append(node)
    return receivers


def _spread(items: Sequence[_Item], key: Callable[[_Item], Hashable]) -> list[_Item]:
    """Spread the items of each key evenly over the sequence; otherwise the order is stable."""
    groups = [key(item) for item in items]
    step = {group: 1 / count for group, count in Counter(groups).items()}
    next_place = {group: width / 2 for group, width in step.items()}
    places = []
    for group in groups:
        place = next_place[group]
        places.append(place)
        next_place[group] = place + step[group]
    return [items[number] for number in sorted(range(len(items)), key=places.__getitem__)]


def _pack(items: Sequence[_Item], max_copies: int, max_bytes: int | None) -> list[list[int]]:
    """Put each item into the first open batch with room for it."""
    batches: list[list[int]] = []
    room: list[tuple[int, int]] = []  # copies and bytes that each batch has room for
    open_batches: list[int] = []
    for item in items:
        fits = (n for n in open_batches if item.copies <= room[n][0] and item.size_bytes <= room[n][1])
        number = next(fits, len(batches))
        if number == len(batches):
            batches.append([])
            room.append((max_copies, 1 << 62 if max_bytes is None else max_bytes))
            open_batches.append(number)
        batches[number].append(item.position)
        copies, size = room[number]
        room[number] = (copies - item.copies, size - item.size_bytes)
        if min(room[number]) <= 0:
            open_batches.remove(number)
        elif len(open_batches) > _OPEN:
            del open_batches[0]
    return batches
