"""kctl zk: inspect ZooKeeper nodes, what Kafka stores in them, and the servers. Read-only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.base.text import counted
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import CommandGroup, Invocation, formats_are, invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.commands.terminal.watching import INTERVAL, WATCH, PassOutput, Watching
from kctl.commands.zk.tables import node_tables, server_table, stat_table
from kctl.errors import NotHealthy, UsageError

if TYPE_CHECKING:
    from kctl.zookeeper.client import ZooKeeper
    from kctl.zookeeper.ensemble import Ensemble
    from kctl.zookeeper.nodes import ChildNode
    from kctl.zookeeper.watch import NodeChange

app = CommandGroup()

_PATH = typer.Argument(metavar="PATH", help="Path below the chroot, e.g. /brokers/ids.")
_OPTIONAL_PATH = typer.Argument(metavar="[PATH]", help="Path below the chroot (default: /).")
_SECRETS = typer.Option("--show-secrets", help="Show SCRAM credentials, delegation tokens and passwords.")
_LIMIT = typer.Option(min=1, help="Maximum number of nodes to list.")


def _address(inv: Invocation) -> str:
    target = inv.target()
    if not target.zookeeper:
        raise UsageError(
            f"{target.name} has no ZooKeeper address",
            hint="set --zookeeper HOST:PORT/CHROOT, or the address in the context; a KRaft cluster has no ZooKeeper",
        )
    return target.zookeeper


@contextmanager
def _session(inv: Invocation, *, unbounded: bool = False) -> Iterator[ZooKeeper]:
    """Open a ZooKeeper session. unbounded: --timeout limits each wait, not the whole command."""
    from kctl.zookeeper.session import zookeeper

    security, timeout_s = inv.target().zookeeper_security, inv.timeout_s(10)
    timeout_is_total = inv.timeout is not None and not unbounded
    with zookeeper(_address(inv), security=security, timeout_s=timeout_s, timeout_is_total=timeout_is_total) as client:
        yield client


@app.command()
def ls(
    ctx: typer.Context,
    path: Annotated[str, _OPTIONAL_PATH] = "/",
    limit: Annotated[int, _LIMIT] = 1000,
) -> None:
    """List the children of a node and their purpose.

    # List the registered brokers
    kctl zk ls /brokers/ids
    """
    from kctl.zookeeper.nodes import list_children, parse_path

    inv = invocation(ctx)
    node_path = parse_path(path)
    with _session(inv) as client:
        rows, total = list_children(client, node_path, limit=limit)
    columns = [
        Column("name", name=True),
        Column("children", align="right"),
        Column("data_bytes", "BYTES", align="right"),
        Column("modified"),
        Column("meaning"),
        Column("ephemeral", wide=True),
        Column("version", align="right", wide=True),
        Column("created", wide=True),
    ]
    inv.emit(rows, lambda: [Table(columns, jsonable(rows), empty=f"{node_path} has no children")])
    _warn_unreadable(rows)
    if total > limit:
        output.warn(f"{node_path} has {total:,} children; --limit {total} lists all")


def _warn_unreadable(rows: Sequence[ChildNode]) -> None:
    unreadable = [row.path for row in rows if not row.readable]
    if unreadable:
        more = f" and {len(unreadable) - 3:,} more" if len(unreadable) > 3 else ""
        output.warn(f"not authorized to read {', '.join(unreadable[:3])}{more}")


@app.command()
def get(
    ctx: typer.Context,
    path: Annotated[str, _PATH],
    show_secrets: Annotated[bool, _SECRETS] = False,
    raw: Annotated[bool, typer.Option("--raw", help="Print the raw bytes of the node and nothing else.")] = False,
) -> None:
    """Show a node: its kind, decoded content and modification time.

    # Show which broker is the controller
    kctl zk get /controller
    """
    from kctl.zookeeper.nodes import parse_path, read_data, read_node

    inv = invocation(ctx)
    node_path = parse_path(path)
    if raw and inv.output is not None:
        raise UsageError("--raw and -o cannot be combined: --raw prints the bytes as they are")
    with _session(inv) as client:
        if raw:
            data = read_data(client, node_path, show_secrets=show_secrets)
            output.raw_writer()(data)
            return
        node = read_node(client, node_path, show_secrets=show_secrets)
    inv.emit(node, lambda: node_tables(jsonable(node)))
    if node.hidden:
        output.note("secrets are hidden; --show-secrets shows them")


@app.command()
def tree(
    ctx: typer.Context,
    path: Annotated[str, _OPTIONAL_PATH] = "/",
    depth: Annotated[int, typer.Option(min=1, help="Number of levels below the path.")] = 3,
    limit: Annotated[int, _LIMIT] = 1000,
) -> None:
    """Show the nodes below a node as a tree.

    # Show two levels below /brokers
    kctl zk tree /brokers --depth 2
    """
    from kctl.zookeeper.nodes import parse_path, walk

    inv = invocation(ctx)
    node_path = parse_path(path)
    with _session(inv) as client:
        rows, truncated = walk(client, node_path, depth=depth, limit=limit)
    columns = [
        Column("tree_name", "NODE", name=True),
        Column("children", align="right"),
        Column("data_bytes", "BYTES", align="right"),
        Column("ephemeral", wide=True),
        Column("modified", wide=True),
        Column("meaning", wide=True),
    ]

    def table() -> list[Table]:
        tree_rows = [{**row, "tree_name": "  " * (row["depth"] - 1) + row["name"]} for row in jsonable(rows)]
        return [Table(columns, tree_rows, empty=f"{node_path} has no children")]

    inv.emit(rows, table)
    _warn_unreadable(rows)
    if truncated:
        output.warn(f"only the first {counted(len(rows), 'node')} are listed; raise --limit to list more")


@app.command()
def stat(
    ctx: typer.Context,
    path: Annotated[str | None, typer.Argument(metavar="[PATH]", help="A node (default: show the servers).")] = None,
    watch_: Annotated[bool, WATCH] = False,
    interval: Annotated[str, INTERVAL] = "2s",
) -> None:
    """Show a node's metadata, or (without a path) each server's state.

    Covers the servers in --zookeeper or the context, and all others in the ensemble's configuration. Each server is
    queried individually for its mode, latency, connections and zxid. Exits 1 if a server is not serving.

    # Show the state of each ZooKeeper server
    kctl zk stat
    """
    inv = invocation(ctx)
    if path is None:
        _servers(inv, Watching(inv, interval) if watch_ else None)
        return
    if watch_:
        raise UsageError("stat --watch takes no path", hint=f"`kctl zk watch {path}` watches a node")
    from kctl.zookeeper.nodes import parse_path, read_stat

    node_path = parse_path(path)
    with _session(inv) as client:
        node_stat = read_stat(client, node_path)
    inv.emit(node_stat, lambda: [stat_table(jsonable(node_stat))])


def _servers(inv: Invocation, watching: Watching | None) -> None:
    from kctl.base.address import parse_zookeeper
    from kctl.base.deadline import Deadline
    from kctl.protocol.preflight import LIMIT_S
    from kctl.zookeeper.ensemble import read_ensemble
    from kctl.zookeeper.servers import problems, read_servers

    timeout_s = min(inv.timeout_s(LIMIT_S), LIMIT_S)
    addresses = parse_zookeeper(_address(inv)).servers
    security = inv.target().zookeeper_security
    cached: list[Ensemble] = []

    def read() -> Ensemble:
        """Read the state of the servers. The ensemble's configuration is read only once."""
        if cached:
            return replace(cached[0], servers=read_servers(cached[0].addresses, Deadline(timeout_s), security))
        cached.append(read_ensemble(addresses, timeout_s, security))
        return cached[0]

    def render(ensemble: Ensemble) -> PassOutput:
        warnings = [ensemble.warning] if ensemble.warning else []
        lines = [*problems(ensemble.servers), *warnings]
        return PassOutput(ensemble.servers, [server_table(jsonable(ensemble.servers))], lines)

    if watching is not None:
        watching.run(read, render)
    ensemble = read()
    servers = ensemble.servers
    inv.emit(servers, lambda: [server_table(jsonable(servers))])
    if ensemble.warning:
        output.warn(ensemble.warning)
    lines = problems(servers)
    if lines:
        raise NotHealthy(f"the ensemble is unhealthy: {'; '.join(lines)}", details={"problems": lines})


