"""Kafka's error codes: names against kafka-python's list, classes and exit codes."""

from __future__ import annotations

import pytest

from kctl.errors import (
    AlreadyExists,
    Busy,
    ExitCode,
    KctlError,
    NotAuthorized,
    NotFound,
    NotSupported,
    OperationFailed,
    OutcomeUnknown,
    Refused,
)
from kctl.protocol.error_codes import ERRORS, error_for, error_name

# Where kafka-python keeps an older name than Kafka 3.9.
RENAMED = {
    -1: "UNKNOWN", 4: "INVALID_FETCH_SIZE", 6: "NOT_LEADER_FOR_PARTITION", 10: "MESSAGE_SIZE_TOO_LARGE",
    17: "INVALID_TOPIC", 39: "INVALID_REPLICATION_ASSIGNMENT", 0: "NO_ERROR",
}  # fmt: skip


def test_names_are_kafkas() -> None:
    from kafka import errors

    theirs = {
        cls.errno: cls.message
        for cls in vars(errors).values()
        if isinstance(cls, type) and issubclass(cls, errors.BrokerResponseError) and isinstance(cls.errno, int)
    }
    assert len(theirs) > 120
    for code, name in theirs.items():
        if code in ERRORS and code not in RENAMED:
            assert ERRORS[code][0] == name, code
    assert not [code for code in theirs if code not in ERRORS and code is not None]


@pytest.mark.parametrize(
    ("code", "cls", "exit_code"),
    [
        (3, NotFound, 4),
        (69, NotFound, 4),
        (36, AlreadyExists, 4),
        (29, NotAuthorized, 4),
        (30, NotAuthorized, 4),
        (31, NotAuthorized, 4),
        (35, NotSupported, 4),
        (38, Refused, 4),
        (40, Refused, 4),
        (44, Refused, 4),
        (68, Refused, 4),
        (60, Busy, 4),
        (7, OutcomeUnknown, 5),
        (20, OperationFailed, 5),  # appended already
        (-1, OperationFailed, 5),
        (56, OperationFailed, 5),
        (9999, OperationFailed, 5),
    ],
)
def test_classes(code: int, cls: type[KctlError], exit_code: int) -> None:
    error = error_for(code, None, subject="topic 'x'")
    assert type(error) is cls
    assert error.exit_code == ExitCode(exit_code)
    assert error.message.startswith("topic 'x': ")
    assert error_name(code) in error.message
    assert error.details["kafka_error_code"] == code


def test_what_the_broker_says_comes_first() -> None:
    error = error_for(40, "Invalid value x\n for retention.ms.", subject="topic 'x'")
    assert error.message == "topic 'x': Invalid value x for retention.ms (INVALID_CONFIG)"


def test_zero_is_no_error() -> None:
    with pytest.raises(ValueError, match="no error"):
        error_for(0, None, subject="x")


def test_a_brokers_own_objects_are_not_shown() -> None:
    said = "Request Request(processor=1, session=kafka.network.Session@5248dcf9) is not authorized."
    error = error_for(31, said, subject="reassignments")
    assert error.message == "reassignments: not authorized for the cluster (CLUSTER_AUTHORIZATION_FAILED)"


@pytest.mark.parametrize(
    ("code", "said", "text"),
    [
        (29, "Topic authorization failed.", "not authorized for the topic"),
        (31, "Cluster authorization failed.", "not authorized for the cluster"),
        (53, "Transactional Id authorization failed.", "not authorized for the transactional id"),
        (29, None, "not authorized for the topic"),
        (29, "Not authorized to access topics: [a]", "Not authorized to access topics: [a]"),
    ],
)
def test_what_is_denied_is_said_in_one_way(code: int, said: str | None, text: str) -> None:
    error = error_for(code, said, subject="x")
    assert error.message == f"x: {text} ({error_name(code)})"
