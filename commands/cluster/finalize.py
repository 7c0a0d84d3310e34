"""`kctl cluster finalize`: the step of an upgrade that cannot be undone."""

from __future__ import annotations

import typer

from kctl.commands.cluster.interruption import confirm_interruption
from kctl.commands.cluster.upgrade import BrokerTimeout, DryRun, Name, carry_out, restart_options
from kctl.commands.cluster.upgrade_tables import (
    finalization_question,
    finalization_tables,
    finalized_lines,
    result_tables,
)
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import invocation


def finalize(ctx: typer.Context, name: Name, broker_timeout: BrokerTimeout = "10m", dry_run: DryRun = False) -> None:
    """Use the features of the new release after an upgrade. Cannot be undone.

    With KRaft, raises metadata.version and the other features to the levels of the release, except kraft.version 0
    (static voters). With ZooKeeper, raises inter.broker.protocol.version, with one more rolling restart of the brokers.
    Refused (exit code 4) while a node is down or still runs the old release.

    # Show the features that change
    kctl cluster finalize dev --dry-run
    """
    from kctl.deploy.host import LocalHost
    from kctl.upgrade.finalize import carry_out_finalization, plan_finalization

    inv = invocation(ctx)
    options = restart_options(inv, broker_timeout)
    with output.progress("checking the cluster"):
        plan, feature_plan, change = plan_finalization(LocalHost(), name)
    for line in plan.warnings:
        output.warn(line)
    if dry_run:
        inv.emit(plan, lambda: finalization_tables(plan), changed=True)
        output.note("nothing was changed (--dry-run)")
        return
    for each in plan.features:
        if each.before != each.after:
            output.note(f"{each.feature}: {each.before_name} to {each.after_name}")
    confirm_interruption(inv, name, finalization_question(plan))
    result, failure = carry_out(
        plan, change, options, lambda work, progress: carry_out_finalization(change, feature_plan, work, progress)
    )
    inv.emit(result, lambda: result_tables(result) if plan.protocol is not None else [], changed=result.changed)
    if failure is not None:
        raise failure
    for line in finalized_lines(plan):
        output.note(line)
