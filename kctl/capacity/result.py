"""What `kctl capacity` gives."""

from __future__ import annotations

from dataclasses import dataclass

from kctl.capacity.measure import Measurement
from kctl.capacity.model import CapacityPlan


@dataclass(frozen=True, slots=True)
class CapacityResult:
    """plan: None when nothing was said of a load. measured: None without --measure."""

    plan: CapacityPlan | None
    measured: Measurement | None
