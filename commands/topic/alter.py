"""kctl topic alter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.base.outcomes import ItemResult, any_changed, reasons
from kctl.base.text import counted, some_of
from kctl.cluster.partition_numbers import MOST
from kctl.commands.terminal import output
from kctl.commands.terminal.expect import EXPECT, check_pattern
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.commands.terminal.output import Column, Table
from kctl.commands.terminal.topic_options import CONFIG, MATCH, NAMES
from kctl.errors import OperationFailed, UsageError

if TYPE_CHECKING:
    from kctl.model import ClusterState, TopicState
    from kctl.topics.alter import AlteredTopic, TopicChange

DEFAULT = "(default)"  # brokers do not tell every one before it holds


def alter(
    ctx: typer.Context,
    names: Annotated[list[str] | None, NAMES] = None,
    match: Annotated[list[str] | None, MATCH] = None,
    expect: Annotated[int | None, EXPECT] = None,
    partitions: Annotated[
        int | None, typer.Option(min=1, max=MOST, help="How many there shall be; they only grow.")
    ] = None,
    replica_assignment: Annotated[
        str | None,
        typer.Option(metavar="1:2,2:3", help="Brokers of every partition, as in create; those there stay as they are."),
    ] = None,
    config: Annotated[list[str] | None, CONFIG] = None,
    delete_config: Annotated[
        list[str] | None, typer.Option(metavar="KEY", help="Config to take away, so that a default holds; repeatable.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Let the brokers check it, change nothing.")] = False,
) -> None:
    """Give topics more partitions or other configs, checked by the brokers first and read back afterwards.

    More partitions change where the records of a key go, and cannot be taken back.

    Example: kctl topic alter orders --partitions 12 --config retention.ms=86400000 --dry-run
    """
    from kctl.cluster.topics import choose_to_change
    from kctl.topics.alter import alter_topics, plan_alter
    from kctl.topics.basis import of_altered

    inv = invocation(ctx)
    if partitions is None and replica_assignment is None and not config and not delete_config:
        raise UsageError("nothing to change", hint="give --partitions, --config KEY=VALUE or --delete-config KEY")
    configs = _configs(config or [], delete_config or [])
    with inv.connect() as client:
        state, chosen = choose_to_change(client, names or (), match or ())
        changes = [_change(topic, partitions, replica_assignment, configs) for topic in chosen]
        plan = plan_alter(client, state, changes)
        todo = [row for row in plan if row.result is ItemResult.WOULD_ALTER]
        if dry_run or not todo:
            emit_altered(inv, plan)
            warn_of(plan, state)
            return
        if not inv.yes:
            show_plan(todo)
        warn_of(plan, state)
        check_pattern(inv, match, expect, len(chosen))
        question = f"Change {counted(len(todo), 'topic')} of {client.target.name}?"
        inv.confirm(question, target=client.target, basis=of_altered(client, state, plan))
        with output.progress("changing") as bar:
            done = alter_topics(client, changes, plan, timeout_s=inv.timeout_s(30), progress=bar.update)
    emit_altered(inv, done)
    raise_unaltered(done)


def _configs(set_: Sequence[str], unset: Sequence[str]) -> dict[str, str | None]:
    from kctl.configs.edits import read_values

    values: dict[str, str | None] = dict(read_values(set_))
    both = sorted(values.keys() & set(unset))
    if both:
        raise UsageError(f"{', '.join(both)} is both to be set and to be deleted")
    return {**values, **dict.fromkeys(unset)}


def _change(
    topic: TopicState, partitions: int | None, assignment: str | None, configs: dict[str, str | None]
) -> TopicChange:
    from kctl.errors import Refused
    from kctl.topics.alter import TopicChange
    from kctl.topics.new_topic import parse_assignment

    if assignment is None:
        return TopicChange(topic.name, partitions, None, configs)
    every = parse_assignment(assignment)
    if partitions is not None and partitions != len(every):
        raise UsageError(f"--replica-assignment has {len(every)} partitions, --partitions says {partitions}")
    there = tuple(p.replicas for p in topic.partitions)
    if every[: len(there)] != there:
        raise Refused(
            f"--replica-assignment has other replicas for partitions that topic {topic.name} has already",
            hint="`kctl topic describe` shows them; `kctl topic reassign` moves them",
        )
    return TopicChange(topic.name, len(every), every[len(there) :], configs)


def warn_of(rows: Sequence[AlteredTopic], state: ClusterState) -> None:
    """What the changes bring with them. state: with the topics."""
    from kctl.configs.cautions import caution_of
    from kctl.topics.alter import ORDER_IS_LOST

    growing = [row.topic for row in rows if row.partition_count_after > row.partition_count_before]
    if growing:
        output.warn(f"{some_of(growing)}: {ORDER_IS_LOST}")
    for row in rows:
        factor = min((len(p.replicas) for p in state.topics[row.topic].partitions), default=None)
        for config in row.config_changes:
            caution = caution_of(config, factor) if config.result.planned else None
            if caution:
                output.warn(f"{row.topic}: {caution}")


def show_plan(rows: Sequence[AlteredTopic]) -> None:
    """What would be changed, a line each on stderr."""
    for row in _flat(rows):
        output.note(f"{row['topic']}: {row['what']} {_text(row['before'])} -> {_text(row['after'])}")


def emit_altered(inv: Invocation, rows: Sequence[AlteredTopic]) -> None:
    """What became of each topic: a line for each thing that was to change."""
    columns = [
        Column("topic", name=True),
        Column("what", "CHANGE"),
        Column("result"),
        Column("before"),
        Column("after"),
        Column("after_source", "SET BY", wide=True),
    ]
    changed = any_changed(rows) or any(any_changed(row.config_changes) for row in rows)
    inv.emit(rows, lambda: [Table(columns, list(_flat(rows)))], changed=changed)


def raise_unaltered(rows: Sequence[AlteredTopic]) -> None:
    """Raise OperationFailed when some were not changed, or not shown to be."""
    failed = {row.topic: row.error for row in rows if row.result is ItemResult.FAILED}
    if failed:
        raise OperationFailed(f"{len(failed)} of {counted(len(rows), 'topic')} not changed: {reasons(failed)}")


def _flat(rows: Sequence[AlteredTopic]) -> Iterator[dict[str, Any]]:
    for row in rows:
        if row.partition_count_after != row.partition_count_before or not row.config_changes:
            yield {
                "topic": row.topic, "what": "partitions", "result": row.result,
                "before": row.partition_count_before, "after": row.partition_count_after,
            }  # fmt: skip
        for config in row.config_changes:
            yield {
                "topic": row.topic, "what": config.name, "result": config.result, "before": config.before,
                "after": DEFAULT if config.after is None and config.result is ItemResult.WOULD_UNSET else config.after,
                "after_source": config.after_source,
            }  # fmt: skip


def _text(value: Any) -> str:
    return "(none)" if value is None else str(value) or "(empty)"
