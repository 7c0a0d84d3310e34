"""kctl produce: lines, JSON Lines or a template's payloads become records."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.commands import output
from kctl.commands.interrupts import told_when_interrupted, undone_when_terminated
from kctl.commands.invocation import invocation
from kctl.commands.produce_report import report, speed
from kctl.errors import KctlError, UsageError
from kctl.units import parse_size

if TYPE_CHECKING:
    from kctl.client import ClusterClient
    from kctl.commands.invocation import Invocation
    from kctl.records.lost_file import LostFile
    from kctl.records.outgoing import Headers, Outgoing
    from kctl.records.produce import Destination, ProduceOptions, ProduceResult, Producing
    from kctl.records.produce_input import Supply

_STDIN = Path("-")
Parse = Callable[[bytes, int], "Outgoing"]


class Acks(str, Enum):
    """Who has to have a record before it counts."""

    ALL = "all"
    LEADER = "1"
    NONE = "0"


class Compression(str, Enum):
    """The codec of record batches."""

    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


class Format(str, Enum):
    """What a line is."""

    TEXT = "text"
    JSON = "json"
    HEX = "hex"
    BASE64 = "base64"


class OnBadLine(str, Enum):
    """What to do with a line that cannot be a record."""

    STOP = "stop"
    SKIP = "skip"


def command(
    ctx: typer.Context,
    topic: Annotated[str, typer.Argument(metavar="TOPIC")],
    file: Annotated[list[Path] | None, typer.Option(help="Read this instead of stdin; repeatable.")] = None,
    format_: Annotated[
        Format, typer.Option("--format", help="What a line is: a value, or a record as consume -o json writes it.")
    ] = Format.TEXT,
    key: Annotated[str | None, typer.Option(metavar="TEXT", help="The key of records that have none.")] = None,
    key_separator: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What stands between key and value; \\t is a tab.")
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Add a header to each record; repeatable.")
    ] = None,
    parse_headers: Annotated[
        bool, typer.Option("--parse-headers", help="Lines begin with headers: a:1,b:2, then a tab.")
    ] = False,
    headers_delimiter: Annotated[
        str, typer.Option(metavar="TEXT", help="What stands behind the headers of a line.")
    ] = "\\t",
    headers_separator: Annotated[str, typer.Option(metavar="TEXT", help="What stands between two headers.")] = ",",
    headers_key_separator: Annotated[
        str, typer.Option(metavar="TEXT", help="What stands between a header's key and value.")
    ] = ":",
    null_marker: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Text that stands for null: as a value, a tombstone.")
    ] = None,
    partition: Annotated[int | None, typer.Option(min=0, help="Send everything to this partition.")] = None,
    repartition: Annotated[
        bool, typer.Option("--repartition", help="Let keys decide, whatever partition JSON lines name.")
    ] = False,
    timestamp: Annotated[
        str | None, typer.Option(metavar="TIME", help="Timestamp of all records: ISO 8601, ms, or «2h ago».")
    ] = None,
    template: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Make values: {n} {uuid} {now} {random:100} {int:1:6}.")
    ] = None,
    size: Annotated[str | None, typer.Option(metavar="SIZE", help="Make random values of this size, as 1kB.")] = None,
    count: Annotated[int | None, typer.Option(min=0, help="Stop after so many lines or made values.")] = None,
    rate: Annotated[str | None, typer.Option(metavar="N/s", help="Records a second (/m, /h) at most.")] = None,
    acks: Annotated[
        Acks, typer.Option(help="Replicas that must have a record: all in sync, the leader, none.")
    ] = Acks.ALL,
    compression: Annotated[
        Compression, typer.Option("--compression-codec", "--compression", help="Codec of the batches.")
    ] = Compression.NONE,
    idempotence: Annotated[
        bool | None, typer.Option(help="No duplicates after retries; on unless --acks says otherwise.")
    ] = None,
    on_bad_line: Annotated[
        OnBadLine, typer.Option(help="What to do at a line that cannot be a record.")
    ] = OnBadLine.STOP,
    failed_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to keep what is not acknowledged, for --format json.")
    ] = None,
) -> None:
    """Write lines of stdin or files to a topic, or made values, and report how many were acknowledged.

    Stops at the first record that is not acknowledged (exit code 5) and says which lines are missing.

    Example: kctl produce orders --key-separator : < orders.txt
    """
    from kctl.records.pace import parse_record_rate
    from kctl.records.produce import ProduceOptions, Producing, check_topic
    from kctl.records.produce_input import check_files

    inv = invocation(ctx)
    made = template is not None or size is not None
    splits = key_separator is not None or parse_headers
    if made and (file or format_ is not Format.TEXT or splits):
        raise UsageError("--template and --size make the values: they read no lines", hint="leave out what reads them")
    if format_ is Format.JSON:
        _refuse_separators(splits or null_marker is not None)
    files = [] if made else file or [_STDIN]
    check_files(files)
    terminal = _STDIN in files and sys.stdin.isatty()
    options = ProduceOptions(
        topic=topic,
        partition=partition,
        acks=acks.value,
        compression=compression.value,
        idempotent=acks is Acks.ALL if idempotence is None else idempotence,
        linger_ms=0 if terminal else 5,
        timeout_s=inv.timeout_s(30),
        count=count,
        per_s=parse_record_rate(rate) if rate else None,
        skip_bad_lines=on_bad_line is OnBadLine.SKIP,
    )
    headers, timestamp_ms = _headers(header), _moment(timestamp)
    parse: Parse | None
    if made:
        parse = _made(template, size, key, headers, timestamp_ms, partition)
    elif format_ is Format.JSON:
        parse = _json(key, headers, timestamp_ms, partition, repartition=repartition)
    else:
        separators = (headers_delimiter, headers_separator, headers_key_separator) if parse_headers else None
        parse = _text(format_, key, key_separator, separators, null_marker, headers, timestamp_ms, partition)
    with ExitStack() as stack:
        lost_file = None
        if failed_file is not None:
            from kctl.records.lost_file import LostFile

            lost_file = LostFile(failed_file)
            stack.callback(lost_file.close)
        stack.enter_context(undone_when_terminated())
        client = stack.enter_context(inv.connect())
        destination = check_topic(client, options)
        inv.confirm_protected(f"Write to topic {topic} of {client.target.name}?", target=client.target)
        supply = _supply(files, options, destination, encoded=format_ is not Format.TEXT)
        run = Producing(
            client, destination, options, supply, parse,
            progress=stack.enter_context(speed(terminal=terminal)),
        )  # fmt: skip
        run.prepare()
        if terminal:
            output.note("one record for each line; Ctrl-D ends")
        with told_when_interrupted(run.interrupt):
            result = run.run()
            not_kept = None if lost_file is None else _keep(lost_file, run)
        cause = _cause(client, result)
    _tell(inv, run, cause, not_kept)


def _refuse_separators(given: bool) -> None:
    if given:
        raise UsageError(
            "JSON lines have their own keys, headers and nulls", hint="leave out the separators and markers"
        )


def _cause(client: ClusterClient, result: ProduceResult) -> str | None:
    """What the cluster lacks, when something is not acknowledged."""
    from kctl.records.produce import shortage

    if result.interrupted or not (result.failed or result.unknown):
        return None
    try:
        return shortage(client, result.topic)
    except KeyboardInterrupt:
        result.interrupted = True
        return None


def _tell(inv: Invocation, run: Producing, cause: str | None, not_kept: KctlError | None) -> None:
    """The account, whatever is pressed meanwhile; then what ended the run unexpectedly."""
    try:
        with told_when_interrupted(run.interrupt):
            report(inv, run.result, run.cause, cause, not_kept)
    except KctlError:
        if run.unexpected is None:
            raise
    if run.unexpected is not None:
        raise run.unexpected


def _keep(lost_file: LostFile, run: Producing) -> KctlError | None:
    """Write what was not acknowledged; why that could not be done."""
    why = None
    try:
        kept = lost_file.write(run.result.topic, run.lost())
    except KctlError as exc:
        kept, why = lost_file.written, exc
    if kept:
        run.result.failed_file = str(lost_file.path)
    return why


def _supply(files: list[Path], options: ProduceOptions, destination: Destination, *, encoded: bool) -> Supply:
    from kctl.records.produce import longest_line
    from kctl.records.produce_input import Endless, Lines

    return Lines(files, longest_line(destination, options, encoded=encoded)) if files else Endless()


def _headers(given: list[str] | None) -> Headers:
    from kctl.records.produce_text import parse_header

    return tuple(parse_header(text) for text in given or ())


def _moment(timestamp: str | None) -> int | None:
    from kctl.moments import parse_moment

    return None if timestamp is None else parse_moment(timestamp)


def _raw(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8", "surrogateescape")


def _made(
    value: str | None,
    size: str | None,
    key: str | None,
    headers: Headers,
    timestamp_ms: int | None,
    partition: int | None,
) -> Parse:
    from kctl.records.outgoing import Outgoing
    from kctl.records.produce_template import random_text, template

    if value is not None and size is not None:
        raise UsageError("--template and --size are two different values", hint="{random:1000} is a part of a template")
    make_value = random_text(parse_size(size)) if size is not None else template(value or "")
    make_key = template(key) if key is not None else None

    def parse(_line: bytes, number: int) -> Outgoing:
        return Outgoing(make_key(number) if make_key else None, make_value(number), headers, timestamp_ms, partition)

    return parse


def _json(
    key: str | None, headers: Headers, timestamp_ms: int | None, partition: int | None, *, repartition: bool
) -> Parse:
    from kctl.records.produce_json import json_parser

    parse = json_parser(
        headers=headers, key=_raw(key), timestamp_ms=timestamp_ms, partition=partition, repartition=repartition
    )
    return lambda line, _number: parse(line)


def _text(
    format_: Format,
    key: str | None,
    key_separator: str | None,
    separators: tuple[str, str, str] | None,
    null_marker: str | None,
    headers: Headers,
    timestamp_ms: int | None,
    partition: int | None,
) -> Parse | None:
    from kctl.records.lines import parse_separator
    from kctl.records.produce_text import TextFormat, text_parser

    if key is not None and key_separator is not None:
        raise UsageError("--key and --key-separator are two different keys")
    names = ("--headers-delimiter", "--headers-separator", "--headers-key-separator")
    delimiter, between, equals = (
        parse_separator(text, name) for text, name in zip(separators or ("\t", ",", ":"), names, strict=True)
    )
    how = TextFormat(
        encoding=format_.value,
        key_separator=None if key_separator is None else parse_separator(key_separator),
        key=_raw(key),
        parse_headers=separators is not None,
        headers_delimiter=delimiter,
        headers_separator=between,
        headers_key_separator=equals,
        null_marker=_raw(null_marker),
        headers=headers,
        timestamp_ms=timestamp_ms,
        partition=partition,
    )
    if how.plain:
        return None
    parse = text_parser(how)
    return lambda line, _number: parse(line)
