"""Explanations of how the values of kctl.history.retention.outlook were computed. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from kctl.base.units import format_duration, format_size
from kctl.history.lag.explain import Line
from kctl.history.retention.disk_full import FORESIGHT, Cause
from kctl.history.retention.outlook import LogDirOutlook, PartitionOutlook, TopicOutlook
from kctl.lag.log_config import compacts

_MAX_CAUSES = 5


def explain_log_dir(row: LogDirOutlook) -> list[Line]:
    """Return the explanations of a log dir."""
    return [*_volume(row), *_full(row), *_causes(row.causes)]


def explain_logs(row: PartitionOutlook | TopicOutlook) -> list[Line]:
    """Return the explanations of a topic or partition."""
    return [*_growth(row), *_ceiling(row), *_cleaner(row)]


def rate(bytes_per_hour: float) -> str:
    """Format a rate as "1.5 GB/h"."""
    return f"{format_size(int(bytes_per_hour))}/h"


def _volume(row: LogDirOutlook) -> Iterator[Line]:
    if row.usable_bytes is None or row.total_bytes is None:
        yield Line(
            "usable_bytes", "the broker does not report the volume's size: Kafka before 3.3, or the log dir is offline"
        )
        return
    yield Line("usable_bytes", f"{format_size(row.usable_bytes)} of {format_size(row.total_bytes)} are free")
    if row.same_volume:
        yield Line(
            "same_volume", f"{', '.join(row.same_volume)} have the same size and free space: treated as one volume"
        )


def _full(row: LogDirOutlook) -> Iterator[Line]:
    if row.written_bytes_per_hour is not None and row.observed_ms is not None:
        yield Line(
            "written_bytes_per_hour",
            f"{rate(row.written_bytes_per_hour)} written to its replicas in {format_duration(row.observed_ms)}, without"
            f" the intervals in which they shrank",
        )
    if row.unknown_replicas:
        yield Line("unknown_replicas", f"the write rate of {row.unknown_replicas} replicas is unknown and counted as 0")
    if row.full_ms is not None:
        yield Line(
            "full_ms",
            f"full in {format_duration(row.full_ms)}, if each log grows at its current rate up to its retention limit",
        )
    elif row.full_after_ms is not None:
        yield Line(
            "full_after_ms",
            f"later than in {format_duration(row.full_after_ms)}: predictions reach {FORESIGHT} times as far as the"
            " observed time",
        )
    elif row.growing_to_bytes is not None and row.usable_bytes is not None:
        yield Line(
            "full_ms",
            f"never: with each log at its retention limit, the replicas take {format_size(row.growing_to_bytes)}",
        )


def _causes(causes: list[Cause]) -> Iterator[Line]:
    for cause in causes[:_MAX_CAUSES]:
        what = "other files" if cause.topic is None else f"topic {cause.topic}"
        size = f"{format_size(cause.bytes)}, " if cause.bytes else ""
        yield Line("causes", f"{what}: {size}{cause.share:.0%} of the growth, now {rate(cause.written_per_hour)}")
    if len(causes) > _MAX_CAUSES:
        rest = sum(cause.share for cause in causes[_MAX_CAUSES:])
        yield Line("causes", f"{len(causes) - _MAX_CAUSES} more: {rest:.0%} of the growth")


def _growth(row: PartitionOutlook | TopicOutlook) -> Iterator[Line]:
    if row.growth_bytes_per_hour is not None and row.observed_ms is not None:
        yield Line(
            "growth_bytes_per_hour",
            f"last size minus first size, in {format_duration(row.observed_ms)}: {rate(row.growth_bytes_per_hour)}",
        )
    if row.written_bytes_per_hour is not None:
        yield Line(
            "written_bytes_per_hour",
            f"{rate(row.written_bytes_per_hour)}, without the intervals in which the log shrank",
        )
        if compacts(row.cleanup_policy):
            yield Line(
                "written_bytes_per_hour",
                "a compacted log occupies only what remained when it last shrank, beyond its first size",
            )


def _ceiling(row: PartitionOutlook | TopicOutlook) -> Iterator[Line]:
    if row.unlimited:
        yield Line("ceiling_bytes", "neither retention.ms nor retention.bytes limits its growth")
    elif row.ceiling_bytes is not None:
        parts = []
        if row.retention_bytes is not None and row.retention_bytes >= 0:
            parts.append(f"retention.bytes {format_size(row.retention_bytes)}")
        if row.retention_ms is not None and row.retention_ms >= 0:
            parts.append(f"bytes written in retention.ms {format_duration(row.retention_ms)}")
        segment = "" if row.segment_bytes is None else f", plus up to one segment of {format_size(row.segment_bytes)}"
        yield Line(
            "ceiling_bytes", f"{format_size(row.ceiling_bytes)}: {', or '.join(parts)}{segment}, for each partition"
        )


def _cleaner(row: PartitionOutlook | TopicOutlook) -> Iterator[Line]:
    if row.dirty_ratio_at_least is not None:
        yield Line(
            "dirty_ratio_at_least",
            f"{row.dirty_ratio_at_least:.0%} were added since the log last shrank, without the active segment",
        )
    if row.cleaner_stands_still:
        yield Line(
            "cleaner_stands_still",
            "the dirty ratio exceeds min.cleanable.dirty.ratio: check log-cleaner.log on the broker",
        )
