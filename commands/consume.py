"""kctl consume: records of a topic, as text or JSON Lines."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from kctl.commands import output
from kctl.commands.interrupts import undone_when_terminated
from kctl.commands.invocation import Invocation, invocation
from kctl.commands.output import Column, Table, jsonable
from kctl.errors import UsageError
from kctl.text import printable
from kctl.units import parse_duration_ms

if TYPE_CHECKING:
    from kctl.records.consume import ConsumeResult
    from kctl.records.record import Record

_STARTS = {"earliest": (True, None), "latest": (False, None)}


def command(
    ctx: typer.Context,
    topic: Annotated[str, typer.Argument(metavar="TOPIC")],
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Start at the oldest record, not at the end.")
    ] = False,
    group: Annotated[
        str | None, typer.Option(help="Read as a member of this group, and commit what was shown.")
    ] = None,
    max_messages: Annotated[int | None, typer.Option(min=0, help="Stop after so many records.")] = None,
    exit_eof: Annotated[bool, typer.Option("--exit-eof", help="Stop at the end that the log has now.")] = False,
    partition: Annotated[list[int] | None, typer.Option(min=0, help="Only this partition; repeatable.")] = None,
    offset: Annotated[
        str | None, typer.Option(metavar="OFFSET", help="Where to start: a number, earliest or latest.")
    ] = None,
    idle_timeout: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Stop after so long without a record.")
    ] = None,
    key_separator: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Show the key too, and this between key and value; \\t is a tab.")
    ] = None,
    read_committed: Annotated[
        bool, typer.Option("--read-committed", help="Leave out aborted and open transactions.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Count the records instead of showing them.")] = False,
) -> None:
    """Read records of a topic: values as text, one a line, or whole records with -o json (JSON Lines).

    Values go to a pipe or file as they are; on a terminal, control characters are escaped. Ctrl-C ends it.

    Example: kctl consume orders --from-beginning --exit-eof -o json
    """
    from kctl.records.consume import ConsumeOptions, consume
    from kctl.records.lines import parse_separator

    inv = invocation(ctx)
    from_start, number = _start(offset)
    options = ConsumeOptions(
        topic=topic,
        partitions=tuple(partition) if partition else None,
        offset=number,
        from_beginning=from_beginning or from_start,
        group=group,
        max_messages=max_messages,
        exit_eof=exit_eof,
        idle_ms=parse_duration_ms(idle_timeout) if idle_timeout else None,
        read_committed=read_committed,
        timeout_s=inv.timeout_s(30),
    )
    separator = parse_separator(key_separator) if key_separator is not None else None
    sink = _sink(inv, separator, quiet=quiet)
    with undone_when_terminated(), inv.connect() as client:
        result = consume(client, options, sink)
    if quiet:
        _emit(inv, result)
    if result.ended == "interrupted":
        output.note(f"{result.records} records read{_where(result)}")
        raise KeyboardInterrupt


def _start(offset: str | None) -> tuple[bool, int | None]:
    if offset is None:
        return False, None
    if offset in _STARTS:
        return _STARTS[offset]
    if offset.isascii() and offset.isdigit() and int(offset) < 2**63:
        return False, int(offset)
    raise UsageError(f"--offset {offset!r} is not an offset", hint="a number, earliest or latest")


def _where(result: ConsumeResult) -> str:
    if result.group is None:
        return ""
    offsets = " ".join(f"{number}:{offset}" for number, offset in sorted((result.committed or {}).items()))
    return f", group {result.group} committed at {offsets}" if offsets else f", nothing committed for {result.group}"


def _emit(inv: Invocation, result: ConsumeResult) -> None:
    columns = [
        Column("topic"),
        Column("group"),
        Column("records", align="right"),
        Column("bytes", align="right"),
        Column("skipped", align="right"),
        Column("ended", "ENDED BY"),
    ]
    inv.emit(result, lambda: [Table(columns, [jsonable(result)])])


class _Writer(Protocol):
    def __call__(self, record: Record) -> None: ...


class _Sink:
    """Writes records to stdout by `show`; flushes after each batch."""

    def __init__(self, show: _Writer) -> None:
        self.write = show

    def flush(self) -> None:
        sys.stdout.flush()

    def warn(self, text: str) -> None:
        output.warn(text)


def _sink(inv: Invocation, separator: bytes | None, *, quiet: bool) -> _Sink:
    if quiet:
        return _Sink(lambda _record: None)
    if inv.output == "json":
        return _Sink(_write_json)
    if inv.output in {"yaml", "csv"}:
        raise UsageError(f"-o {inv.output} is not a format of kctl consume", hint="a stream is text, or -o json")
    if sys.stdout.isatty():
        return _Sink(lambda record: _write_escaped(record, separator))
    return _Sink(lambda record: _write_raw(record, separator))


def _write_json(record: Record) -> None:
    from kctl.records.record import view

    output.write_json_line(view(record))


def _write_raw(record: Record, separator: bytes | None) -> None:
    sys.stdout.buffer.write(_line(record, separator) + b"\n")


def _write_escaped(record: Record, separator: bytes | None) -> None:
    text = _line(record, separator).decode("utf-8", errors="backslashreplace")
    sys.stdout.write(printable(text) + "\n")


def _line(record: Record, separator: bytes | None) -> bytes:
    """The value, or key and value. What is not there is «null», as in Kafka's console consumer."""
    value = b"null" if record.value is None else record.value
    if separator is None:
        return value
    return (b"null" if record.key is None else record.key) + separator + value
