"""kctl topic alter: change partitions and configs of topics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.base.outcomes import ItemResult, any_changed
from kctl.base.text import counted
from kctl.cluster.partition_numbers import MOST
from kctl.commands.terminal import output
from kctl.commands.terminal.expect import EXPECT, check_pattern
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.commands.terminal.output import Column, Table
from kctl.commands.terminal.topic_options import CONFIG, MATCH, NAMES
from kctl.errors import UsageError

if TYPE_CHECKING:
    from kctl.model import ClusterState
    from kctl.protocol.client import ClusterClient
    from kctl.topics.alter import AlteredTopic
    from kctl.topics.alter_request import AlterRequest

DEFAULT = "(default)"  # brokers do not report every default before it takes effect


def alter(
    ctx: typer.Context,
    names: Annotated[list[str] | None, NAMES] = None,
    match: Annotated[list[str] | None, MATCH] = None,
    expect: Annotated[int | None, EXPECT] = None,
    partitions: Annotated[
        int | None, typer.Option(min=1, max=MOST, help="New number of partitions; it can only increase.")
    ] = None,
    replica_assignment: Annotated[
        str | None,
        typer.Option(
            metavar="1:2,2:3", help="Brokers of every partition, as in create; must repeat the existing replicas."
        ),
    ] = None,
    config: Annotated[list[str] | None, CONFIG] = None,
    delete_config: Annotated[
        list[str] | None, typer.Option(metavar="KEY", help="Config to remove, so that the default applies; repeatable.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Let the brokers validate the change, without applying it.")
    ] = False,
) -> None:
    """Add partitions to topics, or change their configs. Brokers validate the change first.

    Adding partitions changes which partition the records of a key go to, and cannot be undone.

    # Preview more partitions and a retention of one day
    kctl topic alter orders --partitions 12 --config retention.ms=86400000 --dry-run
    """
    from kctl.cluster.topics import choose_to_change
    from kctl.topics.alter import alter_topics, plan_alter
    from kctl.topics.basis import of_altered
    from kctl.topics.verdicts import require_altered

    inv = invocation(ctx)
    if partitions is None and replica_assignment is None and not config and not delete_config:
        raise UsageError("nothing to change", hint="set --partitions, --config KEY=VALUE or --delete-config KEY")
    request = _request(partitions, replica_assignment, _configs(config or [], delete_config or []))
    with inv.connect() as client:
        state, chosen = choose_to_change(client, names or (), match or ())
        changes = [request.change_of(topic) for topic in chosen]
        plan = plan_alter(client, state, changes)
        to_alter = [row for row in plan if row.result is ItemResult.WOULD_ALTER]
        if dry_run or not to_alter:
            _emit(inv, plan)
            _warn(client, plan, state)
            return
        if not inv.yes:
            _show_plan(to_alter)
        _warn(client, plan, state)
        check_pattern(inv, match, expect, len(chosen))
        question = f"Change {counted(len(to_alter), 'topic')} on {client.target.name}?"
        inv.confirm(question, target=client.target, basis=of_altered(client, state, plan))
        with output.progress("changing") as bar:
            rows = alter_topics(client, changes, plan, timeout_s=inv.timeout_s(30), progress=bar.update)
    _emit(inv, rows)
    require_altered(rows)


def _warn(client: ClusterClient, rows: Sequence[AlteredTopic], state: ClusterState) -> None:
    from kctl.topics.change_warnings import alter_warnings

    for line in alter_warnings(client, rows, state):
        output.warn(line)


def _configs(set_: Sequence[str], unset: Sequence[str]) -> dict[str, str | None]:
    from kctl.configs.edits import read_values

    values: dict[str, str | None] = dict(read_values(set_))
    both = sorted(values.keys() & set(unset))
    if both:
        raise UsageError(f"{', '.join(both)} is in both --config and --delete-config")
    return {**values, **dict.fromkeys(unset)}


def _request(partitions: int | None, assignment: str | None, configs: dict[str, str | None]) -> AlterRequest:
    from kctl.topics.alter_request import AlterRequest
    from kctl.topics.new_topic import parse_assignment

    if assignment is None:
        return AlterRequest(partitions, None, configs)
    replicas = parse_assignment(assignment)
    if partitions is not None and partitions != len(replicas):
        raise UsageError(f"--replica-assignment has {len(replicas)} partitions, but --partitions is {partitions}")
    return AlterRequest(len(replicas), replicas, configs)


def _show_plan(rows: Sequence[AlteredTopic]) -> None:
    for row in _flat(rows):
        output.note(f"{row['topic']}: {row['what']} {_text(row['before'])} -> {_text(row['after'])}")


def _emit(inv: Invocation, rows: Sequence[AlteredTopic]) -> None:
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
