"""kctl zk: nodes of ZooKeeper, what Kafka keeps in them, and the servers. Everything is read only."""

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
from kctl.commands.terminal.watching import INTERVAL, WATCH, Shown, Watching
from kctl.commands.zk.tables import node_tables, server_table, stat_table
from kctl.errors import NotHealthy, UsageError

if TYPE_CHECKING:
    from kctl.zookeeper.client import ZooKeeper
    from kctl.zookeeper.ensemble import Ensemble
    from kctl.zookeeper.nodes import ChildNode
    from kctl.zookeeper.watch import Change

app = CommandGroup("Look into ZooKeeper, read only.")

_PATH = typer.Argument(metavar="PATH", help="Below the chroot, for example /brokers/ids.")
_MAYBE_PATH = typer.Argument(metavar="[PATH]", help="Below the chroot; / without.")
_SECRETS = typer.Option("--show-secrets", help="SCRAM credentials, delegation tokens and passwords as well.")
_LIMIT = typer.Option(min=1, help="The most nodes that are listed.")


def _address(inv: Invocation) -> str:
    target = inv.target()
    if not target.zookeeper:
        raise UsageError(
            f"{target.name} has no ZooKeeper address",
            hint="give --zookeeper HOST:PORT/CHROOT, or a context that has one; a KRaft cluster has no ZooKeeper",
        )
    return target.zookeeper


@contextmanager
def _session(inv: Invocation, *, lasting: bool = False) -> Iterator[ZooKeeper]:
    """Connect to ZooKeeper. lasting: --timeout bounds each wait, not the whole command."""
    from kctl.zookeeper.session import zookeeper

    security, limit_s = inv.target().zookeeper_security, inv.timeout_s(10)
    in_all = inv.timeout is not None and not lasting
    with zookeeper(_address(inv), security=security, timeout_s=limit_s, in_all=in_all) as client:
        yield client


@app.command()
def ls(
    ctx: typer.Context,
    path: Annotated[str, _MAYBE_PATH] = "/",
    limit: Annotated[int, _LIMIT] = 1000,
) -> None:
    """List the children of a node, with what Kafka uses them for.

    Example: kctl zk ls /brokers/ids
    """
    from kctl.zookeeper.nodes import list_children, parse_path

    inv = invocation(ctx)
    asked = parse_path(path)
    with _session(inv) as client:
        rows, total = list_children(client, asked, limit=limit)
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
    inv.emit(rows, lambda: [Table(columns, jsonable(rows), empty=f"{asked} has no children")])
    _say_closed(rows)
    if total > limit:
        output.warn(f"{asked} has {total:,} children; --limit {total} lists all")


def _say_closed(rows: Sequence[ChildNode]) -> None:
    closed = [row.path for row in rows if not row.readable]
    if closed:
        more = f" and {len(closed) - 3:,} more" if len(closed) > 3 else ""
        output.warn(f"not authorized to read {', '.join(closed[:3])}{more}")


@app.command()
def get(
    ctx: typer.Context,
    path: Annotated[str, _PATH],
    show_secrets: Annotated[bool, _SECRETS] = False,
    raw: Annotated[bool, typer.Option("--raw", help="The node's bytes as they are, and nothing else.")] = False,
) -> None:
    """Show a node: what it is, its content decoded, and when it changed.

    Example: kctl zk get /controller
    """
    from kctl.zookeeper.nodes import parse_path, read_data, read_node

    inv = invocation(ctx)
    asked = parse_path(path)
    if raw and inv.output is not None:
        raise UsageError("--raw writes bytes, no format")
    with _session(inv) as client:
        if raw:
            data = read_data(client, asked, show_secrets=show_secrets)
            output.raw_writer()(data)
            return
        node = read_node(client, asked, show_secrets=show_secrets)
    inv.emit(node, lambda: node_tables(jsonable(node)))
    if node.hidden:
        output.note("secrets are hidden; --show-secrets shows them")


@app.command()
def tree(
    ctx: typer.Context,
    path: Annotated[str, _MAYBE_PATH] = "/",
    depth: Annotated[int, typer.Option(min=1, help="How many levels below the path.")] = 3,
    limit: Annotated[int, _LIMIT] = 1000,
) -> None:
    """Show the nodes below a node as a tree.

    Example: kctl zk tree /brokers --depth 2
    """
    from kctl.zookeeper.nodes import parse_path, walk

    inv = invocation(ctx)
    asked = parse_path(path)
    with _session(inv) as client:
        rows, cut = walk(client, asked, depth=depth, limit=limit)
    columns = [
        Column("shown", "NODE", name=True),
        Column("children", align="right"),
        Column("data_bytes", "BYTES", align="right"),
        Column("ephemeral", wide=True),
        Column("modified", wide=True),
        Column("meaning", wide=True),
    ]

    def table() -> list[Table]:
        shown = [{**row, "shown": "  " * (row["depth"] - 1) + row["name"]} for row in jsonable(rows)]
        return [Table(columns, shown, empty=f"{asked} has no children")]

    inv.emit(rows, table)
    _say_closed(rows)
    if cut:
        output.warn(f"there is more: these are the first {counted(len(rows), 'node')}; --limit lists more")


