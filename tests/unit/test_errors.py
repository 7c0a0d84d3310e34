"""Exit codes and codes are an interface: each class is pinned."""

from __future__ import annotations

import pytest

from kctl import errors

PINNED = {
    "NotHealthy": (1, "not_healthy"),
    "UsageError": (2, "usage"),
    "InvalidFile": (2, "invalid_file"),
    "ConnectionFailed": (3, "connection_failed"),
    "NameNotResolved": (3, "name_not_resolved"),
    "ConnectionRefused": (3, "connection_refused"),
    "ConnectionTimedOut": (3, "connection_timed_out"),
    "NotKafka": (3, "not_kafka"),
    "NotZooKeeper": (3, "not_zookeeper"),
    "TlsMismatch": (3, "tls_mismatch"),
    "CertificateRejected": (3, "certificate_rejected"),
    "AuthenticationFailed": (3, "authentication_failed"),
    "Refused": (4, "refused"),
    "NotFound": (4, "not_found"),
    "AlreadyExists": (4, "already_exists"),
    "NotConfirmed": (4, "not_confirmed"),
    "NotAuthorized": (4, "not_authorized"),
    "NotSupported": (4, "not_supported"),
    "Busy": (4, "busy"),
    "OperationFailed": (5, "failed"),
    "ClusterReplaced": (5, "cluster_replaced"),
    "OutcomeUnknown": (5, "outcome_unknown"),
    "TimedOut": (5, "timed_out"),
}


def _classes() -> dict[str, type[errors.KctlError]]:
    found = vars(errors).values()
    return {
        c.__name__: c
        for c in found
        if isinstance(c, type) and issubclass(c, errors.KctlError) and c is not errors.KctlError
    }


def test_every_class_is_pinned() -> None:
    assert set(_classes()) == set(PINNED)


@pytest.mark.parametrize(("name", "expected"), PINNED.items())
def test_exit_code_and_code(name: str, expected: tuple[int, str]) -> None:
    error = _classes()[name]
    assert (int(error.exit_code), error.code) == expected


def test_an_unexpected_exception_is_5_and_an_interrupt_130() -> None:
    assert (int(errors.ExitCode.FAILED), int(errors.ExitCode.INTERRUPTED)) == (5, 130)
