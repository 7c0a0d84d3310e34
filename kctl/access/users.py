"""Users of SCRAM: listing, adding, removing. DescribeUserScramCredentials, AlterUserScramCredentials (KIP-554).

A password never leaves this process: the broker is sent a salt and PBKDF2 of the password (RFC 5802, «SaltedPassword»).
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kctl.access.model import name_of
from kctl.base.outcomes import ItemResult, raise_refusal
from kctl.errors import KctlError, OperationFailed, UsageError
from kctl.protocol.codes import ErrorCode

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

MECHANISMS = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
_DIGESTS = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MIN_ITERATIONS, MAX_ITERATIONS = 4096, 16384  # ScramMechanism, ScramControlManager (KRaft)
_SALT_BYTES = 32
_READ_BACK_S = 10.0
_POLL_S = 0.1


@dataclass(frozen=True)
class ScramUser:
    """A credential: a user can have one of each mechanism."""

    user: str
    mechanism: str
    iterations: int


@dataclass(frozen=True)
class UserChange:
    """mechanism: None where a user has none at all. iterations: as they are (or would be) afterwards; of a removed
    credential, as they were. result: would add, would replace,
    would remove, added, replaced, removed, not there, failed (error says why)."""

    user: str
    mechanism: str | None
    iterations: int | None
    result: ItemResult
    error: str | None = None


def list_users(client: ClusterClient, names: Sequence[str] | None = None) -> list[ScramUser]:
    """Credentials, sorted; of the users named, those that are there. Raises NotSupported, NotAuthorized."""
    from kafka.protocol.admin import DescribeUserScramCredentialsRequest

    # All users are an empty list: on null, KRaft brokers fail to say CLUSTER_AUTHORIZATION_FAILED and stay silent.
    wanted = [DescribeUserScramCredentialsRequest.UserName(name=name) for name in dict.fromkeys(names or ())]
    answer = client.send_to_controller(DescribeUserScramCredentialsRequest(users=wanted))
    if answer.error_code:
        raise _error(answer.error_code, answer.error_message, "users", "Describe")
    for row in answer.results:
        if row.error_code not in {ErrorCode.NONE, ErrorCode.RESOURCE_NOT_FOUND}:
            raise _error(row.error_code, row.error_message, f"user {row.user}", "Describe")
    found = [
        ScramUser(row.user, name_of(MECHANISMS, info.mechanism), info.iterations)
        for row in answer.results
        if not row.error_code
        for info in row.credential_infos
    ]
    return sorted(found, key=lambda user: (user.user, user.mechanism))


def parse_mechanisms(texts: Iterable[str]) -> list[str]:
    """«sha-256» or «SCRAM-SHA-256» → SCRAM-SHA-256. Raises UsageError."""
    found = []
    for text in texts:
        name = text.upper() if text.upper().startswith("SCRAM-") else f"SCRAM-{text.upper()}"
        if name not in MECHANISMS:
            raise UsageError(f"--mechanism {text!r} is unknown", hint=f"use one of {', '.join(MECHANISMS)}")
        found.append(name)
    return list(dict.fromkeys(found))


def check_user_name(name: str) -> None:
    """Raise UsageError for a name that brokers store but that no SCRAM client can log in with.

    Brokers read names as [\\x01-\\x7F]+ (ScramMessages.SASLNAME), measured with Java's client on 3.9.2.
    """
    if not name:
        raise UsageError("the user name is empty")
    wrong = dict.fromkeys(char for char in name if not "\x01" <= char <= "\x7f")
    if wrong:
        shown = ", ".join(f"{char!r} (U+{ord(char):04X})" for char in list(wrong)[:5])
        raise UsageError(
            f"user {name!r} could not log in: SCRAM user names must be ASCII, and {shown} is not",
            hint="choose an ASCII name; passwords may contain other characters",
        )


def plan_add(present: Iterable[ScramUser], name: str, mechanisms: Sequence[str], iterations: int) -> list[UserChange]:
    """Raises UsageError for a name that cannot log in, and for iterations that brokers do not take."""
    check_user_name(name)
    if not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
        raise UsageError(f"--iterations is from {MIN_ITERATIONS:,} to {MAX_ITERATIONS:,}, not {iterations:,}")
    there = {(user.user, user.mechanism) for user in present}
    return [
        UserChange(
            name,
            mechanism,
            iterations,
            ItemResult.WOULD_REPLACE if (name, mechanism) in there else ItemResult.WOULD_ADD,
        )
        for mechanism in mechanisms
    ]


def plan_remove(present: Iterable[ScramUser], names: Sequence[str], mechanisms: Sequence[str]) -> list[UserChange]:
    """mechanisms: only those; none is all that a user has."""
    credentials = list(present)
    rows: list[UserChange] = []
    for name in dict.fromkeys(names):
        mine = {user.mechanism: user for user in credentials if user.user == name}
        for mechanism in mechanisms or sorted(mine):
            there = mine.get(mechanism)
            rows.append(
                UserChange(
                    name,
                    mechanism,
                    there.iterations if there else None,
                    ItemResult.WOULD_REMOVE if there else ItemResult.NOT_THERE,
                )
            )
        if not (mechanisms or mine):
            rows.append(UserChange(name, None, None, ItemResult.NOT_THERE))
    return rows


def carry_out(client: ClusterClient, plan: Sequence[UserChange], password: str | None = None) -> list[UserChange]:
    """Do what the plan says, and say what the cluster then has. password: for what is added or replaced.

    Raises what concerns all of it, when nothing was done.
    """
    todo = [row for row in plan if row.result.planned]
    if not todo:
        return list(plan)
    errors: dict[UserChange, KctlError] = {}
    for number, part in enumerate(_once_each(todo)):
        try:
            errors.update(_errors(client.send_to_controller(_request(part, password)), part))
        except KctlError as exc:
            if number == 0:
                raise
            errors.update(dict.fromkeys(part, exc))
    raise_refusal([errors[each] for each in todo if each in errors], asked=len(todo))
    done = [row for row in todo if row not in errors]
    there = _read_back(client, done) if done else {}
    return [_outcome(row, errors.get(row), there) if row in todo else row for row in plan]


def _once_each(rows: Sequence[UserChange]) -> list[list[UserChange]]:
    """In parts that name each user once: brokers refuse a request that names one twice (DUPLICATE_RESOURCE)."""
    parts: list[list[UserChange]] = []
    for row in rows:
        part = next((part for part in parts if row.user not in {other.user for other in part}), None)
        if part is None:
            parts.append([row])
        else:
            part.append(row)
    return parts


def _errors(answer: Any, asked: Sequence[UserChange]) -> dict[UserChange, KctlError]:
    codes = {row.user: (row.error_code, row.error_message) for row in answer.results}
    found: dict[UserChange, KctlError] = {}
    for row in asked:
        code, message = codes.get(row.user, (-1, "the broker's answer does not name it"))
        if code:
            found[row] = _error(code, message, f"user {row.user}", "Alter")
    return found


def _request(todo: Sequence[UserChange], password: str | None) -> Any:
    from kafka.protocol.admin import AlterUserScramCredentialsRequest

    upsertions = [
        AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
            name=row.user,
            mechanism=MECHANISMS[_mechanism(row)],
            iterations=row.iterations or MIN_ITERATIONS,
            salt=(salt := os.urandom(_SALT_BYTES)),
            salted_password=salted_password(password or "", _mechanism(row), salt, row.iterations or MIN_ITERATIONS),
        )
        for row in todo
        if row.result is not ItemResult.WOULD_REMOVE
    ]
    deletions = [
        AlterUserScramCredentialsRequest.ScramCredentialDeletion(name=row.user, mechanism=MECHANISMS[_mechanism(row)])
        for row in todo
        if row.result is ItemResult.WOULD_REMOVE
    ]
    return AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions)


def _mechanism(row: UserChange) -> str:
    assert row.mechanism is not None, "only a user who has no credential has no mechanism"
    return row.mechanism


def salted_password(password: str, mechanism: str, salt: bytes, iterations: int) -> bytes:
    """Hi() of RFC 5802, over UTF-8 as Kafka's clients have it (ScramFormatter.normalize)."""
    return hashlib.pbkdf2_hmac(_DIGESTS[mechanism], password.encode(), salt, iterations)


