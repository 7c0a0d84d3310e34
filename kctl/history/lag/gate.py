"""Check a lag report against the limits of --fail-on."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kctl.base.text import counted
from kctl.errors import NotHealthy
from kctl.history.lag.limits import Limit, broken_limits
from kctl.history.lag.status_rows import LagStatus
from kctl.history.lag.totals import severity
from kctl.lag.gate import By, row_name


def check_limits(rows: Iterable[LagStatus], by: By, limits: Iterable[Limit], warn: Callable[[str], None]) -> None:
    """Raise NotHealthy if a row breaks a limit. warn: called for each further limit that is broken."""
    broken = broken_limits(sorted(rows, key=severity), limits)
    if not broken:
        return
    texts = [
        f"{counted(each.rows, by.value)} {each.limit.predicate(each.rows)}:"
        f" {row_name(each.worst)} {each.limit.describe(each.worst)}"
        for each in broken
    ]
    for text in texts[1:]:
        warn(text)
    raise NotHealthy(
        texts[0],
        hint="",
        details={"over_limit": broken[0].rows, "limits": {each.limit.text: each.rows for each in broken}},
    )
