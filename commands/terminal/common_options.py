"""The global options, accepted by every command: their declarations, and their section in the help."""

from __future__ import annotations

import re
import sys
from typing import Any

import typer
from typer.core import TyperOption

from kctl.commands.completion.complete import context_names, formats
from kctl.commands.terminal.examples import split_examples, wrap_command
from kctl.commands.terminal.output_encoding import shown

_FORMATS_HELP = "Output format: table, wide, json, yaml or csv."
_GLOBAL_OPTIONS = "Global options (-o, --context, --bootstrap-server, --yes …): see kctl --help"
_NO_BREAK = str.maketrans("-", "\u2011")  # click breaks lines at hyphens, also within --what-if
_BREAK = str.maketrans("\u2011", "-")
_DEFAULT = re.compile(r"\[default: ([^]]+?)(?:; (required|[^];]*[<>][^];]*))?\]$")  # as Typer appends it


def _remember(ctx: typer.Context, param: Any, value: Any) -> Any:
    """Store the value of an option.

    The position closest to the command takes precedence; an absent option changes nothing.
    """
    if value not in (None, False):
        setattr(ctx.find_root().obj, param.name, value)
    return value


def _option(*names: str, metavar: str | None = None, **settings: Any) -> TyperOption:
    return TyperOption(param_decls=list(names), metavar=metavar, expose_value=False, callback=_remember, **settings)


def common_options(formats_help: str = _FORMATS_HELP) -> list[TyperOption]:
    """Return the options of every command and group, accepted before and after the command's name."""
    return [
        _option(
            "-o",
            "--output",
            metavar="FORMAT",
            help=formats_help,
            autocompletion=lambda _ctx, _args, text: formats(text),
        ),
        _option("--csv-safe", is_flag=True, help="With -o csv, prevent spreadsheets from running cells as formulas."),
        _option(
            "--context",
            metavar="NAME",
            help="Context to use (default: KCTL_CONTEXT, or the current context).",
            autocompletion=lambda _ctx, _args, text: context_names(text),
        ),
        _option("--bootstrap-server", metavar="HOST:PORT,…", help="Brokers to connect to, instead of a context."),
        _option(
            "--bootstrap-controller",
            metavar="HOST:PORT,…",
            help="KRaft controllers to connect to, for commands that support it.",
        ),
        _option("--zookeeper", metavar="HOST:PORT/CHROOT", help="ZooKeeper servers, for commands that use ZooKeeper."),
        _option("--command-config", metavar="FILE", help="Kafka client properties (security settings)."),
        _option(
            "--ignore-unknown",
            is_flag=True,
            help="Ignore unknown or unsupported security settings in client properties.",
        ),
        _option("--timeout", metavar="DURATION", help="Maximum wait, e.g. 30s or 5m (default: usually 30s)."),
        _option("-y", "--yes", is_flag=True, help="Confirm without a prompt, unless a name is required."),
        _option(
            "--confirm-cluster", metavar="NAME", help="Confirm a protected context, or a loss of data, by its name."
        ),
        _option("-v", "--verbose", is_flag=True, help="Print more details on stderr."),
        _option("--debug", is_flag=True, help="Print a traceback on failure."),
    ]


def is_common(param: Any) -> bool:
    """Return True for a parameter of common_options."""
    return getattr(param, "callback", None) is _remember


def help_record(param: Any, ctx: typer.Context) -> tuple[str, str] | None:
    """Return the name and the help of a parameter, with its default as "(default: X)" before the final period."""
    record: tuple[str, str] | None = param.get_help_record(ctx)
    match = _DEFAULT.search(record[1]) if record else None
    if record is None or match is None:
        return record
    text = record[1][: match.start()].rstrip()
    limits = f"  [{match[2]}]" if match[2] else ""
    if "(default: " in text:  # stated in words that fit better
        return record[0], text + limits
    return record[0], f"{text.removesuffix('.')} (default: {match[1]}).{limits}"


class CommonOptionsHelp:
    """A mixin for the help of commands: description, examples, and the command's own options.

    The root lists the global options; other commands refer to it.
    """

    help: str | None
    params: list[Any]

    def get_help(self, ctx: Any) -> str:
        """Return the help in stdout's encoding. Typer itself assumes UTF-8."""
        text: str = super().get_help(ctx)  # type: ignore[misc]  # click.Command has it
        return shown(text.translate(_BREAK), sys.stdout)

    def format_help_text(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - click's signature
        description, examples = split_examples(self.help)
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(description.translate(_NO_BREAK))
        if examples:
            with formatter.section("Examples"):
                width, indent = formatter.width - formatter.current_indent, " " * formatter.current_indent
                blocks = [
                    "\n".join(indent + line for line in (e.comment, *wrap_command(e.command, width))) for e in examples
                ]
                formatter.write("\n\n".join(blocks) + "\n")

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": [], "Global options": []}
        for param in self.get_params(ctx):  # type: ignore[attr-defined]  # click.Command has it
            record = help_record(param, ctx)
            if record is None:
                continue
            if param.param_type_name == "argument":
                sections["Arguments"].append(record)
            elif is_common(param) and (param.name != "output" or param.help == _FORMATS_HELP):
                sections["Global options"].append(record)
            else:  # also -o of a command that has formats of its own
                sections["Options"].append(record)
        if ctx.parent is not None:
            sections["Global options"] = []
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl([(name, text.translate(_NO_BREAK)) for name, text in records])
        if ctx.parent is not None:
            formatter.write_paragraph()
            formatter.write_text(_GLOBAL_OPTIONS)
