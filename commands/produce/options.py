"""The options of kctl produce."""

from __future__ import annotations

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


Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="Topic to write to.")]
File = Annotated[list[Path] | None, typer.Option(help="Read this file instead of stdin; repeatable.")]
LineFormat = Annotated[
    Format, typer.Option("--format", help="text, hex, base64: a line is a value. json: as from consume -o json.")
]
Key = Annotated[str | None, typer.Option(metavar="TEXT", help="Key for records without one.")]
KeySeparator = Annotated[
    str | None, typer.Option(metavar="TEXT", help="Separator between key and value; \\t is a tab.")
]
Header = Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="Add a header to each record; repeatable.")]
ParseHeaders = Annotated[bool, typer.Option("--parse-headers", help="Lines begin with headers: a:1,b:2 and a tab.")]
HeadersDelimiter = Annotated[str, typer.Option(metavar="TEXT", help="Separator after the headers of a line.")]
HeadersSeparator = Annotated[str, typer.Option(metavar="TEXT", help="Separator between headers.")]
HeadersKeySeparator = Annotated[str, typer.Option(metavar="TEXT", help="Separator between header key and value.")]
NullMarker = Annotated[str | None, typer.Option(metavar="TEXT", help="Text that means null; as a value, a tombstone.")]
Partition = Annotated[int | None, typer.Option(min=0, help="Send all records to this partition.")]
Repartition = Annotated[
    bool, typer.Option("--repartition", help="Ignore the partitions in JSON lines; partition by key.")
]
Timestamp = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="Timestamp of all records: ISO 8601 (UTC if no zone is given), '2h ago', or ms since 1970."
    ),
]
Template = Annotated[
    str | None, typer.Option(metavar="TEXT", help="Generate values: {n} {uuid} {now} {random:100} {int:1:6}.")
]
Size = Annotated[str | None, typer.Option(metavar="SIZE", help="Generate random values of this size, e.g. 1kB.")]
Count = Annotated[int | None, typer.Option(min=0, help="Stop after N lines or generated values.")]
Rate = Annotated[str | None, typer.Option(metavar="N/s", help="Maximum rate in records per second (or /m, /h).")]
WithAcks = Annotated[Acks, typer.Option(help="Wait for all in-sync replicas, the leader (1), or none (0).")]
WithCompression = Annotated[
    Compression, typer.Option("--compression-codec", "--compression", help="Compression codec of batches.")
]
Idempotence = Annotated[
    bool | None, typer.Option(help="Prevent duplicates after retries (default: on with --acks all).")
]
AtBadLine = Annotated[
    OnBadLine,
    typer.Option(help="For an invalid line: stop, skip it, or accept a missing separator (null key)."),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", help="No progress, no notes, and no result if every record is acknowledged.")
]
FailedFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write unacknowledged records here, to resend with --format json.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check all lines and the topic, without sending.")]
