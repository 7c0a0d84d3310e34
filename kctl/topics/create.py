"""Creating topics: validated by the brokers first, created, and read back."""

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
_SHOWN_S = 10.0  # for a topic that the controller has and the broker that is asked does not show yet


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """What became of one topic. result: «would create», «created», «exists» or «failed».

    partitions and replication_factor are the brokers' word: validated for «would create», read back otherwise.
    differs: how an existing topic is not what was asked for.
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
    """What creating would do, checked by the controller without doing it (CreateTopics validate_only).

    Raises UsageError for impossible names, AlreadyExists (unless `if_not_exists`), and Refused with the
    controller's reason: too few brokers, an invalid config, a colliding name, a policy. Nothing is changed.
    """
    names = [check_name(topic.name) for topic in topics]
    if len(set(names)) < len(names):
        raise UsageError("a topic is named twice")
    state = client.metadata()
    existing = state.topics
    present = [name for name in names if name in existing]
    if present and not if_not_exists:
        what = "topic {} exists already" if len(present) == 1 else "topics {} exist already"
        raise AlreadyExists(what.format(", ".join(present)), hint="--if-not-exists leaves topics alone that are there")
    for name in names:
        clash = [] if name in existing else collisions(name, [*existing, *names])
        if clash:
            raise Refused(
                f"topic {name} collides with {', '.join(clash)}",
                hint="metrics do not tell '.' and '_' apart, so brokers refuse such a pair",
            )
    _check_brokers(topics, state.brokers)
    new = [topic for topic in topics if topic.name not in existing]
    validated, taken = _validate(client, new, existing) if new else ({}, {})
    if taken:  # made by somebody else since the look; or being deleted, which metadata does not show
        if not if_not_exists:
            raise next(iter(taken.values()))
        found = wait_for_topics(client, taken, timeout_s=_SHOWN_S)
        absent = [error for name, error in taken.items() if name not in found]
        if absent:
            raise absent[0]
        existing = {**existing, **found}
    return [
        _existing(topic, existing[topic.name]) if topic.name in existing else validated[topic.name] for topic in topics
    ]


def _check_brokers(topics: Sequence[NewTopic], brokers: Collection[int]) -> None:
    """Controllers with ZooKeeper accept assignments to brokers that do not exist; kctl does not."""
    assigned = {broker for topic in topics for replicas in topic.assignment or () for broker in replicas}
    unknown = sorted(assigned - set(brokers))
    if unknown:
        raise Refused(
            f"the replica assignment names brokers that are not there: {', '.join(map(str, unknown))}",
            hint=f"the cluster has brokers {', '.join(map(str, sorted(brokers)))}",
        )


def _existing(wanted: NewTopic, found: TopicState) -> CreatedTopic:
    count = len(wanted.assignment) if wanted.assignment else wanted.partitions
    factor = len(wanted.assignment[0]) if wanted.assignment else wanted.replication_factor
    differences = []
    if count is not None and count != len(found.partitions):
        differences.append(f"has {len(found.partitions)} partitions, not {count}")
    if factor is not None and factor != found.replication_factor:
        differences.append(f"has replication factor {found.replication_factor}, not {factor}")
    return CreatedTopic(
        topic=wanted.name,
        result=ItemResult.EXISTS,
        partition_count=len(found.partitions),
        replication_factor=found.replication_factor,
        configs={},
        differs="; ".join(differences) or None,
    )


def _validate(
    client: ClusterClient, topics: Sequence[NewTopic], existing: Collection[str]
) -> tuple[dict[str, CreatedTopic], dict[str, AlreadyExists]]:
    """What would be created, and the controller's answer about topics that it has already. Raises other refusals.

    existing: topics whose configs show which there are.
    """
    asked = {topic.name: topic for topic in topics}
    planned: dict[str, CreatedTopic] = {}
    taken: dict[str, AlreadyExists] = {}
    requests = (create_request(chunk, timeout_s=_VALIDATE_S, validate_only=True) for chunk in request_chunks(topics))
    for row in (row for request in requests for row in client.send_to_controller(request).topics):
        if row.error_code:
            error = _refusal(row)
            if row.error_code == ErrorCode.INVALID_CONFIG:
                raise _config_refusal(client, error, asked[row.name].configs, existing)
            if not isinstance(error, AlreadyExists):
                raise error
            taken[row.name] = error
            continue
        topic = asked[row.name]
        count, factor = row.num_partitions, row.replication_factor
        if count < 0:  # brokers before 2.4 do not say
            count = len(topic.assignment) if topic.assignment else topic.partitions or BROKER_DEFAULT
            factor = len(topic.assignment[0]) if topic.assignment else topic.replication_factor or BROKER_DEFAULT
        planned[row.name] = CreatedTopic(
            row.name, ItemResult.WOULD_CREATE, _known(count), _known(factor), dict(topic.configs)
        )
    for name in asked:
        if name not in planned and name not in taken:
            raise OperationFailed(f"topic {name}: the controller's response does not name the topic")
    return planned, taken


def _known(number: int) -> int | None:
    return None if number < 0 else number


def _refusal(row: Any) -> KctlError:
    """The controller's answer to a validation: whatever it was, nothing was changed."""
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
    """The refusal with what was probably meant, as altering an existing topic says it; where none can be asked, as it
    is."""
    if not existing:
        return error
    sample = Resource.topic(min(existing))
    known = describe_each(client, [sample])[sample]
    if isinstance(known, KctlError):
        return error
    try:
        check(sample, [Edit(name, "set", value) for name, value in configs.items()], by_name(known))
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
    """Create what `plan` says «would create», and say what is there afterwards, not what was asked.

    if_not_exists: a topic that somebody else has made meanwhile «exists», and has not failed. Failures of single topics
    are results. Raises OutcomeUnknown when no answer came and the topics are not there.
    """
    todo = {row.topic for row in plan if row.result is ItemResult.WOULD_CREATE}
    said = _ask(client, [topic for topic in topics if topic.name in todo], timeout_s, if_not_exists=if_not_exists)
    expected = todo - said.errors.keys()
    try:
        found = wait_for_topics(client, expected, timeout_s=timeout_s, progress=progress)
    except KctlError as exc:
        found = {}
        if said.unanswered is None:
            lost = f"the controller took it, but it could not be read back: {exc.message}"
            said.errors.update({name: said.unsure.get(name, lost) for name in expected})
    if said.unanswered and not expected & found.keys():
        raise OutcomeUnknown(
            f"no answer about the creation of {some_of(sorted(todo))}: {said.unanswered.message}",
            hint="run it again with --if-not-exists",
        )
    there = {name: _existing(topic, found[name]) for name, topic in said.taken.items() if name in found}
    errors = said.unsure | said.errors
    return [
        there[row.topic] if row.topic in there else _outcome(row, errors, found) if row.topic in todo else row
        for row in plan
    ]


