"""The root of the command line: lazy groups, and errors turned into exit codes.

A group's module is imported only when the group is chosen: for the root's help, SECTIONS has name, help and module.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand

from kctl import __version__
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import Invocation, KctlCommand, KctlGroup
from kctl.errors import ExitCode, KctlError, OperationFailed, UsageError

# The sections of the root's help: title → name → (module, help). The module of a group has `app`, a CommandGroup; the
# module of a single command has `command`, a function.
SECTIONS: dict[str, dict[str, tuple[str, str]]] = {
    "Inspect": {
        "doctor": ("kctl.commands.doctor", "Find problems in a cluster or in config files."),
        "lag": ("kctl.commands.lag", "Show the lag of consumer groups."),
        "broker": ("kctl.commands.broker.commands", "Show brokers, disks, versions and features; set log levels."),
        "controller": ("kctl.commands.controller", "Show the controller and the metadata quorum."),
        "zk": ("kctl.commands.zk.commands", "Inspect ZooKeeper (read-only)."),
        "history": ("kctl.commands.history.commands", "Collect snapshots; report on lag, disks and trends over time."),
        "spark": ("kctl.commands.spark.commands", "Compute lag and retention usage with PySpark."),
        "capacity": ("kctl.commands.capacity.commands", "Plan the partitions and brokers that a load needs."),
    },
    "Change": {
        "topic": ("kctl.commands.topic.commands", "List, describe, create, alter, reassign and delete topics."),
        "config": ("kctl.commands.config.commands", "Read, explain, change and compare configs."),
        "leader": ("kctl.commands.leader.commands", "Show, elect and balance partition leaders."),
        "group": ("kctl.commands.group.commands", "Describe consumer groups; reset and delete offsets."),
        "acl": ("kctl.commands.acl.commands", "List, explain, add, remove and apply ACLs."),
        "user": ("kctl.commands.user", "List, add and remove SCRAM users."),
        "quota": ("kctl.commands.quota.commands", "List, set and unset client quotas."),
        "feature": ("kctl.commands.feature.commands", "Show, raise and lower feature levels of the cluster (KRaft)."),
        "quorum": ("kctl.commands.quorum.commands", "Show and change the voters of the metadata quorum (KRaft)."),
        "transaction": ("kctl.commands.transaction.commands", "List transactions; find and abort hanging ones."),
    },
    "Data": {
        "produce": ("kctl.commands.produce.commands", "Write lines from stdin to a topic."),
        "consume": ("kctl.commands.consume.commands", "Read records from a topic."),
    },
    "Files": {
        "segment": ("kctl.commands.segment.commands", "Read, verify and repair log files, without a broker."),
    },
    "Local and managed clusters": {
        "cluster": ("kctl.commands.cluster.commands", "Run clusters on this machine; check any cluster's health."),
        "validate": ("kctl.commands.validate.commands", "Inject faults into a test cluster; verify its guarantees."),
        "demo": ("kctl.commands.demo.commands", "Watch a cluster start, fail, recover and report its lag."),
    },
    "Automation": {
        "playbook": ("kctl.commands.playbook.commands", "List, check and run playbooks: steps in a file."),
    },
    "Setup": {
        "context": ("kctl.commands.context.commands", "Manage contexts: named clusters and their settings."),
        "runtime": ("kctl.commands.runtime", "Install and list Kafka releases."),
        "completion": ("kctl.commands.completion.commands", "Print shell completion."),
    },
}
GROUPS = {name: group for section in SECTIONS.values() for name, group in section.items()}
EXIT_MEANINGS = {
    ExitCode.OK: "success; no problem found",
    ExitCode.UNHEALTHY: "a check failed: unhealthy, over a limit, or different",
    ExitCode.USAGE: "invalid command line or input file",
    ExitCode.UNREACHABLE: "the cluster cannot be reached, or the login failed",
    ExitCode.REFUSED: "refused before any change: not found, not confirmed, not supported",
    ExitCode.FAILED: "failed, or incomplete; the message says what was done",
    ExitCode.INTERRUPTED: "interrupted",
}
_EPILOG = "\b\nExit codes:\n" + "\n".join(f"  {int(code):<5}{text}" for code, text in EXIT_MEANINGS.items())


class _Stub(TyperCommand):
    """A placeholder for a group in the root's help until the group is chosen."""

    def __init__(self, name: str, help: str) -> None:  # noqa: A002 - Typer's own name
        super().__init__(name, help=help, rich_markup_mode=None)


class _LazyRoot(KctlGroup):
    """Root group that shows stubs and loads a module only for the command that runs."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - click's signature
        return list(GROUPS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - click's signature
        width = max(map(len, GROUPS))
        for title, section in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, (_, text) in section.items()])

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in GROUPS:
            return None
        # click's help asks for every command while nothing has been parsed yet.
        if not _resolving(ctx):
            return _Stub(cmd_name, GROUPS[cmd_name][1])
        return load(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        self.commands = {name: _Stub(name, text) for name, (_, text) in GROUPS.items()}  # for "did you mean"
        ctx.meta["kctl.resolving"] = True
        return super().resolve_command(ctx, args)


def _resolving(ctx: Any) -> bool:
    return bool(ctx.meta.get("kctl.resolving"))


def load(name: str) -> Any:
    """Import a group's module and return its click command."""
    module = import_module(GROUPS[name][0])
    if hasattr(module, "app"):
        group = module.app.group(name)
        group.help = GROUPS[name][1]
        return group
    single = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    single.command(name, cls=KctlCommand)(module.command)
    return typer.main.get_command(single)


