"""kctl produce: lines from stdin become records."""

from __future__ import annotations

import sys
from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.commands import output
from kctl.commands.interrupts import undone_when_terminated
from kctl.commands.invocation import Invocation, invocation
from kctl.commands.output import Column, Table, jsonable
from kctl.commands.views import ranges
from kctl.errors import OperationFailed, UsageError

if TYPE_CHECKING:
    from kctl.records.produce import ProduceResult


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


def command(
    ctx: typer.Context,
    topic: Annotated[str, typer.Argument(metavar="TOPIC")],
    key_separator: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What stands between key and value; \\t is a tab.")
    ] = None,
    acks: Annotated[
        Acks, typer.Option(help="Replicas that must have a record: all in sync, the leader, none.")
    ] = Acks.ALL,
    partition: Annotated[int | None, typer.Option(min=0, help="Send everything to this partition.")] = None,
    compression: Annotated[Compression, typer.Option(help="Codec of the batches.")] = Compression.NONE,
    idempotence: Annotated[
        bool | None, typer.Option(help="No duplicates after retries; on unless --acks says otherwise.")
    ] = None,
) -> None:
    """Write each line of stdin to a topic, and report how many were acknowledged.

    Stops at the first line that is not acknowledged (exit code 5) and says which lines are missing.

    Example: kctl produce orders --key-separator : < orders.txt
    """
    from kctl.records.lines import parse_separator, read_lines
    from kctl.records.produce import ProduceOptions, check_topic, open_producer, produce, shortage

    inv = invocation(ctx)
    separator = parse_separator(key_separator) if key_separator is not None else None
    if sys.stdin is None or sys.stdin.closed:
        raise UsageError("stdin is closed: there is nothing to read", hint="for example: kctl produce TOPIC < FILE")
    terminal = sys.stdin.isatty()
    options = ProduceOptions(
        topic=topic,
        partition=partition,
        acks=acks.value,
        compression=compression.value,
        idempotent=acks is Acks.ALL if idempotence is None else idempotence,
        linger_ms=0 if terminal else 5,
        timeout_s=inv.timeout_s(30),
    )
    with undone_when_terminated(), inv.connect() as client:
        max_bytes = check_topic(client, options)
        producer = open_producer(client, options, max_record_bytes=max_bytes)
        if terminal:
            output.note("one record for each line; Ctrl-D ends")
        lines = read_lines(sys.stdin.buffer, separator=separator, max_bytes=max_bytes)
        result = produce(producer, lines, options)
        cause = shortage(client, topic) if result.unknown else None
    _report(inv, result, cause)


def _report(inv: Invocation, result: ProduceResult, cause: str | None) -> None:
    shown = jsonable(result) | {"not_acknowledged": ranges(result.not_acknowledged) or None}
    columns = [
        Column("topic"),
        Column("acknowledged", align="right"),
        Column("failed", align="right"),
        Column("unknown", align="right"),
        Column("bytes", align="right"),
        Column("partitions", "PARTITION:RECORDS", show=_by_partition),
    ]
    inv.emit(shown, [Table(columns, [shown])])
    if result.interrupted:
        acknowledged = (
            "none is acknowledged (acks=0)" if result.acknowledged is None else f"{result.acknowledged} acknowledged"
        )
        output.warn(f"{result.sent} records sent, {acknowledged}, {result.unknown} unknown")
        raise KeyboardInterrupt
    if not result.complete:
        raise _failure(result, cause)


def _by_partition(counts: dict[str, int]) -> str:
    return " ".join(f"{number}:{counts[number]}" for number in sorted(counts, key=int)) or "-"


def _failure(result: ProduceResult, cause: str | None) -> OperationFailed | UsageError:
    details = {"not_acknowledged": ranges(result.not_acknowledged) or None}
    if result.not_acknowledged:
        first, count = result.not_acknowledged[0], len(result.not_acknowledged)
        lines = f"lines {ranges(result.not_acknowledged)}" if count > 1 else f"line {first}"
        return OperationFailed(
            f"{lines} not acknowledged ({result.failed} refused, {result.unknown} unknown): {result.error}",
            hint=cause or (f"lines before {first} are in the topic, none after these was sent" if first > 1 else None),
            details=details,
        )
    message = result.bad_line or result.error or "not all lines were sent"
    if not result.sent:
        return UsageError(message, hint="nothing was sent")
    return OperationFailed(f"{message}; the {result.sent} lines before it were sent, none after it", details=details)
