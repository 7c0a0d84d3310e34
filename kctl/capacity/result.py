"""The result of kctl capacity."""

from __future__ import annotations

from dataclasses import dataclass

from kctl.capacity.measure import Measurement
from kctl.capacity.model import CapacityPlan


@dataclass(frozen=True, slots=True)
class CapacityResult:
    """The JSON document of kctl capacity. plan: None if no load is specified. measured: None without --measure."""

    plan: CapacityPlan | None
    measured: Measurement | None
