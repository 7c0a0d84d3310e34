"""Create topics: validate them on the brokers, create them, and read them back."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from kctl.base.outcomes import ItemResult
from kctl.base.text import some_of
from kctl.cluster.config_resources import Resource
from kctl.cluster.topic_names import check_name, collisions
from kctl.configs.change import Edit, check
from kctl.configs.describe import by_name, describe_each
from kctl.errors import (
    AlreadyExists,
    ConnectionFailed,
    KctlError,
    NotAuthorized,
    NotFound,
    OperationFailed,
    OutcomeUnknown,
    Reason,
    Refused,
    TimedOut,
    UsageError,
)
from kctl.model import TopicState
from kctl.protocol.codes import ErrorCode
from kctl.topics.new_topic import BROKER_DEFAULT, NewTopic, create_request, request_chunks

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_POLL_S = 0.1
_VALIDATE_S = 10.0
_PROPAGATION_S = 10.0  # for a topic that the controller knows but the queried broker does not show yet


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """The result for one topic. result: would create, created, exists or failed.

    partition_count and replication_factor are reported by the brokers: validated for "would create", else read back.
    differs: how an existing topic differs from the request.
    """

    topic: str
    result: ItemResult
    partition_count: int | None
    replication_factor: int | None
    configs: Mapping[str, str]
    differs: str | None = None
    error: str | None = None


def plan_create(
    client: ClusterClient, topics: Sequence[NewTopic], *, if_not_exists: bool = False
) -> list[CreatedTopic]:
    """Return what would be created, validated by the controller (CreateTopics validate_only).

    Raises UsageError for invalid names, AlreadyExists (unless `if_not_exists`), and Refused with the controller's
    reason: too few brokers, an invalid config, a colliding name, a policy. Nothing is changed.
    """
    names = [check_name(topic.name) for topic in topics]
    if len(set(names)) < len(names):
        raise UsageError("a topic is listed twice")
    state = client.metadata()
    existing = state.topics
    present = [name for name in names if name in existing]
    if present and not if_not_exists:
        what = "topic {} already exists" if len(present) == 1 else "topics {} already exist"
        raise AlreadyExists(what.format(", ".join(present)), hint="use --if-not-exists to skip existing topics")
    for name in names:
        clash = [] if name in existing else collisions(name, [*existing, *names])
        if clash:
            raise Refused(
                f"topic {name} collides with {', '.join(clash)}",
                hint="metrics cannot distinguish '.' and '_', so brokers reject such names",
                reason=Reason.IMPOSSIBLE,
            )
    _check_brokers(topics, state.brokers)
    new = [topic for topic in topics if topic.name not in existing]
    validated, existing_errors = _validate(client, new, existing) if new else ({}, {})
    if existing_errors:  # created by others since metadata was read; or being deleted, which metadata does not show
        if not if_not_exists:
            raise next(iter(existing_errors.values()))
        appeared = wait_for_topics(client, existing_errors, timeout_s=_PROPAGATION_S)
        absent = [error for name, error in existing_errors.items() if name not in appeared]
        if absent:
            raise absent[0]
        existing = {**existing, **appeared}
    return [
        _existing(topic, existing[topic.name]) if topic.name in existing else validated[topic.name] for topic in topics
    ]


def _check_brokers(topics: Sequence[NewTopic], brokers: Collection[int]) -> None:
    """Raise Refused for assignments to unknown brokers, which controllers with ZooKeeper accept."""
    assigned = {broker for topic in topics for replicas in topic.assignment or () for broker in replicas}
    unknown = sorted(assigned - set(brokers))
    if unknown:
        raise Refused(
            f"the replica assignment contains unknown brokers: {', '.join(map(str, unknown))}",
            hint=f"the cluster has brokers {', '.join(map(str, sorted(brokers)))}",
            reason=Reason.IMPOSSIBLE,
        )


def _existing(request: NewTopic, topic: TopicState) -> CreatedTopic:
    count = len(request.assignment) if request.assignment else request.partitions
    factor = len(request.assignment[0]) if request.assignment else request.replication_factor
    differences = []
    if count is not None and count != len(topic.partitions):
        differences.append(f"has {len(topic.partitions)} partitions, not {count}")
    if factor is not None and factor != topic.replication_factor:
        differences.append(f"has replication factor {topic.replication_factor}, not {factor}")
    return CreatedTopic(
        topic=request.name,
        result=ItemResult.EXISTS,
        partition_count=len(topic.partitions),
        replication_factor=topic.replication_factor,
        configs={},
        differs="; ".join(differences) or None,
    )


def _validate(
    client: ClusterClient, topics: Sequence[NewTopic], existing: Collection[str]
) -> tuple[dict[str, CreatedTopic], dict[str, AlreadyExists]]:
    """Return what would be created, and the controller's error for topics that already exist. Raises other errors.

    existing: topics whose configs show which names are valid.
    """
    requested = {topic.name: topic for topic in topics}
    planned: dict[str, CreatedTopic] = {}
    existing_errors: dict[str, AlreadyExists] = {}
    requests = (create_request(chunk, timeout_s=_VALIDATE_S, validate_only=True) for chunk in request_chunks(topics))
    for row in (row for request in requests for row in client.send_to_controller(request).topics):
        if row.error_code:
            error = _refusal(row)
            if row.error_code == ErrorCode.INVALID_CONFIG:
                raise _config_refusal(client, error, requested[row.name].configs, existing)
            if not isinstance(error, AlreadyExists):
                raise error
            existing_errors[row.name] = error
            continue
        topic = requested[row.name]
        count, factor = row.num_partitions, row.replication_factor
        if count < 0:  # brokers before 2.4 do not report it
            count = len(topic.assignment) if topic.assignment else topic.partitions or BROKER_DEFAULT
            factor = len(topic.assignment[0]) if topic.assignment else topic.replication_factor or BROKER_DEFAULT
        planned[row.name] = CreatedTopic(
            row.name, ItemResult.WOULD_CREATE, _non_negative(count), _non_negative(factor), dict(topic.configs)
        )
    for name in requested:
        if name not in planned and name not in existing_errors:
            raise OperationFailed(f"topic {name}: the controller's response does not name the topic")
    return planned, existing_errors


def _non_negative(number: int) -> int | None:
    return None if number < 0 else number


def _refusal(row: Any) -> KctlError:
    """Return the controller's error for a validation: nothing was changed."""
    from kctl.protocol.client import error_for

    error = error_for(row.error_code, row.error_message, subject=f"topic {row.name}")
    if row.error_code == ErrorCode.TOPIC_ALREADY_EXISTS:
        return AlreadyExists(error.message)
    if isinstance(error, (Refused, NotAuthorized)):
        return error
    return Refused(error.message, hint=error.hint or "nothing was created")


