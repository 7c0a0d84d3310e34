"""kctl acl: list, add, remove, apply and explain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.base.outcomes import ItemResult, any_changed
from kctl.base.text import counted
from kctl.commands.terminal import output
from kctl.commands.terminal.expect import EXPECT_CHOSEN, check_chosen
from kctl.commands.terminal.invocation import CommandGroup, Invocation, invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.errors import NotFound, OperationFailed, UsageError

if TYPE_CHECKING:
    from kctl.access.changes import AclChange
    from kctl.access.model import Acl, AclFilter
    from kctl.protocol.client import ClusterClient

app = CommandGroup("List, add, remove and explain ACLs, written in words.")
app.command_of("apply", "kctl.commands.acl.apply")
app.command_of("explain", "kctl.commands.acl.explain")

WORDS_HELP = 'ACLs in words, for example "allow alice read topic orders*".'
_PRINCIPAL = typer.Option("--principal", metavar="PRINCIPAL", help="Only those of this one: alice, User:alice, *.")
_RESOURCE = typer.Option("--resource", metavar="WORDS", help='Only those of "topic", "topic orders", "topic orders*" …')
_COVERING = typer.Option("--covering", metavar="WORDS", help='Only those whose pattern covers, say, "topic orders".')
_OPERATION = typer.Option("--operation", metavar="OPERATION", help="Only those of this operation.")
_PERMISSION = typer.Option("--permission", metavar="PERMISSION", help="Only those that allow, or that deny.")
_HOST = typer.Option("--host", metavar="ADDRESS", help="Only those of this very host; * are those of every host.")

_STYLES = {
    ItemResult.FAILED: "red",
    ItemResult.REMOVED: "yellow",
    ItemResult.WOULD_REMOVE: "yellow",
    ItemResult.ADDED: "green",
    ItemResult.WOULD_ADD: "green",
}


@app.command("list")
def list_(
    ctx: typer.Context,
    principal: Annotated[str | None, _PRINCIPAL] = None,
    resource: Annotated[str | None, _RESOURCE] = None,
    covering: Annotated[str | None, _COVERING] = None,
    operation: Annotated[str | None, _OPERATION] = None,
    permission: Annotated[str | None, _PERMISSION] = None,
    host: Annotated[str | None, _HOST] = None,
) -> None:
    """List ACLs in words, as `acl add` and `acl remove` take them.

    Example: kctl acl list --covering "topic orders"
    """
    from kctl.access.acls import list_acls
    from kctl.access.changes import AclRow, acl_row

    inv = invocation(ctx)
    wanted = _filter(principal, resource, covering, operation, permission, host)
    with inv.connect() as client:
        rows = [acl_row(acl) for acl in list_acls(client, wanted)]
    columns = [
        Column("acl", "ACL", name=True),
        *(
            Column(key, wide=True)
            for key in ("permission_type", "principal", "operation", "resource_type", "resource_name", "pattern_type",
                        "host")
        ),
    ]  # fmt: skip
    empty = "no ACLs" if wanted.everything else "no such ACLs"
    inv.emit(rows, lambda: [Table(columns, jsonable(rows), empty=empty)], row_type=AclRow)


def _filter(
    principal: str | None, resource: str | None, covering: str | None, operation: str | None, permission: str | None,
    host: str | None,
) -> AclFilter:  # fmt: skip
    from kctl.access.words import parse_filter

    return parse_filter(
        principal=principal, resource=resource, covering=covering, operation=operation, permission=permission, host=host
    )


@app.command()
def add(
    ctx: typer.Context,
    words: Annotated[list[str], typer.Argument(metavar="ACL…", help=WORDS_HELP)],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be added, add nothing.")] = False,
) -> None:
    """Add ACLs, and read them back. What is there already is left as it is. Denials are confirmed before.

    Example: kctl acl add "allow alice read topic orders*" "allow alice read group payments"
    """
    from kctl.access.acls import list_acls
    from kctl.access.changes import plan_changes
    from kctl.access.words import expressions, parse_all

    inv = invocation(ctx)
    acls = parse_all(expressions(words))
    with inv.connect() as client:
        plan = plan_changes(list_acls(client), add=acls)
        if not dry_run:
            confirm_changes(inv, client, plan)
        finish(inv, plan if dry_run else _carry_out(client, plan))


@app.command()
def remove(
    ctx: typer.Context,
    words: Annotated[list[str] | None, typer.Argument(metavar="[ACL]…", help=WORDS_HELP)] = None,
    principal: Annotated[str | None, _PRINCIPAL] = None,
    resource: Annotated[str | None, _RESOURCE] = None,
    covering: Annotated[str | None, _COVERING] = None,
    operation: Annotated[str | None, _OPERATION] = None,
    permission: Annotated[str | None, _PERMISSION] = None,
    host: Annotated[str | None, _HOST] = None,
    expect: Annotated[int | None, EXPECT_CHOSEN] = None,
    if_exists: Annotated[bool, typer.Option("--if-exists", help="Skip ACLs that are not there.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be removed, remove nothing.")] = False,
) -> None:
    """Remove ACLs: those in words, or all that the options choose. Shown and confirmed before.

    Example: kctl acl remove --principal alice --resource "topic orders*" --yes --expect 1
    """
    from kctl.access.acls import list_acls
    from kctl.access.changes import as_present, plan_changes
    from kctl.access.words import expressions, parse_all

    inv = invocation(ctx)
    wanted = _filter(principal, resource, covering, operation, permission, host)
    if bool(words) is not wanted.everything:
        raise UsageError(
            "give either ACLs in words or options that choose them", hint="kctl acl list shows what is there"
        )
    if words and expect is not None:
        raise UsageError("--expect goes with options that choose ACLs, not with ACLs in words")
    acls = parse_all(expressions(words or []), strict=False)
    with inv.connect() as client:
        present = list_acls(client, wanted)
        plan = plan_changes(present, remove=as_present(acls, present) if words else present)
        if not if_exists:
            _refuse_missing(plan, present)
        if not dry_run:
            if (plan and not words) or expect is not None:
                check_chosen(inv, expect, len(plan), by="the options choose")
            confirm_changes(inv, client, plan)
        finish(inv, plan if dry_run else _carry_out(client, plan))


def _refuse_missing(plan: Sequence[AclChange], present: Sequence[Acl]) -> None:
    """Raise NotFound: a mistyped ACL that is «removed» leaves somebody with a right."""
    from kctl.access.changes import similar

    missing = [row for row in plan if row.result is ItemResult.NOT_THERE]
    if missing:
        more = f", nor {len(missing) - 1:,} more" if len(missing) > 1 else ""
        raise NotFound(
            f"there is no ACL «{missing[0].acl}»{more}", hint=similar(missing[0], present) or "kctl acl list shows all"
        )
    if not plan:
        raise NotFound("there are no such ACLs", hint="kctl acl list shows all")


def _carry_out(client: ClusterClient, plan: Sequence[AclChange]) -> Sequence[AclChange]:
    from kctl.access.changes import carry_out

    return carry_out(client, plan) if any(row.result.planned for row in plan) else plan


def confirm_changes(inv: Invocation, client: ClusterClient, plan: Sequence[AclChange]) -> None:
    """Show what takes rights away, and ask: removals and denials; in a protected context also what allows."""
    from kctl.access.basis import of_acls

    removed = [row for row in plan if row.result is ItemResult.WOULD_REMOVE]
    protected = bool(inv.protectors(client.target)) if plan else False
    added = [row for row in plan if row.result is ItemResult.WOULD_ADD and (row.permission_type == "DENY" or protected)]
    if not removed and not added:
        return
    if not inv.yes:
        for row in (*added, *removed):
            output.note(f"{'-' if row.result is ItemResult.WOULD_REMOVE else '+'} {row.acl}")
    parts = [f"{verb} {counted(len(rows), 'ACL')}" for verb, rows in (("add", added), ("remove", removed)) if rows]
    question = " and ".join(parts)
    question = f"{question[0].upper()}{question[1:]} of {client.target.name}?"
    inv.confirm(question, target=client.target, basis=of_acls(client, plan))


def finish(inv: Invocation, rows: Sequence[AclChange]) -> None:
    """Emit the rows. Raises OperationFailed when some failed."""
    inv.emit(rows, lambda: [changes_table(rows)], changed=any_changed(rows))
    raise_failed(rows)


def changes_table(rows: Sequence[AclChange]) -> Table:
    """What was done about each ACL."""
    columns = [Column("acl", "ACL", name=True), Column("result", style=_result_style), Column("error")]
    return Table(columns if any(row.error for row in rows) else columns[:-1], jsonable(rows))


def _result_style(row: Any) -> str | None:
    return _STYLES.get(row["result"])


def raise_failed(rows: Sequence[AclChange]) -> None:
    """Raise OperationFailed when some rows failed."""
    failed = [f"{row.acl}: {row.error}" for row in rows if row.result is ItemResult.FAILED]
    if failed:
        raise OperationFailed(
            f"{len(failed)} of {counted(len(rows), 'ACL')} failed: {'; '.join(failed[:3])}",
            hint="the others are as shown; run it again for the rest" if len(failed) < len(rows) else None,
        )
