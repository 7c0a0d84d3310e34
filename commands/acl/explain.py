"""kctl acl explain: show what a principal may do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.errors import UsageError

if TYPE_CHECKING:
    from kctl.access.rights import Right


_LIMITS = (
    "based on ACLs only: super users may do everything, and allow.everyone.if.no.acl.found opens resources without ACLs"
    " to everyone; brokers disclose neither setting"
)


@dataclass(frozen=True)
class PrincipalRights:
    """The rights that ACLs give a principal. host, resource: null if not specified."""

    principal: str
    host: str | None
    resource: str | None
    rights: list[Right]


def explain(
    ctx: typer.Context,
    principal: Annotated[str, typer.Argument(metavar="PRINCIPAL", help="alice, User:alice, or * (everyone).")],
    resource: Annotated[
        str | None, typer.Option("--resource", metavar="RESOURCE", help='Only on this resource, e.g. "topic orders".')
    ] = None,
    host: Annotated[str | None, typer.Option("--host", metavar="ADDRESS", help="Only from this IP address.")] = None,
) -> None:
    """Explain what a principal may do, including denials.

    Super users may do everything regardless of ACLs. Brokers do not disclose who is a super user.

    # Show what alice may do with topic orders, and why
    kctl acl explain alice --resource "topic orders"
    """
    from kctl.access.acl_syntax import broker_host, parse_principal, parse_resource
    from kctl.access.acls import list_acls
    from kctl.access.model import CLUSTER_NAME, EVERYONE, AclFilter
    from kctl.access.rights import Right, rights_of

    inv = invocation(ctx)
    name = parse_principal(principal)
    host = broker_host(host) if host is not None else None
    kind, exact, pattern = parse_resource(resource) if resource is not None else (None, None, None)
    if kind == "CLUSTER":
        exact = CLUSTER_NAME  # there is only one resource of this type
    if resource is not None and (exact is None or pattern == "PREFIXED"):
        raise UsageError(
            f"--resource {resource!r} is not a single resource", hint='name one: --resource "topic orders"'
        )
    with inv.connect() as client:
        acls = list_acls(client, AclFilter(principal=name))
        if name != EVERYONE:
            acls += list_acls(client, AclFilter(principal=EVERYONE))
    on = (kind, exact) if kind is not None and exact is not None else None
    explained = PrincipalRights(name, host, resource, rights_of(name, acls, host=host, resource=on))
    columns = [
        Column("resource", name=True),
        Column("operations", "MAY", show=_operation_names),
        Column("implied_operations", "IMPLIED", show=_operation_names),
        Column("host", "FROM"),
        *(
            [Column("denied_operations", "DENIED", show=_operation_names)]
            if any(r.denied_operations for r in explained.rights)
            else []
        ),
        *([Column("exceptions", "EXCEPT", show="; ".join)] if any(r.exceptions for r in explained.rights) else []),
    ]
    empty = f"no ACL allows {principal} anything"

    inv.emit(
        explained,
        lambda: [Table(columns, jsonable(explained.rights), empty=empty)],
        lambda: explained.rights,
        row_type=Right,
    )
    output.note(_LIMITS)


def _operation_names(operations: list[str]) -> str:
    return ", ".join(operation.lower().replace("_", "-") for operation in operations) or "-"
