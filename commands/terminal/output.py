"""The renderer. A command passes a result; this module renders it as a table, JSON, YAML or CSV.

Results go to stdout, everything else (notes, warnings, errors, progress) to stderr. External text is escaped before it
reaches a terminal or a table. rich and yaml are imported only where needed.

Commands import everything from here; the modules output_* have the parts.
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
    """Write `result` to stdout in the requested format, one of FORMATS (None: table).

    tables: for `table` and `wide`; a callable is called only then. The other formats are rendered from `result`. If
    `result` contains lists of rows, CSV is rendered from csv_rows: the rows of the main table. row_type: type of the
    rows, so that an empty CSV has a header. After a broken pipe (`| true`) the command continues, so its exit code does
    not change.
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
        shown_tables = tables() if callable(tables) else tables
        print_tables(shown_tables if output == "wide" else [narrow(table) for table in shown_tables])


def stream(
    rows: Iterable[Any | None], columns: Sequence[Column], output: str | None, *, row_type: type | None = None
) -> None:
    """Write a large number of rows as they arrive. A table takes its column widths from the first rows.

    None among the rows: flush, since no row follows for the moment. Bytes (JSON only): rows as text. row_type: the
    rows' dataclass, so that an empty CSV has a header.
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
    """Return a function that writes bytes to stdout.

    On a terminal, control characters except newlines and tabs are escaped.
    """
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
    """Write a whole result in its own format; after a broken pipe the command continues, as in `emit`."""
    try:
        write_line(json_text(text, sys.stdout))
        sys.stdout.flush()
    except BrokenPipeError:
        discard(sys.stdout)


def heading(text: str) -> None:
    """Write a heading, bold on a terminal."""
    bold = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    write_line(f"\x1b[1m{printable(text)}\x1b[0m" if bold else printable(text))


def write_json_line(value: Any) -> None:
    """Write one JSON Lines row to stdout, for streams."""
    text = json.dumps(jsonable(value), ensure_ascii=False, separators=(",", ":"))
    sys.stdout.write(json_text(text, sys.stdout) + "\n")
