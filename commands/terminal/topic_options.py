"""Options that several commands of `kctl topic` have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from kctl.topics.describe import PartitionProblem

CONFIG = typer.Option(
    "--config", metavar="KEY=VALUE", help="Config to set, KEY=@FILE takes the value from a file; repeatable."
)
INTERNAL = typer.Option("--internal", help="Kafka's own topics as well.")
INTERNAL_TOO = typer.Option("--internal", help="Kafka's own topics as well; filters by health always take them.")
MATCH = typer.Option("--match", metavar="REGEX", help="Topics whose whole name it matches; repeatable.")
PARTITION = typer.Option("--partition", "--partitions", metavar="0,3-5", help="Only these partitions; repeatable.")
UNDER_REPLICATED = typer.Option(
    "--under-replicated",
    "--under-replicated-partitions",
    help="Only with replicas that are not in sync; those that a move is adding do not count.",
)
UNDER_MIN_ISR = typer.Option("--under-min-isr", "--under-min-isr-partitions", help="Only those that refuse acks=all.")
AT_MIN_ISR = typer.Option(
    "--at-min-isr", "--at-min-isr-partitions", help="Only those that lose that with one replica more."
)
UNAVAILABLE = typer.Option("--unavailable", "--unavailable-partitions", help="Only without a leader.")
NAMES = typer.Argument(metavar="[NAME]…")
ALL_NAMES = typer.Argument(metavar="[NAME]…", help="All topics when none is named.")


def problems_asked(
    under_replicated: bool, unavailable: bool, under_min_isr: bool, at_min_isr: bool
) -> list[PartitionProblem]:
    """The filters that are given."""
    from kctl.topics.describe import PartitionProblem

    given = {
        PartitionProblem.UNDER_REPLICATED: under_replicated,
        PartitionProblem.UNAVAILABLE: unavailable,
        PartitionProblem.UNDER_MIN_ISR: under_min_isr,
        PartitionProblem.AT_MIN_ISR: at_min_isr,
    }
    return [problem for problem, on in given.items() if on]
