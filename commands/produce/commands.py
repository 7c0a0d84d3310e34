"""kctl produce: write lines, JSON Lines or generated values as records."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kctl.commands.produce.lines import LineOptions, line_parser
from kctl.commands.produce.options import Acks, Format, OnBadLine, ProduceArguments
from kctl.commands.produce.report import checked, report, report_check, speed
from kctl.commands.terminal import output
from kctl.commands.terminal.interrupts import call_on_interrupt, interrupt_when_terminated
from kctl.commands.terminal.invocation import invocation
from kctl.commands.terminal.option_sets import takes_options
from kctl.errors import KctlError, UsageError

if TYPE_CHECKING:
    from kctl.commands.terminal.invocation import Invocation
    from kctl.protocol.client import ClusterClient
    from kctl.records.produce.destination import Destination
    from kctl.records.produce.fitting import Parse
    from kctl.records.produce.input import Supply
    from kctl.records.produce.options import ProduceOptions, ProduceResult
    from kctl.records.produce.outgoing import Headers
    from kctl.records.produce.produce import ProduceRun
    from kctl.records.produce.undelivered_file import UndeliveredFile

_STDIN = Path("-")


@takes_options(ProduceArguments)
def command(ctx: typer.Context, options: ProduceArguments) -> None:
    """Write lines from stdin or files, or generated values, to a topic.

    Prints how many records were acknowledged. Stops at the first record that is not acknowledged (exit code 5), and
    reports which lines are missing.

    # Send each line of a file, split into key and value at the colon
    kctl produce orders --key-separator : < orders.txt
    """
    from kctl.records.produce.input import check_files

    inv = invocation(ctx)
    lines = _line_options(options)
    lines.check(files=bool(options.file))
    files = [] if lines.is_generated else options.file or [_STDIN]
    check_files(files)
    settings = _settings(options, files, timeout_s=inv.timeout_s(30))
    encoded = options.format_ is not Format.TEXT
    if options.dry_run:
        _check(inv, files, settings, line_parser(lines), encoded=encoded, quiet=options.quiet)
    else:
        _produce(inv, files, settings, line_parser(lines), options.failed_file, encoded=encoded, quiet=options.quiet)


def _line_options(arguments: ProduceArguments) -> LineOptions:
    separators = (arguments.headers_delimiter, arguments.headers_separator, arguments.headers_key_separator)
    return LineOptions(
        arguments.format_,
        arguments.key,
        arguments.key_separator,
        _headers(arguments.header),
        separators if arguments.parse_headers else None,
        arguments.null_marker,
        _timestamp_ms(arguments.timestamp),
        arguments.partition,
        arguments.repartition,
        arguments.template,
        arguments.size,
        arguments.on_bad_line is OnBadLine.ACCEPT,
    )


def _settings(arguments: ProduceArguments, files: list[Path], *, timeout_s: float) -> ProduceOptions:
    from kctl.records.produce.options import ProduceOptions
    from kctl.records.produce.pace import parse_record_rate

    acks, idempotence = arguments.acks, arguments.idempotence
    return ProduceOptions(
        topic=arguments.topic,
        partition=arguments.partition,
        acks=acks.value,
        compression=arguments.compression.value,
        idempotent=acks is Acks.ALL if idempotence is None else idempotence,
        linger_ms=0 if _reads_terminal(files) else 5,
        timeout_s=timeout_s,
        count=arguments.count,
        per_s=parse_record_rate(arguments.rate) if arguments.rate else None,
        skip_bad_lines=arguments.on_bad_line is OnBadLine.SKIP,
    )


def _reads_terminal(files: list[Path]) -> bool:
    return _STDIN in files and sys.stdin.isatty()


def _check(
    inv: Invocation, files: list[Path], options: ProduceOptions, parse: Parse | None, *, encoded: bool, quiet: bool
) -> None:
    from kctl.records.produce.check import check_lines, check_right_to_write
    from kctl.records.produce.destination import check_topic, shortage

    if not files and options.count is None:
        raise UsageError("--dry-run of generated values requires a limit", hint="add --count N")
    with interrupt_when_terminated(), inv.connect() as client:
        destination = check_topic(client, options)
        check_right_to_write(client, options.topic)
        lacking = shortage(client, options.topic)
    supply = _supply(files, options, destination, encoded=encoded, quiet=quiet)
    with checked(terminal=_reads_terminal(files), quiet=quiet) as progress:
        check = check_lines(destination, options, supply, parse, progress=progress)
    report_check(inv, check, options, lacking, quiet=quiet)


def _produce(
    inv: Invocation,
    files: list[Path],
    options: ProduceOptions,
    parse: Parse | None,
    failed_file: Path | None,
    *,
    encoded: bool,
    quiet: bool,
) -> None:
    from kctl.records.produce.destination import check_topic
    from kctl.records.produce.produce import ProduceRun

    with ExitStack() as stack:
        undelivered_file = None
        if failed_file is not None:
            from kctl.records.produce.undelivered_file import UndeliveredFile

            undelivered_file = UndeliveredFile(failed_file)
            stack.callback(undelivered_file.close)
        stack.enter_context(interrupt_when_terminated())
        client = stack.enter_context(inv.connect())
        destination = check_topic(client, options)
        question = f"Write to topic {options.topic} on {client.target.name}?"
        inv.confirm_protected(question, target=client.target)
        run = ProduceRun(
            client, destination, options, _supply(files, options, destination, encoded=encoded, quiet=quiet), parse,
            progress=stack.enter_context(speed(terminal=_reads_terminal(files), quiet=quiet)),
        )  # fmt: skip
        run.prepare()
        if _reads_terminal(files) and not quiet:
            output.note("type one record per line; end with Ctrl-D")
        with call_on_interrupt(run.interrupt):
            result = run.run()
            not_saved = None if undelivered_file is None else _save(undelivered_file, run)
        cause = _cause(client, result)
    _emit_result(inv, run, cause, not_saved, quiet=quiet)


def _cause(client: ClusterClient, result: ProduceResult) -> str | None:
    """Return what the cluster lacks to acknowledge the records that failed; None if nothing failed."""
    from kctl.records.produce.destination import shortage

    if result.interrupted or not (result.failed or result.unknown):
        return None
    try:
        return shortage(client, result.topic)
    except KeyboardInterrupt:
        result.interrupted = True
        return None


def _emit_result(
    inv: Invocation, run: ProduceRun, cause: str | None, not_saved: KctlError | None, *, quiet: bool
) -> None:
    """Emit the result even after Ctrl-C, then raise the unexpected exception that ended the run, if any."""
    try:
        with call_on_interrupt(run.interrupt):
            report(inv, run.result, run.cause, cause, not_saved, quiet=quiet)
    except KctlError:
        if run.unexpected is None:
            raise
    if run.unexpected is not None:
        raise run.unexpected


def _save(undelivered_file: UndeliveredFile, run: ProduceRun) -> KctlError | None:
    """Write unacknowledged records to the file. Return the error, if any."""
    error = None
    try:
        count = undelivered_file.write(run.result.topic, run.unacknowledged())
    except KctlError as exc:
        count, error = undelivered_file.written, exc
    if count:
        run.result.failed_file = str(undelivered_file.path)
    return error


def _supply(
    files: list[Path], options: ProduceOptions, destination: Destination, *, encoded: bool, quiet: bool
) -> Supply:
    from kctl.records.produce.destination import longest_line
    from kctl.records.produce.input import Endless, InputLines

    if not files:
        return Endless()
    return InputLines(
        files, longest_line(destination, options, encoded=encoded), on_mark=_ignore_mark if quiet else _note_mark
    )


def _note_mark(name: str) -> None:
    output.note(f"{name} begins with a byte order mark, which is ignored")


def _ignore_mark(_name: str) -> None:
    """Do nothing: --quiet."""


def _headers(texts: list[str] | None) -> Headers:
    from kctl.records.produce.text import parse_header

    return tuple(parse_header(text) for text in texts or ())


def _timestamp_ms(timestamp: str | None) -> int | None:
    from kctl.base.timestamps import parse_timestamp

    return None if timestamp is None else parse_timestamp(timestamp)
