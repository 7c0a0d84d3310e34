"""The options of kctl produce."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer


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
    ACCEPT = "accept"  # Kafka's ignore.error: missing parts are null


Topic = Annotated[str, typer.Argument(metavar="TOPIC")]
File = Annotated[list[Path] | None, typer.Option(help="Read this instead of stdin; repeatable.")]
LineFormat = Annotated[
    Format, typer.Option("--format", help="What a line is: a value, or a record as consume -o json writes it.")
]
Key = Annotated[str | None, typer.Option(metavar="TEXT", help="The key of records that have none.")]
KeySeparator = Annotated[
    str | None, typer.Option(metavar="TEXT", help="What stands between key and value; \\t is a tab.")
]
Header = Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="Add a header to each record; repeatable.")]
ParseHeaders = Annotated[bool, typer.Option("--parse-headers", help="Lines begin with headers: a:1,b:2, then a tab.")]
HeadersDelimiter = Annotated[str, typer.Option(metavar="TEXT", help="What stands behind the headers of a line.")]
HeadersSeparator = Annotated[str, typer.Option(metavar="TEXT", help="What stands between two headers.")]
HeadersKeySeparator = Annotated[str, typer.Option(metavar="TEXT", help="What stands between a header's key and value.")]
NullMarker = Annotated[
    str | None, typer.Option(metavar="TEXT", help="Text that stands for null: as a value, a tombstone.")
]
Partition = Annotated[int | None, typer.Option(min=0, help="Send everything to this partition.")]
Repartition = Annotated[
    bool, typer.Option("--repartition", help="Let keys decide, whatever partition JSON lines name.")
]
Timestamp = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Timestamp of all records: ISO 8601, UTC if no zone is given; ms; or '2h ago'."),
]
Template = Annotated[
    str | None, typer.Option(metavar="TEXT", help="Make values: {n} {uuid} {now} {random:100} {int:1:6}.")
]
Size = Annotated[str | None, typer.Option(metavar="SIZE", help="Make random values of this size, as 1kB.")]
Count = Annotated[int | None, typer.Option(min=0, help="Stop after so many lines or made values.")]
Rate = Annotated[str | None, typer.Option(metavar="N/s", help="Records a second (/m, /h) at most.")]
WithAcks = Annotated[Acks, typer.Option(help="Replicas that must have a record: all in sync, the leader, none.")]
WithCompression = Annotated[
    Compression, typer.Option("--compression-codec", "--compression", help="Codec of the batches.")
]
Idempotence = Annotated[bool | None, typer.Option(help="No duplicates after retries; on unless --acks says otherwise.")]
AtBadLine = Annotated[
    OnBadLine,
    typer.Option(help="If a line is not a record: stop, skip the line, or accept a missing separator (null key)."),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing if every record is acknowledged.")]
FailedFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Where to keep what is not acknowledged, for --format json.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check all lines and the topic, send nothing.")]