@app.command()
def acl(
    ctx: typer.Context,
    path: Annotated[str, _PATH],
    show_secrets: Annotated[bool, typer.Option("--show-secrets", help="Show digest hashes.")] = False,
) -> None:
    """Show the ACL of a node.

    # Show who may read the SCRAM credentials
    kctl zk acl /config/users
    """
    from kctl.zookeeper.nodes import parse_path, read_acl

    inv = invocation(ctx)
    node_path = parse_path(path)
    with _session(inv) as client:
        rows = read_acl(client, node_path, show_secrets=show_secrets)
    columns = [Column("scheme"), Column("id"), Column("permissions")]
    inv.emit(rows, lambda: [Table(columns, jsonable(rows), empty=f"{node_path} has no ACL")])


@app.command()
@formats_are("table, wide, json or csv.")
def watch(
    ctx: typer.Context,
    path: Annotated[str, _PATH],
    for_: Annotated[
        str | None,
        typer.Option("--for", metavar="DURATION", help="Stop after this duration with exit code 0, e.g. 30s or 5m."),
    ] = None,
    max_changes: Annotated[int | None, typer.Option(min=1, help="Stop after this many changes.")] = None,
    show_secrets: Annotated[bool, _SECRETS] = False,
) -> None:
    """Show a node, then each change to it and its children.

    The node need not exist yet. -o json prints one line per change. Changes in quick succession can appear as one.

    # Watch brokers register and disappear for 10 seconds
    kctl zk watch /brokers/ids --for 10s
    """
    from kctl.base.units import parse_duration_ms
    from kctl.zookeeper.nodes import parse_path
    from kctl.zookeeper.watch import watch as watch_node

    inv = invocation(ctx)
    if inv.output == "yaml":
        raise UsageError("watch supports table, wide, json and csv output, not yaml")
    node_path = parse_path(path)
    limit_s = None if for_ is None else parse_duration_ms(for_) / 1000
    columns = [
        Column("time"),
        Column("event"),
        Column("path"),
        Column("version", align="right"),
        Column("children", align="right"),
        Column("value", show=_compact),
    ]
    with _session(inv, unbounded=True) as client:
        node_changes = watch_node(
            client, node_path, limit_s=limit_s, lost_after_s=inv.timeout_s(10), show_secrets=show_secrets
        )
        output.stream(_until(node_changes, max_changes), columns, inv.output)


def _until(changes: Iterator[NodeChange], max_changes: int | None) -> Iterator[NodeChange | None]:
    """Yield each change, then None to flush it, up to max_changes. The initial state does not count."""
    count = 0
    for change in changes:
        yield change
        yield None
        count += change.event not in {"is", "absent"}
        if count == max_changes:
            return


def _compact(value: Any) -> str:
    import json

    return json.dumps(value, ensure_ascii=False) if isinstance(value, (Mapping, list)) else str(value)
