"""kctl config: list, set and unset; get, explain and diff have their own modules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.base.outcomes import ItemResult, any_changed
from kctl.base.text import counted
from kctl.commands.config.get import HIDDEN, RESOURCE, display_value
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import CommandGroup, Invocation, invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.commands.terminal.views import incomplete

if TYPE_CHECKING:
    from kctl.cluster.config_resources import Resource
    from kctl.configs.change import ChangedConfig, Edit
    from kctl.configs.listing import ConfiguredResource

app = CommandGroup()


@app.command("list")
def list_(
    ctx: typer.Context,
    kinds: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KIND]…", help="Only client-metrics or group (default: both)."),
    ] = None,
) -> None:
    """List groups and client metrics subscriptions with configs.

    Shows the values that are set on each of them. Requires Kafka 4.1 for groups, 3.7 for client metrics. A group keeps
    its configs when it is deleted.

    # List the groups that have configs of their own
    kctl config list group
    """
    from kctl.configs.listing import ConfiguredResource, list_configured, parse_kinds

    inv = invocation(ctx)
    selected = parse_kinds(kinds or ())
    with inv.connect() as client:
        rows, failures = list_configured(client, selected)
    inv.emit(rows, lambda: [_table(rows)], lambda: _values(rows), row_type=ConfiguredResource)
    if failures:
        raise incomplete(failures)


def _values(rows: Sequence[ConfiguredResource]) -> list[dict[str, Any]]:
    return [
        {"resource": row.resource, "config": name, "value": value}
        for row in rows
        for name, value in sorted(row.configs.items())
    ]


def _table(rows: Sequence[ConfiguredResource]) -> Table:
    columns = [Column("resource", name=True), Column("config", name=True), Column("shown", "VALUE")]
    lines = [{**line, "shown": display_value(line["value"], line["value"] is None)} for line in _values(rows)]
    return Table(columns, lines, empty="no group and no client metrics subscription has configs of its own")


app.command_of("get", "kctl.commands.config.get")
app.command_of("explain", "kctl.commands.config.get")

Force = Annotated[bool, typer.Option("--force", help="Allow changes to internal topics, such as __consumer_offsets.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Let the brokers validate the change, without applying it.")]


@app.command("set")
def set_(
    ctx: typer.Context,
    resource: Annotated[str, RESOURCE],
    values: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE]…", help="Config to set; KEY=@FILE reads the value from a file, KEY=@- from stdin."
        ),
    ] = None,
    append: Annotated[
        list[str] | None, typer.Option(metavar="KEY=ITEM,…", help="Append items to a list; repeatable.")
    ] = None,
    subtract: Annotated[
        list[str] | None, typer.Option(metavar="KEY=ITEM,…", help="Remove items from a list; repeatable.")
    ] = None,
    file: Annotated[
        str | None, typer.Option(metavar="FILE", help="Set all configs in a .properties file; - is stdin.")
    ] = None,
    force: Force = False,
    dry_run: DryRun = False,
) -> None:
    """Set dynamic configs; other configs stay unchanged.

    Changes are validated by the brokers, applied in one request and verified. Sensitive values are accepted only from
    a file or stdin. To change many topics at once, use kctl topic alter.

    # Preview a retention of one day
    kctl config set topic/orders retention.ms=86400000 --dry-run
    """
    from kctl.cluster.config_resources import parse_resource
    from kctl.configs.edits import parse_edits

    chosen = parse_resource(resource, values[0] if values else "")
    edits = parse_edits(values or (), append or (), subtract or (), file=file)
    _change(invocation(ctx), chosen, edits, force=force, dry_run=dry_run)


@app.command()
def unset(
    ctx: typer.Context,
    resource: Annotated[str, RESOURCE],
    keys: Annotated[list[str], typer.Argument(metavar="KEY…", help="Configs to unset.")],
    force: Force = False,
    dry_run: DryRun = False,
) -> None:
    """Unset configs, so that the inherited or default value applies.

    # Preview the return to the default retention
    kctl config unset topic/orders retention.ms --dry-run
    """
    from kctl.cluster.config_resources import parse_resource
    from kctl.configs.edits import removals

    _change(invocation(ctx), parse_resource(resource, keys[0]), removals(keys), force=force, dry_run=dry_run)


def _change(inv: Invocation, chosen: Resource, edits: Sequence[Edit], *, force: bool, dry_run: bool) -> None:
    from kctl.cluster import unchanged
    from kctl.configs.basis import of_changes
    from kctl.configs.change import apply_changes, plan_changes, refuse_internal
    from kctl.configs.edits import with_files
    from kctl.topics.change_warnings import config_warnings

    if not force:
        refuse_internal(chosen)
    with inv.connect(controllers=chosen.kind in {"broker", "brokers"}) as client:
        basis = unchanged.topics(client, [chosen.name] if chosen.kind == "topic" else [])
        plan = plan_changes(client, chosen, lambda known: with_files(edits, known, output.warn))
        for warning in config_warnings(client, plan):
            output.warn(warning)
        if dry_run or not plan.edits:
            _emit(inv, plan.rows)
            return
        if not inv.yes:
            for row in plan.rows:
                if row.result is not ItemResult.UNCHANGED:
                    output.note(f"{row.result} {row.name}: {_side(row, 'before')} → {_side(row, 'after')}")
        question = f"Change {counted(len(plan.edits), 'config')} of {chosen} on {client.target.name}?"
        inv.confirm(question, target=client.target, basis=basis.also(of_changes(client, plan)))
        changed_rows = apply_changes(client, plan, timeout_s=inv.timeout_s(30))
    _emit(inv, changed_rows)


def _emit(inv: Invocation, rows: Sequence[ChangedConfig]) -> None:
    columns = [
        Column("name", "CONFIG", name=True),
        Column("result"),
        Column("was"),
        Column("now", "IS" if any(not row.result.planned for row in rows) else "WOULD BE"),
        Column("after_source", "SET BY"),
        Column("resource", wide=True),
        Column("before_source", "WAS SET BY", wide=True),
    ]

    def table() -> list[Table]:
        return [Table(columns, [_with_texts(row) for row in rows])]

    inv.emit(rows, table, changed=any_changed(rows))


def _with_texts(row: ChangedConfig) -> dict[str, Any]:
    return {**jsonable(row), "was": _side(row, "before"), "now": _side(row, "after")}


def _side(row: ChangedConfig, side: str) -> str:
    value, source = getattr(row, side), getattr(row, f"{side}_source")
    if row.sensitive and source not in (None, "default"):
        return HIDDEN
    if value is None and row.result is ItemResult.WOULD_UNSET and row.resource != "brokers":
        return "the brokers' value"  # not always reported: retention.ms may come from log.retention.hours
    return display_value(value, False) or "not set"


app.command_of("diff", "kctl.commands.config.diff")
