"""Print segment rows as tables without empty columns, or as blocks if the terminal is too narrow."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from kctl.base.text import printable
from kctl.commands.terminal import output
from kctl.commands.terminal.output import Column
from kctl.commands.terminal.table_layout import Cells, fit, wrap

_FIRST_SCREEN = 200  # rows that determine the column widths
_MAX_LINES = 6  # per row; longer rows are easier to read as blocks
# Columns that are omitted while they are empty.
_OPTIONAL = frozenset({"headers", "control"})


def lean(columns: Sequence[Column], rows: Iterable[Mapping[str, Any]]) -> list[Column]:
    """Return the columns without optional columns that are empty in all rows."""
    row_list = list(rows)
    return [each for each in columns if each.key not in _OPTIONAL or any(row[each.key] for row in row_list)]


def stream(rows: Iterator[Any | None], columns: Sequence[Column], *, blocks: bool) -> None:
    """Print rows as they come, like output.stream.

    blocks: print each row as a block of lines if the table would not fit.

    If a later row needs an omitted column, a new table starts.
    """
    first: list[Any | None] = []
    for row in rows:
        first.append(row)
        if row is None or len(first) == _FIRST_SCREEN:
            break
    first_rows = [row for row in first if row is not None]
    visible = lean(columns, first_rows) if first_rows else list(columns)
    everything = chain(first, rows)
    if blocks and sys.stdout.isatty() and not _fits(first_rows, visible):
        _blocks(everything, columns)
        return
    omitted_keys = [each.key for each in columns if each not in visible]
    later: list[Any] = []
    output.stream(_until(everything, omitted_keys, later), visible, None)
    if later:
        output.write_line("")
        output.stream(chain(later, everything), columns, None)


def _until(rows: Iterator[Any | None], omitted_keys: Sequence[str], later: list[Any]) -> Iterator[Any | None]:
    """Yield rows while the omitted columns are empty. The first other row is appended to `later`."""
    for row in rows:
        if row is not None and any(row[key] for key in omitted_keys):
            later.append(row)
            return
        yield row


def _text(column: Column, row: Mapping[str, Any]) -> str:
    value = row[column.key]
    return printable(column.show(value)) if column.show and value is not None else output.cell(value)


def _fits(rows: Sequence[Mapping[str, Any]], columns: Sequence[Column]) -> bool:
    width = shutil.get_terminal_size().columns
    texts = [[_text(column, row) for row in rows] for column in columns]
    cells = [Cells(each.title, text, breakable=each.align == "left") for each, text in zip(columns, texts, strict=True)]
    fitted = fit(cells, width)
    return fitted.width <= width and all(
        len(text) <= column_width * _MAX_LINES
        for column, column_width in zip(texts, fitted.widths, strict=True)
        for text in column
    )


def _blocks(rows: Iterable[Any | None], columns: Sequence[Column]) -> None:
    """Print each row as lines of "name  value", with an empty line between rows. Omit empty optional columns."""
    name_width = max(len(each.title) for each in columns)
    value_width = max(shutil.get_terminal_size().columns - name_width - 2, 20)
    started = False
    for row in rows:
        if row is None:
            sys.stdout.flush()
            continue
        if started:
            output.write_line("")
        started = True
        for each in lean(columns, [row]):
            for number, line in enumerate(wrap(_text(each, row), value_width)):
                output.write_line(f"{'' if number else each.title.lower():{name_width}}  {line}")
