"""kctl history retention: disk usage of logs, its growth, and the groups that lose messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.commands.history import retention_store
from kctl.commands.history.engine import OwnProcesses, ParquetFolder, ReportEngine, ReportRun
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
    """Aggregation level of the rows."""

    TOPIC = "topic"
    PARTITION = "partition"
    REPLICA = "replica"
    BROKER = "broker"
    LOG_DIR = "log-dir"


class Show(str, Enum):
    """Kind of report."""

    USAGE = "usage"
    LOSSES = "losses"
    SKEW = "skew"
    TOMBSTONES = "tombstones"
    SEGMENTS = "segments"
    CLEANER = "cleaner"


_FILE_REPORTS = frozenset({Show.SEGMENTS, Show.CLEANER})


@dataclass(frozen=True)
class RetentionOptions:
    """Options of `kctl history retention` and `kctl spark retention`."""

    topic: TopicGlobs = None
    match: Annotated[list[str] | None, MATCH] = None
    by: Annotated[RetentionBy, typer.Option(help="Aggregation level of the rows; replica needs --store.")] = (
        RetentionBy.TOPIC
    )
    show: Annotated[Show, typer.Option(help="Report to show.")] = Show.USAGE
    store: StoreIfAny = None
    last: Annotated[str, typer.Option(metavar="DURATION", help="Measure growth over the last DURATION.")] = _LAST
    from_: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="TIME",
            help="Measure growth from this time: ISO 8601 (UTC if no zone is given) or e.g. -90m.",
        ),
    ] = None
    to: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="State as of this time, UTC if no zone is given (default: newest snapshot)."),
    ] = None
    what_if: Annotated[
        list[str] | None,
        typer.Option("--what-if", metavar="CONFIG=VALUE", help="Simulate retention.ms or retention.bytes; repeatable."),
    ] = None
    log_dir: Annotated[
        list[Path] | None,
        typer.Option("--log-dir", metavar="DIR", help="Log dir to read, for --show segments|cleaner; repeatable."),
    ] = None
    count_keys: Annotated[
        bool, typer.Option("--count-keys", help="With --show cleaner: count keys (reads every record).")
    ] = False
    dedupe_buffer: Annotated[
        str,
        typer.Option(metavar="SIZE", help="With --show cleaner: log.cleaner.dedupe.buffer.size / log.cleaner.threads."),
    ] = "128MiB"
    full_within: Annotated[
        str | None,
        typer.Option("--full-within", metavar="DURATION", help="Exit 1 if a disk will be full within this time."),
    ] = None
    explain: Annotated[bool, typer.Option("--explain", help="Explain how the values of each row were computed.")] = (
        False
    )
    parquet: Parquet = None
    overwrite: Overwrite = False


@takes_options(RetentionOptions)
def retention(ctx: typer.Context, options: RetentionOptions) -> None:
    """Report disk usage, growth and retention of logs.

    With --store, --show selects one of these reports: growth, when each disk will be full and which topics fill it
    (usage); messages that groups will lose before then (losses); how evenly bytes are distributed (skew); how long
    a lagging group still sees tombstones of compacted topics (tombstones). With --log-dir, on a broker's host or on
    a copy: expired segments and what retains them (segments); pending compaction (cleaner). --what-if shows the
    effect of a different retention.

    -o wide shows all columns. Usage can exceed 100%, because Kafka deletes only whole segments. Sizes are of segments,
    without indexes.

    # Exit 1 if a disk will be full within a week
    kctl history retention --by log-dir --store ./snapshots --full-within 7d

    # Show the effect of keeping the logs-* topics for three days
    kctl history retention --store ./snapshots --what-if retention.ms=3d --topic 'logs-*'
    """
    report_retention(invocation(ctx), options, OwnProcesses)


def report_retention(inv: Invocation, options: RetentionOptions, engine: Callable[[], ReportEngine]) -> None:
    """Run `kctl history retention` or `kctl spark retention`. engine: called once the options are validated."""
    topics = _names(options.topic, options.match)
    _check(options)
    parquet = ParquetFolder(options.parquet, options.overwrite)
    if options.show in _FILE_REPORTS:
        from kctl.commands.history.retention_files import files_report

        files_report(
            inv, options.show.value, options.log_dir or [], topics, options.store, keys=options.count_keys,
            dedupe_buffer=options.dedupe_buffer, parquet=parquet,
        )  # fmt: skip
        return
    runner = engine()
    if options.store is None:
        with runner.running(inv, parquet, cluster=True) as run:
            failures = _live(inv, run, topics, options.by.value, runner.tasks)
        if failures:
            raise incomplete(failures)
        return
    request = retention_store.store_request(
        options.store, topics, options.by.value, options.show.value, options.what_if, last=options.last,
        from_=options.from_, to=options.to, full_within=options.full_within, explain=options.explain,
        wide=inv.output == "wide",
    )  # fmt: skip
    with runner.running(inv, parquet) as run:
        result = retention_store.report(inv, run, request)
    with incomplete_after_verdict(result.errors):
        retention_store.judge(request, result)


def _check(options: RetentionOptions) -> None:
    """Raise UsageError for options that do not go together."""
    show = options.show
    if options.count_keys and show is not Show.CLEANER:
        raise UsageError("--count-keys needs --show cleaner")
    files = show in _FILE_REPORTS
    if files and not options.log_dir:
        raise UsageError(
            f"--show {show.value} reads segments: it needs --log-dir DIR",
            hint="set --log-dir to a log dir on the broker's host, or to a copy",
        )
    if options.log_dir and not files:
        raise UsageError("--log-dir needs --show segments or --show cleaner")
    store_options = [
        name
        for name, value in (
            ("--what-if", options.what_if), ("--full-within", options.full_within), ("--explain", options.explain),
            ("--to", options.to), ("--from", options.from_), ("--by replica", options.by is RetentionBy.REPLICA),
            (f"--show {show.value}", show is not Show.USAGE and not files),
        )
        if value
    ]  # fmt: skip
    if options.store is None and store_options:
        raise UsageError(
            f"{store_options[0]} needs --store DIR", hint="collect snapshots with `kctl history snapshot --store DIR`"
        )
    if options.what_if and show is not Show.USAGE:
        raise UsageError("--what-if does not go with --show")


def _names(topic: list[str] | None, match: list[str] | None) -> Names:
    """Return the selected topics. Raises UsageError for names that are not valid topic names."""
    from kctl.cluster.topic_names import check_name
    from kctl.lag.selection import names_of

    topics = names_of(topic, match)
    for name in topics.exact:
        check_name(name)
    return topics


def _live(inv: Invocation, run: ReportRun, topics: Names, by: str, tasks: int) -> list[str]:
    """Show the report of the live cluster; return read failures."""
    from kctl.history.retention.live_plan import plan_retention

    with inv.connect(timeout_s=REQUEST_TIMEOUT_S) as client:
        plan = plan_retention(client, topics=_topics(client, topics), parallelism=tasks)
        target = client.target
    with run.watched("reading logs"):
        rows, failures = run.usage(target, plan, by, REQUEST_TIMEOUT_S)
    run.emit(inv, rows, lambda: [usage_table(rows, by, wide=inv.output == "wide")])
    return failures


def _topics(client: ClusterClient, names: Names) -> list[str] | None:
    """Return the topics selected by `names`; None: all topics.

    plan_retention raises NotFound for exact names that do not exist. Raises NotFound if nothing matches.
    """
    if names.everything:
        return None
    if not names.regexes and len(names.exact) == len(names.patterns):
        return names.exact
    chosen = sorted({*names.exact, *(name for name in client.metadata().topics if name in names)})
    if not chosen:
        raise names.nothing("topic")
    return chosen