@dataclass(frozen=True, slots=True)
class _Said:
    """What the controller said of topics, by name; nothing of those that it created. errors: why they are not created.

    unsure: why that is not known, so that they are looked for. taken: topics that were there already, and may be.
    unanswered: the failure of a request that may have been carried out.
    """

    errors: dict[str, str] = field(default_factory=dict)
    unsure: dict[str, str] = field(default_factory=dict)
    taken: dict[str, NewTopic] = field(default_factory=dict)
    unanswered: KctlError | None = None


def _ask(client: ClusterClient, new: Sequence[NewTopic], timeout_s: float, *, if_not_exists: bool) -> _Said:
    """Ask for the topics. Raises the error of the first request when it is certain that nothing was done."""
    said = _Said()
    for chunk in request_chunks(new):
        if said.unanswered:
            said.errors.update({topic.name: f"not asked for: {said.unanswered.message}" for topic in chunk})
            continue
        try:
            response = client.send_to_controller(create_request(chunk, timeout_s=timeout_s, validate_only=False))
        except (OutcomeUnknown, TimedOut, ConnectionFailed) as exc:
            said = replace(said, unanswered=exc)
            said.unsure.update({topic.name: f"no answer, and it is not there: {exc.message}" for topic in chunk})
        except KctlError as exc:
            if chunk[0] is new[0]:
                raise
            said.errors.update({topic.name: exc.message for topic in chunk})
        else:
            _sort(_errors(response), {topic.name: topic for topic in chunk}, said, if_not_exists=if_not_exists)
    return said


def _sort(errors: Mapping[str, KctlError], asked: Mapping[str, NewTopic], said: _Said, *, if_not_exists: bool) -> None:
    for name, error in errors.items():
        if isinstance(error, AlreadyExists) and if_not_exists:
            said.taken[name] = asked[name]
            said.unsure[name] = error.message
        elif isinstance(error, OutcomeUnknown):  # REQUEST_TIMED_OUT: it may have no leaders yet, or never be made
            said.unsure[name] = error.message
        else:
            said.errors[name] = error.message


def _errors(response: Any) -> dict[str, KctlError]:
    from kctl.protocol.client import error_for

    return {
        row.name: error_for(row.error_code, row.error_message, subject=f"topic {row.name}")
        for row in response.topics
        if row.error_code
    }


def _outcome(row: CreatedTopic, errors: Mapping[str, str], found: Mapping[str, TopicState]) -> CreatedTopic:
    error = errors.get(row.topic)
    state = found.get(row.topic)
    if state is None:
        error = error or "the controller accepted it, but no broker shows the topic yet"
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
    """The topics as soon as all are there with a leader for each partition; what is there when time is up."""
    deadline = time.monotonic() + timeout_s
    found: dict[str, TopicState] = {}
    while names:
        found = client.metadata(names).topics
        ready = [name for name, topic in found.items() if not any(p.offline for p in topic.partitions)]
        if len(ready) == len(names) or time.monotonic() > deadline:
            break
        if progress:
            progress(f"{len(ready)} of {len(names)} topics have their leaders")
        time.sleep(_POLL_S)
    return found
