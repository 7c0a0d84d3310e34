"""The facts behind planned changes to ACLs, users and quotas. See kctl.cluster.unchanged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kctl.access.acls import list_acls
from kctl.access.changes import AclChange, acl_row
from kctl.access.quotas import QuotaChange, list_quotas, plan_quotas
from kctl.access.users import ScramUser, UserChange, list_users
from kctl.base.outcomes import ItemResult
from kctl.cluster.unchanged import Basis, ObjectFacts

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


def of_acls(client: ClusterClient, rows: Iterable[AclChange]) -> Basis:
    """Return the ACLs that are removed. The sentence of an ACL identifies it."""
    removed = {row.acl for row in rows if row.result is ItemResult.WOULD_REMOVE}

    def facts(present: Iterable[str]) -> ObjectFacts:
        return {f"ACL {acl!r}": {} for acl in present if acl in removed}

    if not removed:
        return Basis({}, dict)
    return Basis(facts(removed), lambda: facts(acl_row(acl).acl for acl in list_acls(client)))


def of_users(client: ClusterClient, present: Sequence[ScramUser], rows: Iterable[UserChange]) -> Basis:
    """Return the credentials of users that are added, replaced or removed.

    present: the credentials that the plan was made from. A new password with the same iterations cannot be detected.
    """
    names = sorted({row.user for row in rows})

    def facts(users: Iterable[ScramUser]) -> ObjectFacts:
        credentials = list(users)
        return {
            f"user {name}": {
                "credentials": tuple(f"{u.mechanism} ({u.iterations})" for u in credentials if u.user == name)
            }
            for name in names
        }

    return Basis(facts(present), lambda: facts(list_users(client, names)))


def of_quotas(client: ClusterClient, rows: Iterable[QuotaChange]) -> Basis:
    """Return the quotas that are replaced."""
    planned = {(row.entity, row.key): row.before for row in rows if row.result.planned}
    if not planned:
        return Basis({}, dict)

    def facts(values: dict[tuple[str, str], float | None]) -> ObjectFacts:
        return {f"{key} of {entity}": {"value": values.get((entity, key))} for entity, key in planned}

    def read() -> ObjectFacts:
        present = list_quotas(client)
        now = plan_quotas(present, {entity: {**values} for entity, values in present.items()})
        return facts({(row.entity, row.key): row.before for row in now})

    return Basis(facts(planned), read)
