"""Group coordinators: look them up, and query all of them at once.

One FindCoordinator for all groups (KIP-699, Kafka 3.0; one per group before), then one request to each coordinator. If
a coordinator has moved meanwhile, its groups are looked up and queried again, a few times.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from kctl.base.deadline import Deadline
from kctl.errors import (
    AuthenticationFailed,
    ConnectionFailed,
    KctlError,
    NotSupported,
    OperationFailed,
    OutcomeUnknown,
)
from kctl.protocol.codes import ErrorCode

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

OFFSETS_TOPIC = "__consumer_offsets"

MOVED = frozenset(
    {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}
)
PAUSES_S = (0.1, 0.3, 1.0, 2.0)
_GROUPS_PER_REQUEST = 1000  # keeps a response far below the client's frame limit of 100 MB

GROUP, TRANSACTION = 0, 1  # key types of FindCoordinator
_NO_LEADER = "if this persists, run `kctl cluster health` to see partitions without a leader"
_NOUNS = {GROUP: "group", TRANSACTION: "transactional id"}

T = TypeVar("T")
ByCoordinator: TypeAlias = Mapping[int, Sequence[str]]


class CoordinatorMoved(ConnectionFailed):
    """The broker is not the coordinator, or not yet: look up the coordinator again and retry."""


def failure(error_code: int, message: str | None, group: str, *, key_type: int = GROUP) -> KctlError:
    """Return the error of one group (or transactional id) in a response; CoordinatorMoved if a retry can help."""
    from kctl.protocol.client import error_for

    subject = f"{_NOUNS[key_type]} {group}"
    if error_code in MOVED:
        return CoordinatorMoved(f"the coordinator of {subject} is not available (error {error_code})", hint=_NO_LEADER)
    return error_for(error_code, message, subject=subject)


def find_coordinators(
    client: ClusterClient, groups: Iterable[str], *, key_type: int = GROUP
) -> dict[str, int | KctlError]:
    """Return the coordinator's broker id of each group (or transactional id), whether the group exists or not."""
    from kafka.protocol.metadata import FindCoordinatorRequest

    names = list(dict.fromkeys(groups))
    if not names:
        return {}
    try:
        response = client.send(FindCoordinatorRequest(key_type=key_type, coordinator_keys=names, min_version=4))
    except NotSupported:
        return {name: _find_one(client, name, key_type) for name in names}
    return {
        row.key: failure(row.error_code, row.error_message, row.key, key_type=key_type)
        if row.error_code
        else row.node_id
        for row in response.coordinators
    }


def _find_one(client: ClusterClient, group: str, key_type: int) -> int | KctlError:
    from kafka.protocol.metadata import FindCoordinatorRequest

    response = client.send(FindCoordinatorRequest(key=group, key_type=key_type, max_version=3))
    if response.error_code:
        return failure(response.error_code, response.error_message, group, key_type=key_type)
    node: int = response.node_id
    return node


def ask_coordinators(
    client: ClusterClient,
    groups: Iterable[str],
    ask: Callable[[ByCoordinator], Mapping[str, T | KctlError]],
    *,
    coordinators: Mapping[str, int] | None = None,
    key_type: int = GROUP,
) -> dict[str, T | KctlError]:
    """Return each group's response from its coordinator, or the KctlError if the lookup or the request failed.

    ask: maps groups by coordinator to a response for each group (see `send_in_chunks`). It is called again if a
    coordinator moved or was unreachable, within the client's timeout, but never if the outcome of a change is unknown.
    coordinators: known coordinators, which saves the lookup. Raises NotSupported.
    """
    answers: dict[str, T | KctlError] = {}
    pending = list(dict.fromkeys(groups))
    nodes: dict[str, int | KctlError] = dict(coordinators or {})
    deadline = Deadline(client.timeout_s)
    for pause in (*PAUSES_S, None):
        missing = [group for group in pending if not isinstance(nodes.get(group), int)]
        lookup, lookup_error = _find(client, missing, key_type)
        nodes.update(lookup)
        by_node: dict[int, list[str]] = {}
        for group in pending:
            node = nodes.get(group)
            if isinstance(node, int):
                by_node.setdefault(node, []).append(group)
            else:
                answers[group] = node or CoordinatorMoved(f"group {group} is missing in the response")
        answers.update(ask(by_node) if by_node else {})
        pending = [
            group for group in pending if _is_retriable(answers.get(group)) and answers.get(group) is not lookup_error
        ]
        if not pending or pause is None or deadline.left_s <= pause:
            break
        for group in pending:
            nodes.pop(group, None)
        time.sleep(pause)
    return answers


def _find(
    client: ClusterClient, groups: Sequence[str], key_type: int
) -> tuple[dict[str, int | KctlError], KctlError | None]:
    """Return the result of `find_coordinators`, or the error for every group if no broker responds."""
    try:
        return find_coordinators(client, groups, key_type=key_type), None
    except NotSupported:
        raise
    except KctlError as exc:
        return dict.fromkeys(groups, exc), exc


def _is_retriable(answer: object) -> bool:
    """Return True for a missing response or a failed connection. Repeated failed logins could lock the account."""
    return answer is None or (isinstance(answer, ConnectionFailed) and not isinstance(answer, AuthenticationFailed))


def send_in_chunks(
    client: ClusterClient,
    by_node: ByCoordinator,
    request_for: Callable[[Sequence[str]], object],
    parse: Callable[[object], Mapping[str, T | KctlError]],
    *,
    at_once: int = _GROUPS_PER_REQUEST,
) -> dict[str, T | KctlError]:
    """Send each broker one request with its groups, in parallel; in rounds for more than `at_once` groups."""
    answers: dict[str, T | KctlError] = {}
    rounds = max((len(groups) + at_once - 1) // at_once for groups in by_node.values())
    for start in range(0, rounds * at_once, at_once):
        chunk = {node: groups[start : start + at_once] for node, groups in by_node.items() if groups[start:]}
        responses = client.send_each({node: request_for(groups) for node, groups in chunk.items()})
        for node, groups in chunk.items():
            response = responses[node]
            if isinstance(response, NotSupported):
                raise response  # fails for all: the caller may have a fallback
            if isinstance(response, KctlError):
                answers.update(dict.fromkeys(groups, response))
            else:
                parsed = parse(response)
                answers.update({group: parsed[group] for group in groups if group in parsed})
    return answers


def send_one_by_one(
    client: ClusterClient,
    by_node: ByCoordinator,
    request_for: Callable[[str], object],
    parse: Callable[[Any, str], T | KctlError],
) -> dict[str, T | KctlError]:
    """Send a request for each group: to all coordinators in parallel, one group at a time to each.

    After a failure of a broker, its remaining groups are not sent, since each could take the full timeout. They get the
    broker's error and may be retried; if the outcome of the last change is unknown, they are reported as not sent.
    """
    answers: dict[str, T | KctlError] = {}
    failed: dict[int, KctlError] = {}
    for turn in range(max(map(len, by_node.values()))):
        turn_groups = {node: groups[turn] for node, groups in by_node.items() if turn < len(groups)}
        requests = {node: request_for(group) for node, group in turn_groups.items() if node not in failed}
        responses = client.send_each(requests) if requests else {}
        for node, group in turn_groups.items():
            answer = failed[node] if node in failed else responses[node]
            answers[group] = answer if isinstance(answer, KctlError) else parse(answer, group)
            if isinstance(answer, OutcomeUnknown):
                failed[node] = OperationFailed(f"not sent, because of an earlier failure: {answer.message}")
            elif isinstance(answer, ConnectionFailed):
                failed[node] = answer
    return answers
