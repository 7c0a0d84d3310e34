"""kctl produce: write lines, JSON Lines or generated values as records."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kctl.commands.produce import options as produce_options
from kctl.commands.produce.lines import LineOptions, line_parser
from kctl.commands.produce.options import Acks, Format, OnBadLine
from kctl.commands.produce.report import checked, report, report_check, speed
from kctl.commands.terminal import output
from kctl.commands.terminal.codecs import Compression
from kctl.commands.terminal.interrupts import call_on_interrupt, interrupt_when_terminated
from kctl.commands.terminal.invocation import invocation
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


def command(
    ctx: typer.Context,
    topic: produce_options.Topic,
    file: produce_options.File = None,
    format_: produce_options.LineFormat = Format.TEXT,
    key: produce_options.Key = None,
    key_separator: produce_options.KeySeparator = None,
    header: produce_options.Header = None,
    parse_headers: produce_options.ParseHeaders = False,
    headers_delimiter: produce_options.HeadersDelimiter = "\\t",
    headers_separator: produce_options.HeadersSeparator = ",",
    headers_key_separator: produce_options.HeadersKeySeparator = ":",
    null_marker: produce_options.NullMarker = None,
    partition: produce_options.Partition = None,
    repartition: produce_options.Repartition = False,
    timestamp: produce_options.Timestamp = None,
    template: produce_options.Template = None,
    size: produce_options.Size = None,
    count: produce_options.Count = None,
    rate: produce_options.Rate = None,
    acks: produce_options.WithAcks = Acks.ALL,
    compression: produce_options.WithCompression = Compression.NONE,
    idempotence: produce_options.Idempotence = None,
    on_bad_line: produce_options.AtBadLine = OnBadLine.STOP,
    failed_file: produce_options.FailedFile = None,
    quiet: produce_options.Quiet = False,
    dry_run: produce_options.DryRun = False,
) -> None:
    """Write lines from stdin or files, or generated values, to a topic.

    Prints how many records were acknowledged. Stops at the first record that is not acknowledged (exit code 5), and
    reports which lines are missing.

    Example: kctl produce orders --key-separator : < orders.txt
    """
    from kctl.records.produce.input import check_files
    from kctl.records.produce.options import ProduceOptions
    from kctl.records.produce.pace import parse_record_rate

    inv = invocation(ctx)
    separators = (headers_delimiter, headers_separator, headers_key_separator)
    lines = LineOptions(
        format_, key, key_separator, _headers(header), separators if parse_headers else None, null_marker,
        _timestamp_ms(timestamp), partition, repartition, template, size, on_bad_line is OnBadLine.ACCEPT,
    )  # fmt: skip
    lines.check(files=bool(file))
    files = [] if lines.is_generated else file or [_STDIN]
    check_files(files)
    options = ProduceOptions(
        topic=topic,
        partition=partition,
        acks=acks.value,
        compression=compression.value,
        idempotent=acks is Acks.ALL if idempotence is None else idempotence,
        linger_ms=0 if _reads_terminal(files) else 5,
        timeout_s=inv.timeout_s(30),
        count=count,
        per_s=parse_record_rate(rate) if rate else None,
        skip_bad_lines=on_bad_line is OnBadLine.SKIP,
    )
    encoded = format_ is not Format.TEXT
    if dry_run:
        _check(inv, files, options, line_parser(lines), encoded=encoded, quiet=quiet)
    else:
        _produce(inv, files, options, line_parser(lines), failed_file, encoded=encoded, quiet=quiet)


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
