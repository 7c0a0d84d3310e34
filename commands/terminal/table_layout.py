"""Fit a table to a terminal. Headers break at spaces, cells at separators; numbers never break.

A table that cannot fit stays too wide: when the terminal wraps its lines, nothing is lost; truncated cells would lose
text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

_LONGEST_WORD = 40  # a longer name may be broken anywhere
_SHORTEST_PART = 12  # the last resort: break any name into parts of this length
_MIN_WIDTH = 6
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.\d{3}Z")
# Times and addresses must stay intact, so that they can be copied.
_ONE_PIECE = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z|\S+:\d{1,5}[,;]?")
# Break after separators, but not at the thousands separators of a number. A number has at most three of them: anything
# longer is a list of ids.
_PIECES = re.compile(r"(?:(?<![\d,])\d{1,3}(?:,\d{3}){1,3}(?![\d,])|[^\s,/;|])*[,/;|]?\s*")

_NAME_SEPARATOR = re.compile(r"(?<=\w)[-._=:](?=.)")

Length = Callable[[str], int]  # terminal cells of a text: some letters take two


@dataclass(frozen=True)
class Cells:
    """The contents of a column.

    breakable: texts may wrap. whole: texts are names, which wrap only as a last resort, and not at separators.
    keep_words: texts wrap, but never inside a word.
    """

    title: str
    texts: Sequence[str]
    breakable: bool
    whole: bool = False
    keep_words: bool = False


class _FittingStep(NamedTuple):
    """A step of the fitting.

    gap: between columns. longest_word: words longer than this may be broken. names_whole: names are never broken.
    """

    gap: int
    longest_word: int
    names_whole: bool


_UNBROKEN = (_FittingStep(2, _LONGEST_WORD, names_whole=True), _FittingStep(1, _LONGEST_WORD, names_whole=True))
_BROKEN = (
    _FittingStep(1, _SHORTEST_PART, names_whole=True),
    _FittingStep(1, _MIN_WIDTH + 2, names_whole=True),
    _FittingStep(1, _SHORTEST_PART, names_whole=False),
)


class Fitted(NamedTuple):
    """A layout: the width of each column and the gap between columns, in terminal cells."""

    widths: list[int]
    gap: int

    @property
    def width(self) -> int:
        """Return the width of a line."""
        return sum(self.widths) + self.gap * (len(self.widths) - 1)


def fit(columns: Sequence[Cells], width: int, length: Length = len) -> Fitted:
    """Return a layout of at most `width` cells if possible. The gap shrinks only if necessary."""
    for step in (*_UNBROKEN, *_BROKEN):
        fitted = Fitted(_widths(columns, width, step, length), step.gap)
        if fitted.width <= width:
            break
    return fitted


def breaks_words(columns: Sequence[Cells], width: int, length: Length = len) -> bool:
    """Return True if `fit` must break inside words, or fails."""
    return all(Fitted(_widths(columns, width, step, length), step.gap).width > width for step in _UNBROKEN)


def short_time(text: str) -> str:
    """Return a time without its milliseconds; other text unchanged."""
    match = _TIME.fullmatch(text)
    return f"{match[1]}Z" if match else text


def short_paths(texts: Sequence[str]) -> list[str]:
    """Return long paths with only their last two parts, e.g. "…/kafka-logs/t-0"; unchanged if two would be equal."""
    short = [f"…/{'/'.join(parts[-2:])}" if len(parts := text.split("/")) > 4 else text for text in texts]
    return short if len(set(short)) == len(set(texts)) else list(texts)


def _widths(columns: Sequence[Cells], width: int, step: _FittingStep, length: Length) -> list[int]:
    gap = step.gap
    widths = [max([_title_width(c.title, length), *map(length, c.texts)]) for c in columns]
    natural = [max(w, length(c.title)) for w, c in zip(widths, columns, strict=True)]
    if sum(natural) + gap * (len(columns) - 1) <= width:
        return natural
    min_widths = [_min_width(c, step, length) if c.breakable else w for c, w in zip(columns, widths, strict=True)]
    over = sum(widths) + gap * (len(columns) - 1) - width
    while over > 0:
        spare = [w - m for w, m in zip(widths, min_widths, strict=True)]
        if max(spare) <= 0:
            break
        # the widest column that can shrink
        widest = max((i for i, s in enumerate(spare) if s > 0), key=lambda i: widths[i])
        widths[widest] -= 1
        over -= 1
    return widths if over >= 0 else _spread(widths, natural, -over)


def _spread(widths: list[int], natural: Sequence[int], spare: int) -> list[int]:
    """Give the spare width to columns whose header would be broken, from left to right."""
    for index, natural_width in enumerate(natural):
        added = min(natural_width - widths[index], spare)
        if added == natural_width - widths[index]:
            widths[index] += added
            spare -= added
    return widths


def _title_width(title: str, length: Length) -> int:
    return max(map(length, title.split()), default=0)


def _min_width(column: Cells, step: _FittingStep, length: Length) -> int:
    whole = column.whole and step.names_whole
    max_word = _LONGEST_WORD if whole or column.keep_words else step.longest_word
    longest = 0
    for text in column.texts:
        for piece in map(str.rstrip, [text] if whole else _PIECES.findall(text)):
            longest = max(longest, length(piece) if _ONE_PIECE.fullmatch(piece) else min(length(piece), max_word))
    return max(_title_width(column.title, length), longest, _MIN_WIDTH)


def wrap(text: str, width: int, length: Length = len) -> list[str]:
    """Return `text` in lines of at most `width` cells, broken after separators, and inside a word only if necessary."""
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
    """Return where to break `text`: after a separator of names in the second half of what fits, else where it is full.

    At least 1, so that the caller terminates.
    """
    used = 0
    for index, character in enumerate(text):
        used += length(character)
        if used > width:
            separators = [each.end() for each in _NAME_SEPARATOR.finditer(text, 0, index)]
            return separators[-1] if separators and separators[-1] > index // 2 else max(index, 1)
    return len(text)