def root() -> KctlGroup:
    """Return the root command."""
    return _LazyRoot(
        name="kctl",
        help="Operations for Apache Kafka.\n\nStart with `kctl demo`, or `kctl cluster create dev --layout single`.",
        epilog=_EPILOG,
        params=[_version_option()],
        no_args_is_help=True,
        rich_markup_mode=None,
    )


def _version_option() -> Any:
    from typer.core import TyperOption

    def show(ctx: typer.Context, _param: Any, value: bool) -> None:
        if value and not ctx.resilient_parsing:
            output.write_line(f"kctl {__version__}")
            ctx.exit()

    return TyperOption(
        param_decls=["--version"], is_flag=True, is_eager=True, expose_value=False, callback=show,
        help="Print the version.",
    )  # fmt: skip


def main(argv: Sequence[str]) -> int:
    """Run a command line and return the exit code."""
    invocation = Invocation(output=_output_before_parsing(argv))
    output.prepare_streams()
    if sys.stderr is None:  # closed (`2>&-`): messages are lost, the result is not
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - until the process ends
    try:
        if sys.stdout is None:  # closed (`>&-`)
            raise OperationFailed("standard output is closed", hint="redirect it to /dev/null to discard the output")
        return run(argv, invocation)
    except KctlError as exc:
        return _failed(exc, invocation)
    except (KeyboardInterrupt, typer.Abort):
        return _interrupted()
    except BrokenPipeError:  # the reader closed the pipe (`| head`): not an error
        output.discard(sys.stdout)
        return int(ExitCode.OK)
    except Exception as exc:  # noqa: BLE001 - the last resort: one line, no traceback without --debug
        return _failed(unexpected(exc), invocation)


def _failed(exc: KctlError, invocation: Invocation) -> int:
    """Report an error after all results, even if standard output is closed."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        output.discard(sys.stdout)
    try:
        if invocation.debug:
            _print_traceback()
        output.error(exc, invocation.output)
    except BrokenPipeError:
        output.discard(sys.stderr)
    return int(exc.exit_code)


def run(argv: Sequence[str], invocation: Invocation) -> int:
    """Parse and run a command line; return the exit code. Raises the exception that ended the command."""
    from typer._click.exceptions import ClickException, NoArgsIsHelpError

    if "_KCTL_COMPLETE" in os.environ:  # a shell asks for completions (commands/completion/commands.py)
        from kctl.commands.completion.commands import answer_by_lines

        answer_by_lines()
    try:
        code = root().main(_help_as_option(argv), prog_name="kctl", standalone_mode=False, obj=invocation)
        sys.stdout.flush()
    except SystemExit as exc:
        if isinstance(exc.__context__, BrokenPipeError):  # Typer itself would exit with code 1
            raise exc.__context__ from None
        raise
    except NoArgsIsHelpError as exc:
        exc.show()
        return int(ExitCode.USAGE)
    except ClickException as exc:
        ctx = getattr(exc, "ctx", None)
        hint = f"{ctx.get_usage()}\nsee {ctx.command_path} --help{_about_dashes(exc, argv)}" if ctx else None
        raise UsageError(exc.format_message(), hint=hint) from exc
    if code == ExitCode.INTERRUPTED:  # what Typer makes of Ctrl-C in a command
        return _interrupted()
    return code if isinstance(code, int) else int(ExitCode.OK)


def _about_dashes(exc: Any, argv: Sequence[str]) -> str:
    """Return a hint line about names that begin with a dash, if the command takes names and the option is unknown."""
    option = getattr(exc, "option_name", None)
    if not option or getattr(exc, "possibilities", None):
        return ""
    if not any(each.param_type_name == "argument" for each in exc.ctx.command.params):
        return ""
    word = next((each for each in argv if each.startswith(option)), option)
    return f"\nif {word} is a name, put it after all options and --: {exc.ctx.command_path} … -- {word}"


def _help_as_option(argv: Sequence[str]) -> list[str]:
    """Treat `kctl help topic list` as `kctl topic list --help`."""
    return [*argv[1:], "--help"] if argv and argv[0] == "help" else list(argv)


def _interrupted() -> int:
    # A terminal shows ^C on the line that was being written.
    sys.stderr.write("\ninterrupted\n" if sys.stderr.isatty() else "interrupted\n")
    return int(ExitCode.INTERRUPTED)


def _output_before_parsing(argv: Sequence[str]) -> str | None:
    """Return -o from the raw command line, so that errors of the parser are JSON too if requested."""
    for index, arg in enumerate(argv):
        if arg in {"-o", "--output"} and index + 1 < len(argv):
            return "json" if argv[index + 1] == "json" else None
        if arg in {"-ojson", "--output=json", "-o=json"}:
            return "json"
    return None


def unexpected(exc: Exception) -> KctlError:
    """Convert an unexpected exception to an error of one line."""
    if isinstance(exc, OSError) and exc.strerror:
        where = f" {exc.filename}" if exc.filename else ""
        return OperationFailed(f"{exc.strerror}:{where}" if where else exc.strerror)
    if isinstance(exc, RuntimeError) and "home directory" in str(exc):  # raised by pathlib for ~
        return UsageError("cannot expand ~: the user has no home directory", hint="use an absolute path, or set HOME")
    return OperationFailed(
        f"unexpected {type(exc).__name__}: {exc}", hint="run it again with --debug to see where it comes from"
    )


def _print_traceback() -> None:
    import traceback

    traceback.print_exc(file=sys.stderr)
