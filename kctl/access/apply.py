"""ACLs and quotas as a file has them: the differences, and making the cluster so."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kctl.access import changes, quotas
from kctl.access.acls import list_acls
from kctl.base.outcomes import ItemResult, any_changed
from kctl.errors import KctlError

if TYPE_CHECKING:
    from kctl.access.access_file import AccessFile
    from kctl.access.model import Acl
    from kctl.protocol.client import ClusterClient


@dataclass(frozen=True)
class AccessChanges:
    """What differs, or differed. Empty lists: the cluster is as the file says. unlisted: what the file does not have
    and was left, without pruning."""

    acls: list[changes.AclChange]
    quotas: list[quotas.QuotaChange]
    unlisted_acls: int
    unlisted_quotas: int

    @property
    def changed(self) -> bool:
        """Whether something was changed or, of a plan, would be."""
        return any_changed(self.acls) or any_changed(self.quotas)


def plan_access(client: ClusterClient, file: AccessFile, *, prune: bool = False) -> AccessChanges:
    """Return what differs from the file. prune: also remove what the file does not have, in the sections it has."""
    acl_rows: list[changes.AclChange] = []
    quota_rows: list[quotas.QuotaChange] = []
    other_acls = other_quotas = 0
    if file.acls is not None:
        acl_rows, other_acls = _acl_changes(list_acls(client), file.acls, prune=prune)
    if file.quotas is not None:
        quota_rows, other_quotas = _quota_changes(quotas.list_quotas(client), file.quotas, prune=prune)
    return AccessChanges(acl_rows, quota_rows, 0 if prune else other_acls, 0 if prune else other_quotas)


def apply_access(client: ClusterClient, plan: AccessChanges) -> AccessChanges:
    """Carry out a plan, ACLs first. Quotas that are refused after ACLs were changed are failed rows, not a refusal."""
    acls = changes.carry_out(client, plan.acls) if plan.acls else []
    try:
        done = quotas.carry_out(client, plan.quotas) if plan.quotas else []
    except KctlError as exc:
        if not acls:
            raise
        done = [replace(row, result=ItemResult.FAILED, error=exc.message) for row in plan.quotas]
    return AccessChanges(acls, done, plan.unlisted_acls, plan.unlisted_quotas)


def _acl_changes(present: list[Acl], wanted: list[Acl], *, prune: bool) -> tuple[list[changes.AclChange], int]:
    """Return the changes, and how many ACLs the file does not have."""
    known = set(wanted)
    other = [acl for acl in present if acl not in known]
    plan = changes.plan_changes(present, add=wanted, remove=other if prune else ())
    return [row for row in plan if row.result is not ItemResult.ALREADY_THERE], len(other)


def _quota_changes(
    present: quotas.Quotas, wanted: dict[quotas.Entity, dict[str, float]], *, prune: bool
) -> tuple[list[quotas.QuotaChange], int]:
    """Return the changes, and how many quotas the file does not have."""
    other = {who: sorted(values.keys() - wanted.get(who, {}).keys()) for who, values in present.items()}
    goal: dict[quotas.Entity, dict[str, float | None]] = {who: {**values} for who, values in wanted.items()}
    for who, keys in other.items() if prune else ():
        goal.setdefault(who, {}).update(dict.fromkeys(keys))
    plan = quotas.plan_quotas(present, goal)
    return [row for row in plan if row.result is not ItemResult.UNCHANGED], sum(map(len, other.values()))
