"""kctl broker: list, describe, config, log-dirs, api-versions and features."""

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
from kctl.commands.terminal.views import incomplete, incomplete_after_verdict, split_failures
from kctl.commands.terminal.watching import INTERVAL, WATCH, PassOutput, Watching

if TYPE_CHECKING:
    from kctl.brokers.overview import BrokerFacts, BrokerSummary
    from kctl.cluster.api_versions import BrokerApis
    from kctl.protocol.client import ClusterClient

app = CommandGroup()
app.group_of("loggers", "kctl.commands.broker.loggers")
app.command_of("cordon", "kctl.commands.broker.cordon")
app.command_of("uncordon", "kctl.commands.broker.cordon")
app.command_of("unregister", "kctl.commands.broker.unregister")

Ids = Annotated[list[int] | None, typer.Argument(metavar="[ID]…", help="Broker ids (default: all brokers).")]


@app.command("list")
def list_(ctx: typer.Context, watch: Annotated[bool, WATCH] = False, interval: Annotated[str, INTERVAL] = "2s") -> None:
    """List brokers: address, rack, leaders, disk and release.

    A broker that is down is listed if it hosts a replica, or if it is registered with a KRaft controller. The
    release is inferred from the API versions of the broker, because brokers do not report it. Without an active
    controller, brokers are listed as the other brokers last knew them, and the exit code is 1.

    # List all brokers
    kctl broker list
    """
    from kctl.brokers.overview import read_brokers, summaries

    inv = invocation(ctx)
    watching = Watching(inv, interval) if watch else None
    with inv.connect() as client:

        def show_pass(polled: tuple[BrokerFacts, list[BrokerSummary], list[str]]) -> PassOutput:
            facts, rows, failures = polled
            missing = [facts.no_controller] if facts.no_controller else []
            return PassOutput(rows, [broker_table(rows)], [*missing, *failures])

        def poll() -> tuple[BrokerFacts, list[BrokerSummary], list[str]]:
            facts = read_brokers(client)
            rows = summaries(facts)
            return facts, rows, [*facts.failures, *(row.error for row in rows if row.error)]

        if watching:
            watching.run(poll, show_pass)
        facts, rows, failures = poll()
    inv.emit(rows, lambda: [broker_table(rows)])
    with incomplete_after_verdict(failures):
        facts.require_controller()


@app.command()
def describe(ctx: typer.Context, ids: Ids = None) -> None:
    """Describe brokers: leaders, replicas, sync state, log dirs.

    # Describe broker 1
    kctl broker describe 1
    """
    from kctl.brokers.overview import descriptions, read_brokers

    inv = invocation(ctx)
    with inv.connect() as client:
        facts = read_brokers(client, ids or None)
    rows = descriptions(facts, ids or facts.ids)

    inv.emit(rows, lambda: [table for row in rows for table in description_tables(row)], lambda: description_rows(rows))
    with incomplete_after_verdict([*facts.failures, *(row.error for row in rows if row.error)]):
        facts.require_controller()


@app.command()
def config(
    ctx: typer.Context,
    id_: Annotated[int, typer.Argument(metavar="ID", help="Broker id.")],
    keys: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY]…", help="Only these configs (default: all that are set).")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Include defaults.")] = False,
) -> None:
    """Show a broker's non-default configs.

    # Show the non-default configs of broker 1
    kctl broker config 1
    """
    from kctl.commands.config.get import get

    get(ctx, f"broker/{id_}", keys, all_)


@app.command("log-dirs")
def log_dirs(
    ctx: typer.Context,
    ids: Ids = None,
    topic: Annotated[list[str] | None, typer.Option(help="Only replicas of this topic; repeatable.")] = None,
    match: Annotated[list[str] | None, MATCH] = None,
    replicas: Annotated[bool, typer.Option("--replicas", help="Show one row per replica, largest first.")] = False,
) -> None:
    """Show log dirs: their replicas and disk usage.

    SIZE is the size of the replicas. USABLE, TOTAL and USED describe the disk, including data of other programs.
    CORDONED is shown if a log dir is cordoned: it receives no new replicas.

    # Show the log dirs of brokers 1 and 2
    kctl broker log-dirs 1 2
    """
    from kctl.brokers.log_dir_rows import log_dir_rows, read_log_dirs, replica_rows, unreachable_log_dirs

    inv = invocation(ctx)
    with inv.connect() as client:
        readable, failures = split_failures(read_log_dirs(client, _broker_ids(client, ids), topic or (), match or ()))
        if not ids:
            failures += unreachable_log_dirs(client)
    if replicas:
        replica_list = replica_rows(readable)
        inv.emit(replica_list, lambda: [replica_table(replica_list)])
    else:
        rows = log_dir_rows(readable)
        inv.emit(rows, lambda: [log_dir_table(rows)])
    _report_incomplete(failures)


@app.command("api-versions")
def api_versions(
    ctx: typer.Context,
    ids: Ids = None,
    differences: Annotated[bool, typer.Option("--differences", help="Only APIs that differ between brokers.")] = False,
) -> None:
    """Show the API versions that brokers support.

    Brokers of different releases differ, e.g. during an upgrade.

    # Show which APIs differ during an upgrade
    kctl broker api-versions --differences
    """
    from kctl.cluster.api_versions import compare_apis

    inv = invocation(ctx)
    with inv.connect() as client:
        readable, failures = _apis(client, ids)
    rows = [row for row in compare_apis(readable) if not (differences and row.same)]
    empty = f"no differences between {counted(len(readable), 'broker')}"
    inv.emit(rows, lambda: [api_table(rows, empty=empty)], lambda: api_rows(rows))
    _report_incomplete(failures)


@app.command()
def features(ctx: typer.Context, ids: Ids = None) -> None:
    """Show supported features and their finalized levels.

    For the feature levels of the cluster, see `kctl feature list`. With ZooKeeper, brokers report no finalized levels.
    Old releases report no features at all.

    # Show the features of all brokers
    kctl broker features
    """
    from kctl.cluster.api_versions import FeatureOfBrokers, features_of

    inv = invocation(ctx)
    with inv.connect() as client:
        readable, failures = _apis(client, ids)
    rows = features_of(readable)
    inv.emit(rows, lambda: [feature_table(rows)], row_type=FeatureOfBrokers)
    _report_incomplete(failures)


def _apis(client: ClusterClient, ids: Collection[int] | None) -> tuple[dict[int, BrokerApis], list[str]]:
    from kctl.cluster.api_versions import fetch_api_versions

    return split_failures(fetch_api_versions(client, _broker_ids(client, ids)))


def _broker_ids(client: ClusterClient, ids: Collection[int] | None) -> list[int]:
    """Return the selected brokers, or all registered ones. Raises NotFound."""
    from kctl.brokers.overview import check_known

    registered = client.metadata(()).brokers
    check_known(ids or (), registered)
    return sorted(set(ids or registered))


def _report_incomplete(failures: Sequence[str]) -> None:
    if failures:
        raise incomplete(failures)
