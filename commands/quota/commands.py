"""kctl quota: list, set and unset quotas of clients."""

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
    from kctl.access.quotas import Entity, QuotaChange

app = CommandGroup("List, set and unset quotas of clients.")

_USER = typer.Option("--user", metavar="NAME", help="Of this user.")
_CLIENT = typer.Option("--client-id", metavar="NAME", help="Of this client id; with --user, of both together.")
_IP = typer.Option("--ip", metavar="ADDRESS", help="Of connections from this address.")
_USERS = typer.Option("--user-defaults", help="Of all users without quotas of their own.")
_CLIENTS = typer.Option("--client-defaults", help="Of all client ids without quotas of their own.")
_IPS = typer.Option("--ip-defaults", help="Of all addresses without quotas of their own.")
_DRY_RUN = typer.Option("--dry-run", help="Let the brokers check it, change nothing.")


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
    """List quotas, all or those that name a user, client id or address.

    Example: kctl quota list -o json
    """
    from kctl.access.quotas import Quota, list_quotas, quota_rows

    inv = invocation(ctx)
    given = (user, client_id, ip, user_defaults, client_defaults, ip_defaults)
    only = None if given == (None, None, None, False, False, False) else _chosen(*given)
    with inv.connect() as client:
        rows = quota_rows(list_quotas(client, only))
    columns = [Column("entity", name=True), Column("key"), Column("value", show=number_text, align="right")]
    empty = "no such quotas" if only else "no quotas"
    inv.emit(rows, lambda: [Table(columns, jsonable(rows), empty=empty)], row_type=Quota)


def _chosen(user: str | None, client_id: str | None, ip: str | None, users: bool, clients: bool, ips: bool) -> Entity:
    """The entity that the options say. Raises UsageError."""
    from kctl.access.quotas import DEFAULT, entity

    for name, default, option in ((user, users, "user"), (client_id, clients, "client"), (ip, ips, "ip")):
        if name is not None and default:
            raise UsageError(f"--{option}-defaults is of all without a name, and one is named")
    return entity(
        DEFAULT if users else user,
        DEFAULT if clients else client_id,
        DEFAULT if ips else ip,
    )


@app.command("set")
def set_(
    ctx: typer.Context,
    quotas: Annotated[list[str], typer.Argument(metavar="KEY=VALUE…")],
    user: Annotated[str | None, _USER] = None,
    client_id: Annotated[str | None, _CLIENT] = None,
    ip: Annotated[str | None, _IP] = None,
    user_defaults: Annotated[bool, _USERS] = False,
    client_defaults: Annotated[bool, _CLIENTS] = False,
    ip_defaults: Annotated[bool, _IPS] = False,
    dry_run: Annotated[bool, _DRY_RUN] = False,
) -> None:
    """Set quotas, and read them back: producer_byte_rate, consumer_byte_rate (10MB is 10 MB a second),
    request_percentage and controller_mutation_rate; of addresses connection_creation_rate. Each broker counts for
    itself. Shown and confirmed before.

    Example: kctl quota set --user alice producer_byte_rate=10MB consumer_byte_rate=20MB --dry-run
    """
    from kctl.access.quotas import parse_quota

    who = _chosen(user, client_id, ip, user_defaults, client_defaults, ip_defaults)
    wanted: dict[str, float | None] = {}
    for text in quotas:
        key, value = parse_quota(text, who)
        if key in wanted:
            raise UsageError(f"{key} is given twice")
        wanted[key] = value
    _change(invocation(ctx), who, wanted, dry_run=dry_run)


@app.command()
def unset(
    ctx: typer.Context,
    keys: Annotated[list[str], typer.Argument(metavar="KEY…")],
    user: Annotated[str | None, _USER] = None,
    client_id: Annotated[str | None, _CLIENT] = None,
    ip: Annotated[str | None, _IP] = None,
    user_defaults: Annotated[bool, _USERS] = False,
    client_defaults: Annotated[bool, _CLIENTS] = False,
    ip_defaults: Annotated[bool, _IPS] = False,
    if_exists: Annotated[bool, typer.Option("--if-exists", help="Skip quotas that are not set.")] = False,
    dry_run: Annotated[bool, _DRY_RUN] = False,
) -> None:
    """Unset quotas; what applies then is the next more general one, or none.

    Example: kctl quota unset --user alice producer_byte_rate --dry-run
    """
    from kctl.access.quotas import check_key

    who = _chosen(user, client_id, ip, user_defaults, client_defaults, ip_defaults)
    for key in keys:
        check_key(key, who)
    _change(invocation(ctx), who, dict.fromkeys(keys), dry_run=dry_run, if_exists=if_exists)


def _change(
    inv: Invocation, who: Entity, wanted: Mapping[str, float | None], *, dry_run: bool, if_exists: bool = False
) -> None:
    from kctl.access.quotas import carry_out, list_quotas, plan_quotas

    with inv.connect() as client:
        plan = plan_quotas(list_quotas(client, who), {who: wanted})
        if not if_exists:
            _refuse_missing(plan)
        if not dry_run:
            confirm_quotas(inv, client, plan)
        rows = carry_out(client, plan, validate_only=dry_run)
    inv.emit(rows, lambda: [quotas_table(rows)], changed=any_changed(rows))
    raise_failed(rows)


def _refuse_missing(plan: Sequence[QuotaChange]) -> None:
    """Raise NotFound: the quota of a mistyped user that is «unset» goes on throttling somebody."""
    missing = [row for row in plan if row.before is None and row.result is ItemResult.UNCHANGED]
    if missing:
        keys = ", ".join(row.key for row in missing)
        raise NotFound(f"no {keys} is set for {missing[0].entity}", hint="kctl quota list shows all")
