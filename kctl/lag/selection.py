"""Select groups and topics by name, glob and regular expression. Pure.

A regular expression (`--match`, as in every command) must match the whole name. A glob has * (anything), ? (one
character) and [abc], as in a shell, and is case-sensitive. Brackets escape these characters: a[*]b. A leading !
excludes names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import cached_property

from kctl.base.name_patterns import matches, meant_as_glob, parse_patterns
from kctl.errors import NotFound

_GLOB = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class Names:
    """Patterns of names. A name matches if any pattern matches it and no "!" pattern does. No patterns: every name.

    patterns: globs. regexes: regular expressions for whole names.
    """

    patterns: tuple[str, ...] = ()
    regexes: tuple[str, ...] = ()

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        globs, excluded, regexes = self._compiled
        if excluded is not None and excluded.match(name):
            return False
        if globs is None and not regexes:
            return True
        return (globs is not None and globs.match(name) is not None) or matches(name, regexes)

    @property
    def everything(self) -> bool:
        """Return True if every name is selected."""
        return not self.patterns and not self.regexes

    @property
    def exact(self) -> list[str]:
        """Return the literal names, each of which must exist."""
        return [text for text in self.patterns if not text.startswith("!") and not _GLOB.search(text)]

    @property
    def bounds(self) -> tuple[str | None, str | None]:
        """Return lower and upper with lower ≤ name < upper for all selected names; None: no bound."""
        starts = [_prefix(text) for text in self.patterns if not text.startswith("!")]
        if self.regexes or not starts or "" in starts:
            return None, None
        uppers = [_after(text) for text in starts]
        return min(starts), None if None in uppers else max(text for text in uppers if text is not None)

    @cached_property
    def _compiled(self) -> tuple[re.Pattern[str] | None, re.Pattern[str] | None, list[re.Pattern[str]]]:
        included = [text for text in self.patterns if not text.startswith("!")]
        excluded = [text[1:] for text in self.patterns if text.startswith("!")]
        return _any_of(included), _any_of(excluded), parse_patterns("--match", self.regexes)

    def nothing(self, noun: str) -> NotFound:
        """Return the error for patterns that match no existing `noun`."""
        if self.everything:
            return NotFound(f"there is no {noun}")
        first = (*self.patterns, *self.regexes)[0]
        hint = meant_as_glob(first) if self.regexes else None
        if self.patterns and ".*" in first:
            hint = f"--{noun} accepts the wildcards * and ?; for a regular expression use --match {first!r}"
        return NotFound(f"no {noun} matches {' or '.join((*self.patterns, *self.regexes))}", hint=hint)


EVERY = Names()


def names_of(patterns: Sequence[str] | None, match: Sequence[str] | None = None) -> Names:
    """Return the patterns from options. match: regular expressions. Raises UsageError for an invalid expression."""
    parse_patterns("--match", match or ())
    return Names(tuple(patterns or ()), tuple(match or ()))


def _any_of(globs: Sequence[str]) -> re.Pattern[str] | None:
    return re.compile("|".join(map(translate, globs))) if globs else None


def _prefix(glob: str) -> str:
    """Return the common prefix of all names that match a glob."""
    wildcard = _GLOB.search(glob)
    return glob[: wildcard.start()] if wildcard else glob


def _after(prefix: str) -> str | None:
    """Return the smallest string above all strings with this prefix; None: there is none."""
    for end in range(len(prefix), 0, -1):
        code = ord(prefix[end - 1]) + 1
        if code <= 0x10FFFF:
            # Skip surrogates, which UTF-8 cannot encode.
            return prefix[: end - 1] + chr(0xE000 if 0xD800 <= code <= 0xDFFF else code)
    return None
