"""kctl user: list, add and remove users of SCRAM."""

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

app = CommandGroup("List, add and remove users of SCRAM.")

_MECHANISM = typer.Option("--mechanism", metavar="MECHANISM", help="SCRAM-SHA-256 or SCRAM-SHA-512; repeatable.")
_DRY_RUN = typer.Option("--dry-run", help="Show what would be done, do nothing.")


@app.command("list")
def list_(
    ctx: typer.Context,
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]…", help="All users when none is named.")] = None,
) -> None:
    """List users that have a password of SCRAM, with mechanism and iterations.

    Users of PLAIN, of certificates and of Kerberos are not kept in Kafka and do not appear.

    Example: kctl user list -o json
    """
    from kctl.access.users import ScramUser, list_users

    inv = invocation(ctx)
    with inv.connect() as client:
        users = list_users(client, names or None)
    missing = sorted(set(names or []) - {user.user for user in users})
    if missing:
        raise NotFound(f"no user of SCRAM is called {', '.join(missing)}", hint="kctl user list shows all")
    columns = [Column("user", name=True), Column("mechanism"), Column("iterations", align="right")]
    inv.emit(users, lambda: [Table(columns, jsonable(users), empty="no users of SCRAM")], row_type=ScramUser)


@app.command()
def add(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    mechanism: Annotated[list[str] | None, _MECHANISM] = None,
    iterations: Annotated[int, typer.Option(help="Of the password's hash, 4096 to 16384.")] = 8192,
    password_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="File or pipe with the password; - is stdin.")
    ] = None,
    password_stdin: Annotated[bool, typer.Option("--password-stdin", help="Read the password from stdin.")] = False,
    password_env: Annotated[
        str | None, typer.Option(metavar="NAME", help="The environment variable with the password.")
    ] = None,
    dry_run: Annotated[bool, _DRY_RUN] = False,
) -> None:
    """Add a user, or give one another password. Without an option the password is asked for on the terminal.

    One newline at the end of a file or of stdin is not part of the password. The default mechanism is SCRAM-SHA-512.
    Replacing a password asks first, because clients can no longer log in with the old one.

    Example: kctl user add alice --password-env ALICE_PASSWORD --dry-run
    """
    from kctl.access.basis import of_users
    from kctl.access.users import carry_out, list_users, parse_mechanisms, plan_add

    inv = invocation(ctx)
    if (password_file is not None) + (password_env is not None) + password_stdin > 1:
        raise UsageError("--password-file, --password-stdin and --password-env exclude each other")
    mechanisms = parse_mechanisms(mechanism or ["SCRAM-SHA-512"])
    plan = plan_add([], name, mechanisms, iterations)  # what is wrong in itself is told before anything is asked
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
    """From where the options say, or from the terminal, twice. Raises UsageError."""
    from kctl.base.secrets import read_secret

    found = read_secret("the password", env, file, warn=output.warn)
    if found is not None:
        return found
    if not interactive():
        raise UsageError("no password was given", hint="--password-file FILE, --password-stdin, or --password-env NAME")
    return _asked(name)


def _asked(name: str) -> str:
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
    if_exists: Annotated[bool, typer.Option("--if-exists", help="Skip users that are not there.")] = False,
    dry_run: Annotated[bool, _DRY_RUN] = False,
) -> None:
    """Remove users, or only what they have of a mechanism. Their ACLs and quotas stay.

    Connections that are open stay open until the client logs in again.

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
        todo = [row for row in plan if row.result is ItemResult.WOULD_REMOVE]
        if todo and not dry_run:
            users = ", ".join(dict.fromkeys(row.user for row in todo))
            basis = of_users(client, present, todo)
            inv.confirm(f"Remove {users} of {client.target.name}?", target=client.target, basis=basis)
        _finish(inv, plan if dry_run else carry_out(client, plan))


def _refuse_missing(client: ClusterClient, plan: Sequence[UserChange]) -> None:
    """Raise NotFound: a mistyped user who is «removed» can still log in."""
    from kctl.access.users import list_users
    from kctl.base.suggestions import did_you_mean

    missing = next((row for row in plan if row.result is ItemResult.NOT_THERE), None)
    if missing is not None:
        known = {user.user for user in list_users(client)}
        what = f"{missing.mechanism} of user {missing.user}" if missing.user in known else f"user {missing.user}"
        raise NotFound(
            f"there is no {what}",
            hint=did_you_mean(missing.user, known - {missing.user}) or "kctl user list shows all",
        )


def _finish(inv: Invocation, rows: Sequence[UserChange]) -> None:
    columns = [Column("user", name=True), Column("mechanism"), Column("iterations", align="right"), Column("result")]
    inv.emit(rows, lambda: [Table(columns, jsonable(rows))], changed=any_changed(rows))
    failed = [f"{row.user} ({row.mechanism}): {row.error}" for row in rows if row.result is ItemResult.FAILED]
    if failed:
        raise OperationFailed(f"{len(failed)} of {counted(len(rows), 'credential')} failed: {'; '.join(failed)}")
