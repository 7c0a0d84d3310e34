"""Options that several commands of `kctl topic` have."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from kctl.commands.invocation import Invocation
from kctl.errors import NotConfirmed, Refused, UsageError

INTERNAL = typer.Option("--internal", help="Kafka's own topics as well.")
MATCH = typer.Option("--match", metavar="REGEX", help="Topics whose whole name it matches; repeatable.")
EXPECT = typer.Option(
    "--expect", metavar="N", min=0, help="With --match: refuse unless it selects so many; needed with --yes."
)
UNDER_REPLICATED = typer.Option(
    "--under-replicated", "--under-replicated-partitions", help="Only with fewer replicas in sync than assigned."
)
UNAVAILABLE = typer.Option("--unavailable", "--unavailable-partitions", help="Only without a leader.")
NAMES = typer.Argument(metavar="[NAME]…")
ALL_NAMES = typer.Argument(metavar="[NAME]…", help="All topics when none is named.")


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
