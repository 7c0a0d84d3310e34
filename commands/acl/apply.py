"""kctl acl apply: ACLs and quotas as a file says."""

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
    file: Annotated[Path, typer.Option("--file", "-f", metavar="FILE", help="YAML; - is stdin.")],
    prune: Annotated[bool, typer.Option("--prune", help="Also remove what the file does not have.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what differs, change nothing; exit 1 when something does.")
    ] = False,
) -> None:
    """Apply a file: add the ACLs and set the quotas that it has. What it does not have stays, unless --prune is given.

    A section that the file lacks (acls, quotas) is left alone altogether.

    Example: kctl acl apply -f access.yaml --dry-run
    """
    from kctl.access.access_file import read_access_file
    from kctl.access.apply import apply_access, plan_access

    inv = invocation(ctx)
    listed = read_access_file(file)
    with inv.connect() as client:
        plan = plan_access(client, listed, prune=prune)
        if not dry_run:
            confirm_changes(inv, client, plan.acls)
            confirm_quotas(inv, client, plan.quotas)
            plan = apply_access(client, plan)
    inv.emit(plan, lambda: [changes_table(plan.acls), quotas_table(plan.quotas)], changed=plan.changed)
    if not plan.acls and not plan.quotas:
        output.note("nothing differs")
    for count, what in ((plan.unlisted_acls, "ACLs"), (plan.unlisted_quotas, "quotas")):
        if count:
            output.note(f"{what} that the file does not have, and that stay without --prune: {count:,}")
    raise_failed(plan.acls)
    raise_failed_quotas(plan.quotas)
    if dry_run and (plan.acls or plan.quotas):
        raise NotHealthy("the cluster is not as the file says", hint="without --dry-run it is made so")
