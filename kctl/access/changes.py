"""What a change of ACLs adds and removes: planned against what is there, done, read back."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kctl.access.acls import add_acls, list_acls, remove_acls, unknown_parts
from kctl.access.model import Acl
from kctl.access.words import acl_words, broker_host
from kctl.base.outcomes import ItemResult
from kctl.base.suggestions import did_you_mean
from kctl.errors import KctlError, OperationFailed

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_READ_BACK_S = 10.0
_POLL_S = 0.1
_COMPARED = 1000  # ACLs, for what was meant


@dataclass(frozen=True)
class AclRow:
    """An ACL as `acl list` shows it. acl: in words."""

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
    """result: would add, would remove, already there, not there, added, removed, failed (error says why)."""

    result: ItemResult
    error: str | None = None


def acl_row(acl: Acl) -> AclRow:
    """The ACL with its words."""
    return AclRow(
        acl_words(acl), acl.permission_type, acl.principal, acl.operation, acl.resource_type, acl.resource_name,
        acl.pattern_type, acl.host,
    )  # fmt: skip


def _change(acl: Acl, result: ItemResult, error: str | None = None) -> AclChange:
    return AclChange(**vars(acl_row(acl)), result=result, error=error)


def acl_of(row: AclRow) -> Acl:
    """The other way round."""
    return Acl(
        row.resource_type, row.resource_name, row.pattern_type, row.principal, row.permission_type, row.operation,
        row.host,
    )  # fmt: skip


def as_present(wanted: Iterable[Acl], present: Iterable[Acl]) -> list[Acl]:
    """ACLs to be removed, with the host as it is there: as it was typed, or else as brokers write it."""
    there = set(present)
    return [acl if acl in there else replace(acl, host=broker_host(acl.host)) for acl in wanted]


def similar(row: AclRow, present: Iterable[Acl]) -> str | None:
    """«did you mean …?» of the ACLs with the same principal or resource."""
    near = [acl for acl in present if row.principal == acl.principal or row.resource_name == acl.resource_name]
    return did_you_mean(row.acl, map(acl_words, near[:_COMPARED]))


def plan_changes(present: Iterable[Acl], *, add: Sequence[Acl] = (), remove: Sequence[Acl] = ()) -> list[AclChange]:
    """One row for each ACL that is to be there, or not to be: what would be done about it."""
    there = set(present)
    unknown = unknown_parts(remove)
    rows = [_change(acl, ItemResult.ALREADY_THERE if acl in there else ItemResult.WOULD_ADD) for acl in add]
    for acl in remove:
        if acl in unknown:
            rows.append(_change(acl, ItemResult.FAILED, unknown[acl]))
        else:
            rows.append(_change(acl, ItemResult.WOULD_REMOVE if acl in there else ItemResult.NOT_THERE))
    return rows


def carry_out(client: ClusterClient, plan: Sequence[AclChange]) -> list[AclChange]:
    """Do what the plan says, and say what the cluster then has.

    Adds first, and removes nothing when one could not be added: nobody is without a right that only changes its form.
    Raises what concerns all of it, when nothing was done.
    """
    adding = [acl_of(row) for row in plan if row.result is ItemResult.WOULD_ADD]
    removing = [acl_of(row) for row in plan if row.result is ItemResult.WOULD_REMOVE]
    outcomes: dict[Acl, KctlError | None] = {}
    if adding:
        outcomes.update(add_acls(client, adding))
        _raise_if_all_failed_alike(outcomes)
    if any(outcomes.values()):
        outcomes.update(dict.fromkeys(removing, OperationFailed("not removed, because an ACL could not be added")))
    elif removing:
        try:
            outcomes.update(remove_acls(client, removing))
        except KctlError as exc:
            if not adding:
                raise
            outcomes.update(dict.fromkeys(removing, exc))
    _raise_if_all_failed_alike(outcomes)
    there = _read_back(client, outcomes, adding)
    return [_outcome(row, outcomes, there) if row.result.planned else row for row in plan]


def _raise_if_all_failed_alike(outcomes: Mapping[Acl, KctlError | None]) -> None:
    """One error rather than many rows of it, with its own exit code: nothing was changed."""
    errors = list(outcomes.values())
    first = errors[0] if errors else None
    if first is not None and all(error is not None and error.message == first.message for error in errors):
        raise first


def _read_back(
    client: ClusterClient, outcomes: Mapping[Acl, KctlError | None], adding: Sequence[Acl]
) -> frozenset[Acl] | KctlError:
    """The ACLs that are there, when the broker asked has seen the change; a KRaft broker follows its controller."""
    wanted = {acl for acl in adding if outcomes[acl] is None}
    unwanted = {acl for acl, error in outcomes.items() if error is None} - wanted
    deadline = time.monotonic() + _READ_BACK_S
    while True:
        try:
            there = frozenset(list_acls(client))
        except KctlError as exc:
            return exc
        if (wanted <= there and not unwanted & there) or time.monotonic() > deadline:
            return there
        time.sleep(_POLL_S)


def _outcome(row: AclChange, outcomes: Mapping[Acl, KctlError | None], there: frozenset[Acl] | KctlError) -> AclChange:
    acl = acl_of(row)
    error = outcomes[acl]
    if error is not None:
        return replace(row, result=ItemResult.FAILED, error=error.message)
    add = row.result is ItemResult.WOULD_ADD
    if isinstance(there, KctlError):
        return replace(row, result=ItemResult.FAILED, error=f"taken, but could not be read back: {there.message}")
    if (acl in there) is not add:
        what = "not there yet" if add else "still there"
        return replace(row, result=ItemResult.FAILED, error=f"taken, but {what} when it was read back")
    return replace(row, result=row.result.done)
