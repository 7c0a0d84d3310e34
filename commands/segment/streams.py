"""Segment rows as tables that people can read: without empty columns, and as blocks where a terminal is too narrow."""

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

_FIRST_SCREEN = 200  # rows, as a table takes its widths from
_MOST_LINES = 6  # of one row: more is easier to read as a block
# Left out while they are empty.
_OPTIONAL = frozenset({"headers", "control"})


def lean(columns: Sequence[Column], rows: Iterable[Mapping[str, Any]]) -> list[Column]:
    """The columns without those that are mostly empty, where they are so in all of these rows."""
    known = list(rows)
    return [each for each in columns if each.key not in _OPTIONAL or any(row[each.key] for row in known)]


def stream(rows: Iterator[Any | None], columns: Sequence[Column], *, blocks: bool) -> None:
    """Rows as they come, as output.stream has them. blocks: a block of lines for each row where the table would not
    fit the terminal. A column that is left out and is needed later begins the table anew."""
    first: list[Any | None] = []
    for row in rows:
        first.append(row)
        if row is None or len(first) == _FIRST_SCREEN:
            break
    known = [row for row in first if row is not None]
    shown = lean(columns, known) if known else list(columns)
    everything = chain(first, rows)
    if blocks and sys.stdout.isatty() and not _fits(known, shown):
        _blocks(everything, columns)
        return
    left_out = [each.key for each in columns if each not in shown]
    later: list[Any] = []
    output.stream(_until(everything, left_out, later), shown, None)
    if later:
        output.write_line("")
        output.stream(chain(later, everything), columns, None)


def _until(rows: Iterator[Any | None], left_out: Sequence[str], later: list[Any]) -> Iterator[Any | None]:
    """Rows as long as columns that are left out are empty; later: is given the first other one."""
    for row in rows:
        if row is not None and any(row[key] for key in left_out):
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
        len(text) <= room * _MOST_LINES for column, room in zip(texts, fitted.widths, strict=True) for text in column
    )


def _blocks(rows: Iterable[Any | None], columns: Sequence[Column]) -> None:
    """«name  value» for each column of a row, an empty line between rows; optional ones where not empty."""
    name = max(len(each.title) for each in columns)
    room = max(shutil.get_terminal_size().columns - name - 2, 20)
    begun = False
    for row in rows:
        if row is None:
            sys.stdout.flush()
            continue
        if begun:
            output.write_line("")
        begun = True
        for each in lean(columns, [row]):
            for number, line in enumerate(wrap(_text(each, row), room)):
                output.write_line(f"{'' if number else each.title.lower():{name}}  {line}")
