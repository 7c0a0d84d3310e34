"""The skew of bytes or other amounts over brokers, log dirs or partitions. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt


@dataclass(frozen=True, slots=True)
class Skew:
    """The distribution of amounts over brokers, log dirs or partitions.

    ratio: maximum ÷ mean, 1.0 is even. spread: standard deviation ÷ mean, 0.0 is even. Both None: all amounts are 0.
    """

    places: int
    least: int
    mean: float
    most: int
    ratio: float | None
    spread: float | None


def skew(amounts: Sequence[int]) -> Skew | None:
    """Return the skew of the amounts; zeros count. None without amounts."""
    if not amounts:
        return None
    mean = sum(amounts) / len(amounts)
    deviation = sqrt(sum((each - mean) ** 2 for each in amounts) / len(amounts))
    return Skew(
        places=len(amounts),
        least=min(amounts),
        mean=mean,
        most=max(amounts),
        ratio=max(amounts) / mean if mean > 0 else None,
        spread=deviation / mean if mean > 0 else None,
    )
