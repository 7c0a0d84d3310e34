"""kctl topic create."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.base.outcomes import ItemResult, any_changed, reasons
from kctl.base.text import counted
from kctl.cluster.partition_numbers import MOST
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.commands.terminal.topic_options import CONFIG
from kctl.errors import NotHealthy, OperationFailed, UsageError

if TYPE_CHECKING:
    from kctl.topics.apply import AppliedTopic
    from kctl.topics.create import CreatedTopic
    from kctl.topics.new_topic import NewTopic


def create(
    ctx: typer.Context,
    names: Annotated[list[str], typer.Argument(metavar="NAME…")],
    partitions: Annotated[
        int | None, typer.Option(min=1, max=MOST, help="How many; the brokers' default without.")
    ] = None,
    replication_factor: Annotated[
        int | None, typer.Option(min=1, max=32767, help="How many; the brokers' default without.")
    ] = None,
    replica_assignment: Annotated[
        str | None,
        typer.Option(metavar="1:2,2:3", help="Brokers of each partition, preferred leader first, instead of numbers."),
    ] = None,
    config: Annotated[list[str] | None, CONFIG] = None,
    if_not_exists: Annotated[bool, typer.Option("--if-not-exists", help="Leave topics that are there alone.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Let the brokers check it, create nothing.")] = False,
) -> None:
    """Create topics, checked by the brokers first and read back afterwards.

    Example: kctl topic create orders --partitions 6 --replication-factor 3 --config retention.ms=86400000
    """
    from kctl.topics.create import create_topics, plan_create

    inv = invocation(ctx)
    topics = _new_topics(names, partitions, replication_factor, replica_assignment, config or [])
    with inv.connect() as client:
        plan = plan_create(client, topics, if_not_exists=if_not_exists)
        if dry_run:
            _emit_created(inv, plan)
            return
        missing = sum(row.result is ItemResult.WOULD_CREATE for row in plan)
        if missing:
            inv.confirm_protected(f"Create {counted(missing, 'topic')} of {client.target.name}?", target=client.target)
        with output.progress("creating") as bar:
            done = create_topics(
                client, topics, plan, if_not_exists=if_not_exists, timeout_s=inv.timeout_s(30), progress=bar.update
            )
    _emit_created(inv, done)
    failed = {row.topic: row.error for row in done if row.result is ItemResult.FAILED}
    if failed:
        raise OperationFailed(
            f"{len(failed)} of {counted(len(done), 'topic')} not created: {reasons(failed)}",
            hint="the others were; --if-not-exists tries the rest again" if len(failed) < len(done) else None,
        )
    raise_leaderless(done)


def raise_leaderless(done: Sequence[CreatedTopic | AppliedTopic]) -> None:
    """Raise NotHealthy for topics that were created and have partitions without a leader; none of the rows failed."""
    leaderless = [f"{row.topic}: {row.error}" for row in done if row.error]
    if leaderless:
        raise NotHealthy(f"created, but {'; '.join(leaderless)}")


def _new_topics(
    names: Sequence[str], partitions: int | None, factor: int | None, assignment: str | None, config: Sequence[str]
) -> list[NewTopic]:
    from kctl.configs.edits import read_values
    from kctl.topics.new_topic import NewTopic, parse_assignment

    if assignment and (partitions is not None or factor is not None):
        raise UsageError("--replica-assignment already says how many partitions and replicas there are")
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
            output.warn(f"topic {row.topic} exists and was left alone: it {row.differs}")