def _read_back(client: ClusterClient, done: Sequence[UserChange]) -> dict[tuple[str, str], int] | KctlError:
    """(user, mechanism) → iterations, when the broker has seen the changes; a KRaft one follows its controller."""
    deadline = time.monotonic() + _READ_BACK_S
    while True:
        try:
            found = list_users(client, [row.user for row in done])
        except KctlError as exc:
            return exc
        there = {(user.user, user.mechanism): user.iterations for user in found}
        seen = all(_as_wanted(row, there) for row in done)
        if seen or time.monotonic() > deadline:
            return there
        time.sleep(_POLL_S)


def _as_wanted(row: UserChange, there: dict[tuple[str, str], int]) -> bool:
    found = there.get((row.user, _mechanism(row)))
    return found is None if row.result is ItemResult.WOULD_REMOVE else found == row.iterations


def _outcome(row: UserChange, error: KctlError | None, there: dict[tuple[str, str], int] | KctlError) -> UserChange:
    if error is None and isinstance(there, KctlError):
        error = OperationFailed(f"taken, but could not be read back: {there.message}")
    elif error is None and not isinstance(there, KctlError) and not _as_wanted(row, there):
        error = OperationFailed("taken, but not so when it was read back")
    if error is not None:
        return UserChange(row.user, row.mechanism, row.iterations, ItemResult.FAILED, error.message)
    return UserChange(row.user, row.mechanism, row.iterations, row.result.done)


def _error(code: int, message: str | None, subject: str, operation: str) -> KctlError:
    from kctl.protocol.client import error_for

    denied = code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    hint = f"it needs an ACL for {operation} on the cluster" if denied else None
    return error_for(code, None if denied else message, subject=subject, hint=hint)
