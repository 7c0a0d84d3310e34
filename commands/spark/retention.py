"""kctl spark retention: what logs take on the disks, what becomes of it, and who loses by it, computed by PySpark."""

from __future__ import annotations

import time
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.commands.spark import retention_store as over_store
from kctl.commands.spark.retention_view import usage_table
from kctl.commands.spark.run import (
    REQUEST_TIMEOUT_S,
    Conf,
    Master,
    Memory,
    Overwrite,
    Parquet,
    Run,
    StoreIfAny,
    TopicGlobs,
    running,
    settings_of,
)
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.commands.terminal.topic_options import MATCH
from kctl.commands.terminal.views import incomplete, incomplete_after_verdict
from kctl.errors import UsageError

if TYPE_CHECKING:
    from kctl.lag.selection import Names
    from kctl.protocol.client import ClusterClient

_LAST = "24h"


class RetentionBy(str, Enum):
    """What a row is."""

    TOPIC = "topic"
    PARTITION = "partition"
    REPLICA = "replica"
    BROKER = "broker"
    LOG_DIR = "log-dir"


class Show(str, Enum):
    """Which report."""

    USAGE = "usage"
    LOSSES = "losses"
    SKEW = "skew"
    TOMBSTONES = "tombstones"
    SEGMENTS = "segments"
    CLEANER = "cleaner"


def retention(
    ctx: typer.Context,
    topic: TopicGlobs = None,
    match: Annotated[list[str] | None, MATCH] = None,
    by: Annotated[RetentionBy, typer.Option(help="What a row is; replica needs --store.")] = RetentionBy.TOPIC,
    show: Annotated[Show, typer.Option(help="Which report.")] = Show.USAGE,
    store: StoreIfAny = None,
    last: Annotated[str, typer.Option(metavar="DURATION", help="Growth is observed over so long.")] = _LAST,
    from_: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="TIME",
            help="Measure growth from this time on: ISO 8601, UTC if no zone is given; or -90m.",
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="State at this time, UTC if no zone is given (default: the newest snapshot)."
        ),
    ] = None,
    what_if: Annotated[
        list[str] | None,
        typer.Option("--what-if", metavar="CONFIG=VALUE", help="Try retention.ms or retention.bytes; repeatable."),
    ] = None,
    log_dir: Annotated[
        list[Path] | None,
        typer.Option("--log-dir", metavar="DIR", help="A log dir's folder, for --show segments|cleaner; repeatable."),
    ] = None,
    count_keys: Annotated[
        bool, typer.Option("--count-keys", help="With --show cleaner: count keys, which reads every record.")
    ] = False,
    dedupe_buffer: Annotated[
        str,
        typer.Option(metavar="SIZE", help="With --show cleaner: log.cleaner.dedupe.buffer.size ÷ log.cleaner.threads."),
    ] = "128MiB",
    full_within: Annotated[
        str | None, typer.Option("--full-within", metavar="DURATION", help="Exit 1 when a disk is full sooner.")
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Tell how the figures of each row came about.")] = False,
    parquet: Parquet = None,
    overwrite: Overwrite = False,
    master: Master = "local",
    conf: Conf = None,
    driver_memory: Memory = "1g",
) -> None:
    """Compute what logs take on the disks, and how much of their retention limits they have used.

    With --store also how logs grow, when each disk is full and which topics fill it (usage), which groups lose messages
    by then (losses), how evenly bytes lie (skew), for how long a group that is behind still sees deletions of compacted
    topics (tombstones), and what another retention would free (--what-if). With --log-dir, on a broker's machine or
    of a copy: which segments are expired and what keeps them (segments), what compaction has before it (cleaner).

    -o wide has all columns. Shares go over 100 %: Kafka deletes whole segments, by their newest record. Sizes are of
    segments, without their indexes.

    Example: kctl spark retention --by log-dir --store ./snapshots --full-within 7d

    Example: kctl spark retention --store ./snapshots --what-if retention.ms=3d --topic 'logs-*'
    """
    inv = invocation(ctx)
    topics = _names(topic, match)
    _check(show, what_if, store, log_dir, by, full_within=full_within, explain=explain, to=to, from_=from_)
    if count_keys and show is not Show.CLEANER:
        raise UsageError("--count-keys is for --show cleaner")
    if show in {Show.SEGMENTS, Show.CLEANER}:
        from kctl.commands.spark.retention_files import files_report

        files_report(
            inv, show.value, log_dir or [], topics, store, keys=count_keys, dedupe_buffer=dedupe_buffer,
            parquet=parquet, overwrite=overwrite,
        )  # fmt: skip
        return
    settings = settings_of(master, conf, driver_memory)
    if store is None:
        with running(inv, settings, parquet, overwrite=overwrite) as run:
            failures = _live(inv, run, topics, by.value, settings.parallelism)
        if failures:
            raise incomplete(failures)
    else:
        asked = over_store.asked_of(
            store, topics, by.value, show.value, what_if, last=last, from_=from_, to=to, full_within=full_within,
            explain=explain, wide=inv.output == "wide",
        )  # fmt: skip
        with running(inv, settings, parquet, overwrite=overwrite, cluster=False) as run:
            result = over_store.report(inv, run, asked, settings.parallelism, keep=parquet is not None)
        with incomplete_after_verdict(result.errors):
            over_store.judge(asked, result)


