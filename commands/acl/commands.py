"""kctl acl: list, add, remove, apply and explain."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.base.outcomes import ItemResult, any_changed
from kctl.base.text import counted
from kctl.commands.terminal import output
from kctl.commands.terminal.expect import EXPECT_CHOSEN, check_chosen
from kctl.commands.terminal.invocation import CommandGroup, Invocation, KctlCommand, invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.errors import NotFound, OperationFailed, UsageError

if TYPE_CHECKING:
    from kctl.access.changes import AclChange
    from kctl.access.model import Acl, AclFilter
    from kctl.protocol.client import ClusterClient


class _AclCommand(KctlCommand):
    """A command that takes ACL sentences. An option of kafka-acls gets an error that shows the sentence form."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        from typer._click.exceptions import NoSuchOption

        from kctl.access.kafka_acls_options import OPTIONS, sentences

        typed = list(args)
        try:
            return super().parse_args(ctx, args)
        except NoSuchOption as exc:
            if exc.option_name not in OPTIONS:
                raise
            acls = sentences(typed)
            command = " ".join([ctx.command_path, *map(_shell_word, acls)])
            example = f'write the ACL as a sentence, e.g. {ctx.command_path} "allow alice read,write topic orders"'
            raise UsageError(
                f"{ctx.command_path} has no option {exc.option_name}: it takes ACLs as sentences",
                hint=f"run `{command}`" if acls else example,
            ) from None


def _shell_word(sentence: str) -> str:
    return shlex.quote(sentence) if set(sentence) & set('"$`\\!') else f'"{sentence}"'


app = CommandGroup()
app.command_of("apply", "kctl.commands.acl.apply")
app.command_of("explain", "kctl.commands.acl.explain")

ACL_HELP = 'ACL as a sentence, e.g. "allow alice read topic orders*".'
_PRINCIPAL = typer.Option("--principal", metavar="PRINCIPAL", help="Only ACLs of this principal, e.g. alice or *.")

_RESOURCE = typer.Option(
    "--resource", metavar="RESOURCE", help='Only ACLs on exactly this: "topic", "topic orders", "topic orders*".'
)
_COVERING = typer.Option(
    "--covering", metavar="RESOURCE", help='Only ACLs whose pattern matches this resource, e.g. "topic orders".'
)
_OPERATION = typer.Option("--operation", metavar="OPERATION", help="Only ACLs for this operation.")
_PERMISSION = typer.Option("--permission", metavar="PERMISSION", help="Only ACLs with this permission: allow or deny.")
_HOST = typer.Option("--host", metavar="ADDRESS", help="Only ACLs for exactly this host; * means ACLs for any host.")

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
    """List ACLs as sentences that `acl add` and `acl remove` accept.

    # List the ACLs that apply to topic orders, also by prefix or wildcard
    kctl acl list --covering "topic orders"
    """
    from kctl.access.acls import list_acls
    from kctl.access.changes import AclRow, acl_row

    inv = invocation(ctx)
    acl_filter = _filter(principal, resource, covering, operation, permission, host)
    with inv.connect() as client:
        rows = [acl_row(acl) for acl in list_acls(client, acl_filter)]
    columns = [
        Column("acl", "ACL", name=True),
        *(
            Column(key, wide=True)
            for key in ("permission_type", "principal", "operation", "resource_type", "resource_name", "pattern_type",
                        "host")
        ),
    ]  # fmt: skip
    empty = "no ACLs" if acl_filter.is_empty else "no matching ACLs"
    inv.emit(rows, lambda: [Table(columns, jsonable(rows), empty=empty)], row_type=AclRow)


def _filter(
    principal: str | None, resource: str | None, covering: str | None, operation: str | None, permission: str | None,
    host: str | None,
) -> AclFilter:  # fmt: skip
    from kctl.access.acl_syntax import parse_filter

    return parse_filter(
        principal=principal, resource=resource, covering=covering, operation=operation, permission=permission, host=host
    )


@app.command(cls=_AclCommand)
def add(
    ctx: typer.Context,
    words: Annotated[list[str], typer.Argument(metavar="ACL…", help=ACL_HELP)],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be added; add nothing.")] = False,
) -> None:
    """Add ACLs, and read them back to verify. Deny ACLs ask for confirmation first.

    ACLs that already exist are left unchanged.

    # Let alice consume all topics that start with orders, in group payments
    kctl acl add "allow alice read topic orders*" "allow alice read group payments"
    """
    from kctl.access.acl_syntax import expressions, parse_all
    from kctl.access.acls import list_acls
    from kctl.access.changes import plan_changes

    inv = invocation(ctx)
    acls = parse_all(expressions(words))
    with inv.connect() as client:
        plan = plan_changes(list_acls(client), add=acls)
        if not dry_run:
            confirm_changes(inv, client, plan)
        finish(inv, plan if dry_run else _carry_out(client, plan))


