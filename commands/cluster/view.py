"""`kctl cluster status|list|logs|env`: the state of clusters on this machine."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.base.text import counted, printable
from kctl.base.units import format_duration, format_size
from kctl.commands.completion.complete import cluster_names
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.errors import NotHealthy, OperationFailed, UsageError

if TYPE_CHECKING:
    from kctl.deploy.logs import LogEntry, LogReader
    from kctl.deploy.status import ClusterStatus

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the cluster.", autocompletion=cluster_names)]

_POLL_S = 0.2
_DEFAULT_TAIL = 100
_STATE_STYLES = {
    "running": "green",
    "starting": "yellow",
    "partial": "yellow",
    "paused": "yellow",
    "stopped": "dim",
}


OwnName = Annotated[
    str | None,
    typer.Argument(
        metavar="[NAME]", help="Name of the cluster (default: the current context's).", autocompletion=cluster_names
    ),
]


def _cluster_name(inv: Invocation, name: str | None) -> str:
    """Return `name`, or the name of the context in use. Raises UsageError if kctl did not set that cluster up here."""
    from kctl.contexts.choose import current_context, get_context

    cluster = name or inv.context or current_context()
    if cluster is None:
        raise UsageError("no cluster was chosen", hint="set NAME; list the clusters with `kctl cluster list`")
    if name is None and get_context(cluster).cluster_dir is None:
        raise UsageError(
            f"context {cluster} names a cluster that kctl did not set up on this machine",
            hint="for any cluster, use `kctl cluster health`, `kctl context test` or `kctl cluster export`",
        )
    return cluster


def _state_style(row: Mapping[str, Any]) -> str:
    return _STATE_STYLES.get(str(row["state"]), "red")


def _alarm(row: Mapping[str, Any]) -> str | None:
    return "red" if row["under_replicated_partitions"] else None


def status(ctx: typer.Context, name: OwnName = None) -> None:
    """Show the processes of a cluster; exit 1 if not healthy.

    The cluster is healthy if all processes run, there is a controller, and every partition has a leader and is in sync.

    # Show the processes of the cluster dev
    kctl cluster status dev
    """
    from kctl.deploy.lifecycle import status_of

    inv = invocation(ctx)
    name = _cluster_name(inv, name)
    result = status_of(name)
    inv.emit(result.processes if inv.output == "csv" else result, lambda: [_status_table(result)])
    if not result.healthy:
        raise NotHealthy(
            f"cluster {name} is not healthy: {'; '.join(result.problems)}",
            hint=f"start stopped processes with `kctl cluster start {name}`; read the logs: `kctl cluster logs {name}`",
            details={"problems": list(result.problems)},
        )


def _status_table(status: ClusterStatus) -> Table:
    columns = [
        Column("node"),
        Column("state", style=_state_style),
        Column("role", show=lambda role: "broker (controller)" if role == "controller" else str(role)),
        Column("pid", align="right"),
        Column("port", align="right"),
        Column("leader_partitions", "LEADS", align="right"),
        Column("under_replicated_partitions", "URP", align="right", style=_alarm),
        Column("uptime_ms", "UP", show=format_duration, align="right"),
        Column("rss_bytes", "MEMORY", show=format_size, align="right"),
        Column("disk_bytes", "DISK", show=format_size, align="right"),
    ]
    if any(row.rack for row in status.processes):
        columns.insert(3, Column("rack"))
    if len({row.kafka_version for row in status.processes}) > 1:
        columns.insert(1, Column("kafka_version", "KAFKA"))
    if status.partition_count is None:
        partitions = "partitions unknown"
    else:
        partitions = (
            f"{status.partition_count} partitions, {status.under_replicated_partitions} under-replicated, "
            f"{status.offline_partitions} offline"
        )
    release = status.kafka_version
    if status.upgrade_to is not None:
        release += f" (upgrade to {status.upgrade_to}, not finalized)"
    title = f"{status.name}: {status.layout}, Kafka {release}, {partitions}"
    return Table(columns, jsonable(status.processes), title=title)


def list_(ctx: typer.Context) -> None:
    """List the clusters on this machine.

    # List all clusters
    kctl cluster list
    """
    from kctl.deploy.host import LocalHost
    from kctl.deploy.status import list_summaries

    summaries = list_summaries(LocalHost())
    columns = [
        Column("current", "", show=lambda current: "*" if current else ""),
        Column("name"),
        Column("state", style=_state_style),
        Column("running", "PROCESSES", align="right"),
        Column("layout"),
        Column("kafka_version", "KAFKA"),
        Column("bootstrap_servers"),
    ]
    rows = [{**row, "running": f"{row['running_processes']}/{row['process_count']}"} for row in jsonable(summaries)]
    empty = "no clusters; create one with `kctl cluster create`"
    invocation(ctx).emit(summaries, lambda: [Table(columns, rows, empty=empty)])
    for summary in summaries:
        if summary.problem:
            output.warn(f"{summary.name}: {summary.problem}")


def env(ctx: typer.Context, name: OwnName = None) -> None:
    """Print export lines that select a cluster in the shell.

    Sets KCTL_CONTEXT, BOOTSTRAP, BOOTSTRAP_SERVERS, BOOTSTRAP_CONTROLLERS (empty with ZooKeeper), ZOOKEEPER (empty
    with KRaft) and KAFKA_CLUSTER_DIR for kctl and for scripts.

    # Select the cluster dev in this shell
    eval "$(kctl cluster env dev)"
    """
    from kctl.deploy.lifecycle import load_cluster

    inv = invocation(ctx)
    spec = load_cluster(_cluster_name(inv, name))
    servers = ",".join(spec.bootstrap_servers)
    values = {
        "KCTL_CONTEXT": spec.name,
        "BOOTSTRAP": servers,
        "BOOTSTRAP_SERVERS": servers,
        "BOOTSTRAP_CONTROLLERS": ",".join(spec.controller_servers),
        "ZOOKEEPER": spec.zookeeper_connect or "",
        "KAFKA_CLUSTER_DIR": str(spec.directory),
    }
    if inv.output in output.FOR_PEOPLE:
        for key, value in values.items():
            output.write_line(f"export {key}={shlex.quote(value)}")
    else:
        inv.emit(values, [])


def logs(
    ctx: typer.Context,
    name: Name,
    nodes: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NODE]…", help="Only these nodes, e.g. broker-1, 1 or zookeeper-1 (default: all)."),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing new entries as logs grow.")] = False,
    grep: Annotated[str | None, typer.Option(metavar="REGEX", help="Only entries that match anywhere.")] = None,
    tail: Annotated[str, typer.Option(metavar="N", help="Number of latest entries, or all.")] = str(_DEFAULT_TAIL),
) -> None:
    """Print the logs of a cluster's processes, merged by time (UTC).

    With -o json, each entry is a line of JSON.

    # Show the last 20 warnings and errors of broker 1
    kctl cluster logs dev broker-1 --grep 'ERROR|WARN' --tail 20
    """
    from kctl.deploy import lifecycle
    from kctl.deploy.host import LocalHost
    from kctl.deploy.logs import Follower, LogReader, compile_pattern, merged

    inv = invocation(ctx)
    if inv.output in {"yaml", "csv"}:
        raise UsageError(f"kctl cluster logs does not support -o {inv.output}", hint="use -o table (text) or -o json")
    spec = lifecycle.load_cluster(name)
    only = lifecycle.node_names(spec, nodes)
    chosen = [node for node in spec.nodes if only is None or node.name in only]
    matches, limit = compile_pattern(grep), _tail(tail)
    prefix = max(len(node.name) for node in chosen) if len(chosen) > 1 else 0
    reader = LogReader(LocalHost(), spec)
    follower = Follower(reader, chosen) if follow else None
    _show(merged(reader, chosen, matches=matches, tail=limit, follower=follower), inv.output, prefix)
    warned = _warn(reader, 0)
    while follower is not None:
        _show((entry for entry in follower.poll() if matches(entry)), inv.output, prefix)
        sys.stdout.flush()
        warned = _warn(reader, warned)
        time.sleep(_POLL_S)
    if warned:
        raise OperationFailed(f"{counted(warned, 'file')} could not be read", hint="the other logs are complete")


def _warn(reader: LogReader, warned: int) -> int:
    """Warn of unreadable files after the first `warned`. Return the number of all unreadable files."""
    for problem in reader.unreadable[warned:]:
        output.warn(problem)
    return len(reader.unreadable)


def _tail(text: str) -> int | None:
    if text == "all":
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise UsageError(f"--tail {text!r} is neither a number nor all", hint="set for example --tail 20")
    return int(text)


def _show(entries: Iterable[LogEntry], output_format: str | None, prefix: int) -> None:
    for entry in entries:
        if output_format == "json":
            output.write_json_line(entry)
            continue
        for line in entry.text.split("\n"):
            head = f"{entry.node:<{prefix}}  " if prefix else ""
            output.write_line(head + printable(line.expandtabs()))  # stack traces have tabs