def _check(
    show: Show,
    what_if: list[str] | None,
    store: Path | None,
    log_dir: list[Path] | None,
    by: RetentionBy,
    *,
    full_within: str | None,
    explain: bool,
    to: str | None,
    from_: str | None,
) -> None:
    """Options that have no meaning together are refused before anything starts."""
    files = show in {Show.SEGMENTS, Show.CLEANER}
    if files and not log_dir:
        raise UsageError(
            f"--show {show.value} looks into segments: it needs --log-dir DIR",
            hint="give a broker's log dir on its machine, or a copy of one",
        )
    if log_dir and not files:
        raise UsageError("--log-dir is for --show segments and --show cleaner")
    needing = [
        name
        for name, given in (
            ("--what-if", what_if), ("--full-within", full_within), ("--explain", explain), ("--to", to),
            ("--from", from_), ("--by replica", by is RetentionBy.REPLICA),
            (f"--show {show.value}", show is not Show.USAGE and not files),
        )
        if given
    ]  # fmt: skip
    if store is None and needing:
        raise UsageError(f"{needing[0]} needs --store DIR", hint="`kctl spark snapshot --store DIR` collects it")
    if what_if and show is not Show.USAGE:
        raise UsageError("--what-if is a report of its own: leave --show out")


def _names(topic: list[str] | None, match: list[str] | None) -> Names:
    """Return the selected topics. Raises UsageError for names that are not valid topic names."""
    from kctl.cluster.topic_names import check_name
    from kctl.lag.selection import names_of

    topics = names_of(topic, match)
    for name in topics.exact:
        check_name(name)
    return topics


def _live(inv: Invocation, run: Run, topics: Names, by: str, parallelism: int) -> list[str]:
    """The report of the cluster as it is; what could not be read."""
    from kctl.spark.planning import plan_retention

    with inv.connect(timeout_s=REQUEST_TIMEOUT_S) as client:
        plan = plan_retention(client, topics=_topics(client, topics), parallelism=parallelism)
        target = client.target
    spark = run.driver.session()
    from kctl.spark.retention_job import retention_job

    now_ms = time.time_ns() // 1_000_000
    with run.watched("reading logs"):
        job = retention_job(spark, target, plan, now_ms=now_ms, timeout_s=REQUEST_TIMEOUT_S)
        failures = [*plan.failures, *job.failures()]
        rows = job.rows(by)
        run.write(job.frame(by))
    run.emit(inv, rows, lambda: [usage_table(rows, by, wide=inv.output == "wide")])
    return failures


def _topics(client: ClusterClient, names: Names) -> list[str] | None:
    """The topics of those names; None: all. One that is written out must exist: plan_retention says so.

    Raises NotFound when none is chosen.
    """
    if names.everything:
        return None
    if not names.regexes and len(names.exact) == len(names.patterns):
        return names.exact
    chosen = sorted({*names.exact, *(name for name in client.metadata().topics if name in names)})
    if not chosen:
        raise names.nothing("topic")
    return chosen