@app.command()
def stat(
    ctx: typer.Context,
    path: Annotated[
        str | None, typer.Argument(metavar="[PATH]", help="A node; without, the servers are shown.")
    ] = None,
    watch_: Annotated[bool, WATCH] = False,
    interval: Annotated[str, INTERVAL] = "2s",
) -> None:
    """Show what ZooKeeper keeps about a node; without a path, each server of the ensemble.

    Servers are those of --zookeeper or the context, and those that the ensemble's configuration names besides. Each is
    asked by itself: mode, latency, connections, zxid. Exit 1 when one of them does not serve.

    Example: kctl zk stat
    """
    inv = invocation(ctx)
    if path is None:
        _servers(inv, Watching(inv, interval) if watch_ else None)
        return
    if watch_:
        raise UsageError("stat --watch shows the servers", hint=f"kctl zk watch {path} shows what happens to a node")
    from kctl.zookeeper.nodes import parse_path, read_stat

    asked = parse_path(path)
    with _session(inv) as client:
        found = read_stat(client, asked)
    inv.emit(found, lambda: [stat_table(jsonable(found))])


def _servers(inv: Invocation, watching: Watching | None) -> None:
    from kctl.base.address import parse_zookeeper
    from kctl.base.deadline import Deadline
    from kctl.protocol.preflight import LIMIT_S
    from kctl.zookeeper.ensemble import read_ensemble
    from kctl.zookeeper.servers import problems, read_servers

    limit_s = min(inv.timeout_s(LIMIT_S), LIMIT_S)
    named = parse_zookeeper(_address(inv)).servers
    security = inv.target().zookeeper_security
    known: list[Ensemble] = []

    def look() -> Ensemble:
        """Who belongs to it is asked once."""
        if known:
            return replace(known[0], servers=read_servers(known[0].addresses, Deadline(limit_s), security))
        known.append(read_ensemble(named, limit_s, security))
        return known[0]

    def shown(seen: Ensemble) -> Shown:
        doubts = [seen.doubt] if seen.doubt else []
        return Shown(seen.servers, [server_table(jsonable(seen.servers))], [*problems(seen.servers), *doubts])

    if watching is not None:
        watching.run(look, shown)
    ensemble = look()
    found = ensemble.servers
    inv.emit(found, lambda: [server_table(jsonable(found))])
    if ensemble.doubt:
        output.warn(ensemble.doubt)
    wrong = problems(found)
    if wrong:
        raise NotHealthy(f"the ensemble is not as it should be: {'; '.join(wrong)}", details={"problems": wrong})


@app.command()
def acl(
    ctx: typer.Context,
    path: Annotated[str, _PATH],
    show_secrets: Annotated[bool, typer.Option("--show-secrets", help="Hashes of digests as well.")] = False,
) -> None:
    """Show who may do what with a node.

    Example: kctl zk acl /config/users
    """
    from kctl.zookeeper.nodes import parse_path, read_acl

    inv = invocation(ctx)
    asked = parse_path(path)
    with _session(inv) as client:
        rows = read_acl(client, asked, show_secrets=show_secrets)
    columns = [Column("scheme"), Column("id"), Column("permissions")]
    inv.emit(rows, lambda: [Table(columns, jsonable(rows), empty=f"{asked} has no ACL")])


@app.command()
@formats_are("table, wide, json or csv.")
def watch(
    ctx: typer.Context,
    path: Annotated[str, _PATH],
    for_: Annotated[
        str | None, typer.Option("--for", metavar="DURATION", help="End after this time, with exit 0.")
    ] = None,
    max_changes: Annotated[int | None, typer.Option(min=1, help="End after so many changes.")] = None,
    show_secrets: Annotated[bool, _SECRETS] = False,
) -> None:
    """Show a node, then each change of it and of its list of children, until Ctrl-C. It need not exist yet.

    With -o json a line for each. Changes shortly one after the other can be seen as one.

    Example: kctl zk watch /brokers/ids --for 1s
    """
    from kctl.base.units import parse_duration_ms
    from kctl.zookeeper.nodes import parse_path
    from kctl.zookeeper.watch import watch as watch_node

    inv = invocation(ctx)
    if inv.output == "yaml":
        raise UsageError("watch writes a table, -o json or -o csv")
    asked = parse_path(path)
    limit_s = None if for_ is None else parse_duration_ms(for_) / 1000
    columns = [
        Column("time"),
        Column("event"),
        Column("path"),
        Column("version", align="right"),
        Column("children", align="right"),
        Column("value", show=_compact),
    ]
    with _session(inv, lasting=True) as client:
        seen = watch_node(client, asked, limit_s=limit_s, lost_after_s=inv.timeout_s(10), show_secrets=show_secrets)
        output.stream(_until(seen, max_changes), columns, inv.output)


def _until(changes: Iterator[Change], most: int | None) -> Iterator[Change | None]:
    """The changes, each shown at once; what was there at first does not count."""
    count = 0
    for change in changes:
        yield change
        yield None
        count += change.event not in {"is", "absent"}
        if count == most:
            return


def _compact(value: Any) -> str:
    import json

    return json.dumps(value, ensure_ascii=False) if isinstance(value, (Mapping, list)) else str(value)
