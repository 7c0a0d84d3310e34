"""kctl quota: list, set and unset client quotas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.base.outcomes import ItemResult, any_changed
from kctl.commands.quota.tables import confirm_quotas, number_text, quotas_table, raise_failed
from kctl.commands.terminal.invocation import CommandGroup, Invocation, invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.errors import NotFound, UsageError

if TYPE_CHECKING:
    from kctl.access.quotas import QuotaChange, QuotaEntity

app = CommandGroup()

_USER = typer.Option("--user", metavar="NAME", help="Quotas of this user.")
_CLIENT = typer.Option("--client-id", metavar="NAME", help="Quotas of this client id; with --user, of the combination.")
_IP = typer.Option("--ip", metavar="ADDRESS", help="Quotas of connections from this IP address.")
_USERS = typer.Option("--user-defaults", help="Default quotas, for users without their own.")
_CLIENTS = typer.Option("--client-defaults", help="Default quotas, for client ids without their own.")
_IPS = typer.Option("--ip-defaults", help="Default quotas, for addresses without their own.")
_DRY_RUN = typer.Option("--dry-run", help="Let the brokers validate the change, without applying it.")


@app.command("list")
def list_(
    ctx: typer.Context,
    user: Annotated[str | None, _USER] = None,
    client_id: Annotated[str | None, _CLIENT] = None,
    ip: Annotated[str | None, _IP] = None,
    user_defaults: Annotated[bool, _USERS] = False,
    client_defaults: Annotated[bool, _CLIENTS] = False,
    ip_defaults: Annotated[bool, _IPS] = False,
) -> None:
    """List client quotas (default: all).

    # Print all quotas as JSON
    kctl quota list -o json
    """
    from kctl.access.quotas import Quota, list_quotas, quota_rows

    inv = invocation(ctx)
    selection = (user, client_id, ip, user_defaults, client_defaults, ip_defaults)
    only = None if selection == (None, None, None, False, False, False) else _entity(*selection)
    with inv.connect() as client:
        rows = quota_rows(list_quotas(client, only))
    columns = [Column("entity", name=True), Column("key"), Column("value", show=number_text, align="right")]
    empty = "no matching quotas" if only else "no quotas"
    inv.emit(rows, lambda: [Table(columns, jsonable(rows), empty=empty)], row_type=Quota)


def _entity(
    user: str | None, client_id: str | None, ip: str | None, users: bool, clients: bool, ips: bool
) -> QuotaEntity:
    """Return the entity selected by the options. Raises UsageError."""
    from kctl.access.quotas import DEFAULT, selected_entity

    for name, default, option in ((user, users, "user"), (client_id, clients, "client"), (ip, ips, "ip")):
        if name is not None and default:
            raise UsageError(f"--{option}-defaults cannot be combined with a name")
    return selected_entity(
        DEFAULT if users else user,
        DEFAULT if clients else client_id,
        DEFAULT if ips else ip,
    )


@app.command("set")
def set_(
    ctx: typer.Context,
    quotas: Annotated[list[str], typer.Argument(metavar="KEY=VALUE…", help="Quotas to set.")],
    user: Annotated[str | None, _USER] = None,
    client_id: Annotated[str | None, _CLIENT] = None,
    ip: Annotated[str | None, _IP] = None,
    user_defaults: Annotated[bool, _USERS] = False,
    client_defaults: Annotated[bool, _CLIENTS] = False,
    ip_defaults: Annotated[bool, _IPS] = False,
    dry_run: Annotated[bool, _DRY_RUN] = False,
) -> None:
    """Set client quotas, and read them back to verify. Asks for confirmation first.

    Users and client ids: producer_byte_rate, consumer_byte_rate (bytes per second, e.g. 10MB), request_percentage
    (percent of the time of one broker thread), controller_mutation_rate (partitions created or deleted per second).
    Addresses: connection_creation_rate (connections per second). Each broker enforces its quotas independently.

    # Preview limits for the user alice
    kctl quota set --user alice producer_byte_rate=10MB consumer_byte_rate=20MB --dry-run
    """
    from kctl.access.quotas import parse_quota

    entity = _entity(user, client_id, ip, user_defaults, client_defaults, ip_defaults)
    values: dict[str, float | None] = {}
    for text in quotas:
        key, value = parse_quota(text, entity)
        if key in values:
            raise UsageError(f"{key} is specified twice")
        values[key] = value
    _change(invocation(ctx), entity, values, dry_run=dry_run)


@app.command()
def unset(
    ctx: typer.Context,
    keys: Annotated[list[str], typer.Argument(metavar="KEY…", help="Quotas to unset, e.g. producer_byte_rate.")],
    user: Annotated[str | None, _USER] = None,
    client_id: Annotated[str | None, _CLIENT] = None,
    ip: Annotated[str | None, _IP] = None,
    user_defaults: Annotated[bool, _USERS] = False,
    client_defaults: Annotated[bool, _CLIENTS] = False,
    ip_defaults: Annotated[bool, _IPS] = False,
    if_exists: Annotated[bool, typer.Option("--if-exists", help="Skip quotas that are not set.")] = False,
    dry_run: Annotated[bool, _DRY_RUN] = False,
) -> None:
    """Unset client quotas. The next less specific quota then applies, if any.

    # Preview the removal of alice's producer limit
    kctl quota unset --user alice producer_byte_rate --dry-run
    """
    from kctl.access.quotas import check_key

    entity = _entity(user, client_id, ip, user_defaults, client_defaults, ip_defaults)
    for key in keys:
        check_key(key, entity)
    _change(invocation(ctx), entity, dict.fromkeys(keys), dry_run=dry_run, if_exists=if_exists)


def _change(
    inv: Invocation, entity: QuotaEntity, values: Mapping[str, float | None], *, dry_run: bool, if_exists: bool = False
) -> None:
    from kctl.access.quotas import carry_out, list_quotas, plan_quotas

    with inv.connect() as client:
        plan = plan_quotas(list_quotas(client, entity), {entity: values})
        if not if_exists:
            _refuse_missing(plan)
        if not dry_run:
            confirm_quotas(inv, client, plan)
        rows = carry_out(client, plan, validate_only=dry_run)
    inv.emit(rows, lambda: [quotas_table(rows)], changed=any_changed(rows))
    raise_failed(rows)


def _refuse_missing(plan: Sequence[QuotaChange]) -> None:
    """Raise NotFound for a quota that is not set: with a typo, the actual quota would keep throttling."""
    missing = [row for row in plan if row.before is None and row.result is ItemResult.UNCHANGED]
    if missing:
        keys = ", ".join(row.key for row in missing)
        raise NotFound(f"{keys}: not set for {missing[0].entity}", hint="list the quotas with `kctl quota list`")
