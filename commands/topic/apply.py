"""kctl topic apply: create and alter topics to match a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.base.outcomes import ItemResult, any_changed
from kctl.base.text import counted
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.commands.terminal.output import Column, Table
from kctl.commands.topic.alter import DEFAULT
from kctl.commands.topic.delete import show_losses
from kctl.errors import UsageError

if TYPE_CHECKING:
    from kctl.model import ClusterState
    from kctl.protocol.client import ClusterClient
    from kctl.topics.apply import AppliedTopic, ApplyPlan, PropertyChange
    from kctl.topics.delete import DeletedTopic


def apply(
    ctx: typer.Context,
    file: Annotated[Path, typer.Option("-f", "--file", help="YAML file with topics; - reads stdin.")],
    prune: Annotated[bool, typer.Option("--prune", help="Also delete topics that are not in the file.")] = False,
    prune_match: Annotated[
        list[str] | None,
        typer.Option(metavar="REGEX", help="With --prune: delete only topics whose whole name matches; repeatable."),
    ] = None,
    prune_expect: Annotated[
        int | None,
        typer.Option(min=0, help="With --prune: refuse unless exactly N topics are deleted; required with --yes."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the differences without applying them; exit 1 if any.")
    ] = False,
) -> None:
    """Create and alter topics to match a file.

    Configs that are not in the file are removed from the topic; a topic without `configs` in the file keeps its
    configs. A lower number of partitions or a different replication factor is refused before anything changes.

    # Compare the topics with a file; change nothing
    kctl topic apply -f topics.yaml --dry-run
    """
    from kctl.topics.apply import carry_out, plan_apply, rows_of
    from kctl.topics.change_warnings import alter_warnings
    from kctl.topics.prune import prune as delete_unlisted
    from kctl.topics.prune import pruned_rows, refuse_empty_file, topics_to_prune
    from kctl.topics.spec import read_specs
    from kctl.topics.verdicts import require_applied, require_matching

    inv = invocation(ctx)
    if not prune and (prune_match or prune_expect is not None):
        raise UsageError("--prune-match and --prune-expect require --prune")
    specs = read_specs(file)
    if prune:
        refuse_empty_file(file, specs, prune_match or ())
    with inv.connect() as client:
        state = client.metadata()
        plan = plan_apply(client, specs, state)
        to_prune, doubts = topics_to_prune(client, state, plan, prune_match or ()) if prune else ([], [])
        rows = rows_of(plan, plan.created, plan.altered)
        for line in (*doubts, *alter_warnings(client, plan.altered, state)):
            output.warn(line)
        if dry_run or not (plan.todo or to_prune):
            _emit(inv, [*rows, *pruned_rows(to_prune)])
            require_matching(plan.todo + len(to_prune))
            return
        _confirm(inv, client, state, plan, rows, to_prune, prune_expect)
        timeout_s = inv.timeout_s(30)
        with output.progress("applying") as bar:
            applied = carry_out(client, plan, timeout_s=timeout_s, progress=bar.update) if plan.todo else rows
            pruned = delete_unlisted(client, applied, to_prune, timeout_s=timeout_s)
    _emit(inv, [*applied, *pruned_rows(pruned)])
    require_applied(applied, pruned)


def _confirm(
    inv: Invocation,
    client: ClusterClient,
    state: ClusterState,
    plan: ApplyPlan,
    rows: Sequence[AppliedTopic],
    to_prune: Sequence[DeletedTopic],
    expect: int | None,
) -> None:
    """Confirm the changes: creations only in a protected context, alterations and deletions always and separately."""
    from kctl.topics.basis import of_altered, of_deleted
    from kctl.topics.prune import check_count

    basis = of_altered(client, state, plan.altered).also(of_deleted(client, to_prune))
    altered = sum(row.result is ItemResult.WOULD_ALTER for row in plan.altered)
    check_count(to_prune, expect, unattended=bool(inv.yes or inv.confirm_cluster))
    if plan.created:
        question = f"Create {counted(len(plan.created), 'topic')} on {client.target.name}?"
        inv.confirm_protected(question, target=client.target, basis=basis)
    if altered:
        if not inv.yes:
            for line in _flat([row for row in rows if row.changes]):
                output.note(f"{line['topic']}: {line['what']} {line['before'] or '-'} -> {line['after'] or '-'}")
        inv.confirm(f"Change {counted(altered, 'topic')} on {client.target.name}?", target=client.target, basis=basis)
    if to_prune:
        show_losses(to_prune)
        question = f"Delete {counted(len(to_prune), 'topic')} on {client.target.name}?"
        inv.confirm(question, target=client.target, basis=basis)


def _emit(inv: Invocation, rows: Sequence[AppliedTopic]) -> None:
    columns = [
        Column("topic", name=True),
        Column("result"),
        Column("what", "CHANGE"),
        Column("before"),
        Column("after"),
    ]
    inv.emit(rows, lambda: [Table(columns, list(_flat(rows)), empty="no topics")], changed=any_changed(rows))


def _flat(rows: Sequence[AppliedTopic]) -> Iterator[dict[str, Any]]:
    for row in rows:
        for change in row.changes or (None,):
            yield {
                "topic": row.topic, "result": row.result, "what": change.what if change else None,
                "before": change.before if change else None, "after": _after(change) if change else None,
            }  # fmt: skip


def _after(change: PropertyChange) -> str | None:
    """Return the value after the change. Brokers do not report every default before it takes effect."""
    return DEFAULT if change.after is None and change.before is not None else change.after
