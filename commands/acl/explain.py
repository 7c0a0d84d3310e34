"""kctl acl explain: what a principal may do."""

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
    "by ACLs alone: super users may do everything, and with allow.everyone.if.no.acl.found everybody may do what no ACL"
    " is about; no request tells either setting"
)


@dataclass(frozen=True)
class Explained:
    """What the ACLs allow a principal. host, resource: null where they were not given."""

    principal: str
    host: str | None
    resource: str | None
    rights: list[Right]


def explain(
    ctx: typer.Context,
    principal: Annotated[str, typer.Argument(metavar="PRINCIPAL", help="alice, User:alice, or * for everybody.")],
    resource: Annotated[
        str | None, typer.Option("--resource", metavar="WORDS", help='Only on this one: "topic orders".')
    ] = None,
    host: Annotated[str | None, typer.Option("--host", metavar="ADDRESS", help="Only from this address.")] = None,
) -> None:
    """Explain what a principal may do: what ACLs allow, and imply, minus what they deny.

    Super users may do everything, whatever the ACLs say; no request tells who is one.

    Example: kctl acl explain alice --resource "topic orders"
    """
    from kctl.access.acls import list_acls
    from kctl.access.model import CLUSTER_NAME, EVERYBODY, AclFilter
    from kctl.access.rights import Right, rights_of
    from kctl.access.words import broker_host, parse_principal, parse_resource

    inv = invocation(ctx)
    name = parse_principal(principal)
    host = broker_host(host) if host is not None else None
    kind, exact, pattern = parse_resource(resource) if resource is not None else (None, None, None)
    if kind == "CLUSTER":
        exact = CLUSTER_NAME  # there is only this one
    if resource is not None and (exact is None or pattern == "PREFIXED"):
        raise UsageError(f"--resource {resource!r} is no single resource", hint='for example --resource "topic orders"')
    with inv.connect() as client:
        acls = list_acls(client, AclFilter(principal=name))
        if name != EVERYBODY:
            acls += list_acls(client, AclFilter(principal=EVERYBODY))
    on = (kind, exact) if kind is not None and exact is not None else None
    found = Explained(name, host, resource, rights_of(name, acls, host=host, resource=on))
    columns = [
        Column("resource", name=True),
        Column("operations", "MAY", show=_words),
        Column("implied_operations", "IMPLIED", show=_words),
        Column("host", "FROM"),
        *(
            [Column("denied_operations", "DENIED", show=_words)]
            if any(r.denied_operations for r in found.rights)
            else []
        ),
        *([Column("exceptions", "EXCEPT", show="; ".join)] if any(r.exceptions for r in found.rights) else []),
    ]
    empty = f"no ACL allows {principal} anything here"
    inv.emit(found, lambda: [Table(columns, jsonable(found.rights), empty=empty)], lambda: found.rights, row_type=Right)
    output.note(_LIMITS)


def _words(operations: list[str]) -> str:
    return ", ".join(operation.lower().replace("_", "-") for operation in operations) or "-"
