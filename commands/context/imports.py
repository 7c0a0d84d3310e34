"""kctl context import: contexts from other tools' files."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.commands.context import options
from kctl.commands.context.protected import learn_protected
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.errors import UsageError

if TYPE_CHECKING:
    from kctl.contexts.context import Context
    from kctl.contexts.imports import ImportSource


def import_(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Kafka's client.properties, or kafkactl's config.yml.")],
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the context; required for client.properties.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="NAME", help="Import only this kafkactl context; repeatable.")
    ] = None,
    file_format: Annotated[
        str | None,
        typer.Option("--format", metavar="FORMAT", help="properties or kafkactl (default: by file extension)."),
    ] = None,
    sasl_password_env: Annotated[
        str | None,
        typer.Option(metavar="VARIABLE", help="Environment variable with the password, which is then not copied."),
    ] = None,
    ssl_key_password_env: Annotated[
        str | None,
        typer.Option(metavar="VARIABLE", help="Environment variable with the key password, which is then not copied."),
    ] = None,
    protected: options.Protected = None,
    current: Annotated[
        bool, typer.Option("--use", help="Make the imported context current; the first context always becomes current.")
    ] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite existing contexts that differ.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be written, without writing it.")] = False,
) -> None:
    """Import contexts from a Kafka client.properties or from kafkactl.

    Each password is copied to a separate file that only you can read. Either all contexts are imported, or none.

    # Preview the import of a Kafka client's settings
    kctl context import client.properties --name prod --protected --dry-run
    """
    from kctl.contexts.imports import ImportAction, apply_import, plan_import

    inv = invocation(ctx)
    plan = plan_import(
        _source(inv, file, file_format, name, only or []),
        password_env=sasl_password_env,
        key_password_env=ssl_key_password_env,
        protected=protected,
        make_current=current,
        replace_existing=replace,
    )
    contexts = plan.contexts if dry_run else apply_import(plan)
    for each in contexts:
        if each.left_out:
            output.note(f"{each.name}: ignored settings, which do not apply to a context: {', '.join(each.left_out)}")
        for path in each.copied_from:
            output.note(f"{each.name}: the secret was copied from {path}; later changes to that file have no effect")
    if not dry_run:
        contexts = tuple(dataclasses.replace(each, entry=learn_protected(each.name, each.entry)) for each in contexts)
    columns = [
        Column("name", "CONTEXT"),
        Column("action"),
        Column("entry.bootstrap_servers", "BOOTSTRAP SERVERS"),
        Column("entry.security.protocol", "SECURITY"),
        Column("entry.security.sasl_username", "USER"),
        Column("entry.protected", "PROTECTED"),
        Column("secret_files", "PASSWORD FILES"),
    ]
    for each in contexts:
        if each.before is not None:
            output.note(f"{each.name}: {_changes(each.before, each.entry)}")
    changed = any(each.action is not ImportAction.UNCHANGED for each in contexts)
    inv.emit(contexts, lambda: [Table(columns, jsonable(contexts))], changed=changed)
    if dry_run:
        output.note("nothing was written (--dry-run)")


def _changes(before: Context, entry: Context) -> str:
    """Return the changed settings, as "setting: before → after"."""
    entry = dataclasses.replace(entry, cluster_id=before.cluster_id)
    old, new = ({**each.pop("security"), **each} for each in map(jsonable, (before, entry)))
    changes = [f"{key}: {_text(old[key])} → {_text(new[key])}" for key in new if old[key] != new[key]]
    return ", ".join(changes) or "different password"


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(value)
    return {None: "-", True: "yes", False: "no"}.get(value, str(value))


def _source(inv: Invocation, file: str, file_format: str | None, name: str | None, only: list[str]) -> ImportSource:
    from kctl.contexts import imports as context_import

    selected = file_format or context_import.format_of(file)
    if selected not in context_import.FORMATS:
        formats = ", ".join(context_import.FORMATS)
        raise UsageError(f"--format {selected!r} is invalid", hint=f"use one of {formats}")
    unsupported: dict[str, Any] = {"--only": only} if selected == "properties" else {
        "--name": name, "--bootstrap-server": inv.bootstrap_server,
    }  # fmt: skip
    for option, value in unsupported.items():
        if value:
            raise UsageError(f"{option} does not apply to the format {selected}")
    if selected == "properties":
        if name is None:
            raise UsageError("client.properties does not name the context", hint="add --name NAME")
        return context_import.read_properties_source(
            file, name=name, bootstrap_server=inv.bootstrap_server, ignore_unknown=inv.ignore_unknown
        )
    return context_import.read_kafkactl_source(file, only=only)
