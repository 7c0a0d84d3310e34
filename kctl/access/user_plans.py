"""Changes of SCRAM users: planned against the existing users, and the verdict on their results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.access.basis import of_users
from kctl.access.users import ScramUser, UserChange, list_users, plan_add, plan_remove
from kctl.base.outcomes import ItemResult
from kctl.base.suggestions import did_you_mean
from kctl.base.text import counted
from kctl.cluster.unchanged import Basis
from kctl.errors import NotFound, OperationFailed

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


@dataclass(frozen=True, slots=True)
class NewUser:
    """A user to add, with a credential for each mechanism."""

    name: str
    mechanisms: Sequence[str]
    iterations: int

    def check(self) -> None:
        """Raise UsageError for a name that cannot log in, or iterations that brokers reject. Contacts no broker."""
        plan_add([], self.name, self.mechanisms, self.iterations)


@dataclass(frozen=True, slots=True)
class UserPlan:
    """The planned changes, and the credentials that they were planned from."""

    rows: list[UserChange]
    basis: Basis

    def planned(self, result: ItemResult) -> list[UserChange]:
        """Return the rows with this planned result."""
        return [row for row in self.rows if row.result is result]


def plan_new_user(client: ClusterClient, user: NewUser) -> UserPlan:
    """Plan to add a user, or to replace the credentials of an existing one. Raises UsageError."""
    present = list_users(client, [user.name])
    rows = plan_add(present, user.name, user.mechanisms, user.iterations)
    return UserPlan(rows, of_users(client, present, rows))


def plan_removal(
    client: ClusterClient, names: Sequence[str], mechanisms: Sequence[str], *, if_exists: bool
) -> UserPlan:
    """Plan to remove users. mechanisms: only these credentials; empty: all. Raises NotFound, unless `if_exists`."""
    present = list_users(client, names)
    rows = plan_remove(present, names, mechanisms)
    if not if_exists:
        _refuse_missing(client, rows)
    return UserPlan(rows, of_users(client, present, [row for row in rows if row.result is ItemResult.WOULD_REMOVE]))


def _refuse_missing(client: ClusterClient, rows: Sequence[UserChange]) -> None:
    """Raise NotFound for a user who does not exist: with a typo, the actual user could still log in."""
    missing = next((row for row in rows if row.result is ItemResult.NOT_THERE), None)
    if missing is None:
        return
    existing = {user.user for user in list_users(client)}
    what = f"{missing.mechanism} of user {missing.user}" if missing.user in existing else f"user {missing.user}"
    raise NotFound(
        f"{what} does not exist",
        hint=did_you_mean(missing.user, existing - {missing.user}) or "list the users with `kctl user list`",
    )


def existing_users(client: ClusterClient, names: Sequence[str] | None) -> list[ScramUser]:
    """Return the credentials of users. names: None for all. Raises NotFound for users who do not exist."""
    users = list_users(client, names)
    missing = sorted(set(names or []) - {user.user for user in users})
    if missing:
        raise NotFound(f"SCRAM user {', '.join(missing)} does not exist", hint="list the users with `kctl user list`")
    return users


def require_changed(rows: Sequence[UserChange]) -> None:
    """Raise OperationFailed if a credential was not changed."""
    failed = [f"{row.user} ({row.mechanism}): {row.error}" for row in rows if row.result is ItemResult.FAILED]
    if failed:
        raise OperationFailed(f"{len(failed)} of {counted(len(rows), 'credential')} failed: {'; '.join(failed)}")