def _config_refusal(
    client: ClusterClient, error: KctlError, configs: Mapping[str, str], existing: Collection[str]
) -> KctlError:
    """Return the error with a suggestion, as when altering a topic; unchanged if there is no topic to compare with."""
    if not existing:
        return error
    sample = Resource.topic(min(existing))
    definitions = describe_each(client, [sample])[sample]
    if isinstance(definitions, KctlError):
        return error
    try:
        check(sample, [Edit(name, "set", value) for name, value in configs.items()], by_name(definitions))
    except NotFound as exc:
        return Refused(error.message, hint=exc.hint if exc.details["did_you_mean"] else error.hint)
    except Refused as exc:
        return Refused(error.message, hint=exc.hint or error.hint)
    return error


def create_topics(
    client: ClusterClient,
    topics: Sequence[NewTopic],
    plan: Sequence[CreatedTopic],
    *,
    if_not_exists: bool = False,
    timeout_s: float = 30.0,
    progress: Callable[[str], None] | None = None,
) -> list[CreatedTopic]:
    """Create the planned topics, and return the state read back.

    if_not_exists: a topic that was created by others in the meantime "exists" and has not failed. Failures of single
    topics are in the rows. Raises OutcomeUnknown if there was no response and the topics do not exist.
    """
    to_create = {row.topic for row in plan if row.result is ItemResult.WOULD_CREATE}
    response = _send_requests(
        client, [topic for topic in topics if topic.name in to_create], timeout_s, if_not_exists=if_not_exists
    )
    expected = to_create - response.errors.keys()
    try:
        created = wait_for_topics(client, expected, timeout_s=timeout_s, progress=progress)
    except KctlError as exc:
        created = {}
        if response.unanswered is None:
            reason = f"the creation was accepted, but could not be read back: {exc.message}"
            response.errors.update({name: response.unsure.get(name, reason) for name in expected})
    if response.unanswered and not expected & created.keys():
        raise OutcomeUnknown(
            f"no response to the creation of {some_of(sorted(to_create))}: {response.unanswered.message}",
            hint="run it again with --if-not-exists",
        )
    existing = {name: _existing(topic, created[name]) for name, topic in response.existing.items() if name in created}
    errors = response.unsure | response.errors
    return [
        existing[row.topic]
        if row.topic in existing
        else _outcome(row, errors, created)
        if row.topic in to_create
        else row
        for row in plan
    ]


