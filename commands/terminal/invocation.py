"""The values of the common options, and command and group classes that accept these options anywhere.

`kctl -o json topic list`, `kctl topic -o json list` and `kctl topic list -o json` are equivalent. Typer reads a
function's parameters; these classes add the common ones and store their values in one Invocation.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from importlib import import_module
from keyword import iskeyword
from typing import TYPE_CHECKING, Any, TypeVar

import typer
from typer._click import types
from typer.core import TyperCommand, TyperGroup
from typer.models import CommandInfo, TyperPath

from kctl.commands.completion.complete import by_metavar
from kctl.commands.terminal.common_options import CommonOptionsHelp, common_options
from kctl.commands.terminal.output import FORMATS, Table, emit, note, protect_csv, warn
from kctl.errors import UsageError

if TYPE_CHECKING:
    from kctl.cluster.unchanged import Basis
    from kctl.deploy.protection import Protector
    from kctl.protocol.client import ClusterClient
    from kctl.protocol.target import Target

_REQUEST_S = 300.0  # maximum timeout of one request


@dataclasses.dataclass
class Invocation:
    """One run of kctl: the values of the common options. None: not set."""

    output: str | None = None
    csv_safe: bool = False
    context: str | None = None
    bootstrap_server: str | None = None
    bootstrap_controller: str | None = None
    zookeeper: str | None = None
    command_config: str | None = None
    ignore_unknown: bool = False
    timeout: str | None = None
    yes: bool = False
    confirm_cluster: str | None = None
    verbose: bool = False
    debug: bool = False
    changes: list[bool] = dataclasses.field(default_factory=list)  # shared with copies

    @property
    def changed(self) -> bool | None:
        """Return whether the command changed something or, in a dry run, would; None if not reported."""
        return any(self.changes) if self.changes else None

    def report_change(self, *, changed: bool) -> None:
        """Report whether the command changed something or, in a dry run, would. Playbooks read this."""
        self.changes.append(changed)

    def timeout_s(self, default: float) -> float:
        """Return --timeout in seconds, or the command's default. Raises UsageError."""
        from kctl.base.units import parse_duration_ms

        return parse_duration_ms(self.timeout) / 1000 if self.timeout else default

    def target(self, *, controllers: bool = False) -> Target:
        """Return the cluster selected by options, environment and config file.

        controllers: KRaft controllers support the command, so it accepts --bootstrap-controller. Raises UsageError.
        """
        from kctl.contexts.choose import resolve_target

        if self.bootstrap_controller is not None and not controllers:
            raise UsageError(
                "this command does not support --bootstrap-controller: it needs brokers",
                hint="use --bootstrap-server; controllers support `kctl quorum`, `kctl controller`, and"
                " `kctl config get broker/ID` for their configs",
            )
        return resolve_target(
            context=self.context,
            bootstrap_server=self.bootstrap_server,
            bootstrap_controller=self.bootstrap_controller,
            zookeeper=self.zookeeper,
            command_config=self.command_config,
            warn=warn,
            ignore_unknown=self.ignore_unknown,
        )

    def connect(self, *, timeout_s: float = 30.0, controllers: bool = False) -> ClusterClient:
        """Return a client of the selected cluster, for use in `with`. controllers: as for `target`.

        timeout_s: the timeout of a request, unless --timeout is set. A larger --timeout counts as five minutes: a
        command that moves data for a day must not wait a day for an unresponsive broker.
        """
        from kctl.protocol.client import connect

        if self.verbose:
            from kctl.base.logs import be_verbose

            be_verbose(note)
        target = self.target(controllers=controllers)
        client = connect(target, timeout_s=min(self.timeout_s(timeout_s), _REQUEST_S))
        for warning in client.warnings:
            warn(warning)
        if target.protected:
            from kctl.deploy.protection import learn

            if (other := learn(client.target)) is not None:
                warn(other)
        if self.verbose:
            note(f"connected to {client.target.name} through {client.reached}")
        return client

    def emit(
        self,
        result: Any,
        tables: Sequence[Table] | Callable[[], Sequence[Table]],
        csv_rows: Callable[[], Sequence[Any]] | None = None,
        row_type: type | None = None,
        *,
        changed: bool | None = None,
    ) -> None:
        """Render `result` in the format of -o; see output.emit. changed: as for report_change."""
        if changed is not None:
            self.report_change(changed=changed)
        emit(result, tables, self.output, csv_rows, row_type)

    def protectors(self, target: Target) -> tuple[Protector, ...]:
        """Return the protected contexts of the cluster, however it is addressed. May connect to their servers."""
        from kctl.deploy.protection import protectors

        return protectors(target)

    def confirm(self, question: str, *, target: Target | None = None, basis: Basis | None = None) -> None:
        """Ask before a destructive or disruptive change. A protected cluster requires its context's name.

        target: from a connected client, so that its cluster id is known. basis: the facts behind the plan, checked
        after the confirmation. Raises Refused if they changed.
        """
        from kctl.commands.terminal import confirm

        guards = self.protectors(target) if target is not None else ()
        if guards:
            names = [each.name for each in guards]
            confirm.confirm_name(question, *names, typed=self.confirm_cluster, reason=guards[0].reason)
        else:
            confirm.confirm(question, yes=self.yes)
        if basis is not None:
            basis.check()

    def confirm_protected(self, question: str, *, target: Target, basis: Basis | None = None) -> None:
        """Ask before a harmless change, such as an addition or a resumed run, but only on a protected cluster."""
        if self.protectors(target):
            self.confirm(question, target=target)
        if basis is not None:
            basis.check()


