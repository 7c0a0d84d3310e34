"""The proof that records survived a move finds each way in which they would not have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from reassign_traffic import faults

SEEN = [(0, -1), (1, 0), (2, 1), (3, 2)]


@pytest.mark.parametrize(
    ("acknowledged", "seen", "said"),
    [
        ({1: 0, 2: 1, 3: 2}, SEEN, []),
        ({1: 0, 3: 2}, SEEN, []),  # in the log, and never acknowledged
        ({1: 0, 2: 1, 3: 2}, [(0, -1), (1, 0), (2, 2)], ["lost"]),
        ({1: 0, 2: 1, 3: 2}, SEEN[:-1], ["lost"]),
        ({1: 0}, [(0, -1), (1, 0), (2, 0)], ["twice"]),
        ({1: 1}, [(0, -1), (1, 1), (2, 0)], ["out of order"]),
        ({1: 0}, [(0, -1), (1, 0), (3, 2)], ["contiguous"]),
        ({2: 0}, [(0, -1), (1, 0)], ["lost"]),
    ],
)
def test_faults(acknowledged: Mapping[int, int], seen: Sequence[tuple[int, int]], said: Sequence[str]) -> None:
    found = faults(acknowledged, seen)
    assert len(found) == len(said)
    for text, wanted in zip(found, said, strict=True):
        assert wanted in text
