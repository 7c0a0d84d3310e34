"""Change ACLs: plan the changes against the current ACLs, apply them, and read them back."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kctl.access.acl_syntax import broker_host, format_acl
from kctl.access.acls import add_acls, list_acls, remove_acls, unknown_parts
from kctl.access.model import Acl
from kctl.base.outcomes import ItemResult
from kctl.base.suggestions import did_you_mean
from kctl.errors import KctlError, OperationFailed

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_READ_BACK_S = 10.0
_POLL_S = 0.1
_MAX_COMPARED = 1000  # ACLs to search for a similar one


@dataclass(frozen=True)
class AclRow:
    """An ACL as a row of `acl list`. acl: the ACL as a sentence."""

    acl: str
    permission_type: str
    principal: str
    operation: str
    resource_type: str
    resource_name: str
    pattern_type: str
    host: str


@dataclass(frozen=True)
class AclChange(AclRow):
    """A change to an ACL.

    result: would add, would remove, already there, not there, added, removed, failed (see error).
    """

    result: ItemResult
    error: str | None = None


def acl_row(acl: Acl) -> AclRow:
    """Return the row of an ACL."""
    return AclRow(
        format_acl(acl), acl.permission_type, acl.principal, acl.operation, acl.resource_type, acl.resource_name,
        acl.pattern_type, acl.host,
    )  # fmt: skip


def _change(acl: Acl, result: ItemResult, error: str | None = None) -> AclChange:
    return AclChange(**vars(acl_row(acl)), result=result, error=error)


def acl_of(row: AclRow) -> Acl:
    """Return the ACL of a row."""
    return Acl(
        row.resource_type, row.resource_name, row.pattern_type, row.principal, row.permission_type, row.operation,
        row.host,
    )  # fmt: skip


def as_stored(acls: Iterable[Acl], present: Iterable[Acl]) -> list[Acl]:
    """Return the ACLs to remove, with the host as the cluster stores it: as typed, or in the brokers' notation."""
    existing = set(present)
    return [acl if acl in existing else replace(acl, host=broker_host(acl.host)) for acl in acls]


def similar(row: AclRow, present: Iterable[Acl]) -> str | None:
    """Return "did you mean …?" with a similar ACL of the same principal or resource, if there is one."""
    near = [acl for acl in present if row.principal == acl.principal or row.resource_name == acl.resource_name]
    return did_you_mean(row.acl, map(format_acl, near[:_MAX_COMPARED]))


def plan_changes(present: Iterable[Acl], *, add: Sequence[Acl] = (), remove: Sequence[Acl] = ()) -> list[AclChange]:
    """Return a planned row for each ACL to add or remove."""
    existing = set(present)
    unknown = unknown_parts(remove)
    rows = [_change(acl, ItemResult.ALREADY_THERE if acl in existing else ItemResult.WOULD_ADD) for acl in add]
    for acl in remove:
        if acl in unknown:
            rows.append(_change(acl, ItemResult.FAILED, unknown[acl]))
        else:
            rows.append(_change(acl, ItemResult.WOULD_REMOVE if acl in existing else ItemResult.NOT_THERE))
    return rows


def carry_out(client: ClusterClient, plan: Sequence[AclChange]) -> list[AclChange]:
    """Carry out the plan, read the result back, and return it.

    ACLs are added first. If one cannot be added, none is removed: replacing an ACL with an equivalent one must never
    leave a gap. If all changes fail with the same error, nothing was changed, and that error is raised.
    """
    to_add = [acl_of(row) for row in plan if row.result is ItemResult.WOULD_ADD]
    to_remove = [acl_of(row) for row in plan if row.result is ItemResult.WOULD_REMOVE]
    errors: dict[Acl, KctlError | None] = {}
    if to_add:
        errors.update(add_acls(client, to_add))
        _raise_common_error(errors)
    if any(errors.values()):
        errors.update(dict.fromkeys(to_remove, OperationFailed("not removed because another ACL could not be added")))
    elif to_remove:
        try:
            errors.update(remove_acls(client, to_remove))
        except KctlError as exc:
            if not to_add:
                raise
            errors.update(dict.fromkeys(to_remove, exc))
    _raise_common_error(errors)
    existing = _read_back(client, errors, to_add)
    return [_outcome(row, errors, existing) if row.result.planned else row for row in plan]


def _raise_common_error(outcomes: Mapping[Acl, KctlError | None]) -> None:
    """Raise the error if all changes failed with the same one: nothing was changed."""
    errors = list(outcomes.values())
    first = errors[0] if errors else None
    if first is not None and all(error is not None and error.message == first.message for error in errors):
        raise first


def _read_back(
    client: ClusterClient, errors: Mapping[Acl, KctlError | None], to_add: Sequence[Acl]
) -> frozenset[Acl] | KctlError:
    """Return the ACLs once the broker has applied the changes, or after a timeout. KRaft brokers lag the controller."""
    added = {acl for acl in to_add if errors[acl] is None}
    removed = {acl for acl, error in errors.items() if error is None} - added
    deadline = time.monotonic() + _READ_BACK_S
    while True:
        try:
            existing = frozenset(list_acls(client))
        except KctlError as exc:
            return exc
        if (added <= existing and not removed & existing) or time.monotonic() > deadline:
            return existing
        time.sleep(_POLL_S)


def _outcome(row: AclChange, errors: Mapping[Acl, KctlError | None], existing: frozenset[Acl] | KctlError) -> AclChange:
    acl = acl_of(row)
    error = errors[acl]
    if error is not None:
        return replace(row, result=ItemResult.FAILED, error=error.message)
    add = row.result is ItemResult.WOULD_ADD
    if isinstance(existing, KctlError):
        return replace(row, result=ItemResult.FAILED, error=f"accepted, but could not be read back: {existing.message}")
    if (acl in existing) is not add:
        what = "missing" if add else "still present"
        return replace(row, result=ItemResult.FAILED, error=f"accepted, but the ACL was {what} when read back")
    return replace(row, result=row.result.done)
