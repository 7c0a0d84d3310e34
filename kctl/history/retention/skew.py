"""How evenly bytes or other amounts are spread over brokers, log dirs or partitions. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt


@dataclass(frozen=True, slots=True)
class Skew:
    """What some places hold. ratio: the most ÷ the mean, 1.0 is even. spread: standard deviation ÷ mean, 0.0 is even.

    Both None when nothing is held at all.
    """

    places: int
    least: int
    mean: float
    most: int
    ratio: float | None
    spread: float | None


def skew(held: Sequence[int]) -> Skew | None:
    """Return the skew of the amounts; zeros count. None without amounts."""
    if not held:
        return None
    mean = sum(held) / len(held)
    deviation = sqrt(sum((each - mean) ** 2 for each in held) / len(held))
    return Skew(
        places=len(held),
        least=min(held),
        mean=mean,
        most=max(held),
        ratio=max(held) / mean if mean > 0 else None,
        spread=deviation / mean if mean > 0 else None,
    )
