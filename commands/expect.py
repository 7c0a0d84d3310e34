"""--expect: how many a pattern has to select before it changes something that nobody was shown."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from kctl.commands.invocation import Invocation
from kctl.errors import NotConfirmed, Refused, UsageError

EXPECT = typer.Option(
    "--expect", metavar="N", min=0, help="With --match: refuse unless it selects so many; needed with --yes."
)


def check_pattern(inv: Invocation, match: Sequence[str] | None, expect: int | None, selected: int) -> None:
    """Nobody has seen what a pattern selects when it is confirmed beforehand: then --expect has to say how many.

    Raises UsageError for --expect alone, Refused when the pattern selects another number, NotConfirmed without it.
    """
    if expect is not None and not match:
        raise UsageError("--expect goes with --match")
    if expect is not None and expect != selected:
        raise Refused(f"--match selects {selected}, not {expect}", hint="nothing was changed; --dry-run shows them")
    if match and (inv.yes or inv.confirm_cluster) and expect is None:
        raise NotConfirmed(
            f"not confirmed: --match selects {selected}", hint=f"look at them, and add --expect {selected} to --yes"
        )
