"""Helpers for tests of `kctl segment stats`."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from kctl.segment.log.log_selection import select_logs
from kctl.segment.stats.collect_statistics import StatisticsOptions, collect_statistics
from kctl.segment.stats.statistics import SegmentStatistics
from segment_files import BASE_TIMESTAMP

HOUR = 3_600_000
NOW = BASE_TIMESTAMP + HOUR


def stats_of(*paths: Path, **options: Any) -> SegmentStatistics:
    """Return the statistics at NOW. options: of StatisticsOptions."""
    return collect_statistics(select_logs(paths), StatisticsOptions(**{"now": NOW, **options})).statistics


def milliseconds(text: str | None) -> int | None:
    """Return an ISO 8601 time as ms since 1970."""
    if text is None:
        return None
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return (moment - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(milliseconds=1)
