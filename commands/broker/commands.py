"""kctl broker: list, describe, config, log-dirs, api-versions and features; loggers beside it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.base.text import counted
from kctl.commands.broker.tables import (
    api_rows,
    api_table,
    broker_table,
    description_rows,
    description_tables,
    feature_table,
    log_dir_table,
    replica_table,
)
from kctl.commands.terminal.invocation import CommandGroup, invocation
from kctl.commands.terminal.topic_options import MATCH
from kctl.commands.terminal.views import incomplete, split_failures
from kctl.commands.terminal.watching import INTERVAL, WATCH, Shown, Watching

if TYPE_CHECKING:
    from kctl.brokers.overview import BrokerSummary
    from kctl.cluster.api_versions import BrokerApis
    from kctl.protocol.client import ClusterClient

app = CommandGroup("Show brokers, their disks, versions and features; change their log levels.")
app.group_of("loggers", "kctl.commands.broker.loggers")

Ids = Annotated[list[int] | None, typer.Argument(metavar="[ID]…", help="All brokers when none is named.")]


@app.command("list")
def list_(ctx: typer.Context, watch: Annotated[bool, WATCH] = False, interval: Annotated[str, INTERVAL] = "2s") -> None:
    """List brokers: address, rack, controller, leaders, replicas, disk and release.

    A broker that is down is listed when partitions have a replica on it, or a KRaft controller has it registered. The
    release is a guess from the requests that the broker has: brokers do not tell it.

    Example: kctl broker list
    """
    from kctl.brokers.overview import read_brokers, summaries

    inv = invocation(ctx)
    watching = Watching(inv, interval) if watch else None
    with inv.connect() as client:

        def look() -> tuple[list[BrokerSummary], list[str]]:
            facts = read_brokers(client)
            rows = summaries(facts)
            return rows, [*facts.failures, *(row.error for row in rows if row.error)]

        if watching:
            watching.run(look, lambda seen: Shown(seen[0], [broker_table(seen[0])], seen[1]))
        rows, failures = look()
    inv.emit(rows, lambda: [broker_table(rows)])
    _tell_missing(failures)


@app.command()
def describe(ctx: typer.Context, ids: Ids = None) -> None:
    """Describe brokers: what each leads and holds, what is not in sync, and its log dirs.

    Example: kctl broker describe 1
    """
    from kctl.brokers.overview import descriptions, read_brokers

    inv = invocation(ctx)
    with inv.connect() as client:
        facts = read_brokers(client, ids or None)
    found = descriptions(facts, ids or facts.ids)
    inv.emit(
        found, lambda: [table for row in found for table in description_tables(row)], lambda: description_rows(found)
    )
    _tell_missing([*facts.failures, *(row.error for row in found if row.error)])


@app.command()
def config(
    ctx: typer.Context,
    id_: Annotated[int, typer.Argument(metavar="ID")],
    keys: Annotated[list[str] | None, typer.Argument(metavar="[KEY]…", help="Only these configs.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Those that are Kafka's defaults as well.")] = False,
) -> None:
    """Show the configs of a broker that are not the default, as `kctl config get broker/ID` does.

    Example: kctl broker config 1
    """
    from kctl.commands.config.get import get

    get(ctx, f"broker/{id_}", keys, all_)


@app.command("log-dirs")
def log_dirs(
    ctx: typer.Context,
    ids: Ids = None,
    topic: Annotated[list[str] | None, typer.Option(help="Only replicas of this topic; repeatable.")] = None,
    match: Annotated[list[str] | None, MATCH] = None,
    replicas: Annotated[bool, typer.Option("--replicas", help="A row for each replica, the largest first.")] = False,
) -> None:
    """Show the log dirs of brokers: what is in them, and how full their disks are.

    SIZE is what the replicas take; the other numbers are the disk's, whatever uses it.

    Example: kctl broker log-dirs 1 2
    """
    from kctl.brokers.log_dir_rows import absent_holders, log_dir_rows, read_log_dirs, replica_rows

    inv = invocation(ctx)
    with inv.connect() as client:
        good, failures = split_failures(read_log_dirs(client, _chosen(client, ids), topic or (), match or ()))
        if not ids:
            failures += absent_holders(client)
    if replicas:
        found = replica_rows(good)
        inv.emit(found, lambda: [replica_table(found)])
    else:
        rows = log_dir_rows(good)
        inv.emit(rows, lambda: [log_dir_table(rows)])
    _tell_missing(failures)


@app.command("api-versions")
def api_versions(
    ctx: typer.Context,
    ids: Ids = None,
    differences: Annotated[bool, typer.Option("--differences", help="Only what brokers have differently.")] = False,
) -> None:
    """Show the requests that brokers have, and in which versions.

    Brokers differ while a cluster is being upgraded.

    Example: kctl broker api-versions --differences
    """
    from kctl.cluster.api_versions import compare_apis

    inv = invocation(ctx)
    with inv.connect() as client:
        good, failures = _apis(client, ids)
    rows = [row for row in compare_apis(good) if not (differences and row.same)]
    empty = f"no differences between {counted(len(good), 'broker')}"
    inv.emit(rows, lambda: [api_table(rows, empty=empty)], lambda: api_rows(rows))
    _tell_missing(failures)


@app.command()
def features(ctx: typer.Context, ids: Ids = None) -> None:
    """Show the features that brokers support, and the level that is in force.

    Brokers with ZooKeeper have none, or only those of their own release.

    Example: kctl broker features
    """
    from kctl.cluster.api_versions import FeatureOfBrokers, features_of

    inv = invocation(ctx)
    with inv.connect() as client:
        good, failures = _apis(client, ids)
    rows = features_of(good)
    inv.emit(rows, lambda: [feature_table(rows)], row_type=FeatureOfBrokers)
    _tell_missing(failures)


def _apis(client: ClusterClient, ids: Collection[int] | None) -> tuple[dict[int, BrokerApis], list[str]]:
    from kctl.cluster.api_versions import fetch_api_versions

    return split_failures(fetch_api_versions(client, _chosen(client, ids)))


def _chosen(client: ClusterClient, ids: Collection[int] | None) -> list[int]:
    """The brokers named, else all that are registered. Raises NotFound."""
    from kctl.brokers.overview import check_known

    known = client.metadata(()).brokers
    check_known(ids or (), known)
    return sorted(set(ids or known))


def _tell_missing(failures: Sequence[str]) -> None:
    if failures:
        raise incomplete(failures)
