"""The one renderer. A command hands over a result; this module makes a table, JSON, YAML or CSV of it.

Results go to stdout, everything else (notes, warnings, errors, progress) to stderr. Text from outside is
escaped before it reaches a terminal or a table. rich and yaml are imported only where they are needed.
Commands take all of it from here; how each part is made stands in the modules output_*.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kctl.base.text import printable
from kctl.commands.terminal.output_encoding import prepare_streams
from kctl.commands.terminal.output_messages import discard, error, note, warn
from kctl.commands.terminal.output_progress import Progress, progress
from kctl.commands.terminal.output_tables import (
    Column,
    Table,
    TableWriter,
    cell,
    cells_of,
    console,
    narrow,
    print_tables,
    write_line,
)
from kctl.commands.terminal.output_values import (
    csv_line,
    json_text,
    jsonable,
    protect_csv,
    stream_csv,
    write_csv,
    yaml_text,
)

__all__ = [
    "FORMATS", "FOR_PEOPLE", "Column", "Progress", "Table", "cell", "console", "csv_line", "discard", "emit", "error",
    "heading", "jsonable", "note", "prepare_streams", "progress", "protect_csv", "raw_writer", "stream", "warn",
    "write_json_line", "write_line", "write_text",
]  # fmt: skip

_STREAM_ROWS = 200
FORMATS = ("table", "wide", "json", "yaml", "csv")
FOR_PEOPLE = frozenset({None, "table", "wide"})


def emit(
    result: Any,
    tables: Sequence[Table] | Callable[[], Sequence[Table]],
    output: str | None,
    csv_rows: Callable[[], Sequence[Any]] | None = None,
    row_type: type | None = None,
) -> None:
    """Write `result` to stdout in the format asked for, one of FORMATS (None is table).

    tables: what `table` shows; a callable is called only then. The other formats are made of `result` itself, or CSV
    of csv_rows: where `result` has lists of rows in it, those of its main table. row_type: what rows are, so that a CSV
    without any has its header too. When nobody reads it (`| true`), the command goes on, so that its exit code is what
    it would have been.
    """
    try:
        _write(result if csv_rows is None or output != "csv" else csv_rows(), tables, output, row_type)
        sys.stdout.flush()
    except BrokenPipeError:
        discard(sys.stdout)


def _write(
    result: Any, tables: Sequence[Table] | Callable[[], Sequence[Table]], output: str | None, row_type: type | None
) -> None:
    if output == "json":
        write_line(json_text(json.dumps(jsonable(result), ensure_ascii=False, indent=2), sys.stdout))
    elif output == "yaml":
        write_line(yaml_text(jsonable(result)))
    elif output == "csv":
        write_csv(result if isinstance(result, Sequence) else [result], row_type)
    else:
        made = tables() if callable(tables) else tables
        print_tables(made if output == "wide" else [narrow(table) for table in made])


def stream(
    rows: Iterable[Any | None], columns: Sequence[Column], output: str | None, *, row_type: type | None = None
) -> None:
    """Rows that may be very many, written as they come. A table takes its widths from the first ones.

    None among the rows: nothing more comes for the moment, and what there is shall be seen. Bytes (of JSON only): rows
    as their text. row_type: the rows' dataclass, so that a CSV without rows has its header too.
    """
    if output == "json":
        _stream_json(rows)
    elif output == "csv":
        stream_csv(rows, row_type)
    else:
        _stream_table(rows, columns if output == "wide" else [column for column in columns if not column.wide])


def _stream_json(rows: Iterable[Any | None]) -> None:
    for row in rows:
        if isinstance(row, bytes):
            _write_json_bytes(row)
        elif row is None:
            sys.stdout.flush()
        else:
            write_json_line(row)


def _write_json_bytes(rows: bytes) -> None:
    if sys.stdout.isatty():
        sys.stdout.write(json_text(rows.decode(), sys.stdout))
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(rows)


def raw_writer() -> Callable[[bytes], object]:
    """What writes bytes to stdout as they are; on a terminal with all that could steer it escaped, but for newlines
    and tabs."""
    if not sys.stdout.isatty():
        return sys.stdout.buffer.write

    def write(data: bytes) -> None:
        lines = data.decode("utf-8", "backslashreplace").split("\n")
        sys.stdout.write("\n".join("\t".join(map(printable, line.split("\t"))) for line in lines))

    return write


def _stream_table(rows: Iterable[Any | None], columns: Sequence[Column]) -> None:
    writer: TableWriter | None = None
    waiting: list[Any] = []

    def write() -> None:
        nonlocal writer
        if not waiting:
            return
        table = Table(columns, waiting)
        cells = cells_of(table)
        if writer is None:
            writer = TableWriter(table, cells)
            writer.heading()
        for row, texts in zip(waiting, cells, strict=True):
            writer.row(row, texts)
        waiting.clear()

    for row in rows:
        if row is not None:
            waiting.append(jsonable(row))
        if writer is not None or row is None or len(waiting) == _STREAM_ROWS:
            write()
        if row is None:
            sys.stdout.flush()
    write()


def write_text(text: str) -> None:
    """A whole result as text of its own format, as `emit` writes one: when nobody reads it, the command goes on."""
    try:
        write_line(json_text(text, sys.stdout))
        sys.stdout.flush()
    except BrokenPipeError:
        discard(sys.stdout)


def heading(text: str) -> None:
    """A line that stands out, on a terminal in bold."""
    bold = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    write_line(f"\x1b[1m{printable(text)}\x1b[0m" if bold else printable(text))


def write_json_line(value: Any) -> None:
    """One JSON Lines row to stdout, for streams."""
    text = json.dumps(jsonable(value), ensure_ascii=False, separators=(",", ":"))
    sys.stdout.write(json_text(text, sys.stdout) + "\n")
