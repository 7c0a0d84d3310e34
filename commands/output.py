"""The one renderer. A command hands over a result; this module makes a table, JSON, YAML or CSV of it.

Results go to stdout, everything else (notes, warnings, errors, progress) to stderr. Text from outside is
escaped before it reaches a terminal or a table. rich and yaml are imported only where they are needed.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from enum import Enum
from functools import lru_cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal, Protocol, TextIO

from kctl.commands.table_layout import Cells, Length, breaks_words, fit, short_time, wrap
from kctl.errors import KctlError
from kctl.text import printable, printable_json

if TYPE_CHECKING:
    from rich.console import Console

_STREAM_ROWS = 200
_INLINE, _PROBLEMS = 3, 20  # of several problems: in an error's message, and as lines of their own
_FIRST_LINE_S = 5.0
FORMATS = ("table", "wide", "json", "yaml", "csv")
FOR_PEOPLE = frozenset({None, "table", "wide"})


@dataclasses.dataclass(frozen=True)
class Column:
    """A table's column. key: of the row as JSON has it (dots go deeper); show: value → text for people. name: its texts
    are names, which are kept whole where that is possible. wide: only `-o wide` has it."""

    key: str
    header: str = ""
    show: Callable[[Any], str] | None = None
    align: Literal["left", "right"] = "left"
    style: Callable[[Mapping[str, Any]], str | None] | None = None  # row → rich style
    name: bool = False
    wide: bool = False

    @property
    def title(self) -> str:
        return self.header or self.key.replace("_", " ").upper()


@dataclasses.dataclass(frozen=True)
class Table:
    """What `-o table` shows. `rows` are jsonable mappings; `empty` is said on stderr when there are none."""

    columns: Sequence[Column]
    rows: Sequence[Mapping[str, Any]]
    title: str | None = None
    empty: str | None = None


_PLAIN = frozenset({str, int, float, bool, type(None)})


@lru_cache(maxsize=256)
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


@lru_cache(maxsize=1024)
def _iso(time_: datetime) -> str:
    return time_.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def jsonable(value: Any) -> Any:
    """`value` as JSON has it: dataclasses as objects, times as ISO 8601 UTC, enums as values, paths as text."""
    if type(value) in _PLAIN:  # most values by far, and there can be a million
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        found = {}
        for name in _field_names(type(value)):
            each = getattr(value, name)
            found[name] = each if type(each) in _PLAIN else jsonable(each)
        return found
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return _iso(value)
    if isinstance(value, Mapping):
        return {str(k): jsonable(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        if hasattr(value, "_asdict"):
            return jsonable(value._asdict())
        items = sorted(value) if isinstance(value, (set, frozenset)) else value
        return [jsonable(v) for v in items]
    return str(value) if isinstance(value, PurePath) else value


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
    without any has its header too. When nobody reads it (`| true`), the
    command goes on, so that its exit code is what it would have been.
    """
    try:
        _write(result if csv_rows is None or output != "csv" else csv_rows(), tables, output, row_type)
        sys.stdout.flush()
    except BrokenPipeError:
        discard(sys.stdout)


