"""The options of kctl produce."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from kctl.commands.terminal.codecs import Compression


class Acks(str, Enum):
    """The replicas that must have a record before it is acknowledged."""

    ALL = "all"
    LEADER = "1"
    NONE = "0"


class Format(str, Enum):
    """The format of a line."""

    TEXT = "text"
    JSON = "json"
    HEX = "hex"
    BASE64 = "base64"


class OnBadLine(str, Enum):
    """The handling of an invalid line."""

    STOP = "stop"
    SKIP = "skip"
    ACCEPT = "accept"  # Kafka's ignore.error: missing parts are null


@dataclass(frozen=True)
class ProduceArguments:
    """The arguments and options of the command."""

    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Topic to write to.")]
    file: Annotated[list[Path] | None, typer.Option(help="Read this file instead of stdin; repeatable.")] = None
    format_: Annotated[
        Format, typer.Option("--format", help="text, hex, base64: a line is a value. json: as from consume -o json.")
    ] = Format.TEXT
    key: Annotated[str | None, typer.Option(metavar="TEXT", help="Key for records without one.")] = None
    key_separator: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Separator between key and value; \\t is a tab.")
    ] = None
    header: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Add a header to each record; repeatable.")
    ] = None
    parse_headers: Annotated[
        bool, typer.Option("--parse-headers", help="Lines begin with headers: a:1,b:2 and a tab.")
    ] = False
    headers_delimiter: Annotated[str, typer.Option(metavar="TEXT", help="Separator after the headers of a line.")] = (
        "\\t"
    )
    headers_separator: Annotated[str, typer.Option(metavar="TEXT", help="Separator between headers.")] = ","
    headers_key_separator: Annotated[
        str, typer.Option(metavar="TEXT", help="Separator between header key and value.")
    ] = ":"
    null_marker: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Text that means null; as a value, a tombstone.")
    ] = None
    partition: Annotated[int | None, typer.Option(min=0, help="Send all records to this partition.")] = None
    repartition: Annotated[
        bool, typer.Option("--repartition", help="Ignore the partitions in JSON lines; partition by key.")
    ] = False
    timestamp: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Timestamp of all records: ISO 8601 (UTC if no zone is given), '2h ago', or ms since 1970.",
        ),
    ] = None
    template: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Generate values: {n} {uuid} {now} {random:100} {int:1:6}.")
    ] = None
    size: Annotated[str | None, typer.Option(metavar="SIZE", help="Generate random values of this size, e.g. 1kB.")] = (
        None
    )
    count: Annotated[int | None, typer.Option(min=0, help="Stop after N lines or generated values.")] = None
    rate: Annotated[str | None, typer.Option(metavar="N/s", help="Maximum rate in records per second (or /m, /h).")] = (
        None
    )
    acks: Annotated[Acks, typer.Option(help="Wait for all in-sync replicas, the leader (1), or none (0).")] = Acks.ALL
    compression: Annotated[
        Compression, typer.Option("--compression-codec", "--compression", help="Compression codec of batches.")
    ] = Compression.NONE
    idempotence: Annotated[
        bool | None, typer.Option(help="Prevent duplicates after retries (default: on with --acks all).")
    ] = None
    on_bad_line: Annotated[
        OnBadLine,
        typer.Option(help="For an invalid line: stop, skip it, or accept a missing separator (null key)."),
    ] = OnBadLine.STOP
    failed_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write unacknowledged records here, to resend with --format json."),
    ] = None
    quiet: Annotated[
        bool, typer.Option("--quiet", help="No progress, no notes, and no result if every record is acknowledged.")
    ] = False
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check all lines and the topic, without sending.")] = False
