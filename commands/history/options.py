"""Options, time spans and size formatting shared by the history and spark commands."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any

import typer

from kctl.errors import UsageError

REQUEST_TIMEOUT_S = 30.0

Parquet = Annotated[str | None, typer.Option(metavar="DIR", help="Also write the rows to this folder as Parquet.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the --parquet folder if it exists.")]
_GLOBS = "repeatable; * and ? are wildcards, !NAME excludes"
GroupGlobs = Annotated[list[str] | None, typer.Option("--group", help=f"Only groups with this name; {_GLOBS}.")]
TopicGlobs = Annotated[list[str] | None, typer.Option("--topic", help=f"Only topics with this name; {_GLOBS}.")]
From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="TIME",
        help="Alternative to --last: start of the span, ISO 8601 (UTC if no zone is given) or e.g. -90m.",
    ),
]
To = Annotated[
    str | None,
    typer.Option("--to", metavar="TIME", help="End of the time span, UTC if no zone is given (default: now)."),
]


def _store(text: str) -> Path:
    from kctl.history.snapshots.remote import parse_location

    return parse_location(text)


def store_folder(text: str) -> Path:
    from kctl.history.snapshots.remote import is_remote

    path = _store(text)
    if is_remote(path):
        raise UsageError(
            f"--store {text} is not a local folder, and this command writes to the store",
            hint="mount it as a folder; only `kctl history lag`, retention and report read remote stores",
        )
    return path


_COLLECTED = "Snapshots collected by `kctl history snapshot`"
# For commands that only read. Commands that write need a local folder.
_STORE = typer.Option(metavar="DIR", parser=_store, help=f"{_COLLECTED}: a folder, or s3a://…, hdfs://….")
Store = Annotated[Any, _STORE]  # a Path or RemotePlace; typer would convert the value if the type were Path
StoreIfAny = Annotated[Any | None, _STORE]
StoreFolder = Annotated[Path, typer.Option(metavar="DIR", parser=store_folder, help=f"{_COLLECTED}.")]


def span_of(now_ms: int, *, last: str | None, from_: str | None, to: str | None) -> tuple[int, int]:
    """Return (from_ms, to_ms) for the snapshots with from_ms ≤ at_ms < to_ms.

    Exactly one of `last` and `from_` is set. Relative times count from now_ms. Raises UsageError.
    """
    from kctl.base.timestamps import parse_timestamp
    from kctl.base.units import parse_duration_ms

    if last is not None:
        from_ms, to_ms = now_ms - parse_duration_ms(last), now_ms + 1
    else:
        assert from_ is not None
        from_ms = parse_timestamp(from_, now_ms=now_ms)
        to_ms = now_ms + 1 if to is None else parse_timestamp(to, now_ms=now_ms)
    check_span(from_ms, to_ms, now_ms, last=last)
    return max(from_ms, 0), to_ms


def check_span(from_ms: int, to_ms: int, now_ms: int, *, last: str | None = None) -> None:
    """Raise UsageError for a span that contains no snapshot. to_ms: exclusive end. last: the value of --last."""
    from kctl.base.units import parse_duration_ms

    if last is not None and parse_duration_ms(last) <= 0:
        raise UsageError(f"--last {last}: must be greater than 0", hint="e.g. 15m, 2h or 7d")
    if from_ms > now_ms:
        raise UsageError(
            f"the start time is in the future: it is now {datetime.now(timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
        )
    if from_ms >= to_ms - 1:
        raise UsageError("the time span ends before it starts")


# --- texts ----------------------------------------------------------------------------------------------------------


def show_size(value: int) -> str:
    from kctl.base.units import format_size

    return format_size(value)


def show_bytes_limit(value: int) -> str:
    return "none" if value < 0 else show_size(value)


def show_duration(value: int) -> str:
    from kctl.base.units import format_duration

    return format_duration(value)