@app.command(cls=_AclCommand)
def remove(
    ctx: typer.Context,
    words: Annotated[list[str] | None, typer.Argument(metavar="[ACL]…", help=ACL_HELP)] = None,
    principal: Annotated[str | None, _PRINCIPAL] = None,
    resource: Annotated[str | None, _RESOURCE] = None,
    covering: Annotated[str | None, _COVERING] = None,
    operation: Annotated[str | None, _OPERATION] = None,
    permission: Annotated[str | None, _PERMISSION] = None,
    host: Annotated[str | None, _HOST] = None,
    expect: Annotated[int | None, EXPECT_CHOSEN] = None,
    if_exists: Annotated[bool, typer.Option("--if-exists", help="Skip ACLs that do not exist.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be removed; remove nothing.")] = False,
) -> None:
    """Remove ACLs, given as sentences or selected by options.

    # Remove alice's only ACL on the prefix orders, without asking
    kctl acl remove --principal alice --resource "topic orders*" --yes --expect 1
    """
    from kctl.access.acl_syntax import expressions, parse_all
    from kctl.access.acls import list_acls
    from kctl.access.changes import as_stored, plan_changes

    inv = invocation(ctx)
    acl_filter = _filter(principal, resource, covering, operation, permission, host)
    if bool(words) is not acl_filter.is_empty:
        raise UsageError("specify either ACLs or options that select ACLs", hint="list the ACLs with `kctl acl list`")
    if words and expect is not None:
        raise UsageError("--expect requires options that select ACLs; it does not apply to listed ACLs")
    acls = parse_all(expressions(words or []), strict=False)
    with inv.connect() as client:
        present = list_acls(client, acl_filter)
        plan = plan_changes(present, remove=as_stored(acls, present) if words else present)
        if not if_exists:
            _refuse_missing(plan, present)
        if not dry_run:
            if (plan and not words) or expect is not None:
                check_chosen(inv, expect, len(plan), by="the options select")
            confirm_changes(inv, client, plan)
        finish(inv, plan if dry_run else _carry_out(client, plan))


def _refuse_missing(plan: Sequence[AclChange], present: Sequence[Acl]) -> None:
    """Raise NotFound for an ACL that does not exist: with a typo, the actual ACL would keep granting access."""
    from kctl.access.changes import similar

    missing = [row for row in plan if row.result is ItemResult.NOT_THERE]
    if missing:
        more = f" (and {len(missing) - 1:,} more)" if len(missing) > 1 else ""

        raise NotFound(
            f"ACL {missing[0].acl!r} does not exist{more}",
            hint=similar(missing[0], present) or "list the ACLs with `kctl acl list`",
        )
    if not plan:
        raise NotFound("no ACLs match the options", hint="list the ACLs with `kctl acl list`")


def _carry_out(client: ClusterClient, plan: Sequence[AclChange]) -> Sequence[AclChange]:
    from kctl.access.changes import carry_out

    return carry_out(client, plan) if any(row.result.planned for row in plan) else plan


def confirm_changes(inv: Invocation, client: ClusterClient, plan: Sequence[AclChange]) -> None:
    """Show changes that take rights away and ask for confirmation.

    These are removals and added denials; in a protected context also everything else that is added.
    """
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
    question = f"{question[0].upper()}{question[1:]} on {client.target.name}?"
    inv.confirm(question, target=client.target, basis=of_acls(client, plan))


def finish(inv: Invocation, rows: Sequence[AclChange]) -> None:
    """Emit the rows. Raises OperationFailed if any row failed."""
    inv.emit(rows, lambda: [changes_table(rows)], changed=any_changed(rows))
    raise_failed(rows)


def changes_table(rows: Sequence[AclChange]) -> Table:
    """Return the table of ACL changes."""
    columns = [Column("acl", "ACL", name=True), Column("result", style=_result_style), Column("error")]
    return Table(columns if any(row.error for row in rows) else columns[:-1], jsonable(rows))


def _result_style(row: Any) -> str | None:
    return _STYLES.get(row["result"])


def raise_failed(rows: Sequence[AclChange]) -> None:
    """Raise OperationFailed if any row failed."""
    failed = [f"{row.acl}: {row.error}" for row in rows if row.result is ItemResult.FAILED]
    if failed:
        raise OperationFailed(
            f"{len(failed)} of {counted(len(rows), 'ACL')} failed: {'; '.join(failed[:3])}",
            hint="run the command again to retry the failed ACLs" if len(failed) < len(rows) else None,
        )
