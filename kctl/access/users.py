"""List, add and remove SCRAM users: DescribeUserScramCredentials, AlterUserScramCredentials (KIP-554).

A password never leaves this process: the broker receives a salt and the PBKDF2 of the password (RFC 5802,
SaltedPassword).
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
    """A SCRAM credential. A user can have one per mechanism."""

    user: str
    mechanism: str
    iterations: int


@dataclass(frozen=True)
class UserChange:
    """A change to a SCRAM credential.

    mechanism: None if the user has no credential. iterations: after the change; for a removed credential, before it.
    result: would add, would replace, would remove, added, replaced, removed, not there, failed (see error).
    """

    user: str
    mechanism: str | None
    iterations: int | None
    result: ItemResult
    error: str | None = None


def list_users(client: ClusterClient, names: Sequence[str] | None = None) -> list[ScramUser]:
    """Return the credentials, sorted.

    names: return only these users, if they exist. Raises NotSupported, NotAuthorized.
    """
    from kafka.protocol.admin import DescribeUserScramCredentialsRequest

    # An empty list requests all users: given null, KRaft brokers do not respond if the cluster denies authorization.
    users = [DescribeUserScramCredentialsRequest.UserName(name=name) for name in dict.fromkeys(names or ())]
    response = client.send_to_controller(DescribeUserScramCredentialsRequest(users=users))
    if response.error_code:
        raise _error(response.error_code, response.error_message, "users", "Describe")
    for row in response.results:
        if row.error_code not in {ErrorCode.NONE, ErrorCode.RESOURCE_NOT_FOUND}:
            raise _error(row.error_code, row.error_message, f"user {row.user}", "Describe")
    credentials = [
        ScramUser(row.user, name_of(MECHANISMS, info.mechanism), info.iterations)
        for row in response.results
        if not row.error_code
        for info in row.credential_infos
    ]
    return sorted(credentials, key=lambda user: (user.user, user.mechanism))


def parse_mechanisms(texts: Iterable[str]) -> list[str]:
    """Parse "sha-256" or "SCRAM-SHA-256". Raises UsageError."""
    mechanisms = []
    for text in texts:
        name = text.upper() if text.upper().startswith("SCRAM-") else f"SCRAM-{text.upper()}"
        if name not in MECHANISMS:
            raise UsageError(f"--mechanism {text!r} is unknown", hint=f"use one of {', '.join(MECHANISMS)}")
        mechanisms.append(name)
    return list(dict.fromkeys(mechanisms))


def check_user_name(name: str) -> None:
    """Raise UsageError for a name that brokers store but no SCRAM client can log in with.

    Brokers parse names as [\\x01-\\x7F]+ (ScramMessages.SASLNAME), verified with the Java client on 3.9.2.
    """
    if not name:
        raise UsageError("the user name is empty")
    invalid = dict.fromkeys(char for char in name if not "\x01" <= char <= "\x7f")
    if invalid:
        characters = ", ".join(f"{char!r} (U+{ord(char):04X})" for char in list(invalid)[:5])
        raise UsageError(
            f"user {name!r} cannot log in: SCRAM user names must be ASCII, and {characters} is not",
            hint="use an ASCII name; passwords may contain other characters",
        )


def plan_add(present: Iterable[ScramUser], name: str, mechanisms: Sequence[str], iterations: int) -> list[UserChange]:
    """Return a row per mechanism. Raises UsageError for a name that cannot log in or iterations that brokers reject."""
    check_user_name(name)
    if not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
        raise UsageError(f"--iterations {iterations:,} is not between {MIN_ITERATIONS:,} and {MAX_ITERATIONS:,}")
    existing = {(user.user, user.mechanism) for user in present}
    return [
        UserChange(
            name,
            mechanism,
            iterations,
            ItemResult.WOULD_REPLACE if (name, mechanism) in existing else ItemResult.WOULD_ADD,
        )
        for mechanism in mechanisms
    ]


def plan_remove(present: Iterable[ScramUser], names: Sequence[str], mechanisms: Sequence[str]) -> list[UserChange]:
    """Return a row per credential to remove. mechanisms: only these; empty: all."""
    credentials = list(present)
    rows: list[UserChange] = []
    for name in dict.fromkeys(names):
        by_mechanism = {user.mechanism: user for user in credentials if user.user == name}
        for mechanism in mechanisms or sorted(by_mechanism):
            credential = by_mechanism.get(mechanism)
            rows.append(
                UserChange(
                    name,
                    mechanism,
                    credential.iterations if credential else None,
                    ItemResult.WOULD_REMOVE if credential else ItemResult.NOT_THERE,
                )
            )
        if not (mechanisms or by_mechanism):
            rows.append(UserChange(name, None, None, ItemResult.NOT_THERE))
    return rows


def carry_out(client: ClusterClient, plan: Sequence[UserChange], password: str | None = None) -> list[UserChange]:
    """Carry out the plan, read the result back, and return it. password: for added or replaced credentials.

    If all changes fail with the same error, nothing was changed, and that error is raised.
    """
    to_change = [row for row in plan if row.result.planned]
    if not to_change:
        return list(plan)
    errors: dict[UserChange, KctlError] = {}
    for number, part in enumerate(_distinct_user_parts(to_change)):
        try:
            errors.update(_errors(client.send_to_controller(_request(part, password)), part))
        except KctlError as exc:
            if number == 0:
                raise
            errors.update(dict.fromkeys(part, exc))
    raise_refusal([errors[each] for each in to_change if each in errors], requested=len(to_change))
    changed = [row for row in to_change if row not in errors]
    present = _read_back(client, changed) if changed else {}
    return [_outcome(row, errors.get(row), present) if row in to_change else row for row in plan]


def _distinct_user_parts(rows: Sequence[UserChange]) -> list[list[UserChange]]:
    """Return parts that contain each user once: brokers reject duplicates in a request (DUPLICATE_RESOURCE)."""
    parts: list[list[UserChange]] = []
    for row in rows:
        part = next((part for part in parts if row.user not in {other.user for other in part}), None)
        if part is None:
            parts.append([row])
        else:
            part.append(row)
    return parts


def _errors(response: Any, rows: Sequence[UserChange]) -> dict[UserChange, KctlError]:
    codes = {row.user: (row.error_code, row.error_message) for row in response.results}
    errors: dict[UserChange, KctlError] = {}
    for row in rows:
        code, message = codes.get(row.user, (-1, "the broker's response does not contain the user"))
        if code:
            errors[row] = _error(code, message, f"user {row.user}", "Alter")
    return errors


def _request(rows: Sequence[UserChange], password: str | None) -> Any:
    from kafka.protocol.admin import AlterUserScramCredentialsRequest

    upsertions = [
        AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
            name=row.user,
            mechanism=MECHANISMS[_mechanism(row)],
            iterations=row.iterations or MIN_ITERATIONS,
            salt=(salt := os.urandom(_SALT_BYTES)),
            salted_password=salted_password(password or "", _mechanism(row), salt, row.iterations or MIN_ITERATIONS),
        )
        for row in rows
        if row.result is not ItemResult.WOULD_REMOVE
    ]
    deletions = [
        AlterUserScramCredentialsRequest.ScramCredentialDeletion(name=row.user, mechanism=MECHANISMS[_mechanism(row)])
        for row in rows
        if row.result is ItemResult.WOULD_REMOVE
    ]
    return AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions)


def _mechanism(row: UserChange) -> str:
    assert row.mechanism is not None, "only the row of a user without credentials lacks a mechanism"
    return row.mechanism


def salted_password(password: str, mechanism: str, salt: bytes, iterations: int) -> bytes:
    """Return Hi() of RFC 5802 over UTF-8, like Kafka's clients (ScramFormatter.normalize)."""
    return hashlib.pbkdf2_hmac(_DIGESTS[mechanism], password.encode(), salt, iterations)


