"""What it means that a broker did not answer: the outcome of a change is not known, of all else it is just silent."""

from __future__ import annotations

from typing import Any

import pytest
from kafka.protocol.admin import (
    AlterClientQuotasRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
)

from kctl.base.deadline import Deadline
from kctl.errors import ConnectionFailed, KctlError, OutcomeUnknown
from kctl.protocol.brokers import _no_response_error
from kctl.protocol.connection import PeerClosed
from kctl.topics.alter import TopicChange, _create_partitions

GONE = PeerClosed("gone")


@pytest.mark.parametrize(
    ("request_", "changes", "unknown"),
    [
        (CreateTopicsRequest(topics=[], timeout_ms=1, validate_only=False), None, True),
        (CreateTopicsRequest(topics=[], timeout_ms=1, validate_only=True), None, False),
        (CreatePartitionsRequest(topics=[], timeout_ms=1, validate_only=True), None, False),
        (AlterClientQuotasRequest(entries=[], validate_only=True), None, False),
        (AlterClientQuotasRequest(entries=[], validate_only=False), None, True),
        (DeleteTopicsRequest(topics=[], timeout_ms=1), None, True),
        (DeleteTopicsRequest(topics=[], timeout_ms=1), False, False),
        (DescribeConfigsRequest(resources=[]), None, False),
        (DescribeConfigsRequest(resources=[]), True, True),
    ],
)
def test_no_response_error(request_: Any, changes: bool | None, unknown: bool) -> None:
    found = _no_response_error(GONE, request_, 1, Deadline(1.0), changes)
    assert isinstance(found, OutcomeUnknown if unknown else ConnectionFailed)
    assert ("outcome unknown" in found.message) == unknown


def test_what_was_never_sent_says_so() -> None:
    """Only of the request without an answer it is not known."""

    class Controller:
        def send_to_controller(self, _request: object) -> object:
            raise OutcomeUnknown("no answer")

    client: Any = Controller()
    changes = [TopicChange(f"t{n}", 4) for n in range(300)]
    failed = _create_partitions(client, changes, timeout_s=1.0, validate_only=False)
    assert failed.keys() == {change.name for change in changes}
    kinds: list[type[KctlError]] = [type(failed[name]) for name in ("t0", "t299")]
    assert kinds[0] is OutcomeUnknown
    assert kinds[1] is not OutcomeUnknown
    assert "t299 was not requested, because an earlier request failed: no answer" in failed["t299"].message