def invocation(ctx: typer.Context) -> Invocation:
    """Return the Invocation of the running command."""
    obj = ctx.find_root().obj
    assert isinstance(obj, Invocation)
    return obj


_Function = TypeVar("_Function", bound=Callable[..., Any])


def more_formats(*names: str) -> Callable[[_Function], _Function]:
    """Return a decorator, below @app.command, that adds formats to `-o`; the command renders them itself."""

    def mark(function: _Function) -> _Function:
        function.more_formats = names  # type: ignore[attr-defined]  # Typer's wrapper keeps attributes
        return function

    return mark


def formats_are(text: str) -> Callable[[_Function], _Function]:
    """Return a decorator, below @app.command, that sets the help of `-o` for a command that rejects some of FORMATS."""

    def mark(function: _Function) -> _Function:
        function.formats_are = text  # type: ignore[attr-defined]  # as above
        return function

    return mark


def _formats_help(function: Any) -> str:
    """Return the help of `-o` for a command."""
    names = (*FORMATS, *getattr(function, "more_formats", ()))
    return getattr(function, "formats_are", f"Output format: {', '.join(names[:-1])} or {names[-1]}.")


def _name_value(param: Any) -> None:
    """Set the metavar, such as `--topic TOPIC` and `--partitions N`, in place of a Python type."""
    if param.param_type_name != "option" or param.metavar is not None or param.is_flag:
        return
    if isinstance(param.type, (types.IntParamType, types.FloatParamType)):
        param.metavar = "N"
    elif isinstance(param.type, (types.StringParamType, TyperPath)):
        param.metavar = param.name.upper().replace("_", "-")


def _name_type(param: Any) -> None:
    """Name the type as in "is not a valid whole number"; click says "int range"."""
    if isinstance(param.type, types.IntParamType):
        param.type.name = "whole number"
    elif isinstance(param.type, types.FloatParamType):
        param.type.name = "number"


def _complete_value(param: Any) -> None:
    """Complete a text by its metavar if it has no completion."""
    if isinstance(param.type, (types.StringParamType, types.IntParamType)):
        # click accepts this only in the constructor, which Typer calls.
        param._custom_shell_complete = param._custom_shell_complete or by_metavar  # noqa: SLF001


