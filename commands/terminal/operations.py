"""The commands of kctl as operations of playbooks: described by their own parameters, run in this process.

A command's `-o json` output is the result, and its stderr lines are notes. So an operation does exactly what the
command line does, without a second process that would still run after kctl was killed.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from enum import Enum
from functools import lru_cache
from pathlib import PurePath
from threading import RLock
from typing import Any

import typer
from typer._click import types
from typer._click.exceptions import ClickException

from kctl.base.suggestions import did_you_mean
from kctl.commands import app
from kctl.commands.terminal.common_options import is_common
from kctl.commands.terminal.invocation import Invocation
from kctl.errors import ExitCode, KctlError, NotFound, OperationFailed, UsageError
from kctl.playbook.operations import Argument, Kind, Operation, OperationResult, Where

MAX_OUTPUT_BYTES = 16 << 20
# Other names of operations, for commands that stand alone.
ALIASES = {"lag.check": "lag"}
# Options that keep a command running until it is interrupted. A step must end; `until` polls.
_WITHOUT_END = frozenset({"--watch", "--follow"})
# Interactive commands, and commands that would run a playbook within a playbook (use `include` instead).
_NOT_OPERATIONS = frozenset({"completion", "demo", "topic watch", "zk watch", "playbook"})
# Commands that print one JSON line per record.
JSON_LINES = frozenset({"consume", "cluster logs", "segment dump", "segment find"})
# Commands without --dry-run that change a cluster or write a file.
WITHOUT_DRY_RUN = {
    "cluster warm": "fills a cache",
    "spark warm": "fills a cache",
    "cluster export": "writes the requested file, and asks before it replaces an existing file",
    "group export": "writes the requested file, and asks before it replaces an existing file",
    "spark bundle": "writes the requested file, and replaces no existing file without --overwrite",
    "topic reassign plan": "is the dry run of `topic reassign apply`",
    "history snapshot": "adds to its own store",
    "spark snapshot": "adds to its own store",
    "consume": "commits only for the requested group",
    "demo": "creates its own cluster and destroys it",
}
# Commands that change something only with this argument, and otherwise only print.
CHANGES_WITH = {
    "capacity": "measure",
    "cluster export": "out",
    "consume": "group",
    "group export": "out",
    "topic reassign plan": "out",
}


def names() -> Iterator[str]:
    """Yield the names of all operations. Imports the groups' modules."""
    for group in app.GROUPS:
        if group not in _NOT_OPERATIONS:
            yield from (_operation_name(path) for path, _ in _below((group,), _group(group)))


def aliases() -> Mapping[str, str]:
    """See Operations."""
    return ALIASES


