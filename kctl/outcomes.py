"""What came of a change of several things."""

from __future__ import annotations

from collections.abc import Collection

from kctl.errors import KctlError, Refused


def raise_refusal(errors: Collection[KctlError], *, asked: int) -> None:
    """Raise the first error when each of the things asked for was refused: nothing was changed (exit code 4).

    errors: one for each thing that was not done. One that failed otherwise, or whose outcome is unknown, leaves all of
    them to be told row by row.
    """
    if errors and len(errors) == asked and all(isinstance(error, Refused) for error in errors):
        raise next(iter(errors))
