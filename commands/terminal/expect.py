"""--expect: how many a pattern has to select before it changes something that nobody was shown."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from kctl.commands.terminal.invocation import Invocation
from kctl.errors import NotConfirmed, Refused, UsageError

EXPECT = typer.Option(
    "--expect", metavar="N", min=0, help="With --match: refuse unless it selects so many; needed with --yes."
)
EXPECT_CHOSEN = typer.Option(
    "--expect", metavar="N", min=0, help="With options: refuse unless they choose so many; needed with --yes."
)


def check_pattern(inv: Invocation, match: Sequence[str] | None, expect: int | None, selected: int) -> None:
    """Nobody has seen what a pattern selects when it is confirmed beforehand: then --expect has to say how many.

    Raises UsageError for --expect alone, Refused when the pattern selects another number, NotConfirmed without it.
    """
    if expect is not None and not match:
        raise UsageError("--expect goes with --match")
    if match:
        check_chosen(inv, expect, selected, by="--match selects")


def check_chosen(inv: Invocation, expect: int | None, selected: int, *, by: str) -> None:
    """The same for whatever chose them; by: «--match selects», for the message. Raises Refused, NotConfirmed."""
    if expect is not None and expect != selected:
        raise Refused(f"{by} {selected}, not {expect}", hint="nothing was changed; --dry-run shows them")
    if (inv.yes or inv.confirm_cluster) and expect is None:
        given = "--yes" if inv.yes else "--confirm-cluster"
        raise NotConfirmed(
            f"not confirmed: {by} {selected}", hint=f"look at them, and add --expect {selected} to {given}"
        )
