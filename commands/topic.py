"""kctl topic: list, describe, create and delete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.commands import output
from kctl.commands.invocation import CommandGroup, Invocation, invocation
from kctl.commands.output import Column, Table, jsonable
from kctl.errors import NotHealthy, OperationFailed, UsageError
from kctl.text import counted
from kctl.units import format_size

if TYPE_CHECKING:
    from kctl.topics.create import CreatedTopic, NewTopic
    from kctl.topics.delete import DeletedTopic
    from kctl.topics.describe import TopicDescription

app = CommandGroup("List, create, describe and delete topics.")
app.group_of("reassign", "kctl.commands.reassign")

_INTERNAL = typer.Option("--internal", help="Kafka's own topics as well.")


def _alarm(key: str) -> Any:
    """A column's style: red when the row's `key` is set and not zero."""
    return lambda row: "red" if row.get(key) else None


@app.command("list")
def list_(ctx: typer.Context, internal: Annotated[bool, _INTERNAL] = False) -> None:
    """List topics with their partitions and replication factor.

    Example: kctl topic list -o json
    """
    from kctl.topics.describe import list_topics

    inv = invocation(ctx)
    with inv.connect() as client:
        topics = list_topics(client, internal=internal)
    columns = [
        Column("name", "TOPIC"),
        Column("partitions", align="right"),
        Column("replication_factor", "RF", align="right"),
        Column("under_replicated_partitions", "UNDER-REPLICATED", align="right",
               style=_alarm("under_replicated_partitions")),
        Column("offline_partitions", "OFFLINE", align="right", style=_alarm("offline_partitions")),
    ]  # fmt: skip
    inv.emit(topics, lambda: [Table(columns, jsonable(topics), empty="no topics")])


@app.command()
def describe(
    ctx: typer.Context,
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]…", help="All topics when none is named.")] = None,
    internal: Annotated[bool, _INTERNAL] = False,
) -> None:
    """Describe topics: leader, replicas and ISR of each partition, and the configs that are not the default.

    Example: kctl topic describe orders
    """
    from kctl.topics.describe import describe_topics

    inv = invocation(ctx)
    with inv.connect() as client:
        topics = describe_topics(client, names, internal=internal)
    inv.emit(topics, lambda: _descriptions(topics))
    for topic in topics:
        if topic.configs_error:
            output.warn(topic.configs_error)


def _descriptions(topics: Sequence[TopicDescription]) -> list[Table]:
    if not topics:
        return [Table([], [], empty="no topics")]
    return [table for topic in topics for table in _description(topic)]


def _description(topic: TopicDescription) -> list[Table]:
    partitions = Table(
        columns=[
            Column("partition", align="right"),
            Column("leader", align="right"),
            Column("replicas"),
            Column("isr", "ISR"),
            Column("marks", style=_mark_style),
        ],
        rows=[{**row, "marks": _marks(row)} for row in jsonable(topic.partitions)],
        title=f"{topic.name}: {counted(topic.partition_count, 'partition')}, replication factor {_factors(topic)}",
    )
    configs = Table(
        columns=[Column("name", "CONFIG"), Column("value"), Column("source", "SET BY")],
        rows=jsonable(topic.configs),
    )
    return [partitions, configs]


def _factors(topic: TopicDescription) -> str:
    """«3», or «3 to 4» while partitions differ."""
    found = {len(p.replicas) for p in topic.partitions}
    return f"{min(found)} to {max(found)}" if len(found) > 1 else str(topic.replication_factor)


def _marks(row: Mapping[str, Any]) -> str:
    """What is not as it should be, in words that people search for."""
    marks = []
    if row["offline"]:
        marks.append("offline: no leader")
    elif row["leader"] != row["preferred_leader"]:
        marks.append("not the preferred leader")
    if row["under_replicated"]:
        marks.append("under-replicated")
    if row["under_min_isr"]:
        marks.append("under min ISR")
    if row["offline_replicas"]:
        marks.append(f"offline replicas {','.join(map(str, row['offline_replicas']))}")
    for key, word in (("adding_replicas", "adding"), ("removing_replicas", "removing")):
        if row[key]:
            marks.append(f"{word} {','.join(map(str, row[key]))}")
    return "; ".join(marks)


def _mark_style(row: Mapping[str, Any]) -> str | None:
    if row["offline"] or row["under_min_isr"]:
        return "red"
    return "yellow" if row["marks"] else None


@app.command()
def create(
    ctx: typer.Context,
    names: Annotated[list[str], typer.Argument(metavar="NAME…")],
    partitions: Annotated[int | None, typer.Option(min=1, help="How many; the brokers' default without.")] = None,
    replication_factor: Annotated[
        int | None, typer.Option(min=1, max=32767, help="How many; the brokers' default without.")
    ] = None,
    replica_assignment: Annotated[
        str | None,
        typer.Option(metavar="1:2,2:3", help="Brokers of each partition, preferred leader first, instead of numbers."),
    ] = None,
    config: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="Topic config; repeatable.")] = None,
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
        with output.progress("creating") as bar:
            done = create_topics(client, topics, plan, timeout_s=inv.timeout_s(30), progress=bar.update)
    _emit_created(inv, done)
    failed = [f"{row.name}: {row.error}" for row in done if row.result == "failed"]
    if failed:
        raise OperationFailed(
            f"{len(failed)} of {counted(len(done), 'topic')} not created: {'; '.join(failed)}",
            hint="the others were; --if-not-exists tries the rest again" if len(failed) < len(done) else None,
        )
    leaderless = [f"{row.name}: {row.error}" for row in done if row.error]
    if leaderless:
        raise NotHealthy(f"created, but {'; '.join(leaderless)}")


def _new_topics(
    names: Sequence[str], partitions: int | None, factor: int | None, assignment: str | None, config: Sequence[str]
) -> list[NewTopic]:
    from kctl.topics.create import NewTopic, parse_assignment, parse_configs

    if assignment and (partitions is not None or factor is not None):
        raise UsageError("--replica-assignment already says how many partitions and replicas there are")
    replicas = parse_assignment(assignment) if assignment is not None else None
    configs = parse_configs(config)
    return [NewTopic(name, partitions, factor, replicas, configs) for name in names]


def _emit_created(inv: Invocation, rows: Sequence[CreatedTopic]) -> None:
    columns = [
        Column("name", "TOPIC"),
        Column("result"),
        Column("partitions", align="right"),
        Column("replication_factor", "RF", align="right"),
        Column("configs", show=lambda configs: " ".join(f"{k}={v}" for k, v in configs.items()) or "-"),
    ]
    inv.emit(rows, lambda: [Table(columns, jsonable(rows))])
    for row in rows:
        if row.differs:
            output.warn(f"topic {row.name} exists and was left alone: it {row.differs}")


@app.command()
def delete(
    ctx: typer.Context,
    names: Annotated[list[str], typer.Argument(metavar="NAME…")],
    if_exists: Annotated[bool, typer.Option("--if-exists", help="Skip topics that are not there.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be lost, delete nothing.")] = False,
) -> None:
    """Delete topics with all their data, and wait until they are gone.

    Example: kctl topic delete orders --dry-run
    """
    from kctl.topics.delete import delete_topics, plan_delete

    inv = invocation(ctx)
    with inv.connect() as client:
        plan, doubts = plan_delete(client, names, if_exists=if_exists)
        for doubt in doubts:
            output.warn(doubt)
        todo = [row for row in plan if row.result == "would delete"]
        if dry_run or not todo:
            _emit_deleted(inv, plan)
            return
        if not inv.yes:
            for row in todo:
                output.note(_loss(row))
        inv.confirm(f"Delete {counted(len(todo), 'topic')} of {client.target.name}?", target=client.target)
        with output.progress("deleting") as bar:
            done = delete_topics(client, plan, timeout_s=inv.timeout_s(30), progress=bar.update)
    _emit_deleted(inv, done)
    failed = [f"{row.name}: {row.error}" for row in done if row.result in {"failed", "marked"}]
    if failed:
        raise OperationFailed(f"{len(failed)} of {counted(len(done), 'topic')} not deleted: {'; '.join(failed)}")


def _loss(row: DeletedTopic) -> str:
    size = "size unknown" if row.size_bytes is None else f"{format_size(row.size_bytes)} on disk"
    return f"{row.name}: {counted(row.partitions, 'partition')}, replication factor {row.replication_factor}, {size}"


def _emit_deleted(inv: Invocation, rows: Sequence[DeletedTopic]) -> None:
    columns = [
        Column("name", "TOPIC"),
        Column("result"),
        Column("partitions", align="right"),
        Column("replication_factor", "RF", align="right"),
        Column("size_bytes", "SIZE", show=format_size, align="right"),
    ]
    inv.emit(rows, lambda: [Table(columns, jsonable(rows))])
