"""kctl user: list, add and remove SCRAM users."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.base.outcomes import ItemResult, any_changed
from kctl.commands.terminal import output
from kctl.commands.terminal.confirm import interactive
from kctl.commands.terminal.invocation import CommandGroup, Invocation, invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.errors import UsageError

if TYPE_CHECKING:
    from kctl.access.users import UserChange

app = CommandGroup()

_MECHANISM = typer.Option("--mechanism", metavar="MECHANISM", help="SCRAM-SHA-256 or SCRAM-SHA-512; repeatable.")
_DRY_RUN = typer.Option("--dry-run", help="Show what would change, without changing it.")


@app.command("list")
def list_(
    ctx: typer.Context,
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]…", help="User names (default: all).")] = None,
) -> None:
    """List SCRAM users with mechanism and iterations.

    Users of PLAIN, TLS certificates and Kerberos are not stored in Kafka and are not listed.

    # Print all SCRAM users as JSON
    kctl user list -o json
    """
    from kctl.access.user_plans import existing_users
    from kctl.access.users import ScramUser

    inv = invocation(ctx)
    with inv.connect() as client:
        users = existing_users(client, names or None)
    columns = [Column("user", name=True), Column("mechanism"), Column("iterations", align="right")]
    inv.emit(users, lambda: [Table(columns, jsonable(users), empty="no SCRAM users")], row_type=ScramUser)


@app.command()
def add(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="User name.")],
    mechanism: Annotated[list[str] | None, _MECHANISM] = None,
    iterations: Annotated[int, typer.Option(help="Hash iterations, 4096 to 16384.")] = 8192,
    password_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="Read the password from a file or pipe; - is stdin.")
    ] = None,
    password_stdin: Annotated[bool, typer.Option("--password-stdin", help="Read the password from stdin.")] = False,
    password_env: Annotated[
        str | None, typer.Option(metavar="NAME", help="Read the password from this environment variable.")
    ] = None,
    dry_run: Annotated[bool, _DRY_RUN] = False,
) -> None:
    """Add a user, or replace a user's password. Prompts for the password by default.

    One trailing newline in a file or on stdin is ignored. The default mechanism is SCRAM-SHA-512. Replacing a
    password asks for confirmation, because clients can no longer log in with the old one.

    # Preview a new user whose password is in an environment variable
    kctl user add alice --password-env ALICE_PASSWORD --dry-run
    """
    from kctl.access.user_plans import NewUser, plan_new_user
    from kctl.access.users import carry_out, parse_mechanisms

    inv = invocation(ctx)
    if (password_file is not None) + (password_env is not None) + password_stdin > 1:
        raise UsageError("--password-file, --password-stdin and --password-env cannot be combined")
    user = NewUser(name, parse_mechanisms(mechanism or ["SCRAM-SHA-512"]), iterations)
    user.check()  # before prompting
    password = None if dry_run else _password(name, "-" if password_stdin else password_file, password_env)
    with inv.connect() as client:
        plan = plan_new_user(client, user)
        if dry_run:
            _finish(inv, plan.rows)
            return
        replaced = ", ".join(str(row.mechanism) for row in plan.planned(ItemResult.WOULD_REPLACE))
        if replaced:
            inv.confirm(f"Replace the password of {name} ({replaced})?", target=client.target, basis=plan.basis)
        else:
            question = f"Add user {name} to {client.target.name}?"
            inv.confirm_protected(question, target=client.target, basis=plan.basis)
        _finish(inv, carry_out(client, plan.rows, password))


def _password(name: str, file: str | None, env: str | None) -> str:
    """Return the password from the selected source, or prompt twice. Raises UsageError."""
    from kctl.base.secrets import read_secret

    password = read_secret("the password", env, file, warn=output.warn)
    if password is not None:
        return password
    if not interactive():
        raise UsageError("no password", hint="use --password-file FILE, --password-stdin or --password-env NAME")
    return _prompted_password(name)


def _prompted_password(name: str) -> str:
    import getpass

    first = getpass.getpass(f"Password of {name}: ", stream=sys.stderr)
    if not first:
        raise UsageError("the password is empty")
    if getpass.getpass("Again: ", stream=sys.stderr) != first:
        raise UsageError("the two passwords differ; nothing was changed")
    return first


@app.command()
def remove(
    ctx: typer.Context,
    names: Annotated[list[str], typer.Argument(metavar="NAME…", help="User names.")],
    mechanism: Annotated[list[str] | None, _MECHANISM] = None,
    if_exists: Annotated[bool, typer.Option("--if-exists", help="Skip users that do not exist.")] = False,
    dry_run: Annotated[bool, _DRY_RUN] = False,
) -> None:
    """Remove users, or only their credentials for a mechanism. ACLs and quotas stay.

    Open connections stay open until the client reauthenticates.

    # Show the credentials that would be removed
    kctl user remove alice --dry-run
    """
    from kctl.access.user_plans import plan_removal
    from kctl.access.users import carry_out, parse_mechanisms

    inv = invocation(ctx)
    mechanisms = parse_mechanisms(mechanism or [])
    with inv.connect() as client:
        plan = plan_removal(client, names, mechanisms, if_exists=if_exists)
        to_remove = plan.planned(ItemResult.WOULD_REMOVE)
        if to_remove and not dry_run:
            users = ", ".join(dict.fromkeys(row.user for row in to_remove))
            inv.confirm(f"Remove {users} on {client.target.name}?", target=client.target, basis=plan.basis)
        _finish(inv, plan.rows if dry_run else carry_out(client, plan.rows))


def _finish(inv: Invocation, rows: Sequence[UserChange]) -> None:
    from kctl.access.user_plans import require_changed

    columns = [Column("user", name=True), Column("mechanism"), Column("iterations", align="right"), Column("result")]
    inv.emit(rows, lambda: [Table(columns, jsonable(rows))], changed=any_changed(rows))
    require_changed(rows)
