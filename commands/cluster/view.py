"""`kctl cluster status|list|logs|env`: looking at clusters on this machine."""

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
    from kctl.deploy.logs import LogEntry, Reading
    from kctl.deploy.status import ClusterStatus

Name = Annotated[str, typer.Argument(metavar="NAME", help="The cluster's name.", autocompletion=cluster_names)]

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
    typer.Argument(metavar="[NAME]", help="The current context's cluster without.", autocompletion=cluster_names),
]


def _own(inv: Invocation, name: str | None) -> str:
    """The cluster named, or the one that the context in use names. Raises UsageError when that one is elsewhere."""
    from kctl.contexts.choose import current_context, get_context

    found = name or inv.context or current_context()
    if found is None:
        raise UsageError("no cluster was chosen", hint="give its NAME; kctl cluster list shows them")
    if name is None and get_context(found).cluster_dir is None:
        raise UsageError(
            f"context {found} names a cluster that kctl did not set up here",
            hint="kctl context test and kctl cluster export look into any cluster",
        )
    return found


def _state_style(row: Mapping[str, Any]) -> str:
    return _STATE_STYLES.get(str(row["state"]), "red")


def _alarm(row: Mapping[str, Any]) -> str | None:
    return "red" if row["under_replicated_partitions"] else None


def status(ctx: typer.Context, name: OwnName = None) -> None:
    """Show each process of a cluster.

    Exit code 1 when something is not as it should be.

    Example: kctl cluster status dev
    """
    from kctl.deploy.lifecycle import status_of

    inv = invocation(ctx)
    name = _own(inv, name)
    found = status_of(name)
    inv.emit(found.processes if inv.output == "csv" else found, lambda: [_status_table(found)])
    if not found.healthy:
        raise NotHealthy(
            f"cluster {name} is not healthy: {'; '.join(found.problems)}",
            hint=f"kctl cluster start {name} starts what does not run; kctl cluster logs {name} shows why",
            details={"problems": list(found.problems)},
        )


def _status_table(found: ClusterStatus) -> Table:
    columns = [
        Column("node"),
        Column("state", style=_state_style),
        Column("role"),
        Column("pid", align="right"),
        Column("port", align="right"),
        Column("leader_partitions", "LEADS", align="right"),
        Column("under_replicated_partitions", "URP", align="right", style=_alarm),
        Column("uptime_ms", "UP", show=format_duration, align="right"),
        Column("rss_bytes", "MEMORY", show=format_size, align="right"),
        Column("disk_bytes", "DISK", show=format_size, align="right"),
    ]
    if any(row.rack for row in found.processes):
        columns.insert(3, Column("rack"))
    if found.partition_count is None:
        partitions = "partitions unknown"
    else:
        partitions = (
            f"{found.partition_count} partitions, {found.under_replicated_partitions} under-replicated, "
            f"{found.offline_partitions} offline"
        )
    title = f"{found.name}: {found.layout}, Kafka {found.kafka_version}, {partitions}"
    return Table(columns, jsonable(found.processes), title=title)


def list_(ctx: typer.Context) -> None:
    """List the clusters on this machine.

    Example: kctl cluster list
    """
    from kctl.deploy.host import LocalHost
    from kctl.deploy.status import list_summaries

    found = list_summaries(LocalHost())
    columns = [
        Column("current", "", show=lambda current: "*" if current else ""),
        Column("name"),
        Column("state", style=_state_style),
        Column("running", "PROCESSES", align="right"),
        Column("layout"),
        Column("kafka_version", "KAFKA"),
        Column("bootstrap_servers"),
    ]
    rows = [{**row, "running": f"{row['running_processes']}/{row['process_count']}"} for row in jsonable(found)]
    invocation(ctx).emit(found, lambda: [Table(columns, rows, empty="no clusters; kctl cluster create makes one")])
    for summary in found:
        if summary.problem:
            output.warn(f"{summary.name}: {summary.problem}")


def env(ctx: typer.Context, name: OwnName = None) -> None:
    """Print export lines for the shell.

    Commands and scripts use this cluster then.

    Example: eval "$(kctl cluster env dev)"
    """
    from kctl.deploy.lifecycle import load_cluster

    inv = invocation(ctx)
    spec = load_cluster(_own(inv, name))
    servers = ",".join(spec.bootstrap_servers)
    values = {
        "KCTL_CONTEXT": spec.name,
        "BOOTSTRAP": servers,
        "BOOTSTRAP_SERVERS": servers,
        "ZOOKEEPER": spec.zookeeper_connect,
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
        typer.Argument(metavar="[NODE]…", help="broker-1, 1, zookeeper-1 …; all by default."),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as the logs grow.")] = False,
    grep: Annotated[str | None, typer.Option(metavar="REGEX", help="Only entries in which it occurs.")] = None,
    tail: Annotated[str, typer.Option(metavar="N", help="The last N entries, or all.")] = str(_DEFAULT_TAIL),
) -> None:
    """Show the logs, merged by time (UTC).

    With -o json: JSON Lines.

    Example: kctl cluster logs dev broker-1 --grep 'ERROR|WARN' --tail 20
    """
    from kctl.deploy import lifecycle
    from kctl.deploy.host import LocalHost
    from kctl.deploy.logs import Follower, Reading, compile_pattern, merged

    inv = invocation(ctx)
    if inv.output in {"yaml", "csv"}:
        raise UsageError(f"-o {inv.output} is not a format of kctl cluster logs", hint="use table (text) or json")
    spec = lifecycle.load_cluster(name)
    only = lifecycle.node_names(spec, nodes)
    chosen = [node for node in spec.nodes if only is None or node.name in only]
    wanted, limit = compile_pattern(grep), _tail(tail)
    prefix = max(len(node.name) for node in chosen) if len(chosen) > 1 else 0
    reading = Reading(LocalHost(), spec)
    follower = Follower(reading, chosen) if follow else None
    _show(merged(reading, chosen, wanted=wanted, tail=limit, follower=follower), inv.output, prefix)
    warned = _warn(reading, 0)
    while follower is not None:
        _show((entry for entry in follower.poll() if wanted(entry)), inv.output, prefix)
        sys.stdout.flush()
        warned = _warn(reading, warned)
        time.sleep(_POLL_S)
    if warned:
        raise OperationFailed(f"{counted(warned, 'file')} could not be read", hint="the other logs are complete")


def _warn(reading: Reading, warned: int) -> int:
    """What could not be read, besides the first `warned`; all of it."""
    for problem in reading.unreadable[warned:]:
        output.warn(problem)
    return len(reading.unreadable)


def _tail(text: str) -> int | None:
    if text == "all":
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise UsageError(f"--tail {text!r} is neither a number nor all")
    return int(text)


def _show(entries: Iterable[LogEntry], chosen: str | None, prefix: int) -> None:
    for entry in entries:
        if chosen == "json":
            output.write_json_line(entry)
            continue
        for line in entry.text.split("\n"):
            head = f"{entry.node:<{prefix}}  " if prefix else ""
            output.write_line(head + printable(line.expandtabs()))  # stack traces have tabs
