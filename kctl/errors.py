"""The exception tree. Each class has an exit code, a stable code for programs, and optionally a default hint.

The library deliberately raises only these. `kctl.commands.app` renders them as one line, a hint and an exit code, or
as JSON. Exit codes are an interface: a test pins each.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, IntEnum
from typing import ClassVar, TypeVar

_Error = TypeVar("_Error", bound="KctlError")


class ExitCode(IntEnum):
    """The exit code of a command. Numbers never change."""

    OK = 0  # succeeded, and everything checked is healthy
    UNHEALTHY = 1  # succeeded, and something checked is not healthy
    USAGE = 2  # the command line or an input file is wrong
    UNREACHABLE = 3  # cannot reach the cluster or log in to it
    REFUSED = 4  # a precondition is not met, or the user did not confirm; nothing was changed
    FAILED = 5  # the operation started and failed, or its outcome is unknown; also any unexpected exception
    INTERRUPTED = 130  # Ctrl-C, also at a prompt


class Reason(str, Enum):
    """Why kctl refused, if the class of the error does not say why. Values never change: docs/exit-codes.md."""

    CHANGED_MEANWHILE = "changed_meanwhile"
    COUNT_MISMATCH = "count_mismatch"
    IMPOSSIBLE = "impossible"
    INTERNAL_TOPIC = "internal_topic"
    INVALID_PATH = "invalid_path"
    LIMIT_EXCEEDED = "limit_exceeded"
    NOT_READY = "not_ready"
    NOTHING_TO_DO = "nothing_to_do"
    OUTCOME_UNKNOWN = "outcome_unknown"
    RUN_STATE = "run_state"
    UNREADABLE = "unreadable"
    UNSAFE = "unsafe"
    VERSION_UNSUPPORTED = "version_unsupported"
    WRONG_CLUSTER = "wrong_cluster"
    WRONG_TYPE = "wrong_type"


class ConnectionReason(str, Enum):
    """Why a connection failed, if the class of the error does not say why. Values never change."""

    CERTIFICATE_UNTRUSTED = "certificate_untrusted"
    CLIENT_CERTIFICATE_REJECTED = "client_certificate_rejected"
    CLIENT_CERTIFICATE_REQUIRED = "client_certificate_required"
    CONNECTION_CLOSED = "connection_closed"
    LOGIN_REQUIRED = "login_required"
    NO_RESPONSE = "no_response"
    SASL_UNSUPPORTED = "sasl_unsupported"
    TLS_HANDSHAKE = "tls_handshake"
    TLS_REQUIRED = "tls_required"
    TLS_UNSUPPORTED = "tls_unsupported"


class KctlError(Exception):
    """Base class of all errors that kctl deliberately raises.

    message: one line: what failed, on which object, and why. hint: one line: the next step.
    details: typed values for `-o json`, never secrets. reason: a stable word for programs (default: the class's code).
    """

    exit_code: ClassVar[ExitCode] = ExitCode.FAILED
    code: ClassVar[str] = "failed"
    default_hint: ClassVar[str | None] = None
    label: ClassVar[str] = "error: "  # printed before the message; "" for an expected result

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        details: Mapping[str, object] | None = None,
        reason: Reason | ConnectionReason | None = None,
    ) -> None:
        super().__init__(message)
        self.reason = self.code if reason is None else reason.value
        self.message = message
        self.hint = hint if hint is not None else self.default_hint
        self.details = dict(details or {})

    def reworded(
        self: _Error, message: str, *, hint: str | None = None, details: Mapping[str, object] | None = None
    ) -> _Error:
        """Return an error of the same class and reason. hint, details: (default: those of this error)."""
        error = type(self)(
            message,
            hint=self.hint if hint is None else hint,
            details=self.details if details is None else details,
        )
        error.reason = self.reason
        return error


# --- 1: succeeded, not healthy ------------------------------------------------------------------------------------


class NotHealthy(KctlError):
    """The command succeeded, but something that it checked is not healthy."""

    exit_code = ExitCode.UNHEALTHY
    code = "not_healthy"


# --- 2: usage -----------------------------------------------------------------------------------------------------


class UsageError(KctlError):
    """An invalid option, argument or name, detected before kctl contacts anything."""

    exit_code = ExitCode.USAGE
    code = "usage"


class InvalidFile(UsageError):
    """An input file, or one of kctl's own files, is invalid."""

    code = "invalid_file"


# --- 3: cannot reach or log in ------------------------------------------------------------------------------------


class ConnectionFailed(KctlError):
    """No response, or not the response of a Kafka broker. Subclasses distinguish the causes."""

    exit_code = ExitCode.UNREACHABLE
    code = "connection_failed"


class NameNotResolved(ConnectionFailed):
    code = "name_not_resolved"


class ConnectionRefused(ConnectionFailed):
    code = "connection_refused"


class ConnectionTimedOut(ConnectionFailed):
    code = "connection_timed_out"


class NotKafka(ConnectionFailed):
    """The server does not speak the Kafka protocol, e.g. it is ZooKeeper or a web server."""

    code = "not_kafka"


class NotZooKeeper(ConnectionFailed):
    """The server is not ZooKeeper, e.g. it is a broker."""

    code = "not_zookeeper"


class TlsMismatch(ConnectionFailed):
    """TLS to a plaintext port, or plaintext to a TLS port."""

    code = "tls_mismatch"


class CertificateRejected(ConnectionFailed):
    """Unknown CA, wrong host name, expired certificate, or the broker requires a client certificate."""

    code = "certificate_rejected"


class AuthenticationFailed(ConnectionFailed):
    code = "authentication_failed"


# --- 4: refused, nothing was changed ------------------------------------------------------------------------------


class Refused(KctlError):
    """A precondition is not met. Nothing was changed."""

    exit_code = ExitCode.REFUSED
    code = "refused"


class NotFound(Refused):
    """The named object (topic, group, cluster, context …) does not exist."""

    code = "not_found"


class AlreadyExists(Refused):
    code = "already_exists"


class NotConfirmed(Refused):
    """The user declined, or kctl could not ask and --yes was not set."""

    code = "not_confirmed"


class NotAuthorized(Refused):
    """The login succeeded, but an ACL denies the operation."""

    code = "not_authorized"


class NotSupported(Refused):
    """The broker lacks the API, or this machine lacks something that the command needs."""

    code = "not_supported"


class Busy(Refused):
    """Another kctl process is working on the same object, or a required resource (a port, a lock) is in use."""

    code = "busy"


# --- 5: failed, or outcome unknown --------------------------------------------------------------------------------


class OperationFailed(KctlError):
    """The operation started and failed."""

    code = "failed"


class ClusterReplaced(OperationFailed):
    """The servers now belong to a different cluster than when the command started."""

    code = "cluster_replaced"


class OutcomeUnknown(OperationFailed):
    """A request was sent, but no response arrived: the broker may or may not have applied it."""

    code = "outcome_unknown"


class TimedOut(OperationFailed):
    """A wait reached its time limit."""

    code = "timed_out"
