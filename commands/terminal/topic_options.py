"""Options of several `kctl topic` commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from kctl.topics.describe import PartitionProblem

CONFIG = typer.Option(
    "--config", metavar="KEY=VALUE", help="Config to set; KEY=@FILE reads the value from a file; repeatable."
)
INTERNAL = typer.Option("--internal", help="Include internal topics.")
INTERNAL_TOO = typer.Option("--internal", help="Include internal topics; health filters always include them.")
MATCH = typer.Option("--match", metavar="REGEX", help="Topics whose whole name matches; repeatable.")
PARTITION = typer.Option("--partition", "--partitions", metavar="0,3-5", help="Only these partitions; repeatable.")
_OUT_OF_SYNC = "partitions with out-of-sync replicas, not counting replicas that a reassignment adds."
_REJECTED = "partitions that reject acks=all."
_AT_RISK = "partitions that would reject acks=all after one more failure."
_LEADERLESS = "partitions without a leader."
UNDER_REPLICATED = typer.Option("--under-replicated", "--under-replicated-partitions", help=f"Only {_OUT_OF_SYNC}")
UNDER_MIN_ISR = typer.Option("--under-min-isr", "--under-min-isr-partitions", help=f"Only {_REJECTED}")
AT_MIN_ISR = typer.Option("--at-min-isr", "--at-min-isr-partitions", help=f"Only {_AT_RISK}")
UNAVAILABLE = typer.Option("--unavailable", "--unavailable-partitions", help=f"Only {_LEADERLESS}")
TOPICS_UNDER_REPLICATED = typer.Option(
    "--under-replicated", "--under-replicated-partitions", help=f"Only topics with {_OUT_OF_SYNC}"
)
TOPICS_UNDER_MIN_ISR = typer.Option(
    "--under-min-isr", "--under-min-isr-partitions", help=f"Only topics with {_REJECTED}"
)
TOPICS_AT_MIN_ISR = typer.Option("--at-min-isr", "--at-min-isr-partitions", help=f"Only topics with {_AT_RISK}")
TOPICS_UNAVAILABLE = typer.Option("--unavailable", "--unavailable-partitions", help=f"Only topics with {_LEADERLESS}")
NAMES = typer.Argument(metavar="[NAME]…", help="Topics, unless --match selects them.")
ALL_NAMES = typer.Argument(metavar="[NAME]…", help="Topics (default: all).")


def selected_problems(
    under_replicated: bool, unavailable: bool, under_min_isr: bool, at_min_isr: bool
) -> list[PartitionProblem]:
    """Return the filters that are set."""
    from kctl.topics.describe import PartitionProblem

    filters = {
        PartitionProblem.UNDER_REPLICATED: under_replicated,
        PartitionProblem.UNAVAILABLE: unavailable,
        PartitionProblem.UNDER_MIN_ISR: under_min_isr,
        PartitionProblem.AT_MIN_ISR: at_min_isr,
    }
    return [problem for problem, on in filters.items() if on]
