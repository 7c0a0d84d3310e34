"""kctl acl apply: ACLs and quotas as a file says."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.base.outcomes import ItemResult, any_changed
from kctl.commands.acl.commands import changes_table, confirm_changes, raise_failed
from kctl.commands.quota.tables import confirm_quotas, quotas_table
from kctl.commands.quota.tables import raise_failed as raise_failed_quotas
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.errors import KctlError, NotHealthy

if TYPE_CHECKING:
    from kctl.access.access_file import AccessFile
    from kctl.access.changes import AclChange
    from kctl.access.model import Acl
    from kctl.access.quotas import Entity, QuotaChange, Quotas
    from kctl.protocol.client import ClusterClient


@dataclass(frozen=True)
class Applied:
    """What differs, or differed. Empty lists: the cluster is as the file says. unlisted: what the file does not have
    and was left, without --prune."""

    acls: list[AclChange]
    quotas: list[QuotaChange]
    unlisted_acls: int
    unlisted_quotas: int


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

    inv = invocation(ctx)
    wanted = read_access_file(file)
    with inv.connect() as client:
        plan = _plan(client, wanted, prune=prune)
        if not dry_run:
            plan = _carry_out(inv, client, plan)
    changed = any_changed(plan.acls) or any_changed(plan.quotas)
    inv.emit(plan, lambda: [changes_table(plan.acls), quotas_table(plan.quotas)], changed=changed)
    if not plan.acls and not plan.quotas:
        output.note("nothing differs")
    for count, what in ((plan.unlisted_acls, "ACLs"), (plan.unlisted_quotas, "quotas")):
        if count:
            output.note(f"{what} that the file does not have, and that stay without --prune: {count:,}")
    raise_failed(plan.acls)
    raise_failed_quotas(plan.quotas)
    if dry_run and (plan.acls or plan.quotas):
        raise NotHealthy("the cluster is not as the file says", hint="without --dry-run it is made so")


def _plan(client: ClusterClient, wanted: AccessFile, *, prune: bool) -> Applied:
    """Only what differs."""
    from kctl.access.acls import list_acls
    from kctl.access.quotas import list_quotas

    acls: list[AclChange] = []
    quotas: list[QuotaChange] = []
    other_acls = other_quotas = 0
    if wanted.acls is not None:
        acls, other_acls = _acl_changes(list_acls(client), wanted.acls, prune=prune)
    if wanted.quotas is not None:
        quotas, other_quotas = _quota_changes(list_quotas(client), wanted.quotas, prune=prune)
    return Applied(acls, quotas, 0 if prune else other_acls, 0 if prune else other_quotas)


def _acl_changes(present: list[Acl], wanted: list[Acl], *, prune: bool) -> tuple[list[AclChange], int]:
    """The changes, and how many ACLs the file does not have."""
    from kctl.access.changes import plan_changes

    known = set(wanted)
    other = [acl for acl in present if acl not in known]
    plan = plan_changes(present, add=wanted, remove=other if prune else ())
    return [row for row in plan if row.result is not ItemResult.ALREADY_THERE], len(other)


def _quota_changes(
    present: Quotas, wanted: dict[Entity, dict[str, float]], *, prune: bool
) -> tuple[list[QuotaChange], int]:
    from kctl.access.quotas import plan_quotas

    other = {who: sorted(values.keys() - wanted.get(who, {}).keys()) for who, values in present.items()}
    goal: dict[Entity, dict[str, float | None]] = {who: {**values} for who, values in wanted.items()}
    for who, keys in other.items() if prune else ():
        goal.setdefault(who, {}).update(dict.fromkeys(keys))
    plan = plan_quotas(present, goal)
    return [row for row in plan if row.result is not ItemResult.UNCHANGED], sum(map(len, other.values()))


def _carry_out(inv: Invocation, client: ClusterClient, plan: Applied) -> Applied:
    from kctl.access import changes, quotas

    confirm_changes(inv, client, plan.acls)
    confirm_quotas(inv, client, plan.quotas)
    acls = changes.carry_out(client, plan.acls) if plan.acls else []
    try:
        done = quotas.carry_out(client, plan.quotas) if plan.quotas else []
    except KctlError as exc:
        if not acls:
            raise
        done = [
            replace(row, result=ItemResult.FAILED, error=exc.message) for row in plan.quotas
        ]  # ACLs were changed: no refusal
    return Applied(acls, done, plan.unlisted_acls, plan.unlisted_quotas)
