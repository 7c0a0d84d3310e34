"""What the commands over time share, with and without Spark: options, spans of time, and how sizes are shown."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any

import typer

from kctl.errors import UsageError

REQUEST_TIMEOUT_S = 30.0

Parquet = Annotated[str | None, typer.Option(metavar="DIR", help="Also write the rows there, as Parquet.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the folder of --parquet.")]
_GLOBS = "repeatable; * and ? stand for what you like, and !NAME leaves out"
GroupGlobs = Annotated[list[str] | None, typer.Option("--group", help=f"Only groups of this name; {_GLOBS}.")]
TopicGlobs = Annotated[list[str] | None, typer.Option("--topic", help=f"Only topics of this name; {_GLOBS}.")]
From = Annotated[
    str | None,
    typer.Option(
        "--from", metavar="TIME", help="Use snapshots from this time on: ISO 8601, UTC if no zone is given; or -90m."
    ),
]
To = Annotated[
    str | None,
    typer.Option("--to", metavar="TIME", help="Use snapshots until this time, UTC if no zone is given (default: now)."),
]


def _store(text: str) -> Path:
    from kctl.history.snapshots.remote import place

    return place(text)


def store_folder(text: str) -> Path:
    from kctl.history.snapshots.remote import is_remote

    found = _store(text)
    if is_remote(found):
        raise UsageError(
            f"--store {text} is no folder, and this command writes into the store",
            hint="mount it; `kctl history lag`, retention and report read stores over the network",
        )
    return found


_COLLECTED = "Snapshots that `kctl history snapshot` collected"
# Of those that only read; those that write need a folder.
_STORE = typer.Option(metavar="DIR", parser=_store, help=f"{_COLLECTED}: a folder, or s3a://…, hdfs://….")
Store = Annotated[Any, _STORE]  # a Path, or what stands for one: of a type that is Path, typer would make one
StoreIfAny = Annotated[Any | None, _STORE]
StoreFolder = Annotated[Path, typer.Option(metavar="DIR", parser=store_folder, help=f"{_COLLECTED}.")]


def span_of(now_ms: int, *, last: str | None, from_: str | None, to: str | None) -> tuple[int, int]:
    """from_ms and to_ms, of the passes with from_ms ≤ at_ms < to_ms: the last while, or from a time on.

    All count from now_ms. One of `last` and `from_` is given. Raises UsageError.
    """
    from kctl.base.moments import parse_moment
    from kctl.base.units import parse_duration_ms

    if last is not None:
        from_ms, to_ms = now_ms - parse_duration_ms(last), now_ms + 1
    else:
        assert from_ is not None
        from_ms = parse_moment(from_, now_ms=now_ms)
        to_ms = now_ms + 1 if to is None else parse_moment(to, now_ms=now_ms)
    check_span(from_ms, to_ms, now_ms, last=last)
    return max(from_ms, 0), to_ms


def check_span(from_ms: int, to_ms: int, now_ms: int, *, last: str | None = None) -> None:
    """Raise UsageError for a span that no pass can lie in. to_ms: the first moment after it; last: what --last says."""
    from kctl.base.units import parse_duration_ms

    if last is not None and parse_duration_ms(last) <= 0:
        raise UsageError(f"--last {last} is no time: it is more than 0", hint="write for example 15m, 2h or 7d")
    if from_ms > now_ms:
        raise UsageError(f"the time lies in the future: now it is {datetime.now(timezone.utc):%Y-%m-%d %H:%M:%S} UTC")
    if from_ms >= to_ms - 1:
        raise UsageError("that is no time: it ends before it begins")


# --- texts ----------------------------------------------------------------------------------------------------------


def show_size(value: int) -> str:
    from kctl.base.units import format_size

    return format_size(value)


def show_bytes_limit(value: int) -> str:
    return "none" if value < 0 else show_size(value)


def show_duration(value: int) -> str:
    from kctl.base.units import format_duration

    return format_duration(value)
