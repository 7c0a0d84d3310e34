"""Making a table fit a terminal: headers break at spaces, cells where people would break them, numbers never.

Where it cannot fit it is left too wide: a terminal that wraps lines loses nothing, a table that cuts does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

_LONGEST_WORD = 40  # a name longer than that may be broken anywhere
_SHORTEST_PART = 12  # and any name into such parts, when nothing else helps
_SMALLEST = 6
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.\d{3}Z")
# Times and addresses are copied: no part of them is of use.
_ONE_PIECE = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z|\S+:\d{1,5}[,;]?")
# Behind a comma, a slash, a space …: what stands before it stays on its line.
# But a number's own commas hold it together; so few of them that a list of ids stays a list.
_PIECES = re.compile(r"(?:(?<![\d,])\d{1,3}(?:,\d{3}){1,3}(?![\d,])|[^\s,/;|])*[,/;|]?\s*")

Length = Callable[[str], int]  # terminal cells of a text: some letters take two


@dataclass(frozen=True)
class Cells:
    """What stands in one column. breakable: its texts may go over several lines; whole: but not if anything else helps,
    as they are names, in which a separator is no place to break at."""

    title: str
    texts: Sequence[str]
    breakable: bool
    whole: bool = False


class _Step(NamedTuple):
    """gap: between columns; a word longer than longest_word may be broken; names_whole: but no name."""

    gap: int
    longest_word: int
    names_whole: bool


_UNBROKEN = (_Step(2, _LONGEST_WORD, names_whole=True), _Step(1, _LONGEST_WORD, names_whole=True))
_BROKEN = (
    _Step(1, _SHORTEST_PART, names_whole=True),
    _Step(1, _SMALLEST + 2, names_whole=True),
    _Step(1, _SHORTEST_PART, names_whole=False),
)


class Fitted(NamedTuple):
    """How to print a table: the width of each column and the space between two, in cells."""

    widths: list[int]
    gap: int

    @property
    def width(self) -> int:
        """Of a whole line."""
        return sum(self.widths) + self.gap * (len(self.widths) - 1)


def fit(columns: Sequence[Cells], width: int, length: Length = len) -> Fitted:
    """Together at most `width` where that is possible; the columns move closer together only where it must be."""
    for step in (*_UNBROKEN, *_BROKEN):
        fitted = Fitted(_widths(columns, width, step, length), step.gap)
        if fitted.width <= width:
            break
    return fitted


def breaks_words(columns: Sequence[Cells], width: int, length: Length = len) -> bool:
    """Whether `fit` has to break inside words, or fails."""
    return all(Fitted(_widths(columns, width, step, length), step.gap).width > width for step in _UNBROKEN)


def short_time(text: str) -> str:
    """A time without its milliseconds; other text as it is."""
    found = _TIME.fullmatch(text)
    return f"{found[1]}Z" if found else text


def _widths(columns: Sequence[Cells], width: int, step: _Step, length: Length) -> list[int]:
    gap = step.gap
    widths = [max([_title_width(c.title, length), *map(length, c.texts)]) for c in columns]
    natural = [max(w, length(c.title)) for w, c in zip(widths, columns, strict=True)]
    if sum(natural) + gap * (len(columns) - 1) <= width:
        return natural
    least = [_least(c, step, length) if c.breakable else w for c, w in zip(columns, widths, strict=True)]
    over = sum(widths) + gap * (len(columns) - 1) - width
    while over > 0:
        spare = [w - m for w, m in zip(widths, least, strict=True)]
        if max(spare) <= 0:
            break
        # The widest of those that can give something.
        chosen = max((i for i, s in enumerate(spare) if s > 0), key=lambda i: widths[i])
        widths[chosen] -= 1
        over -= 1
    return widths if over >= 0 else _spread(widths, natural, -over)


def _spread(widths: list[int], natural: Sequence[int], spare: int) -> list[int]:
    """Give room that is left to headers that would be broken, from the left."""
    for index, wanted in enumerate(natural):
        given = min(wanted - widths[index], spare)
        if given == wanted - widths[index]:
            widths[index] += given
            spare -= given
    return widths


def _title_width(title: str, length: Length) -> int:
    return max(map(length, title.split()), default=0)


def _least(column: Cells, step: _Step, length: Length) -> int:
    whole = column.whole and step.names_whole
    most = _LONGEST_WORD if whole else step.longest_word
    longest = 0
    for text in column.texts:
        for piece in map(str.rstrip, [text] if whole else _PIECES.findall(text)):
            longest = max(longest, length(piece) if _ONE_PIECE.fullmatch(piece) else min(length(piece), most))
    return max(_title_width(column.title, length), longest, _SMALLEST)


def wrap(text: str, width: int, length: Length = len) -> list[str]:
    """`text` in lines of at most `width` cells, broken behind separators, and inside a word only where it must."""
    lines: list[str] = []
    line = ""
    for piece in _PIECES.findall(text):
        if length((line + piece).rstrip()) <= width:
            line += piece
            continue
        if line:
            lines.append(line.rstrip())
        line = piece
        while length(line.rstrip()) > width:
            cut = _cut(line, width, length)
            lines.append(line[:cut])
            line = line[cut:]
    return [*lines, line.rstrip()] if line.rstrip() or not lines else lines


def _cut(text: str, width: int, length: Length) -> int:
    """How many characters of `text` fit; at least one, so that it ends."""
    used = 0
    for index, character in enumerate(text):
        used += length(character)
        if used > width:
            return max(index, 1)
    return len(text)