def discard(stream: TextIO) -> None:
    """Nobody reads it any more: what is left in it, and what comes, goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _write(
    result: Any, tables: Sequence[Table] | Callable[[], Sequence[Table]], output: str | None, row_type: type | None
) -> None:
    if output == "json":
        write_line(_json_text(json.dumps(jsonable(result), ensure_ascii=False, indent=2), sys.stdout))
    elif output == "yaml":
        write_line(_yaml(jsonable(result)))
    elif output == "csv":
        _write_csv(result if isinstance(result, Sequence) else [result], row_type)
    else:
        made = tables() if callable(tables) else tables
        _print_tables(made if output == "wide" else [_narrow(table) for table in made])


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
        _stream_csv(rows, row_type)
    else:
        _stream_table(rows, columns if output == "wide" else [column for column in columns if not column.wide])


def _stream_json(rows: Iterable[Any | None]) -> None:
    for row in rows:
        if isinstance(row, bytes):
            _write_json_bytes(row)
        elif row is None:
            _flush()
        else:
            write_json_line(row)


def _write_json_bytes(rows: bytes) -> None:
    if sys.stdout.isatty():
        sys.stdout.write(printable_json(rows.decode()))
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(rows)


def _json_text(text: str, stream: TextIO) -> str:
    """JSON as it may be shown: a terminal must not be steered by it."""
    return printable_json(text) if stream.isatty() else text


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
    writer: _TableWriter | None = None
    waiting: list[Any] = []

    def write() -> None:
        nonlocal writer
        if not waiting:
            return
        table = Table(columns, waiting)
        cells = _cells(table)
        if writer is None:
            writer = _TableWriter(table, cells)
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
            _flush()
    write()


def _flush() -> None:
    sys.stdout.flush()


def write_line(text: str) -> None:
    """One line (or block) of results to stdout."""
    sys.stdout.write(text + "\n")


def write_text(text: str) -> None:
    """A whole result as text of its own format, as `emit` writes one: when nobody reads it, the command goes on."""
    try:
        write_line(_json_text(text, sys.stdout))
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
    sys.stdout.write(_json_text(text, sys.stdout) + "\n")


def note(text: str) -> None:
    """A line for the person, on stderr, behind the results so far."""
    _flush()
    try:
        sys.stderr.write(_wrapped(text, sys.stderr) + "\n")
    except BrokenPipeError:
        discard(sys.stderr)


def warn(text: str) -> None:
    """A line that should not be overlooked, on stderr, behind the results so far."""
    note(f"warning: {text}")


def error(exc: KctlError, output: str | None) -> None:
    """The error as one line and a hint, or as JSON, on stderr; several problems have a line each."""
    if output == "json":
        body = {
            "code": exc.code,
            "exit_code": int(exc.exit_code),
            "message": exc.message,
            "hint": exc.hint or None,
        }
        text = json.dumps({**body, **jsonable(exc.details)}, ensure_ascii=False)
        sys.stderr.write(_json_text(text, sys.stderr) + "\n")
        return
    message, problems = _apart(exc)
    sys.stderr.write(_wrapped(f"{exc.label}{message}", sys.stderr) + "\n")
    for line in problems:
        sys.stderr.write(_wrapped(line, sys.stderr, indent="  - ") + "\n")
    for line in (exc.hint or "").splitlines():
        sys.stderr.write(_wrapped(line, sys.stderr, indent="  ") + "\n")


def _apart(exc: KctlError) -> tuple[str, list[str]]:
    """The message, and the problems of details["problems"] when there are several and the message has them in it."""
    rows = exc.details.get("problems")
    lines = [_problem(row) for row in rows] if isinstance(rows, list) else []
    inline = ": " + "; ".join(lines[:_INLINE])
    if len(lines) > _INLINE:
        inline += f"; and {len(lines) - _INLINE:,} more"
    if len(lines) < 2 or inline not in exc.message:
        return exc.message, []
    more = [f"and {len(lines) - _PROBLEMS:,} more; -o json has all"] if len(lines) > _PROBLEMS else []
    return exc.message.replace(inline, "", 1), lines[:_PROBLEMS] + more


def _problem(row: object) -> str:
    return f"{row.get('subject')}: {row.get('reason')}" if isinstance(row, Mapping) else str(row)


def _wrapped(text: str, stream: TextIO, indent: str = "") -> str:
    """One line, escaped; on a terminal broken between words, so that it does not cut them."""
    line = indent + printable(text)
    if not stream.isatty():
        return line
    import shutil
    import textwrap

    width = shutil.get_terminal_size().columns
    return textwrap.fill(
        line, max(width, 20), subsequent_indent=" " * len(indent), break_long_words=False, break_on_hyphens=False
    )


def _yaml(value: Any) -> str:
    import yaml

    plain = not sys.stdout.isatty()  # else all but ASCII is escaped
    text: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=plain, default_flow_style=False)
    return text.rstrip("\n")


def _write_csv(rows: Sequence[Any], row_type: type | None) -> None:
    import csv

    flat = [_flatten(jsonable(row)) for row in rows]
    header = list(dict.fromkeys(key for row in flat for key in row)) or _header_of(row_type)
    writer = csv.DictWriter(sys.stdout, header, lineterminator="\n", restval="")
    if header:
        writer.writeheader()
    writer.writerows(flat)


def _header_of(row_type: type | None) -> list[str]:
    """The keys of a dataclass or NamedTuple."""
    if row_type is None:
        return []
    return list(getattr(row_type, "_fields", None) or _field_names(row_type))


def _stream_csv(rows: Iterable[Any | None], row_type: type | None) -> None:
    import csv

    writer = csv.writer(sys.stdout, lineterminator="\n")
    header = _header_of(row_type) or None
    if header is not None:
        writer.writerow(header)
    for row in rows:
        if row is None:
            _flush()
            continue
        known = jsonable(row)
        if header is None:
            header = list(known)
            writer.writerow(header)
        writer.writerow([_csv_cell(known.get(key)) for key in header])


def _csv_cell(value: Any) -> Any:
    """Lists of scalars separated by spaces, other lists and objects as JSON; on a terminal escaped."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list) and not any(isinstance(each, (list, dict)) for each in value):
        value = " ".join(map(str, value))
    elif isinstance(value, (list, Mapping)):
        value = json.dumps(value, ensure_ascii=False)
    return printable(value) if isinstance(value, str) and sys.stdout.isatty() else value


def _flatten(row: Any, prefix: str = "") -> dict[str, Any]:
    """Nested objects become dotted columns; lists of scalars one cell, separated by spaces; others JSON."""
    if not isinstance(row, Mapping):
        return {prefix or "value": row}
    flat: dict[str, Any] = {}
    for key, value in row.items():
        name = f"{prefix}.{key}" if prefix else str(key)
        if isinstance(value, Mapping):
            flat.update(_flatten(value, name))
        else:
            flat[name] = _csv_cell(value)
    return flat


