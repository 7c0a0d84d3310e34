"""`kctl feature upgrade` and `kctl feature downgrade`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.base.text import counted
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.errors import UsageError

if TYPE_CHECKING:
    from kctl.features.facts import ClusterFeatures
    from kctl.features.plan import FeaturePlan

Levels = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[FEATURE=LEVEL]…",
        help="Level of a feature: a number, or for metadata.version also a name (4.4-IV2) or a release (4.4).",
    ),
]
Release = Annotated[
    str | None,
    typer.Option(metavar="VERSION", help="Set all features to their levels in this Kafka release, e.g. 4.4."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Let the controller validate the change, without applying it.")]


def upgrade(ctx: typer.Context, levels: Levels = None, release: Release = None, dry_run: DryRun = False) -> None:
    """Raise feature levels after an upgrade (KRaft).

    All brokers and controllers must support the levels: upgrade their software first. Some levels cannot be lowered
    afterwards; a warning precedes the prompt. All features change together or not at all.

    # Preview the last step of an upgrade to Kafka 4.4
    kctl feature upgrade --release 4.4 --dry-run
    """
    from kctl.features.levels import parse_levels
    from kctl.features.plan import plan_release_upgrade, plan_upgrade

    _check_arguments(levels, release)
    if release is not None:
        chosen = release
        _change(invocation(ctx), lambda features: plan_release_upgrade(features, chosen), "Raise", dry_run=dry_run)
    else:
        parsed = parse_levels(levels or [])
        _change(invocation(ctx), lambda features: plan_upgrade(features, parsed), "Raise", dry_run=dry_run)


def downgrade(
    ctx: typer.Context,
    levels: Levels = None,
    release: Release = None,
    unsafe: Annotated[
        bool,
        typer.Option("--unsafe", help="Request a downgrade that loses metadata; Kafka up to 4.4 rejects it."),
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Lower feature levels, or disable features (KRaft).

    FEATURE=0 disables a feature. metadata.version can be lowered only to levels with the same metadata format.
    kraft.version cannot be lowered.

    # Preview a return to share groups without dead-letter queues
    kctl feature downgrade share.version=1 --dry-run
    """
    from kctl.features.levels import parse_levels
    from kctl.features.plan import plan_downgrade, plan_release_downgrade

    _check_arguments(levels, release)
    parsed = parse_levels(levels or [])

    def plan(features: ClusterFeatures) -> FeaturePlan:
        if release is not None:
            return plan_release_downgrade(features, release, unsafe=unsafe)
        return plan_downgrade(features, parsed, unsafe=unsafe)

    _change(invocation(ctx), plan, "Lower", dry_run=dry_run)


def _check_arguments(levels: Sequence[str] | None, release: str | None) -> None:
    if bool(levels) == (release is not None):
        raise UsageError(
            "set either --release or FEATURE=LEVEL",
            hint="e.g. --release 4.4, or metadata.version=4.4-IV2; see `kctl feature list --levels`",
        )


def _change(inv: Invocation, make_plan: Callable[[ClusterFeatures], FeaturePlan], verb: str, *, dry_run: bool) -> None:
    from kctl.features.apply import apply, check, unchanged
    from kctl.features.facts import read_features

    with inv.connect() as client:
        features = read_features(client)
        plan = check(client, make_plan(features))
        for warning in plan.warnings:
            output.warn(warning)
        if plan.changed and not dry_run:
            if not inv.yes:
                _show(plan)
            question = f"{verb} {counted(len(plan.targets), 'feature')} on {client.target.name}?"
            inv.confirm(question, target=client.target, basis=unchanged(client, plan))
            with output.progress("waiting until all brokers have the new levels"):
                plan = apply(client, plan, timeout_s=inv.timeout_s(30))
    inv.emit(plan.changes, lambda: _tables(plan, with_levels=dry_run), changed=plan.changed)
    if not plan.changed:
        output.note("nothing to do: the cluster already has these levels")


def _show(plan: FeaturePlan) -> None:
    for change in plan.changes:
        if change.result.changed:
            output.note(f"{change.result} {change.feature}: {change.before_name} → {change.after_name}")
            for level in change.levels:
                output.note(f"  {level.name}: {level.brings}")


def _tables(plan: FeaturePlan, *, with_levels: bool) -> Sequence[Table]:
    from kctl.features.plan import ChangeType

    columns = [
        Column("feature", name=True),
        Column("result"),
        Column("before_name", "FROM"),
        Column("after_name", "TO"),
        Column("before", "FROM NUMBER", align="right", wide=True),
        Column("after", "TO NUMBER", align="right", wide=True),
    ]
    tables = [Table(columns, jsonable(plan.changes))]
    rows: Sequence[dict[str, Any]] = [
        {**jsonable(level), "feature": change.feature}
        for change in plan.changes
        if change.result.changed
        for level in change.levels
    ]
    if with_levels and rows:
        header = "BRINGS" if plan.type is ChangeType.UPGRADE else "IS LOST"
        level_columns = [Column("feature", name=True), Column("name", "LEVEL"), Column("brings", header, words=True)]
        tables.append(Table(level_columns, rows))
    return tables
