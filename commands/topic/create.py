"""kctl topic create: create topics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.base.outcomes import ItemResult, any_changed
from kctl.base.text import counted
from kctl.cluster.partition_numbers import MOST
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.commands.terminal.topic_options import CONFIG
from kctl.errors import UsageError

if TYPE_CHECKING:
    from kctl.topics.create import CreatedTopic
    from kctl.topics.new_topic import NewTopic


def create(
    ctx: typer.Context,
    names: Annotated[list[str], typer.Argument(metavar="NAME…", help="Names of the topics.")],
    partitions: Annotated[
        int | None, typer.Option(min=1, max=MOST, help="Number of partitions (default: the broker's num.partitions).")
    ] = None,
    replication_factor: Annotated[
        int | None,
        typer.Option(
            min=1, max=32767, help="Replicas per partition (default: the broker's default.replication.factor)."
        ),
    ] = None,
    replica_assignment: Annotated[
        str | None,
        typer.Option(metavar="1:2,2:3", help="Brokers of each partition, preferred leader first."),
    ] = None,
    config: Annotated[list[str] | None, CONFIG] = None,
    if_not_exists: Annotated[bool, typer.Option("--if-not-exists", help="Skip topics that already exist.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Let the brokers validate the request, without creating topics.")
    ] = False,
) -> None:
    """Create topics. Brokers validate the request first; the result is read back.

    # Create a topic that keeps records for one day
    kctl topic create orders --partitions 6 --replication-factor 3 --config retention.ms=86400000
    """
    from kctl.topics.create import create_topics, plan_create
    from kctl.topics.verdicts import require_created

    inv = invocation(ctx)
    topics = _new_topics(names, partitions, replication_factor, replica_assignment, config or [])
    with inv.connect() as client:
        plan = plan_create(client, topics, if_not_exists=if_not_exists)
        if dry_run:
            _emit_created(inv, plan)
            return
        missing = sum(row.result is ItemResult.WOULD_CREATE for row in plan)
        if missing:
            inv.confirm_protected(f"Create {counted(missing, 'topic')} on {client.target.name}?", target=client.target)
        with output.progress("creating") as bar:
            rows = create_topics(
                client, topics, plan, if_not_exists=if_not_exists, timeout_s=inv.timeout_s(30), progress=bar.update
            )
    _emit_created(inv, rows)
    require_created(rows)


def _new_topics(
    names: Sequence[str], partitions: int | None, factor: int | None, assignment: str | None, config: Sequence[str]
) -> list[NewTopic]:
    from kctl.configs.edits import read_values
    from kctl.topics.new_topic import NewTopic, parse_assignment

    if assignment and (partitions is not None or factor is not None):
        raise UsageError("--replica-assignment excludes --partitions and --replication-factor")
    replicas = parse_assignment(assignment) if assignment is not None else None
    configs = read_values(config)
    return [NewTopic(name, partitions, factor, replicas, configs) for name in names]


def _emit_created(inv: Invocation, rows: Sequence[CreatedTopic]) -> None:
    columns = [
        Column("topic"),
        Column("result"),
        Column("partition_count", "PARTITIONS", align="right"),
        Column("replication_factor", "RF", align="right"),
        Column("configs", show=lambda configs: " ".join(f"{k}={v}" for k, v in configs.items()) or "-"),
    ]
    inv.emit(rows, lambda: [Table(columns, jsonable(rows))], changed=any_changed(rows))
    for row in rows:
        if row.differs:
            output.warn(f"topic {row.topic} already exists and was not changed: it {row.differs}")
