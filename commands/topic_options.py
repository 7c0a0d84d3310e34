"""Options that several commands of `kctl topic` have."""

from __future__ import annotations

import typer

CONFIG = typer.Option(
    "--config", metavar="KEY=VALUE", help="Config to set, KEY=@FILE takes the value from a file; repeatable."
)
INTERNAL = typer.Option("--internal", help="Kafka's own topics as well.")
INTERNAL_TOO = typer.Option("--internal", help="Kafka's own topics as well; filters by health always take them.")
MATCH = typer.Option("--match", metavar="REGEX", help="Topics whose whole name it matches; repeatable.")
UNDER_REPLICATED = typer.Option(
    "--under-replicated",
    "--under-replicated-partitions",
    help="Only with replicas that are not in sync; those that a move is adding do not count.",
)
UNAVAILABLE = typer.Option("--unavailable", "--unavailable-partitions", help="Only without a leader.")
NAMES = typer.Argument(metavar="[NAME]…")
ALL_NAMES = typer.Argument(metavar="[NAME]…", help="All topics when none is named.")