def _read_back(client: ClusterClient, changed: Sequence[UserChange]) -> dict[tuple[str, str], int] | KctlError:
    """Return (user, mechanism) → iterations once the broker has applied the changes, or after a timeout.

    KRaft brokers lag the controller.
    """
    deadline = time.monotonic() + _READ_BACK_S
    while True:
        try:
            users = list_users(client, [row.user for row in changed])
        except KctlError as exc:
            return exc
        present = {(user.user, user.mechanism): user.iterations for user in users}
        applied = all(_is_applied(row, present) for row in changed)
        if applied or time.monotonic() > deadline:
            return present
        time.sleep(_POLL_S)


def _is_applied(row: UserChange, present: dict[tuple[str, str], int]) -> bool:
    iterations = present.get((row.user, _mechanism(row)))
    return iterations is None if row.result is ItemResult.WOULD_REMOVE else iterations == row.iterations


def _outcome(row: UserChange, error: KctlError | None, present: dict[tuple[str, str], int] | KctlError) -> UserChange:
    if error is None and isinstance(present, KctlError):
        error = OperationFailed(f"accepted, but could not be read back: {present.message}")
    elif error is None and not isinstance(present, KctlError) and not _is_applied(row, present):
        error = OperationFailed("accepted, but the credential differs when read back")
    if error is not None:
        return UserChange(row.user, row.mechanism, row.iterations, ItemResult.FAILED, error.message)
    return UserChange(row.user, row.mechanism, row.iterations, row.result.done)


def _error(code: int, message: str | None, subject: str, operation: str) -> KctlError:
    from kctl.protocol.client import error_for

    denied = code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    hint = f"this requires {operation} on the cluster" if denied else None
    return error_for(code, None if denied else message, subject=subject, hint=hint)
