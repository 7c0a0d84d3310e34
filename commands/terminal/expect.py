"""The option --expect: the number of objects that a pattern must select before an unattended change."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from kctl.commands.terminal.invocation import Invocation
from kctl.errors import NotConfirmed, Reason, Refused, UsageError

EXPECT = typer.Option(
    "--expect", metavar="N", min=0, help="With --match: fail unless exactly N match; required with --yes."
)
EXPECT_CHOSEN = typer.Option(
    "--expect", metavar="N", min=0, help="With options: fail unless exactly N ACLs match; required with --yes."
)


def check_pattern(inv: Invocation, match: Sequence[str] | None, expect: int | None, selected: int) -> None:
    """Check the number of objects that a pattern selects. With --yes no one has reviewed them, so --expect is required.

    Raises UsageError for --expect without --match, Refused for another number, NotConfirmed without --expect.
    """
    if expect is not None and not match:
        raise UsageError("--expect requires --match")
    if match:
        check_chosen(inv, expect, selected, by="--match selects")


def check_chosen(inv: Invocation, expect: int | None, selected: int, *, by: str) -> None:
    """Check the number of selected objects. by: e.g. "--match selects", for messages. Raises Refused, NotConfirmed."""
    if expect is not None and expect != selected:
        raise Refused(
            f"{by} {selected}, not {expect}",
            hint="nothing was changed; use --dry-run to see them",
            reason=Reason.COUNT_MISMATCH,
        )
    if (inv.yes or inv.confirm_cluster) and expect is None:
        option = "--yes" if inv.yes else "--confirm-cluster"
        raise NotConfirmed(
            f"not confirmed: {by} {selected}",
            hint=f"check them with --dry-run, then add --expect {selected} to {option}",
        )
