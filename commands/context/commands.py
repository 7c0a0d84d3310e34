"""kctl context: named clusters."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.commands.completion.complete import context_names
from kctl.commands.context.imports import import_
from kctl.commands.context.options import AddOptions, DryRun
from kctl.commands.context.protected import learn_protected
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import CommandGroup, Invocation, invocation
from kctl.commands.terminal.option_sets import takes_options
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.commands.terminal.views import NONE_CURRENT, warn_if_overruled
from kctl.errors import NotHealthy, UsageError

if TYPE_CHECKING:
    from kctl.cluster.context_check import ContextCheck
    from kctl.contexts.context import Context
    from kctl.protocol.security import SecuritySettings
    from kctl.protocol.target import Target

app = CommandGroup("Manage contexts: named clusters and their settings.")

_NAME = typer.Argument(metavar="NAME", help="Name of the context.")
_EXISTING = typer.Argument(metavar="NAME", help="Name of the context.", autocompletion=context_names)


@dataclasses.dataclass(frozen=True)
class ContextView:
    """A context without its secrets: only where they are stored."""

    name: str
    current: bool
    bootstrap_servers: tuple[str, ...]
    zookeeper: str | None
    protected: bool
    cluster_dir: str | None
    security: SecuritySettings
    zookeeper_security: SecuritySettings
    cluster_id: str | None


def _view(name: Annotated[str, _NAME], entry: Context, current: str | None) -> ContextView:
    return ContextView(
        name=name,
        current=name == current,
        bootstrap_servers=entry.bootstrap_servers,
        zookeeper=entry.zookeeper,
        protected=entry.protected,
        cluster_dir=entry.cluster_dir,
        security=entry.security,
        zookeeper_security=entry.zookeeper_security,
        cluster_id=entry.cluster_id,
    )


@app.command("list")
def list_(ctx: typer.Context) -> None:
    """List the contexts; a star marks the current one.

    # List all contexts
    kctl context list
    """
    from kctl.contexts.choose import current_context, list_contexts

    current = current_context()
    views = [_view(name, entry, current) for name, entry in list_contexts().items()]
    columns = [
        Column("current", "", show=lambda value: "*" if value else ""),
        Column("name", "CONTEXT"),
        Column("bootstrap_servers"),
        Column("zookeeper", "ZOOKEEPER"),
        Column("security.protocol", "SECURITY"),
        Column("protected"),
    ]
    empty = "no contexts; add one with `kctl context add`, or create a cluster with `kctl cluster create`"
    invocation(ctx).emit(views, lambda: [Table(columns, jsonable(views), empty=empty)])


@app.command()
def show(
    ctx: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]", help="Name of the context (default: the current one).", autocompletion=context_names
        ),
    ] = None,
) -> None:
    """Show a context: servers and security settings, without secrets.

    # Print the settings of prod as JSON
    kctl context show prod -o json
    """
    from kctl.contexts.choose import current_context, get_context

    inv = invocation(ctx)
    current = current_context()
    selected = name or inv.context or current
    if selected is None:
        raise UsageError("there is no current context", hint="name a context, or run `kctl context use NAME`")
    _show(inv, _view(selected, get_context(selected), current), changed=False)


def _show(inv: Invocation, view: ContextView, *, changed: bool) -> None:
    inv.emit(view, lambda: [_details(view)], changed=changed)


def _details(view: ContextView) -> Table:
    row = jsonable(view)
    security = row.pop("security")
    tls = row.pop("zookeeper_security")
    settings = {**row, **security}
    if tls["protocol"] != "PLAINTEXT":
        settings |= {f"zookeeper {key}": value for key, value in tls.items()}
    rows = [{"setting": key, "value": value} for key, value in settings.items() if value not in (None, [])]
    return Table([Column("setting"), Column("value")], rows)


@app.command("test")
def try_servers(
    ctx: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]", help="Name of the context (default: the current one).", autocompletion=context_names
        ),
    ] = None,
) -> None:
    """Test every server of a context; show login and permissions.

    Also tests the addresses that brokers advertise, and ZooKeeper with its chroot. Exits 1 if a server is unusable
    or belongs to another cluster, and 3 if no server is usable. Denied permissions are not a failure.

    # Test the connection to each server of prod
    kctl context test prod
    """
    from kctl.cluster.context_check import check_context

    inv = invocation(ctx)
    if name is not None:
        inv.context = name
    check = check_context(inv.target(), timeout_s=inv.timeout_s(10))
    servers = [Column("role"), Column("server"), Column("cluster_id", "CLUSTER ID"), Column("problem")]
    permissions = [Column("resource"), Column("operation"), Column("result"), Column("detail")]
    title = f"logged in as {check.principal}" if check.principal else None
    tables = [Table(servers, jsonable(check.servers))]
    if check.rights:
        tables.append(Table(permissions, jsonable(check.rights), title=title))
    inv.emit(check, lambda: tables)
    _remember_tested(inv.target(), check)
    unusable = [server for server in check.servers if server.problem]
    if unusable:
        raise NotHealthy(
            f"context {check.name}: {len(unusable)} of {len(check.servers)} servers are unusable",
            hint=f"{unusable[0].server}: {unusable[0].problem}",
        )


def _remember_tested(target: Target, check: ContextCheck) -> None:
    """Store the cluster id in the context if all its servers belong to one cluster."""
    from kctl.deploy.protection import remember

    if target.context is None or check.cluster_id is None or check.cluster_id == target.remembered_id:
        return
    if any(server.cluster_id not in (None, check.cluster_id) for server in check.servers):
        return
    if remember(target.context, check.cluster_id) and target.remembered_id is not None:
        output.note(f"context {target.context}: cluster id changed from {target.remembered_id} to {check.cluster_id}")


@app.command()
def use(ctx: typer.Context, name: Annotated[str, _EXISTING], dry_run: DryRun = False) -> None:
    """Set the current context; - switches back to the previous one.

    # Make dev the current context
    kctl context use dev
    """
    from kctl.contexts.change import use_context
    from kctl.contexts.choose import get_context, overruled_by, resolve_name

    name = resolve_name(name)
    entry = get_context(name) if dry_run else learn_protected(name, use_context(name))
    warn_if_overruled(name)
    _show(invocation(ctx), _view(name, entry, overruled_by(name) or name), changed=True)


@app.command()
@takes_options(AddOptions)
def add(
    ctx: typer.Context,
    name: Annotated[str, _NAME],
    options: AddOptions,
) -> None:
    """Add a context for a cluster. Requires --bootstrap-server.

    Contexts never contain passwords: name an environment variable or a file instead.

    # Add a protected cluster with TLS and a SCRAM login
    kctl context add prod --bootstrap-server kafka1:9093 --security-protocol SASL_SSL
    --sasl-mechanism SCRAM-SHA-512 --sasl-username ops --sasl-password-env PROD_PASSWORD --protected
    """
    from kctl.base.address import parse_servers
    from kctl.contexts.change import add_context, refuse_temporary_files
    from kctl.contexts.context import Context
    from kctl.protocol.security import SecuritySettings, full_path

    inv = invocation(ctx)
    if inv.command_config is not None:
        raise UsageError(
            "--command-config is not stored in a context",
            hint="pass the settings as options, or run `kctl context import FILE --name NAME`",
        )
    if inv.bootstrap_server is None:
        raise UsageError("--bootstrap-server is missing", hint="add --bootstrap-server HOST:PORT")
    security = SecuritySettings(
        protocol=options.security_protocol.upper(),
        sasl_mechanism=options.sasl_mechanism and options.sasl_mechanism.upper(),
        sasl_username=options.sasl_username,
        sasl_password_env=options.sasl_password_env,
        sasl_password_file=full_path(options.sasl_password_file),
        ssl_cafile=full_path(options.ssl_cafile),
        ssl_certfile=full_path(options.ssl_certfile),
        ssl_keyfile=full_path(options.ssl_keyfile),
        ssl_key_password_env=options.ssl_key_password_env,
        ssl_key_password_file=full_path(options.ssl_key_password_file),
        ssl_check_hostname=options.ssl_check_hostname,
    )
    refuse_temporary_files(options.sasl_password_file, options.ssl_key_password_file, options.ssl_keyfile)
    entry = Context(parse_servers(inv.bootstrap_server), inv.zookeeper, security, options.protected or False)
    result = add_context(
        name,
        entry,
        keep_protected=options.protected is None,
        make_current=options.current,
        replace_existing=options.replace,
        dry_run=options.dry_run,
    )
    for path in result.missing_files:
        output.warn(f"{path} does not exist yet")
    stored = result.entry if options.dry_run else learn_protected(name, result.entry)
    _show(inv, _view(name, stored, result.current_context), changed=True)


app.command("import")(import_)


@app.command()
def remove(ctx: typer.Context, name: Annotated[str, _EXISTING], dry_run: DryRun = False) -> None:
    """Remove a context. The cluster itself is not affected.

    # Remove the context old without asking
    kctl context remove old --yes
    """
    from kctl.contexts import config
    from kctl.contexts.change import remove_context
    from kctl.contexts.choose import current_context, get_context

    inv = invocation(ctx)
    view = _view(name, get_context(name), current_context())
    if dry_run:
        output.note(f"context {name} would be removed; its settings:")
    else:
        inv.confirm(f"remove context {name} ({', '.join(view.bootstrap_servers)})?")
        was_current = config.read().current_context == name
        remove_context(name)
        output.note(f"context {name} was removed; its settings were:")
        if was_current:
            output.note(NONE_CURRENT)
            warn_if_overruled("")
    _show(inv, dataclasses.replace(view, current=False), changed=True)
