"""kctl history retention: what logs take on the disks, what becomes of it, and who loses by it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.commands.history import retention_store as over_store
from kctl.commands.history.engine import Engine, OwnProcesses, ParquetFolder, Run
from kctl.commands.history.options import REQUEST_TIMEOUT_S, Overwrite, Parquet, StoreIfAny, TopicGlobs
from kctl.commands.history.retention_view import usage_table
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.commands.terminal.option_sets import takes_options
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


_OF_FILES = frozenset({Show.SEGMENTS, Show.CLEANER})


@dataclass(frozen=True)
class RetentionOptions:
    """The options of `kctl history retention`, which `kctl spark retention` has as well."""

    topic: TopicGlobs = None
    match: Annotated[list[str] | None, MATCH] = None
    by: Annotated[RetentionBy, typer.Option(help="What a row is; replica needs --store.")] = RetentionBy.TOPIC
    show: Annotated[Show, typer.Option(help="Which report.")] = Show.USAGE
    store: StoreIfAny = None
    last: Annotated[str, typer.Option(metavar="DURATION", help="Growth is observed over so long.")] = _LAST
    from_: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="TIME",
            help="Measure growth from this time on: ISO 8601, UTC if no zone is given; or -90m.",
        ),
    ] = None
    to: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="State at this time, UTC if no zone is given (default: the newest snapshot)."
        ),
    ] = None
    what_if: Annotated[
        list[str] | None,
        typer.Option("--what-if", metavar="CONFIG=VALUE", help="Try retention.ms or retention.bytes; repeatable."),
    ] = None
    log_dir: Annotated[
        list[Path] | None,
        typer.Option("--log-dir", metavar="DIR", help="A log dir's folder, for --show segments|cleaner; repeatable."),
    ] = None
    count_keys: Annotated[
        bool, typer.Option("--count-keys", help="With --show cleaner: count keys, which reads every record.")
    ] = False
    dedupe_buffer: Annotated[
        str,
        typer.Option(metavar="SIZE", help="With --show cleaner: log.cleaner.dedupe.buffer.size ÷ log.cleaner.threads."),
    ] = "128MiB"
    full_within: Annotated[
        str | None, typer.Option("--full-within", metavar="DURATION", help="Exit 1 when a disk is full sooner.")
    ] = None
    explain: Annotated[bool, typer.Option("--explain", help="Tell how the figures of each row came about.")] = False
    parquet: Parquet = None
    overwrite: Overwrite = False


@takes_options(RetentionOptions)
def retention(ctx: typer.Context, options: RetentionOptions) -> None:
    """Compute what logs take on the disks, and how much of their retention limits they have used.

    With --store also how logs grow, when each disk is full and which topics fill it (usage), which groups lose messages
    by then (losses), how evenly bytes lie (skew), for how long a group that is behind still sees deletions of compacted
    topics (tombstones), and what another retention would free (--what-if). With --log-dir, on a broker's machine or
    of a copy: which segments are expired and what keeps them (segments), what compaction has before it (cleaner).

    -o wide has all columns. Shares go over 100 %: Kafka deletes whole segments, by their newest record. Sizes are of
    segments, without their indexes.

    Example: kctl history retention --by log-dir --store ./snapshots --full-within 7d

    Example: kctl history retention --store ./snapshots --what-if retention.ms=3d --topic 'logs-*'
    """
    report_retention(invocation(ctx), options, OwnProcesses)


def report_retention(inv: Invocation, options: RetentionOptions, engine: Callable[[], Engine]) -> None:
    """Carry out `kctl history retention` or `kctl spark retention`. engine: called when options have been checked."""
    topics = _names(options.topic, options.match)
    _check(options)
    parquet = ParquetFolder(options.parquet, options.overwrite)
    if options.show in _OF_FILES:
        from kctl.commands.history.retention_files import files_report

        files_report(
            inv, options.show.value, options.log_dir or [], topics, options.store, keys=options.count_keys,
            dedupe_buffer=options.dedupe_buffer, parquet=parquet,
        )  # fmt: skip
        return
    chosen = engine()
    if options.store is None:
        with chosen.running(inv, parquet, cluster=True) as run:
            failures = _live(inv, run, topics, options.by.value, chosen.tasks)
        if failures:
            raise incomplete(failures)
        return
    asked = over_store.asked_of(
        options.store, topics, options.by.value, options.show.value, options.what_if, last=options.last,
        from_=options.from_, to=options.to, full_within=options.full_within, explain=options.explain,
        wide=inv.output == "wide",
    )  # fmt: skip
    with chosen.running(inv, parquet) as run:
        result = over_store.report(inv, run, asked)
    with incomplete_after_verdict(result.errors):
        over_store.judge(asked, result)


def _check(options: RetentionOptions) -> None:
    """Options that have no meaning together are refused before anything starts."""
    show = options.show
    if options.count_keys and show is not Show.CLEANER:
        raise UsageError("--count-keys is for --show cleaner")
    files = show in _OF_FILES
    if files and not options.log_dir:
        raise UsageError(
            f"--show {show.value} looks into segments: it needs --log-dir DIR",
            hint="give a broker's log dir on its machine, or a copy of one",
        )
    if options.log_dir and not files:
        raise UsageError("--log-dir is for --show segments and --show cleaner")
    needing = [
        name
        for name, given in (
            ("--what-if", options.what_if), ("--full-within", options.full_within), ("--explain", options.explain),
            ("--to", options.to), ("--from", options.from_), ("--by replica", options.by is RetentionBy.REPLICA),
            (f"--show {show.value}", show is not Show.USAGE and not files),
        )
        if given
    ]  # fmt: skip
    if options.store is None and needing:
        raise UsageError(f"{needing[0]} needs --store DIR", hint="`kctl history snapshot --store DIR` collects it")
    if options.what_if and show is not Show.USAGE:
        raise UsageError("--what-if is a report of its own: leave --show out")


def _names(topic: list[str] | None, match: list[str] | None) -> Names:
    """Return the selected topics. Raises UsageError for names that are not valid topic names."""
    from kctl.cluster.topic_names import check_name
    from kctl.lag.selection import names_of

    topics = names_of(topic, match)
    for name in topics.exact:
        check_name(name)
    return topics


def _live(inv: Invocation, run: Run, topics: Names, by: str, tasks: int) -> list[str]:
    """Show the report of the cluster as it is; return what could not be read."""
    from kctl.history.retention.live_plan import plan_retention

    with inv.connect(timeout_s=REQUEST_TIMEOUT_S) as client:
        plan = plan_retention(client, topics=_topics(client, topics), parallelism=tasks)
        target = client.target
    with run.watched("reading logs"):
        rows, failures = run.usage(target, plan, by, REQUEST_TIMEOUT_S)
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