@dataclass(frozen=True, slots=True)
class _CreateResponses:
    """The controller's responses by topic; created topics have no entry.

    errors: why a topic was not created. unsure: why it is unknown whether a topic was created; it is read back.
    existing: topics that existed, with if_not_exists. unanswered: the error of a request that may have been executed.
    """

    errors: dict[str, str] = field(default_factory=dict)
    unsure: dict[str, str] = field(default_factory=dict)
    existing: dict[str, NewTopic] = field(default_factory=dict)
    unanswered: KctlError | None = None


def _send_requests(
    client: ClusterClient, new: Sequence[NewTopic], timeout_s: float, *, if_not_exists: bool
) -> _CreateResponses:
    """Send the requests. Raises the error of the first one if it certainly changed nothing."""
    response = _CreateResponses()
    for chunk in request_chunks(new):
        if response.unanswered:
            response.errors.update({topic.name: f"not requested: {response.unanswered.message}" for topic in chunk})
            continue
        try:
            result = client.send_to_controller(create_request(chunk, timeout_s=timeout_s, validate_only=False))
        except (OutcomeUnknown, TimedOut, ConnectionFailed) as exc:
            response = replace(response, unanswered=exc)
            response.unsure.update(
                {topic.name: f"no response, and the topic does not exist: {exc.message}" for topic in chunk}
            )
        except KctlError as exc:
            if chunk[0] is new[0]:
                raise
            response.errors.update({topic.name: exc.message for topic in chunk})
        else:
            _sort_errors(_errors(result), {topic.name: topic for topic in chunk}, response, if_not_exists=if_not_exists)
    return response


def _sort_errors(
    errors: Mapping[str, KctlError],
    requested: Mapping[str, NewTopic],
    response: _CreateResponses,
    *,
    if_not_exists: bool,
) -> None:
    for name, error in errors.items():
        if isinstance(error, AlreadyExists) and if_not_exists:
            response.existing[name] = requested[name]
            response.unsure[name] = error.message
        elif isinstance(error, OutcomeUnknown):  # REQUEST_TIMED_OUT: it has no leaders yet, or is never created
            response.unsure[name] = error.message
        else:
            response.errors[name] = error.message


def _errors(response: Any) -> dict[str, KctlError]:
    from kctl.protocol.client import error_for

    return {
        row.name: error_for(row.error_code, row.error_message, subject=f"topic {row.name}")
        for row in response.topics
        if row.error_code
    }


def _outcome(row: CreatedTopic, errors: Mapping[str, str], created: Mapping[str, TopicState]) -> CreatedTopic:
    error = errors.get(row.topic)
    state = created.get(row.topic)
    if state is None:
        error = error or "the creation was accepted, but no broker shows the topic yet"
        return replace(row, result=ItemResult.FAILED, error=error, partition_count=None, replication_factor=None)
    leaderless = [str(p.partition) for p in state.partitions if p.offline]
    return replace(
        row,
        result=ItemResult.CREATED,
        partition_count=len(state.partitions),
        replication_factor=state.replication_factor,
        error=f"partitions without a leader: {', '.join(leaderless)}" if leaderless else None,
    )


def wait_for_topics(
    client: ClusterClient,
    names: Collection[str],
    *,
    timeout_s: float,
    progress: Callable[[str], None] | None = None,
) -> dict[str, TopicState]:
    """Return the topics once all partitions have a leader, or the existing ones when the time is up."""
    deadline = time.monotonic() + timeout_s
    topics: dict[str, TopicState] = {}
    while names:
        topics = client.metadata(names).topics
        ready = [name for name, each in topics.items() if not any(p.offline for p in each.partitions)]
        if len(ready) == len(names) or time.monotonic() > deadline:
            break
        if progress:
            progress(f"{len(ready)} of {len(names)} topics have all their leaders")
        time.sleep(_POLL_S)
    return topics
