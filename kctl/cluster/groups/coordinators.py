"""Where a group's coordinator is, and asking all coordinators at once.

One FindCoordinator for all groups (KIP-699, brokers ≥ 3.0; one for each group before), then one request to each
coordinator. Groups whose coordinator has moved meanwhile are looked up and asked again, a few times.
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
_GROUPS_PER_REQUEST = 1000  # keeps a response far under the client's frame limit of 100 MB

GROUP, TRANSACTION = 0, 1  # key types: what a coordinator is asked for
_NO_LEADER = "if it stays so, its partition may have no leader: `kctl cluster health` shows those"
_NOUNS = {GROUP: "group", TRANSACTION: "transactional id"}

T = TypeVar("T")
ByCoordinator: TypeAlias = Mapping[int, Sequence[str]]


class CoordinatorMoved(ConnectionFailed):
    """The broker asked is not, or not yet, the coordinator: it is asked again, after a new look-up."""


def failure(error_code: int, message: str | None, group: str, *, key_type: int = GROUP) -> KctlError:
    """The error of one group (or transactional id) in a response; CoordinatorMoved when another try can help."""
    from kctl.protocol.client import error_for

    subject = f"{_NOUNS[key_type]} {group}"
    if error_code in MOVED:
        return CoordinatorMoved(f"the coordinator of {subject} is not available (error {error_code})", hint=_NO_LEADER)
    return error_for(error_code, message, subject=subject)


def find_coordinators(
    client: ClusterClient, groups: Iterable[str], *, key_type: int = GROUP
) -> dict[str, int | KctlError]:
    """The coordinator's broker id of each group (or transactional id), whether it exists or not."""
    from kafka.protocol.metadata import FindCoordinatorRequest

    names = list(dict.fromkeys(groups))
    if not names:
        return {}
    try:
        found = client.send(FindCoordinatorRequest(key_type=key_type, coordinator_keys=names, min_version=4))
    except NotSupported:
        return {name: _find_one(client, name, key_type) for name in names}
    return {
        row.key: failure(row.error_code, row.error_message, row.key, key_type=key_type)
        if row.error_code
        else row.node_id
        for row in found.coordinators
    }


def _find_one(client: ClusterClient, group: str, key_type: int) -> int | KctlError:
    from kafka.protocol.metadata import FindCoordinatorRequest

    found = client.send(FindCoordinatorRequest(key=group, key_type=key_type, max_version=3))
    if found.error_code:
        return failure(found.error_code, found.error_message, group, key_type=key_type)
    node: int = found.node_id
    return node


def ask_coordinators(
    client: ClusterClient,
    groups: Iterable[str],
    ask: Callable[[ByCoordinator], Mapping[str, T | KctlError]],
    *,
    known: Mapping[str, int] | None = None,
    key_type: int = GROUP,
) -> dict[str, T | KctlError]:
    """The answer about each group from its coordinator, a failure being a value, also one to find coordinators.

    ask: given groups by coordinator, answers about each of them (`send_in_chunks` helps); it is asked again where a
    coordinator moved or could not be reached, as long as the client's time lasts; never where nobody knows what a
    change has done. known: coordinators that were seen already, which saves the look-up. Raises NotSupported.
    """
    answers: dict[str, T | KctlError] = {}
    pending = list(dict.fromkeys(groups))
    coordinators: dict[str, int | KctlError] = dict(known or {})
    deadline = Deadline(client.timeout_s)
    for pause in (*PAUSES_S, None):
        missing = [group for group in pending if not isinstance(coordinators.get(group), int)]
        found, lost = _found(client, missing, key_type)
        coordinators.update(found)
        by_node: dict[int, list[str]] = {}
        for group in pending:
            node = coordinators.get(group)
            if isinstance(node, int):
                by_node.setdefault(node, []).append(group)
            else:
                answers[group] = node or CoordinatorMoved(f"nothing was answered about group {group}")
        answers.update(ask(by_node) if by_node else {})
        pending = [group for group in pending if _try_again(answers.get(group)) and answers.get(group) is not lost]
        if not pending or pause is None or deadline.left_s <= pause:
            break
        for group in pending:
            coordinators.pop(group, None)
        time.sleep(pause)
    return answers


def _found(
    client: ClusterClient, groups: Sequence[str], key_type: int
) -> tuple[dict[str, int | KctlError], KctlError | None]:
    """`find_coordinators`; and why no broker could be asked at all, which is then the value of each."""
    try:
        return find_coordinators(client, groups, key_type=key_type), None
    except NotSupported:
        raise
    except KctlError as exc:
        return dict.fromkeys(groups, exc), exc


def _try_again(answer: object) -> bool:
    """Not a login that failed: each one counts for an account that is locked after some."""
    return answer is None or (isinstance(answer, ConnectionFailed) and not isinstance(answer, AuthenticationFailed))


def send_in_chunks(
    client: ClusterClient,
    by_node: ByCoordinator,
    request_for: Callable[[Sequence[str]], object],
    parse: Callable[[object], Mapping[str, T | KctlError]],
    *,
    at_once: int = _GROUPS_PER_REQUEST,
) -> dict[str, T | KctlError]:
    """One request to each broker with its groups, all in flight together; in rounds where there are very many."""
    answers: dict[str, T | KctlError] = {}
    rounds = max((len(groups) + at_once - 1) // at_once for groups in by_node.values())
    for start in range(0, rounds * at_once, at_once):
        asked = {node: groups[start : start + at_once] for node, groups in by_node.items() if groups[start:]}
        responses = client.send_each({node: request_for(groups) for node, groups in asked.items()})
        for node, groups in asked.items():
            response = responses[node]
            if isinstance(response, NotSupported):
                raise response  # as for one broker, so for all: the caller has another way, or not
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
    """A request for each group, for messages that are of one: to all coordinators at once, group after group.

    A broker that does not answer is asked for no further groups, each of which could take as long again. They have its
    error, too, and are asked about again where that is worth it; or are told to be not sent, when nobody knows what the
    one before has done.
    """
    answers: dict[str, T | KctlError] = {}
    lost: dict[int, KctlError] = {}
    for turn in range(max(map(len, by_node.values()))):
        asked = {node: groups[turn] for node, groups in by_node.items() if turn < len(groups)}
        requests = {node: request_for(group) for node, group in asked.items() if node not in lost}
        responses = client.send_each(requests) if requests else {}
        for node, group in asked.items():
            answer = lost[node] if node in lost else responses[node]
            answers[group] = answer if isinstance(answer, KctlError) else parse(answer, group)
            if isinstance(answer, OutcomeUnknown):
                lost[node] = OperationFailed(f"not sent, because before: {answer.message}")
            elif isinstance(answer, ConnectionFailed):
                lost[node] = answer
    return answers
