"""Names chosen by people: exact ones, and regular expressions for whole names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from kctl.errors import NotFound, UsageError
from kctl.suggestions import did_you_mean


def parse_patterns(option: str, patterns: Iterable[str]) -> list[re.Pattern[str]]:
    """Regular expressions, as `option` gives them; «.» is any character: ids may have line ends. Raises UsageError."""
    found = []
    for pattern in patterns:
        try:
            found.append(re.compile(pattern, re.DOTALL))
        except (re.error, OverflowError, RecursionError) as exc:
            raise UsageError(
                f"{option} {pattern!r} is no regular expression: {exc}", hint=_meant_as_glob(pattern)
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
        do = "does" if len(unknown) == 1 else "do"
        raise NotFound(
            f"{noun}{'' if len(unknown) == 1 else 's'} {', '.join(unknown)} {do} not exist",
            hint=did_you_mean(unknown[0], names) or f"`kctl {listed_by or f'{noun} list'}` shows what there is",
        )
    if not exact and not patterns:
        return sorted(names)
    chosen = set(exact) | {name for name in names if matches(name, patterns)}
    if not chosen:
        raise NotFound(
            f"no {noun} matches {' or '.join(pattern.pattern for pattern in patterns)}",
            hint=next((hint for hint in (_meant_as_glob(each.pattern) for each in patterns) if hint), None),
        )
    return sorted(chosen)


def _meant_as_glob(pattern: str) -> str | None:
    """What to say of «ord*», which as a regular expression is «or» and any number of «d»."""
    regex = as_regex(pattern)
    return f"it is a regular expression for the whole name: did you mean {regex!r}?" if regex else None


def as_regex(glob: str) -> str | None:
    """The regular expression of a shell's pattern, when it reads like one: «ord*» is «ord.*»; else None."""
    if not re.fullmatch(r"[\w.*-]*\*[\w.*-]*", glob) or re.search(r"\.\*|\*\*", glob):
        return None
    return glob.replace(".", r"\.").replace("*", ".*")
