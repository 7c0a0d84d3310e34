"""kctl user: list, add and remove SCRAM users."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.base.outcomes import ItemResult, any_changed
from kctl.base.text import counted
from kctl.commands.terminal import output
from kctl.commands.terminal.confirm import interactive
from kctl.commands.terminal.invocation import CommandGroup, Invocation, invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.errors import NotFound, OperationFailed, UsageError

if TYPE_CHECKING:
    from kctl.access.users import UserChange
    from kctl.protocol.client import ClusterClient

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

    Example: kctl user list -o json
    """
    from kctl.access.users import ScramUser, list_users

    inv = invocation(ctx)
    with inv.connect() as client:
        users = list_users(client, names or None)
    missing = sorted(set(names or []) - {user.user for user in users})
    if missing:
        raise NotFound(f"SCRAM user {', '.join(missing)} does not exist", hint="list the users with `kctl user list`")
    columns = [Column("user", name=True), Column("mechanism"), Column("iterations", align="right")]
    inv.emit(users, lambda: [Table(columns, jsonable(users), empty="no SCRAM users")], row_type=ScramUser)


@app.command()
def add(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME")],
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

    One trailing newline of a file or of stdin is not part of the password. The default mechanism is SCRAM-SHA-512.
    Replacing a password asks for confirmation, because clients can no longer log in with the old one.

    Example: kctl user add alice --password-env ALICE_PASSWORD --dry-run
    """
    from kctl.access.basis import of_users
    from kctl.access.users import carry_out, list_users, parse_mechanisms, plan_add

    inv = invocation(ctx)
    if (password_file is not None) + (password_env is not None) + password_stdin > 1:
        raise UsageError("--password-file, --password-stdin and --password-env cannot be combined")
    mechanisms = parse_mechanisms(mechanism or ["SCRAM-SHA-512"])
    plan = plan_add([], name, mechanisms, iterations)  # fail on invalid input before prompting
    password = None if dry_run else _password(name, "-" if password_stdin else password_file, password_env)
    with inv.connect() as client:
        present = list_users(client, [name])
        plan = plan_add(present, name, mechanisms, iterations)
        basis = of_users(client, present, plan)
        replaced = [str(row.mechanism) for row in plan if row.result is ItemResult.WOULD_REPLACE]
        if replaced and not dry_run:
            inv.confirm(f"Replace the password of {name} ({', '.join(replaced)})?", target=client.target, basis=basis)
        elif not dry_run:
            inv.confirm_protected(f"Add user {name} to {client.target.name}?", target=client.target, basis=basis)
        _finish(inv, plan if dry_run else carry_out(client, plan, password))


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
    names: Annotated[list[str], typer.Argument(metavar="NAME…")],
    mechanism: Annotated[list[str] | None, _MECHANISM] = None,
    if_exists: Annotated[bool, typer.Option("--if-exists", help="Skip users that do not exist.")] = False,
    dry_run: Annotated[bool, _DRY_RUN] = False,
) -> None:
    """Remove users, or only their credentials for a mechanism. ACLs and quotas stay.

    Open connections stay open until the client reauthenticates.

    Example: kctl user remove alice --dry-run
    """
    from kctl.access.basis import of_users
    from kctl.access.users import carry_out, list_users, parse_mechanisms, plan_remove

    inv = invocation(ctx)
    mechanisms = parse_mechanisms(mechanism or [])
    with inv.connect() as client:
        present = list_users(client, names)
        plan = plan_remove(present, names, mechanisms)
        if not if_exists:
            _refuse_missing(client, plan)
        to_remove = [row for row in plan if row.result is ItemResult.WOULD_REMOVE]
        if to_remove and not dry_run:
            users = ", ".join(dict.fromkeys(row.user for row in to_remove))
            basis = of_users(client, present, to_remove)
            inv.confirm(f"Remove {users} on {client.target.name}?", target=client.target, basis=basis)
        _finish(inv, plan if dry_run else carry_out(client, plan))


def _refuse_missing(client: ClusterClient, plan: Sequence[UserChange]) -> None:
    """Raise NotFound for a user who does not exist: with a typo, the actual user could still log in."""
    from kctl.access.users import list_users
    from kctl.base.suggestions import did_you_mean

    missing = next((row for row in plan if row.result is ItemResult.NOT_THERE), None)
    if missing is not None:
        existing = {user.user for user in list_users(client)}

        what = f"{missing.mechanism} of user {missing.user}" if missing.user in existing else f"user {missing.user}"
        raise NotFound(
            f"{what} does not exist",
            hint=did_you_mean(missing.user, existing - {missing.user}) or "list the users with `kctl user list`",
        )


def _finish(inv: Invocation, rows: Sequence[UserChange]) -> None:
    columns = [Column("user", name=True), Column("mechanism"), Column("iterations", align="right"), Column("result")]
    inv.emit(rows, lambda: [Table(columns, jsonable(rows))], changed=any_changed(rows))
    failed = [f"{row.user} ({row.mechanism}): {row.error}" for row in rows if row.result is ItemResult.FAILED]
    if failed:
        raise OperationFailed(f"{len(failed)} of {counted(len(rows), 'credential')} failed: {'; '.join(failed)}")
