"""What came of a change of several things."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeVar

from kctl.errors import KctlError, Refused

K = TypeVar("K")


def raise_refusal(errors: Mapping[K, KctlError], asked: Collection[K]) -> None:
    """Raise the first error when each of the things asked for was refused: nothing was changed.

    One that failed otherwise, or whose outcome is unknown, leaves all of them to be told row by row.
    """
    found = [errors[each] for each in asked if each in errors]
    if found and len(found) == len(asked) and all(isinstance(error, Refused) for error in found):
        raise found[0]
