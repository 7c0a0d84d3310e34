"""Apply the ACLs and quotas of a file."""

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
    """The differences between the file and the cluster, before or after they are applied.

    unlisted_acls, unlisted_quotas: number of ACLs and quotas that are not in the file and are kept, because --prune is
    not set.
    """

    acls: list[changes.AclChange]
    quotas: list[quotas.QuotaChange]
    unlisted_acls: int
    unlisted_quotas: int

    @property
    def changed(self) -> bool:
        """Return True if anything was changed or, for a plan, would be changed."""
        return any_changed(self.acls) or any_changed(self.quotas)


def plan_access(client: ClusterClient, file: AccessFile, *, prune: bool = False) -> AccessChanges:
    """Return the differences from the file. prune: also remove what is not in the file, in sections that it has."""
    acl_rows: list[changes.AclChange] = []
    quota_rows: list[quotas.QuotaChange] = []
    other_acls = other_quotas = 0
    if file.acls is not None:
        acl_rows, other_acls = _acl_changes(list_acls(client), file.acls, prune=prune)
    if file.quotas is not None:
        quota_rows, other_quotas = _quota_changes(quotas.list_quotas(client), file.quotas, prune=prune)
    return AccessChanges(acl_rows, quota_rows, 0 if prune else other_acls, 0 if prune else other_quotas)


def apply_access(client: ClusterClient, plan: AccessChanges) -> AccessChanges:
    """Carry out a plan, ACLs first. Quotas rejected after ACLs were changed become failed rows, not an error."""
    acls = changes.carry_out(client, plan.acls) if plan.acls else []
    try:
        quota_rows = quotas.carry_out(client, plan.quotas) if plan.quotas else []
    except KctlError as exc:
        if not acls:
            raise
        quota_rows = [replace(row, result=ItemResult.FAILED, error=exc.message) for row in plan.quotas]
    return AccessChanges(acls, quota_rows, plan.unlisted_acls, plan.unlisted_quotas)


def _acl_changes(present: list[Acl], listed: list[Acl], *, prune: bool) -> tuple[list[changes.AclChange], int]:
    """Return the changes, and the number of ACLs that are not in the file."""
    listed_acls = set(listed)
    other = [acl for acl in present if acl not in listed_acls]
    plan = changes.plan_changes(present, add=listed, remove=other if prune else ())
    return [row for row in plan if row.result is not ItemResult.ALREADY_THERE], len(other)


def _quota_changes(
    present: quotas.Quotas, listed: dict[quotas.QuotaEntity, dict[str, float]], *, prune: bool
) -> tuple[list[quotas.QuotaChange], int]:
    """Return the changes, and the number of quotas that are not in the file."""
    other = {entity: sorted(values.keys() - listed.get(entity, {}).keys()) for entity, values in present.items()}
    goal: dict[quotas.QuotaEntity, dict[str, float | None]] = {entity: {**values} for entity, values in listed.items()}
    for entity, keys in other.items() if prune else ():
        goal.setdefault(entity, {}).update(dict.fromkeys(keys))
    plan = quotas.plan_quotas(present, goal)
    return [row for row in plan if row.result is not ItemResult.UNCHANGED], sum(map(len, other.values()))
