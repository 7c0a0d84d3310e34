"""The history of commits as a Spark data source: the rows of kctl.history.commits.commit_log.

Each task reads some partitions of __consumer_offsets, about the same number of bytes (or offsets) per task: from
folders that every executor can read, or from the live cluster. The Target with its secrets travels inside the pickled
reader, as in kctl.spark.sources.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.pandas.types import from_arrow_schema

from kctl.errors import KctlError
from kctl.history.commits.commit_log import ARROW, EVERYTHING, Span, errors_of, read_fetched, read_logs
from kctl.lag.offsets_topic import OffsetsLog, fetch_log
from kctl.protocol.client import connect
from kctl.protocol.target import Target
from kctl.segment.format.offset_commits import TOPIC, CommitNotes
from kctl.segment.log.listing import log_bytes
from kctl.segment.log.partition_log import PartitionLog
from kctl.spark import task_source
from kctl.spark.task_split import split_by_weight

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

FORMAT = "kctl_offsets_history"
SCHEMA = from_arrow_schema(ARROW)


@dataclass(frozen=True, slots=True)
class FilesShare:
    """Partition logs in folders, read by one task."""

    logs: tuple[PartitionLog, ...]


@dataclass(frozen=True, slots=True)
class LiveShare:
    """Partitions of a live cluster, read by one task."""

    target: Target
    logs: tuple[OffsetsLog, ...]
    timeout_s: float = 30.0


Share = FilesShare | LiveShare


def file_shares(logs: Iterable[PartitionLog], tasks: int) -> list[Share]:
    """Split logs by size into shares for at most `tasks` tasks."""
    return [FilesShare(tuple(each)) for each in split_by_weight(logs, lambda log: log_bytes(_folder(log)), tasks)]


def live_shares(target: Target, logs: Iterable[OffsetsLog], tasks: int, *, timeout_s: float = 30.0) -> list[Share]:
    """Split partitions by number of offsets into shares for at most `tasks` tasks."""
    shares = split_by_weight(logs, lambda log: log.end - log.first, tasks)
    return [LiveShare(target, tuple(each), timeout_s) for each in shares]


def _folder(log: PartitionLog) -> Path:
    return log.path.parent if log.path.suffix == ".log" else log.path


def read(share: Share, span: Span = EVERYTHING) -> Iterator[pa.RecordBatch]:
    """Yield the commits of a share in batches of ARROW, then the errors. Needs no session."""
    if isinstance(share, FilesShare):
        yield from read_logs(share.logs, span)
        return
    try:
        with connect(share.target, timeout_s=share.timeout_s) as client:
            for log in share.logs:
                try:
                    yield from read_fetched(fetch_log(client, log), log.partition, span)
                except KctlError as exc:
                    yield _failed([f"{TOPIC}-{log.partition}: {exc.message}"])
    except KctlError as exc:
        yield _failed([exc.message])


def _failed(texts: list[str]) -> pa.RecordBatch:
    return errors_of(CommitNotes(damaged=len(texts), texts=texts))


def load(spark: SparkSession, shares: Sequence[Share], span: Span = EVERYTHING) -> DataFrame:
    """Return the commits as a DataFrame of SCHEMA.

    Rows of different tasks are in no particular order. `error` is null in commits.
    """
    return task_source.load(spark, FORMAT, SCHEMA, partial(read, span=span), shares)