def _lookup(row: Mapping[str, Any], key: str) -> Any:
    if "." not in key:
        return row.get(key)
    value: Any = row
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def cell(value: Any) -> str:
    """A value as a table shows it: a dash for none, lists with commas, text escaped."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ",".join(cell(v) for v in value)
    return printable(str(value))


def console(*, stderr: bool = False) -> Console:
    """A rich console: colour only on a terminal, NO_COLOR honoured, no markup or emoji read from data."""
    from rich.console import Console

    return Console(stderr=stderr, markup=False, highlight=False, emoji=False, soft_wrap=False)


def _cells(table: Table) -> list[list[str]]:
    return [
        [
            printable(c.show(v)) if c.show and v is not None else cell(v)
            for c, v in ((c, _lookup(row, c.key)) for c in table.columns)
        ]
        for row in table.rows
    ]


def _narrow(table: Table) -> Table:
    """The table without what only `-o wide` shows."""
    return dataclasses.replace(table, columns=[column for column in table.columns if not column.wide])


def _print_tables(tables: Sequence[Table]) -> None:
    shown = 0
    for table in tables:
        if not table.rows:
            if table.empty:
                note(table.empty)
            continue
        if shown:
            write_line("")
        shown += 1
        if table.title:
            write_line(_wrapped(table.title, sys.stdout))
        rows = _cells(table)
        writer = _TableWriter(table, rows)
        writer.heading()
        for row, texts in zip(table.rows, rows, strict=True):
            writer.row(row, texts)


def _columns_of(table: Table, rows: Sequence[Sequence[str]]) -> list[Cells]:
    return [
        Cells(column.title, [row[i] for row in rows], breakable=column.align == "left", whole=column.name)
        for i, column in enumerate(table.columns)
    ]


class _TableWriter:
    """Writes rows one after the other: padded with spaces and never cut for pipes, grep and awk; on a terminal fitted
    to it (times without milliseconds where words would be broken), in colour, and what cannot be fitted left to the
    terminal to wrap.
    """

    def __init__(self, table: Table, rows: Sequence[Sequence[str]]) -> None:
        """rows: those that decide on the widths."""
        self._columns = table.columns
        self._console: Console | None = None
        cells = _columns_of(table, rows)
        self._short_times = False
        if sys.stdout.isatty():
            from rich.cells import cell_len

            self._console = console()
            self._length: Length = cell_len
            if breaks_words(cells, self._console.width, cell_len):
                self._short_times = True
                cells = _columns_of(table, [[*map(short_time, row)] for row in rows])
            self._widths, self._gap = fit(cells, self._console.width, cell_len)
        else:  # no rich, so that scripts start fast
            self._length = len
            self._widths, self._gap = [max(map(len, [c.title, *c.texts])) for c in cells], 2

    def heading(self) -> None:
        """The columns' titles."""
        self._write([column.title for column in self._columns], ["bold"] * len(self._columns))

    def row(self, row: Mapping[str, Any], texts: Sequence[str]) -> None:
        """A row: as JSON has it for the styles, as text for the rest."""
        if self._console is None:
            self._write(texts, [])
        else:
            texts = [*map(short_time, texts)] if self._short_times else texts
            self._write(texts, [(c.style(row) if c.style else None) or "" for c in self._columns])

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


class Progress(Protocol):
    """What a long operation tells while it runs. `total` None: not known yet."""

    def update(self, message: str, done: float | None = None, total: float | None = None) -> None: ...


class _SilentProgress:
    def update(self, message: str, done: float | None = None, total: float | None = None) -> None:
        pass


class _LineProgress:
    """A line now and then, for logs: the first one when it has taken a while."""

    def __init__(self, every_s: float) -> None:
        self._every_s, self._next = every_s, time.monotonic() + min(every_s, _FIRST_LINE_S)

    def update(self, message: str, done: float | None = None, total: float | None = None) -> None:
        if message and time.monotonic() >= self._next:
            self._next = time.monotonic() + self._every_s
            share = f" ({100 * done / total:.0f} %)" if done is not None and total else ""
            note(message + share)


class _BarProgress:
    def __init__(self, bar: Any) -> None:
        self._bar, self._task = bar, bar.add_task("", total=None)

    def update(self, message: str, done: float | None = None, total: float | None = None) -> None:
        self._bar.update(self._task, description=printable(message), completed=done, total=total)


@contextmanager
def progress(message: str, *, bar_width: int = 30, lines_every_s: float | None = None) -> Iterator[Progress]:
    """A bar on stderr while the block runs, on a terminal; gone when it ends.

    Elsewhere nothing, or a line every `lines_every_s` at most.
    """
    if not sys.stderr.isatty():
        yield _SilentProgress() if lines_every_s is None else _LineProgress(lines_every_s)
        return
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as RichProgress

    columns = (TextColumn("{task.description}", markup=False), BarColumn(bar_width=bar_width), TimeElapsedColumn())
    with RichProgress(*columns, console=console(stderr=True), transient=True) as bar:
        shown = _BarProgress(bar)
        shown.update(message)
        yield shown
