"""The one exception tree. Each class has an exit code, a stable code for programs and, where there is one, a hint.

The library raises these and nothing else on purpose; `kctl.commands.app` turns them into one line, a hint
and an exit code, or into JSON. Exit codes are an interface: a test pins each.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import ClassVar


class ExitCode(IntEnum):
    """What the shell sees. Numbers never change."""

    OK = 0  # done, and what was checked is healthy
    UNHEALTHY = 1  # done, and what was checked is not healthy
    USAGE = 2  # the command line or an input file is wrong
    UNREACHABLE = 3  # cannot reach the cluster or log in to it
    REFUSED = 4  # a precondition does not hold, or not confirmed; nothing was changed
    FAILED = 5  # the operation began and failed, or its result is unknown; also any unexpected exception
    INTERRUPTED = 130  # Ctrl-C, also at a prompt


class KctlError(Exception):
    """Base of all errors that kctl raises on purpose.

    message: one line: what happened, on which object. hint: one line: what to do.
    details: typed values for `-o json`, never secrets.
    """

    exit_code: ClassVar[ExitCode] = ExitCode.FAILED
    code: ClassVar[str] = "failed"
    default_hint: ClassVar[str | None] = None
    label: ClassVar[str] = "error: "  # before the message; "" for what somebody had asked for

    def __init__(self, message: str, *, hint: str | None = None, details: Mapping[str, object] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint if hint is not None else self.default_hint
        self.details = dict(details or {})


# --- 1: done, and not healthy -------------------------------------------------------------------------------------


class NotHealthy(KctlError):
    """The command did its work, and what it checked is not as it should be."""

    exit_code = ExitCode.UNHEALTHY
    code = "not_healthy"


# --- 2: usage -----------------------------------------------------------------------------------------------------


class UsageError(KctlError):
    """A wrong option, argument or name: found before anything was contacted."""

    exit_code = ExitCode.USAGE
    code = "usage"


class InvalidFile(UsageError):
    """A file that kctl was given, or keeps, cannot be understood."""

    code = "invalid_file"


# --- 3: cannot reach or log in ------------------------------------------------------------------------------------


class ConnectionFailed(KctlError):
    """No answer, or not the answer of a Kafka broker. Subclasses tell the causes apart."""

    exit_code = ExitCode.UNREACHABLE
    code = "connection_failed"


class NameNotResolved(ConnectionFailed):
    code = "name_not_resolved"


class ConnectionRefused(ConnectionFailed):
    code = "connection_refused"


class ConnectionTimedOut(ConnectionFailed):
    code = "connection_timed_out"


class NotKafka(ConnectionFailed):
    """Something answers, but not Kafka's protocol (ZooKeeper's or a web server's port, say)."""

    code = "not_kafka"


class NotZooKeeper(ConnectionFailed):
    """Something answers where ZooKeeper should, but it is not ZooKeeper (a broker, say)."""

    code = "not_zookeeper"


class TlsMismatch(ConnectionFailed):
    """TLS spoken to a plaintext port, or the reverse."""

    code = "tls_mismatch"


class CertificateRejected(ConnectionFailed):
    """Unknown CA, wrong host name, expired, or the broker wants a client certificate."""

    code = "certificate_rejected"


class AuthenticationFailed(ConnectionFailed):
    code = "authentication_failed"


# --- 4: refused, nothing was changed ------------------------------------------------------------------------------


class Refused(KctlError):
    """A precondition does not hold. Nothing was changed."""

    exit_code = ExitCode.REFUSED
    code = "refused"


class NotFound(Refused):
    """The topic, group, cluster, context … that was named does not exist."""

    code = "not_found"


class AlreadyExists(Refused):
    code = "already_exists"


class NotConfirmed(Refused):
    """The user said no, or there was nobody to ask and no --yes."""

    code = "not_confirmed"


class NotAuthorized(Refused):
    """Logged in, but an ACL denies the operation."""

    code = "not_authorized"


class NotSupported(Refused):
    """The broker lacks the API, or this machine lacks a part that the command needs."""

    code = "not_supported"


class Busy(Refused):
    """Another kctl works on the same object, or something else holds what is needed (a port, a lock)."""

    code = "busy"


# --- 5: began and failed, or unknown ------------------------------------------------------------------------------


class OperationFailed(KctlError):
    """The operation began and failed."""

    code = "failed"


class ClusterReplaced(OperationFailed):
    """The servers belong to another cluster than when the command began."""

    code = "cluster_replaced"


class OutcomeUnknown(OperationFailed):
    """A request was sent and no answer came: it may or may not have been carried out."""

    code = "outcome_unknown"


class TimedOut(OperationFailed):
    """A wait came to its limit."""

    code = "timed_out"
