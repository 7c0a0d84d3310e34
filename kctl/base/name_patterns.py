"""Names chosen by people: exact ones, and regular expressions for whole names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from kctl.base.suggestions import did_you_mean
from kctl.errors import NotFound, UsageError

_NAMED = 5


def parse_patterns(option: str, patterns: Iterable[str]) -> list[re.Pattern[str]]:
    """Regular expressions, as `option` gives them; «.» is any character: ids may have line ends. Raises UsageError."""
    found = []
    for pattern in patterns:
        try:
            found.append(re.compile(pattern, re.DOTALL))
        except (re.error, OverflowError, RecursionError) as exc:
            raise UsageError(
                f"{option} {pattern!r} is not a valid regular expression: {exc}", hint=meant_as_glob(pattern)
            ) from None
    return found


def matches(name: str, patterns: Sequence[re.Pattern[str]]) -> bool:
    """Does any of them match the whole name?"""
    return any(pattern.fullmatch(name) for pattern in patterns)


def select(
    known: Iterable[str],
    *,
    exact: Sequence[str] = (),
    patterns: Sequence[re.Pattern[str]] = (),
    noun: str = "topic",
    listed_by: str | None = None,
) -> list[str]:
    """Sorted: the exact names and those that match a pattern; all known ones when neither is given.

    listed_by: the command that lists what there is, without «kctl».

    Raises NotFound for exact names that are not known (with what was meant), and when no name matches any pattern.
    """
    names = set(known)
    unknown = sorted(set(exact) - names)
    if unknown:
        raise not_there(unknown, names, noun=noun, listed_by=listed_by)
    if not exact and not patterns:
        return sorted(names)
    chosen = set(exact) | {name for name in names if matches(name, patterns)}
    if not chosen:
        raise NotFound(
            f"no {noun} matches {' or '.join(pattern.pattern for pattern in patterns)}",
            hint=next((hint for hint in (meant_as_glob(each.pattern) for each in patterns) if hint), None),
        )
    return sorted(chosen)


def meant_as_glob(pattern: str) -> str | None:
    """What to say of «ord*», which as a regular expression is «or» and any number of «d»."""
    regex = as_regex(pattern)
    return f"it is a regular expression for the whole name: did you mean {regex!r}?" if regex else None


def as_regex(glob: str) -> str | None:
    """The regular expression of a shell's pattern, when it reads like one: «ord*» is «ord.*»; else None."""
    if not re.fullmatch(r"[\w.*-]*\*[\w.*-]*", glob) or re.search(r"\.\*|\*\*", glob):
        return None
    return glob.replace(".", r"\.").replace("*", ".*")


def not_there(
    missing: Sequence[str],
    known: Iterable[str],
    *,
    noun: str = "topic",
    listed_by: str | None = None,
    show: Callable[[str], str] = str,
) -> NotFound:
    """The error for names that are not known, with what was probably meant. show: a name that can be any text."""
    named = ", ".join(map(show, missing[:_NAMED]))
    more = f" and {len(missing) - _NAMED:,} more" if len(missing) > _NAMED else ""
    what = f"{noun} {named} does not exist" if len(missing) == 1 else f"{noun}s {named}{more} do not exist"
    hint = meant_as_pattern(missing[0]) or did_you_mean(missing[0], known)
    return NotFound(what, hint=hint or f"`kctl {listed_by or f'{noun} list'}` shows what there is")


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