def _with_short_help(settings: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return click's settings of a command, with -h as a synonym of --help."""
    return {"help_option_names": ["-h", "--help"], **(settings or {})}


class KctlCommand(CommonOptionsHelp, TyperCommand):
    """A command with the common options. An invalid -o is rejected before the command starts."""

    def __init__(self, *args: Any, params: list[Any] | None = None, **kwargs: Any) -> None:
        specific = list(params or [])
        for param in specific:
            _name_value(param)
            _name_type(param)
            _complete_value(param)
        kwargs["context_settings"] = _with_short_help(kwargs.get("context_settings"))
        super().__init__(*args, params=[*specific, *common_options(_formats_help(kwargs.get("callback")))], **kwargs)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        # Typer writes a required argument as {NAME}, others as NAME.
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]

    def invoke(self, ctx: Any) -> Any:
        output_format = invocation(ctx).output
        formats = (*FORMATS, *getattr(self.callback, "more_formats", ()))
        if output_format is not None and output_format not in formats:
            raise UsageError(
                f"-o {output_format} is not a format of {ctx.command_path}", hint=f"use one of {', '.join(formats)}"
            )
        protect_csv(on=invocation(ctx).csv_safe)
        return super().invoke(ctx)


class KctlGroup(CommonOptionsHelp, TyperGroup):
    """A group with the common options."""

    def __init__(self, *args: Any, params: list[Any] | None = None, **kwargs: Any) -> None:
        kwargs["context_settings"] = _with_short_help(kwargs.get("context_settings"))
        super().__init__(*args, params=[*(params or []), *common_options()], **kwargs)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        self.format_commands(ctx, formatter)
        super().format_options(ctx, formatter)


class CommandGroup(typer.Typer):
    """A Typer app for one group of commands: plain help, no completion options, common options everywhere.

    help: only for a group within a group; kctl.commands.app has the help of the others.
    """

    def __init__(self, help: str = "") -> None:  # noqa: A002 - Typer's own name
        super().__init__(
            cls=KctlGroup, help=help, rich_markup_mode=None, add_completion=False, no_args_is_help=True,
            pretty_exceptions_enable=False,
        )  # fmt: skip

        # Typer flattens an app with a single command; a callback keeps it a group.
        self.callback()(_nothing)
        self._modules: dict[str, str] = {}
        self._groups: dict[str, str] = {}

    def command_of(self, name: str, module: str) -> None:
        """Add a command that is the function of this name in a module, imported on demand.

        The function of `take-over` is take_over; of `import`, a Python keyword, import_.
        """
        self._modules[name] = module

    def group_of(self, name: str, module: str) -> None:
        """Add a group within this one: a module's `app`. Help imports the module, so it must be small."""
        self._groups[name] = module

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        settings.setdefault("cls", KctlCommand)
        return super().command(name, **settings)

    def group(self, name: str) -> KctlGroup:
        """Return the click group; each command is built from its function on demand."""
        selected_commands, self.registered_commands = self.registered_commands, []
        try:
            group = typer.main.get_group(self)
        finally:
            self.registered_commands = selected_commands
        assert isinstance(group, KctlGroup)
        group.name = name
        group.commands = _Commands(selected_commands, self._modules, self._groups)
        return group


class _Commands(MutableMapping[str, Any]):
    """Commands by name, in the order of declaration."""

    def __init__(self, declared: Sequence[CommandInfo], modules: Mapping[str, str], groups: Mapping[str, str]) -> None:
        """Store the declarations. modules: command → module with the function; groups: group → module with the app."""
        self._declared: dict[str, Any] = {_name(info): info for info in declared} | dict(modules) | dict(groups)
        self._groups = frozenset(groups)
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            info = self._declared[name]
            if name in self._groups:
                self._made[name] = import_module(info).app.group(name)
                return self._made[name]
            if isinstance(info, str):
                info = CommandInfo(name, cls=KctlCommand, callback=getattr(import_module(info), _identifier(name)))
            self._made[name] = typer.main.get_command_from_info(
                info, pretty_exceptions_short=False, rich_markup_mode=None
            )
        return self._made[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._declared[name] = self._made[name] = command

    def __delitem__(self, name: str) -> None:
        del self._declared[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._declared)

    def __len__(self) -> int:
        return len(self._declared)


def _name(info: CommandInfo) -> str:
    assert info.callback is not None
    return info.name or typer.main.get_command_name(info.callback.__name__)


def _identifier(name: str) -> str:
    return name.replace("-", "_") + ("_" if iskeyword(name) else "")


def _nothing() -> None:
    pass
