"""Tables for people: padded for pipes, fitted to a terminal. rich is imported only for a terminal."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from kctl.base.text import printable
from kctl.commands.terminal.output_encoding import shown
from kctl.commands.terminal.output_messages import note, wrapped
from kctl.commands.terminal.table_layout import Cells, Length, breaks_words, fit, short_paths, short_time, wrap

if TYPE_CHECKING:
    from rich.console import Console


_LONGEST_NAME = 249  # maximum length of a topic name (org.apache.kafka.common.internals.Topic)


@dataclasses.dataclass(frozen=True)
class Column:
    """A table's column.

    key: in the row's JSON; dots separate the levels. show: value → text. name: the texts are names, which are not
    broken if possible. words: lines are never broken inside a word. path: on a narrow terminal, long paths lose their
    beginning. wide: only in `-o wide`.
    """

    key: str
    header: str = ""
    show: Callable[[Any], str] | None = None
    align: Literal["left", "right"] = "left"
    style: Callable[[Mapping[str, Any]], str | None] | None = None  # row → rich style
    name: bool = False
    words: bool = False
    path: bool = False
    wide: bool = False

    @property
    def title(self) -> str:
        return self.header or self.key.replace("_", " ").upper()


@dataclasses.dataclass(frozen=True)
class Table:
    """A table for `-o table`. rows: jsonable mappings. empty: printed on stderr if there are no rows."""

    columns: Sequence[Column]
    rows: Sequence[Mapping[str, Any]]
    title: str | None = None
    empty: str | None = None


def _lookup(row: Mapping[str, Any], key: str) -> Any:
    if "." not in key:
        return row.get(key)
    value: Any = row
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def cell(value: Any) -> str:
    """Return a value as table text: a dash for None, lists with commas, text escaped."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ",".join(cell(v) for v in value)
    return printable(str(value))


def console(*, stderr: bool = False) -> Console:
    """Return a rich console: colors only on a terminal, NO_COLOR respected, no markup or emoji in data."""
    from rich.console import Console

    return Console(stderr=stderr, markup=False, highlight=False, emoji=False, soft_wrap=False)


def write_line(text: str) -> None:
    """Write one line (or block) of results to stdout."""
    sys.stdout.write(text + "\n")


def cells_of(table: Table) -> list[list[str]]:
    return [
        [
            shown(printable(c.show(v)) if c.show and v is not None else cell(v), sys.stdout)
            for c, v in ((c, _lookup(row, c.key)) for c in table.columns)
        ]
        for row in table.rows
    ]


def narrow(table: Table) -> Table:
    """Return the table without the columns of `-o wide`."""
    return dataclasses.replace(table, columns=[column for column in table.columns if not column.wide])


def print_tables(tables: Sequence[Table]) -> None:
    printed_count = 0
    for table in tables:
        if not table.rows:
            if table.empty:
                note(table.empty)
            continue
        if printed_count:
            write_line("")
        printed_count += 1
        if table.title:
            write_line(wrapped(table.title, sys.stdout))
        rows = cells_of(table)
        writer = TableWriter(table, rows)
        writer.heading()
        for row, texts in zip(table.rows, rows, strict=True):
            writer.row(row, texts)


def _columns_of(table: Table, rows: Sequence[Sequence[str]]) -> list[Cells]:
    return [
        Cells(column.title, [row[i] for row in rows], column.align == "left", column.name, column.words)
        for i, column in enumerate(table.columns)
    ]


def _padding(texts: Sequence[str]) -> int:
    """Return the length of the longest text, ignoring texts longer than any name, which must not widen other rows."""
    return max((length for length in map(len, texts) if length <= _LONGEST_NAME), default=0)


class TableWriter:
    """A writer of rows, one after the other.

    For pipes, rows are padded with spaces and never cut. On a terminal, they are colored and fitted to the width; times
    lose their milliseconds if words would be broken, paths that would wrap lose their beginning, and a row that cannot
    be fitted is left to the terminal to wrap.
    """

    def __init__(self, table: Table, rows: Sequence[Sequence[str]]) -> None:
        """Compute the column widths from these rows."""
        self._columns = table.columns
        self._console: Console | None = None
        cells = _columns_of(table, rows)
        self._short_times = False
        self._short_paths: dict[str, str] = {}
        if sys.stdout.isatty():
            from rich.cells import cell_len

            self._console = console()
            self._length: Length = cell_len
            self._short_paths = self._wrapped_paths(cells, self._console.width)
            if breaks_words(_columns_of(table, [*map(self._shortened, rows)]), self._console.width, cell_len):
                self._short_times = True
            cells = _columns_of(table, [*map(self._shortened, rows)])
            self._widths, self._gap = fit(cells, self._console.width, cell_len)
        else:  # no rich, so that scripts start fast
            self._length = len
            self._widths, self._gap = [_padding([c.title, *c.texts]) for c in cells], 2

    def heading(self) -> None:
        """Write the column titles."""
        self._write([column.title for column in self._columns], ["bold"] * len(self._columns))

    def row(self, row: Mapping[str, Any], texts: Sequence[str]) -> None:
        """Write a row. row: the JSON of the row, for styles. texts: its cells."""
        if self._console is None:
            self._write(texts, [])
        else:
            self._write(self._shortened(texts), [(c.style(row) if c.style else None) or "" for c in self._columns])

    def _wrapped_paths(self, cells: Sequence[Cells], width: int) -> dict[str, str]:
        """Return the short form of each path in a column whose paths would wrap."""
        short: dict[str, str] = {}
        widths = fit(cells, width, self._length).widths
        for column, cell_texts, fitted in zip(self._columns, cells, widths, strict=True):
            if column.path and max(map(self._length, cell_texts.texts), default=0) > fitted:
                short |= zip(cell_texts.texts, short_paths(cell_texts.texts), strict=True)
        return short

    def _shortened(self, texts: Sequence[str]) -> list[str]:
        texts = [self._short_paths.get(text, text) for text in texts]
        return [*map(short_time, texts)] if self._short_times else texts

    def _write(self, texts: Sequence[str], styles: Sequence[str]) -> None:
        if self._console is None:
            cells = (self._padded(i, text) for i, text in enumerate(texts))
            write_line((" " * self._gap).join(cells).rstrip())
            return
        from rich.text import Text

        wrapped = [wrap(text, width, self._length) for text, width in zip(texts, self._widths, strict=True)]
        for number in range(max(map(len, wrapped))):
            line = Text()
            for i, (lines, style) in enumerate(zip(wrapped, styles, strict=True)):
                line.append(self._padded(i, lines[number] if number < len(lines) else ""), style)
                line.append(" " * self._gap)
            line.rstrip()
            self._console.print(line, soft_wrap=True)

    def _padded(self, index: int, text: str) -> str:
        space = " " * (self._widths[index] - self._length(text))
        return space + text if self._columns[index].align == "right" else text + space
