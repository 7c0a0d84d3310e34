"""The options that every command has: their declarations, and their place in the help."""

from __future__ import annotations

import sys
from typing import Any

import typer
from typer.core import TyperOption

from kctl.commands.completion.complete import context_names, formats
from kctl.commands.terminal.output_encoding import shown


def _remember(ctx: typer.Context, param: Any, value: Any) -> Any:
    """Option callback: the place nearest to the command wins, and an absent option changes nothing."""
    if value not in (None, False):
        setattr(ctx.find_root().obj, param.name, value)
    return value


def _option(*names: str, metavar: str | None = None, **settings: Any) -> TyperOption:
    return TyperOption(param_decls=list(names), metavar=metavar, expose_value=False, callback=_remember, **settings)


def common_options(formats_said: str = "table, wide, json, yaml or csv.") -> list[TyperOption]:
    """The options that every command and group takes, before and after the command's name."""
    return [
        _option(
            "-o",
            "--output",
            metavar="FORMAT",
            help=formats_said,
            autocompletion=lambda _ctx, _args, text: formats(text),
        ),
        _option("--csv-safe", is_flag=True, help="With -o csv, prevent spreadsheets from running cells as formulas."),
        _option(
            "--context",
            metavar="NAME",
            help="Named cluster from the config file (KCTL_CONTEXT).",
            autocompletion=lambda _ctx, _args, text: context_names(text),
        ),
        _option("--bootstrap-server", metavar="HOST:PORT,…", help="Brokers to ask first, instead of a context."),
        _option("--zookeeper", metavar="HOST:PORT/CHROOT", help="ZooKeeper, for the commands that say so."),
        _option("--command-config", metavar="FILE", help="Kafka client properties (security settings)."),
        _option(
            "--ignore-unknown",
            is_flag=True,
            help="Ignore unknown or unsupported security settings in client properties.",
        ),
        _option("--timeout", metavar="DURATION", help="The longest wait, for example 30s or 5m."),
        _option("-y", "--yes", is_flag=True, help="Do not ask."),
        _option("--confirm-cluster", metavar="NAME", help="Confirm a change of a protected context."),
        _option("-v", "--verbose", is_flag=True, help="Say more on stderr."),
        _option("--debug", is_flag=True, help="Show a traceback when something fails."),
    ]


def is_common(param: Any) -> bool:
    """Whether it is one of common_options."""
    return getattr(param, "callback", None) is _remember


class CommonOptionsHelp:
    """Help shows a command's own options first, then the common ones under a heading of their own."""

    params: list[Any]

    def get_help(self, ctx: Any) -> str:
        """Return the help in stdout's encoding. Typer itself assumes UTF-8."""
        return shown(super().get_help(ctx), sys.stdout)  # type: ignore[misc]  # click.Command has it

    def format_options(self, ctx: Any, formatter: Any) -> None:
        common = {id(p) for p in self.params if is_common(p)}
        own: list[tuple[str, str]] = []
        shared: list[tuple[str, str]] = []
        arguments: list[tuple[str, str]] = []
        for param in self.get_params(ctx):  # type: ignore[attr-defined]  # click.Command has it
            record = param.get_help_record(ctx)
            if record is None:
                continue
            if param.param_type_name == "argument":
                arguments.append(record)
            else:
                (shared if id(param) in common else own).append(record)
        for title, records in (
            ("Arguments", arguments),
            ("Options", own),
            ("Options of every command", shared),
        ):
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)
