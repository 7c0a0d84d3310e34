"""kctl acl apply: apply ACLs and quotas from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kctl.commands.acl.commands import changes_table, confirm_changes, raise_failed
from kctl.commands.quota.tables import confirm_quotas, quotas_table
from kctl.commands.quota.tables import raise_failed as raise_failed_quotas
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import invocation
from kctl.errors import NotHealthy


def apply(
    ctx: typer.Context,
    file: Annotated[Path, typer.Option("--file", "-f", metavar="FILE", help="YAML file; - reads stdin.")],
    prune: Annotated[bool, typer.Option("--prune", help="Also remove ACLs and quotas not in the file.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the differences without applying them; exit 1 if any.")
    ] = False,
) -> None:
    """Apply ACLs and quotas from a file.

    ACLs and quotas that are not in the file stay, unless --prune is set. A section (acls, quotas) that is not in the
    file is ignored entirely.

    # Compare the cluster with a file; change nothing
    kctl acl apply -f access.yaml --dry-run
    """
    from kctl.access.access_file import read_access_file
    from kctl.access.apply import apply_access, plan_access

    inv = invocation(ctx)
    access_file = read_access_file(file)
    with inv.connect() as client:
        plan = plan_access(client, access_file, prune=prune)
        if not dry_run:
            confirm_changes(inv, client, plan.acls)
            confirm_quotas(inv, client, plan.quotas)
            plan = apply_access(client, plan)
    inv.emit(plan, lambda: [changes_table(plan.acls), quotas_table(plan.quotas)], changed=plan.changed)
    if not plan.acls and not plan.quotas:
        output.note("no differences")
    for count, noun in ((plan.unlisted_acls, "ACLs"), (plan.unlisted_quotas, "quotas")):
        if count:
            output.note(f"{count:,} {noun} not in the file; kept without --prune")
    raise_failed(plan.acls)
    raise_failed_quotas(plan.quotas)
    if dry_run and (plan.acls or plan.quotas):
        raise NotHealthy("the cluster differs from the file", hint="run it without --dry-run to apply the file")