def _below(path: tuple[str, ...], command: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    if not hasattr(command, "commands"):
        if " ".join(path) not in _NOT_OPERATIONS:
            yield path, command
        return
    for name in command.commands:
        yield from _below((*path, name), command.commands[name])


def _operation_name(path: Sequence[str]) -> str:
    return ".".join(path).replace("-", "_")


@lru_cache(maxsize=512)
def find(name: str) -> Operation:
    """See Operations."""
    path, command = _command(name)
    arguments = tuple(_argument(name, param) for name, param in _parameters(command).items())
    dry_run = any("--dry-run" in param.opts for param in command.params)
    return Operation(
        name=name,
        command=path,
        summary=(command.help or "").partition("\n")[0],
        arguments=arguments,
        changes=dry_run or " ".join(path) in WITHOUT_DRY_RUN,
        dry_run=dry_run,
        changes_with=CHANGES_WITH.get(" ".join(path)),
    )


@lru_cache(maxsize=512)
def _command(name: str) -> tuple[tuple[str, ...], Any]:
    """Return the path and the click command of an operation. Imports only its group."""
    path = tuple(ALIASES.get(name, name).replace("_", "-").split("."))
    if "-" not in name and path[0] in app.GROUPS and path[0] not in _NOT_OPERATIONS:
        command = _group(path[0])
        for part in path[1:]:
            command = getattr(command, "commands", {}).get(part)
        if command is not None and not hasattr(command, "commands") and " ".join(path) not in _NOT_OPERATIONS:
            return path, command
    raise NotFound(f"there is no operation {name}", hint=did_you_mean(name, [*names(), *ALIASES]))


@lru_cache(maxsize=64)
def _group(name: str) -> Any:
    return app.load(name)


def _parameters(command: Any) -> dict[str, Any]:
    """Return the parameters by name, without common options and options that the run sets."""
    excluded = {"--dry-run", "--help", *_WITHOUT_END}
    if any(_WITHOUT_END.intersection(param.opts) for param in command.params):
        excluded.add("--interval")
    return {_name(p): p for p in command.params if not is_common(p) and not excluded.intersection(p.opts)}


def _name(param: Any) -> str:
    """Return the option's name on the command line, not the name of the function's parameter."""
    name = str(param.name).rstrip("_")
    options: set[str] = {option.lstrip("-").replace("-", "_") for option in param.opts if option.startswith("--")}
    if param.param_type_name == "argument" or name in options or not options:
        return name
    return min(options, key=len)


def _argument(name: str, param: Any) -> Argument:
    return Argument(
        name=name,
        kind=_kind(param),
        required=bool(param.required),
        many=bool(param.multiple) or param.nargs == -1,
        pairs="=" in (param.metavar or ""),
        positional=param.param_type_name == "argument",
        default=_default(param.default),
        metavar=param.metavar or param.name.upper(),
        choices=tuple(getattr(param.type, "choices", ())),
        help=" ".join((getattr(param, "help", None) or "").split()),
    )


def _default(value: Any) -> Any:
    if callable(value):
        return None
    if isinstance(value, PurePath):
        return str(value)
    return value.value if isinstance(value, Enum) else value


def _kind(param: Any) -> Kind:
    if getattr(param, "is_flag", False):
        return "flag"
    if isinstance(param.type, types.IntParamType):
        return "integer"
    return "number" if isinstance(param.type, types.FloatParamType) else "text"


def command_line(operation: Operation, arguments: Mapping[str, Any]) -> list[str]:
    """See Operations. Options are written as `--name=value`, so that no value can be mistaken for an option."""
    _, command = _command(operation.name)
    params = _parameters(command)
    options: list[str] = []
    positional: list[str] = []
    for name in arguments:
        if name not in params:
            raise UsageError(f"{operation.name} has no argument {name}", hint=_suggestion(name, params))
    for name, param in params.items():
        value = arguments.get(name)
        argument = operation.argument(name)
        assert argument is not None
        if value is None:
            if argument.required:  # the next argument would take its place
                raise UsageError(f"{operation.name} needs {name}", hint=argument.help or f"{name}: {argument.metavar}")
            continue
        if argument.kind == "flag":
            options += _flag(operation, param, value)
            continue
        texts = _texts(operation, argument, value)
        if argument.positional:
            positional += texts
        else:
            option = max(param.opts, key=len)
            options += [f"{option}={text}" for text in texts]
    return [*operation.command, *options, *(["--", *positional] if positional else [])]


def _suggestion(name: str, parameters: Mapping[str, object]) -> str:
    return did_you_mean(name, parameters) or f"it has {', '.join(parameters) or 'none'}"


def _flag(operation: Operation, param: Any, value: Any) -> list[str]:
    if not isinstance(value, bool):
        raise UsageError(f"{operation.name}: {param.name} is true or false, not {value!r}")
    spellings = param.opts if value else param.secondary_opts
    return [max(spellings, key=len)] if spellings else []


def _texts(operation: Operation, argument: Argument, value: Any) -> list[str]:
    """Return the value as on the command line; several texts for an argument that takes many."""
    if isinstance(value, Mapping):
        if not (argument.many and argument.pairs):
            raise UsageError(f"{operation.name}: {argument.name} does not take a mapping")
        return [f"{key}={_text(operation, argument, each)}" for key, each in value.items()]
    if isinstance(value, (list, tuple)):
        if not argument.many:
            raise UsageError(f"{operation.name}: {argument.name} takes one value, not a list")
        return [_text(operation, argument, each) for each in value]
    return [_text(operation, argument, value)]


def _text(operation: Operation, argument: Argument, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    raise UsageError(f"{operation.name}: {argument.name} takes text or a number, not {type(value).__name__}")


def check(operation: Operation, arguments: Mapping[str, Any]) -> None:
    """See Operations."""
    _, command = _command(operation.name)
    argv = command_line(operation, arguments)[len(operation.command) :]
    try:
        with command.make_context(operation.name, argv, obj=Invocation()):
            pass
    except ClickException as exc:
        raise UsageError(f"{operation.name}: {exc.format_message()}") from exc


def run(
    operation: Operation,
    arguments: Mapping[str, Any],
    where: Where,
    *,
    dry_run: bool = False,
    stdin: bytes = b"",
    note: Callable[[str], None],
) -> OperationResult:
    """See Operations."""
    invocation = Invocation(
        output="json",
        context=where.context,
        bootstrap_server=where.bootstrap_server,
        zookeeper=where.zookeeper,
        command_config=where.command_config,
        ignore_unknown=where.ignore_unknown,
        timeout=where.timeout,
        confirm_cluster=where.confirm_cluster,
        yes=True,
    )
    captured = _Captured(lines=" ".join(operation.command) in JSON_LINES)
    stdout, stderr = sys.stdout, sys.stderr

    def report(line: str) -> None:
        with redirect_stdout(stdout), redirect_stderr(stderr):
            note(line)

    try:
        argv = command_line(operation, arguments)
        if dry_run:
            argv.insert(len(operation.command), "--dry-run")
        with _streams(captured, _Notes(report), stdin):
            code = app.run(argv, invocation)
        if code == ExitCode.INTERRUPTED:
            raise KeyboardInterrupt
        return OperationResult(code, captured.value(), changed=invocation.changed)
    except typer.Abort:
        raise KeyboardInterrupt from None
    except SystemExit as exc:
        code = exc.code if isinstance(exc.code, int) else int(ExitCode.FAILED)
        return OperationResult(code, captured.value(), changed=invocation.changed)
    except KctlError as exc:
        return OperationResult(int(exc.exit_code), captured.value(), exc, invocation.changed)
    except Exception as exc:  # noqa: BLE001 - as in the root command: fails one step, never the whole run
        failed = app.unexpected(exc)
        return OperationResult(int(failed.exit_code), captured.value(), failed, invocation.changed)


class _Captured(io.RawIOBase):
    """Standard output, up to a limit."""

    def __init__(self, *, lines: bool) -> None:
        """lines: the value is a list, even for one line or none."""
        super().__init__()
        self._lines = lines
        self._data = bytearray()
        self._full = False

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if self._full:  # already reported; the rest is discarded
            return len(data)
        if len(self._data) + len(data) > MAX_OUTPUT_BYTES:
            self._full = True
            raise OperationFailed(
                f"the operation printed more than {MAX_OUTPUT_BYTES >> 20} MiB",
                hint="select less, or request a summary",
            )
        self._data += data
        return len(data)

    def value(self) -> Any:
        """Return the JSON value, JSON Lines as a list, or other text as is; None if it is empty or too large."""
        if self._full:
            return None
        text = self._data.decode("utf-8", "surrogateescape").strip()
        if not text:
            return [] if self._lines else None
        if not self._lines:
            try:
                return json.loads(text)
            except ValueError:
                pass
        try:
            return [json.loads(line) for line in text.split("\n")]  # not splitlines: U+2028 may be in a value
        except ValueError:
            return text


class _Notes(io.TextIOBase):
    """Standard error, line by line."""

    def __init__(self, note: Callable[[str], None]) -> None:
        super().__init__()
        self._note = note
        self._rest = ""
        self._lock = RLock()  # threads and signal handlers of an operation write at the same time

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        with self._lock:
            *lines, self._rest = (self._rest + text).replace("\r", "\n").split("\n")
            for line in lines:
                self._report(line)
        return len(text)

    def end(self) -> None:
        """Report the last line even without a line end."""
        line, self._rest = self._rest, ""
        self._report(line)

    def _report(self, line: str) -> None:
        if line.strip():
            self._note(line)


@contextmanager
def _streams(captured: _Captured, notes: _Notes, stdin: bytes) -> Iterator[None]:
    """Replace the process's standard streams for the block, so that a step never reads the terminal."""
    before = sys.stdin, sys.stdout, sys.stderr
    with tempfile.TemporaryFile("w+b") as stdin_file:
        stdin_file.write(stdin)
        stdin_file.seek(0)
        out = io.TextIOWrapper(io.BufferedWriter(captured), encoding="utf-8", errors="surrogateescape", newline="\n")
        sys.stdin = io.TextIOWrapper(stdin_file, encoding="utf-8", errors="surrogateescape")
        sys.stdout, sys.stderr = out, notes
        try:
            yield
            out.flush()
        finally:
            sys.stdin, sys.stdout, sys.stderr = before
            with suppress(KctlError):  # output before a failure; an excess was already reported
                out.flush()
            notes.end()
