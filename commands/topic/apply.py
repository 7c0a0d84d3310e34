"""kctl topic apply."""

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
from kctl.errors import NotConfirmed, NotHealthy, OperationFailed, Refused, UsageError

if TYPE_CHECKING:
    from kctl.model import ClusterState
    from kctl.protocol.client import ClusterClient
    from kctl.topics.apply import AppliedTopic, ApplyPlan, Change
    from kctl.topics.delete import DeletedTopic


def apply(
    ctx: typer.Context,
    file: Annotated[Path, typer.Option("-f", "--file", help="The topics; - is stdin.")],
    prune: Annotated[bool, typer.Option("--prune", help="Delete topics that the file does not name, too.")] = False,
    prune_match: Annotated[
        list[str] | None, typer.Option(metavar="REGEX", help="With --prune: only topics that it matches; repeatable.")
    ] = None,
    prune_expect: Annotated[
        int | None, typer.Option(min=0, help="With --prune: refuse unless so many go; needed with --yes.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what differs; exit 1 when something does, 0 when nothing.")
    ] = False,
) -> None:
    """Make topics what a file says: missing ones are created, others get its partitions and configs.

    A topic's configs are set to those in the file, and no others; without `configs` they are left alone. Fewer
    partitions or another replication factor are refused before anything is changed.

    Example: kctl topic apply -f topics.yaml --dry-run
    """
    from kctl.topics.apply import carry_out, plan_apply, rows_of
    from kctl.topics.spec import read_specs

    inv = invocation(ctx)
    if not prune and (prune_match or prune_expect is not None):
        raise UsageError("--prune-match and --prune-expect go with --prune")
    specs = read_specs(file)
    if prune and not specs and not prune_match:
        raise Refused(f"{file} names no topic: --prune would delete every topic", hint="give --prune-match as well")
    with inv.connect() as client:
        state = client.metadata()
        plan = plan_apply(client, specs, state)
        going = _going(client, state, plan, prune_match or ()) if prune else []
        rows = rows_of(plan, plan.created, plan.altered)
        warn_of(plan.altered, state)
        if dry_run or not (plan.todo or going):
            _emit(inv, [*rows, *_pruned(going)])
            _raise_differing(plan.todo + len(going))
            return
        _confirm(inv, client, state, plan, rows, going, prune_expect)
        with output.progress("applying") as bar:
            done = carry_out(client, plan, timeout_s=inv.timeout_s(30), progress=bar.update) if plan.todo else rows
            gone = _delete(inv, client, done, going)
    _emit(inv, [*done, *_pruned(gone)])
    failed = {row.topic: row.error for row in done if row.result is ItemResult.FAILED}
    if failed:
        kept = "; nothing was pruned" if going else ""
        raise OperationFailed(
            f"{len(failed)} of {counted(len(done), 'topic')} are not as the file says: {reasons(failed)}{kept}",
            hint="run it again: it does what is left",
        )
    raise_undeleted(gone)
    raise_leaderless(done)


def _going(client: ClusterClient, state: ClusterState, plan: ApplyPlan, match: Sequence[str]) -> list[DeletedTopic]:
    """The topics that the file does not name, with what would be lost."""
    from kctl.base.name_patterns import matches, parse_patterns
    from kctl.cluster.topics import hidden
    from kctl.topics.delete import losses

    patterns = parse_patterns("--prune-match", match)
    named = {spec.name for spec in plan.specs}
    chosen = [
        topic
        for name, topic in sorted(state.topics.items())
        if name not in named and not hidden(topic) and (not patterns or matches(name, patterns))
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
    going: Sequence[DeletedTopic],
    expect: int | None,
) -> None:
    """New topics are asked about only in a protected context, changes and deletions always, each apart."""
    from kctl.topics.basis import of_altered, of_deleted

    basis = of_altered(client, state, plan.altered).also(of_deleted(client, going))
    altered = sum(row.result is ItemResult.WOULD_ALTER for row in plan.altered)
    if expect is not None and expect != len(going):
        raise Refused(f"--prune would delete {len(going)}, not {expect}", hint="nothing was changed")
    if going and expect is None and (inv.yes or inv.confirm_cluster):
        raise NotConfirmed(
            f"not confirmed: --prune would delete {counted(len(going), 'topic')}",
            hint=f"look at them with --dry-run, and add --prune-expect {len(going)}",
        )
    if plan.created:
        question = f"Create {counted(len(plan.created), 'topic')} of {client.target.name}?"
        inv.confirm_protected(question, target=client.target, basis=basis)
    if altered:
        if not inv.yes:
            for line in _flat([row for row in rows if row.changes]):
                output.note(f"{line['topic']}: {line['what']} {line['before'] or '-'} -> {line['after'] or '-'}")
        inv.confirm(f"Change {counted(altered, 'topic')} of {client.target.name}?", target=client.target, basis=basis)
    if going:
        show_losses(going)
        question = f"Delete {counted(len(going), 'topic')} of {client.target.name}?"
        inv.confirm(question, target=client.target, basis=basis)


def _delete(
    inv: Invocation, client: ClusterClient, done: Sequence[AppliedTopic], going: Sequence[DeletedTopic]
) -> Sequence[DeletedTopic]:
    """Prune when all else went well."""
    from kctl.topics.delete import delete_topics

    if not going or any(row.result is ItemResult.FAILED for row in done):
        return going
    return delete_topics(client, going, timeout_s=inv.timeout_s(30))


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


def _after(change: Change) -> str | None:
    """Brokers do not tell every default before it holds."""
    return DEFAULT if change.after is None and change.before is not None else change.after
