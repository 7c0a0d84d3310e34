"""Select names by exact name, or by a regular expression for the whole name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from kctl.base.suggestions import did_you_mean
from kctl.errors import NotFound, UsageError

_MAX_NAMES = 5


def parse_patterns(option: str, patterns: Iterable[str]) -> list[re.Pattern[str]]:
    """Return the patterns of `option`, compiled. "." also matches line breaks, as in some ids. Raises UsageError."""
    compiled = []
    for pattern in patterns:
        try:
            compiled.append(re.compile(pattern, re.DOTALL))
        except (re.error, OverflowError, RecursionError) as exc:
            raise UsageError(
                f"{option} {pattern!r} is not a valid regular expression: {exc}", hint=meant_as_glob(pattern)
            ) from None
    return compiled


def matches(name: str, patterns: Sequence[re.Pattern[str]]) -> bool:
    """Return True if one of the patterns matches the whole name."""
    return any(pattern.fullmatch(name) for pattern in patterns)


def select(
    existing: Iterable[str],
    *,
    exact: Sequence[str] = (),
    patterns: Sequence[re.Pattern[str]] = (),
    noun: str = "topic",
    listed_by: str | None = None,
) -> list[str]:
    """Return the exact names and those that match a pattern, sorted; all existing names if neither is set.

    listed_by: the command that lists the names, without "kctl".

    Raises NotFound for exact names that do not exist (with a suggestion), and if no name matches any pattern.
    """
    names = set(existing)
    unknown = sorted(set(exact) - names)
    if unknown:
        raise not_there(unknown, names, noun=noun, listed_by=listed_by)
    if not exact and not patterns:
        return sorted(names)
    selected = set(exact) | {name for name in names if matches(name, patterns)}
    if not selected:
        raise NotFound(
            f"no {noun} matches {' or '.join(pattern.pattern for pattern in patterns)}",
            hint=next((hint for hint in (meant_as_glob(each.pattern) for each in patterns) if hint), None),
        )
    return sorted(selected)


def meant_as_glob(pattern: str) -> str | None:
    """Return a hint for a pattern like "ord*", which as a regular expression means "or" and any number of "d"."""
    regex = as_regex(pattern)
    return f"it is a regular expression for the whole name: did you mean {regex!r}?" if regex else None


def as_regex(glob: str) -> str | None:
    """Return the regular expression for a shell pattern, e.g. "ord.*" for "ord*"; None for other texts."""
    if not re.fullmatch(r"[\w.*-]*\*[\w.*-]*", glob) or re.search(r"\.\*|\*\*", glob):
        return None
    return glob.replace(".", r"\.").replace("*", ".*")


def not_there(
    missing: Sequence[str],
    existing: Iterable[str],
    *,
    noun: str = "topic",
    listed_by: str | None = None,
    show: Callable[[str], str] = str,
) -> NotFound:
    """Return the error for names that do not exist, with a suggestion. show: formats a name that can be any text."""
    listed = ", ".join(map(show, missing[:_MAX_NAMES]))
    more = f" and {len(missing) - _MAX_NAMES:,} more" if len(missing) > _MAX_NAMES else ""
    what = f"{noun} {listed} does not exist" if len(missing) == 1 else f"{noun}s {listed}{more} do not exist"
    hint = meant_as_pattern(missing[0]) or did_you_mean(missing[0], existing)
    return NotFound(what, hint=hint or f"list them with `kctl {listed_by or f'{noun} list'}`")


def meant_as_pattern(name: str) -> str | None:
    """Return the hint for a missing name that looks like a pattern: billing-.*, ord*, a|b."""
    if not re.search(r"[*?+^$|()\[\]{}\\]", name):
        return None
    regex = as_regex(name) or (name if _is_regex(name) else None)
    if regex is None:
        return None
    return f"names are exact; for a pattern use --match {regex!r} if the command has that option"


def _is_regex(text: str) -> bool:
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError):
        return False
    return True
