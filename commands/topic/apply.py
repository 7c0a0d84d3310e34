"""kctl topic apply: create and alter topics to match a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.base.outcomes import ItemResult, any_changed, reasons
from kctl.base.text import counted
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.commands.terminal.output import Column, Table
from kctl.commands.topic.alter import DEFAULT, warn_of
from kctl.commands.topic.create import raise_leaderless
from kctl.commands.topic.delete import raise_undeleted, show_losses
from kctl.errors import NotConfirmed, NotHealthy, OperationFailed, Reason, Refused, UsageError

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
        list[str] | None, typer.Option(metavar="REGEX", help="With --prune: only topics that match; repeatable.")
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
    configs. Fewer partitions or another replication factor are refused before anything is changed.

    Example: kctl topic apply -f topics.yaml --dry-run
    """
    from kctl.topics.apply import carry_out, plan_apply, rows_of
    from kctl.topics.spec import read_specs

    inv = invocation(ctx)
    if not prune and (prune_match or prune_expect is not None):
        raise UsageError("--prune-match and --prune-expect require --prune")
    specs = read_specs(file)
    if prune and not specs and not prune_match:
        raise Refused(
            f"{file} contains no topics: --prune would delete every topic",
            hint="limit it with --prune-match",
            reason=Reason.COUNT_MISMATCH,
        )
    with inv.connect() as client:
        state = client.metadata()
        plan = plan_apply(client, specs, state)
        to_prune = _topics_to_prune(client, state, plan, prune_match or ()) if prune else []
        rows = rows_of(plan, plan.created, plan.altered)
        warn_of(client, plan.altered, state)
        if dry_run or not (plan.todo or to_prune):
            _emit(inv, [*rows, *_pruned(to_prune)])
            _raise_differing(plan.todo + len(to_prune))
            return
        _confirm(inv, client, state, plan, rows, to_prune, prune_expect)
        with output.progress("applying") as bar:
            applied = carry_out(client, plan, timeout_s=inv.timeout_s(30), progress=bar.update) if plan.todo else rows
            pruned = _delete(inv, client, applied, to_prune)
    _emit(inv, [*applied, *_pruned(pruned)])
    failed = {row.topic: row.error for row in applied if row.result is ItemResult.FAILED}
    if failed:
        suffix = "; nothing was pruned" if to_prune else ""
        raise OperationFailed(
            f"{len(failed)} of {counted(len(applied), 'topic')} do not match the file: {reasons(failed)}{suffix}",
            hint="run it again to apply the rest",
        )
    raise_undeleted(pruned)
    raise_leaderless(applied)


def _topics_to_prune(
    client: ClusterClient, state: ClusterState, plan: ApplyPlan, match: Sequence[str]
) -> list[DeletedTopic]:
    """Return the topics that are not in the file, with what would be lost."""
    from kctl.base.name_patterns import matches, parse_patterns
    from kctl.cluster.topics import hidden
    from kctl.topics.delete import losses

    patterns = parse_patterns("--prune-match", match)
    listed = {spec.name for spec in plan.specs}
    chosen = [
        topic
        for name, topic in sorted(state.topics.items())
        if name not in listed and not hidden(topic) and (not patterns or matches(name, patterns))
    ]
    if not chosen:
        return []
    rows, doubts = losses(client, state, chosen)
    for doubt in doubts:
        output.warn(doubt)
    return rows


def _raise_differing(count: int) -> None:
    if count:
        verb = "differs" if count == 1 else "differ"
        raise NotHealthy(f"{counted(count, 'topic')} {verb} from the file", hint="", details={"differing": count})


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

    basis = of_altered(client, state, plan.altered).also(of_deleted(client, to_prune))
    altered = sum(row.result is ItemResult.WOULD_ALTER for row in plan.altered)
    if expect is not None and expect != len(to_prune):
        raise Refused(
            f"--prune would delete {len(to_prune)} topics, but --prune-expect is {expect}",
            hint="nothing was changed",
            reason=Reason.COUNT_MISMATCH,
        )
    if to_prune and expect is None and (inv.yes or inv.confirm_cluster):
        raise NotConfirmed(
            f"not confirmed: --prune would delete {counted(len(to_prune), 'topic')}",
            hint=f"review them with --dry-run, then add --prune-expect {len(to_prune)}",
        )
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


def _delete(
    inv: Invocation, client: ClusterClient, applied: Sequence[AppliedTopic], to_prune: Sequence[DeletedTopic]
) -> Sequence[DeletedTopic]:
    """Prune, unless an earlier change failed."""
    from kctl.topics.delete import delete_topics

    if not to_prune or any(row.result is ItemResult.FAILED for row in applied):
        return to_prune
    return delete_topics(client, to_prune, timeout_s=inv.timeout_s(30))


def _pruned(rows: Sequence[DeletedTopic]) -> list[AppliedTopic]:
    from kctl.topics.apply import AppliedTopic

    return [AppliedTopic(row.topic, row.result, (), row.error) for row in rows]


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
