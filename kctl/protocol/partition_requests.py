"""Change many partitions through the controller, in several requests, with an outcome for each partition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kctl.errors import KctlError, OperationFailed, OutcomeUnknown
from kctl.model import TopicPartition
from kctl.protocol.codes import ErrorCode

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

# A controller with ZooKeeper writes them one by one: 300 in one request exceeded its time limit.
PER_REQUEST = 50

Outcomes = dict[TopicPartition, KctlError | None]


def numbers_by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Return partition numbers by topic, in the order of the input."""
    numbers: dict[str, list[int]] = {}
    for topic, number in partitions:
        numbers.setdefault(topic, []).append(number)
    return numbers


def needs_alter(error_code: int) -> str | None:
    """Return the hint for CLUSTER_AUTHORIZATION_FAILED; None for other errors."""
    return "it needs an ACL for Alter on the cluster" if error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED else None


def ask_controller(
    client: ClusterClient,
    partitions: Sequence[TopicPartition],
    make_request: Callable[[Sequence[TopicPartition]], Any],
    parse: Callable[[Any], Mapping[TopicPartition, KctlError | None]],
    *,
    per_request: int = PER_REQUEST,
) -> Outcomes:
    """Return partition → its error, or None if the change was accepted.

    parse: returns the outcomes of a response, or raises the error of the whole request. After a request that failed as
    a whole (no response, no controller), no more are sent: the partitions in that request are OutcomeUnknown, later
    ones not sent. Raises the error of the first request, unless its outcome is unknown.
    """
    outcomes: Outcomes = {}
    for start in range(0, len(partitions), per_request):
        chunk = partitions[start : start + per_request]
        try:
            response = parse(client.send_to_controller(make_request(chunk)))
        except KctlError as exc:
            if start == 0 and not isinstance(exc, OutcomeUnknown):
                raise
            outcomes.update(dict.fromkeys(chunk, exc))
            outcomes.update({tp: not_sent(tp, exc) for tp in partitions[start + per_request :]})
            break
        outcomes.update({tp: response[tp] if tp in response else _missing_outcome(tp) for tp in chunk})
    return outcomes


def not_sent(what: object, why: KctlError) -> KctlError:
    """Return the error of partitions whose request was not sent, because an earlier one failed as a whole."""
    return OperationFailed(f"{what} was not requested, because an earlier request failed: {why.message}", hint=why.hint)


def _missing_outcome(tp: TopicPartition) -> KctlError:
    return OperationFailed(f"the controller's answer does not name {tp}", hint="look at the state before you try again")
