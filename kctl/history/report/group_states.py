"""States of groups at each pass, one group at a time, in the order of their readings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kctl.history.evaluate.column_arrays import nullable, numbers
from kctl.history.report.owned_rows import runs

EMPTY, DEAD, SETTLED, OTHER = 1, 2, 3, 4
_CODES = {"Empty": EMPTY, "Dead": DEAD, "Stable": SETTLED, "Reconciling": SETTLED}  # as in lag.status.standing_of


@dataclass(frozen=True, slots=True)
class GroupStates:
    """States of a group.

    codes: by pass, 0 if the group was not listed. state, members: last values; "Unknown" if never listed.
    """

    codes: npt.NDArray[np.int8]
    state: str
    members: int | None


class StateStream:
    """The rows of the table `groups`, sorted by group, consumed in that order."""

    def __init__(self, batches: Iterable[pa.RecordBatch], times: npt.NDArray[np.int64]) -> None:
        self._times = times
        self._rest = self._groups(batches)
        self._next = next(self._rest, None)

    def until(self, group: str | None) -> Iterator[tuple[str, GroupStates]]:
        """Return the remaining groups before `group`; None: all remaining groups."""
        while self._next is not None and (group is None or self._next[0] < group):
            yield self._next
            self._next = next(self._rest, None)

    def of(self, group: str) -> GroupStates:
        """Return the states of `group`, which must come next in the stream; "Unknown" if it is not listed."""
        if self._next is not None and self._next[0] == group:
            result = self._next[1]
            self._next = next(self._rest, None)
            return result
        return GroupStates(np.zeros(len(self._times), dtype=np.int8), "Unknown", None)

    def _groups(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, GroupStates]]:
        name: str | None = None
        parts: list[pa.RecordBatch] = []
        for batch in batches:
            if not batch.num_rows:
                continue
            for group, part in runs(batch, "group"):
                if group != name and name is not None:
                    yield name, self._states(parts)
                    parts = []
                name = group
                parts.append(part)
        if name is not None:
            yield name, self._states(parts)

    def _states(self, parts: list[pa.RecordBatch]) -> GroupStates:
        codes = np.zeros(len(self._times), dtype=np.int8)
        for part in parts:
            states = cast("pa.DictionaryArray", part.column("state"))
            names = np.array([_CODES.get(text, OTHER) for text in states.dictionary.to_pylist()], dtype=np.int8)
            at = numbers(part.column("at_ms"))
            place = np.searchsorted(self._times, at)
            listed = place < len(self._times)
            listed[listed] = self._times[place[listed]] == at[listed]
            codes[place[listed]] = names[numbers(states.indices)][listed]
        last = parts[-1]
        members = nullable(last.column("members"))
        return GroupStates(
            codes,
            last.column("state")[last.num_rows - 1].as_py(),
            int(members.value[-1]) if members.valid[-1] else None,
        )
