"""Delete topics: report what would be lost, delete, and wait until the topics are deleted.

With ZooKeeper, a topic disappears from metadata as soon as its deletion starts. The deletion is complete when every
replica is deleted, which never happens while a broker with a replica is down. Only the controller knows when: until
then, it rejects a validate_only creation of a topic with this name. With KRaft, metadata is reliable.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kctl.base.outcomes import ItemResult
from kctl.base.timestamps import format_timestamp
from kctl.cluster.topic_names import check_name
from kctl.cluster.topics import choose_to_change
from kctl.errors import (
    ConnectionFailed,
    KctlError,
    NotAuthorized,
    NotSupported,
    OperationFailed,
    OutcomeUnknown,
    TimedOut,
    UsageError,
)
from kctl.model import ClusterState, TopicState
from kctl.protocol.codes import ApiKey, ErrorCode
from kctl.protocol.metadata_messages import topic_id_from_text, topic_id_text
from kctl.topics.new_topic import NewTopic, create_request, request_chunks
from kctl.topics.offsets import newest_records
from kctl.topics.readers import ReadingGroup, fetch_readers
from kctl.topics.sizes import fetch_sizes

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

NOTHING_WRITTEN = -1
# Errors that are detected after the name was accepted; INVALID_TOPIC_EXCEPTION: it collides with another name.
_NAME_IS_FREE = frozenset(
    {ErrorCode.NONE, ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.INVALID_CONFIG, ErrorCode.POLICY_VIOLATION}
)
_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class TopicReader:
    """A consumer group that reads the topic. assigned_partitions: assigned to its members now."""

    group: str
    state: str
    assigned_partitions: int
    committed_partitions: int


@dataclass(frozen=True, slots=True)
class DeletedTopic:
    """The result for one topic. result: would delete, deleted, absent, marked or failed.

    size_bytes: all replicas; None if a broker did not report. known_size_bytes: the sum of the reported sizes; None if
    there are none. readers: groups with committed offsets or assigned members; None: unknown. newest_timestamp: the
    largest timestamp of its records, ISO 8601; None: no records, or unknown. marked: the controller accepted the
    deletion, but it is not complete, or its state is unknown.
    """

    topic: str
    result: ItemResult
    topic_id: str | None
    partition_count: int | None
    replication_factor: int | None
    size_bytes: int | None
    readers: tuple[TopicReader, ...] | None = None
    newest_timestamp: str | None = None
    error: str | None = None
    known_size_bytes: int | None = None


def plan_delete(
    client: ClusterClient, names: Sequence[str], match: Sequence[str] = (), *, if_exists: bool = False
) -> tuple[list[DeletedTopic], list[str]]:
    """Return what would be deleted, and what is unknown about it (one line each).

    Raises UsageError for invalid names, NotFound (unless `if_exists`), Refused for internal topics.
    """
    requested = list(dict.fromkeys(check_name(name) for name in names))
    if if_exists and requested:
        existing = client.metadata(requested).topics
        absent = [name for name in requested if name not in existing]
    else:
        absent = []
    present = [name for name in requested if name not in absent]
    if not present and not match:
        if not requested:
            raise UsageError("no topic specified", hint="specify topic names or --match REGEX")
        return [_absent(name) for name in requested], []
    state, chosen = choose_to_change(client, present, match)
    rows, doubts = losses(client, state, chosen)
    by_name = {row.topic: row for row in rows} | {name: _absent(name) for name in absent}
    return [by_name[name] for name in (*requested, *sorted(by_name.keys() - set(requested)))], doubts


def losses(
    client: ClusterClient, state: ClusterState, chosen: Sequence[TopicState]
) -> tuple[list[DeletedTopic], list[str]]:
    """Return what would be lost with `chosen`, and what is unknown about it. state: has the topics."""
    names = [topic.name for topic in chosen]
    sizes = fetch_sizes(client, state, chosen)
    readers, unread = fetch_readers(client, names)
    newest, notes = newest_records(client, [p.tp for t in chosen for p in t.partitions], state=state)
    last: dict[str, int] = {}
    for tp, record in newest.items():
        last[tp.topic] = max(last.get(tp.topic, NOTHING_WRITTEN), record.timestamp_ms)
    rows = []
    for topic in chosen:
        size = sizes.topic(topic)
        reported = size.known_bytes if size.missing < sum(len(p.replicas) for p in topic.partitions) else None
        rows.append(
            DeletedTopic(
                topic=topic.name,
                result=ItemResult.WOULD_DELETE,
                topic_id=topic.topic_id,
                partition_count=len(topic.partitions),
                replication_factor=topic.replication_factor,
                size_bytes=size.bytes,
                readers=_known_readers(readers, topic.name, complete=not unread),
                newest_timestamp=format_timestamp(last.get(topic.name, NOTHING_WRITTEN)),
                known_size_bytes=reported,
            )
        )
    return rows, [*sizes.failures, *unread, *notes]


def _known_readers(
    readers: Mapping[str, Sequence[ReadingGroup]] | None, topic: str, *, complete: bool
) -> tuple[TopicReader, ...] | None:
    """Return the readers; None if none is known but some may be hidden or unreadable."""
    rows = tuple(map(_reader, readers[topic])) if readers else ()
    return rows if rows or (readers is not None and complete) else None


def _reader(reader: ReadingGroup) -> TopicReader:
    return TopicReader(reader.group, reader.state, reader.assigned_partitions, len(reader.committed))


def _absent(name: str) -> DeletedTopic:
    return DeletedTopic(name, ItemResult.ABSENT, None, None, None, None)


def delete_topics(
    client: ClusterClient,
    plan: Sequence[DeletedTopic],
    *,
    timeout_s: float = 30.0,
    progress: Callable[[str], None] | None = None,
) -> list[DeletedTopic]:
    """Delete the planned topics, wait until no broker shows them, and return the outcome.

    Deletes by topic id if brokers have ids, so that a topic recreated under the name is left alone.
    """
    to_delete = [row for row in plan if row.result is ItemResult.WOULD_DELETE]
    failures: dict[str, KctlError] = {}
    unanswered: KctlError | None = None
    if to_delete:
        try:
            failures = _errors(_send(client, to_delete, timeout_s), to_delete)
        except (OutcomeUnknown, TimedOut, ConnectionFailed) as exc:
            unanswered = exc  # the request may have been executed: check
    # After a timeout in the controller a topic may still be deleted, so it is awaited like the others.
    errors = {name: error.message for name, error in failures.items() if not isinstance(error, OutcomeUnknown)}
    expected = [row for row in to_delete if row.topic not in errors]
    remaining, unknown = _wait_until_deleted(client, expected, timeout_s=timeout_s, progress=progress)
    rows: list[DeletedTopic] = []
    for row in plan:
        if row.result is not ItemResult.WOULD_DELETE:
            rows.append(row)
        elif row.topic in errors:
            rows.append(replace(row, result=ItemResult.FAILED, error=errors[row.topic]))
        elif row.topic in unknown:
            rows.append(_unknown_state(row, unknown[row.topic], failures.get(row.topic) or unanswered))
        elif row.topic not in remaining:
            rows.append(replace(row, result=ItemResult.DELETED))
        else:
            rows.append(_incomplete(row, failures.get(row.topic) or unanswered, timeout_s))
    return rows


def _unknown_state(row: DeletedTopic, unknown: KctlError, doubt: KctlError | None) -> DeletedTopic:
    """Return the row of a topic whose state is unknown. doubt: why it is not even known to be marked."""
    reason = f"its completion could not be verified: {unknown.message}"
    if doubt:
        return replace(row, result=ItemResult.FAILED, error=f"no response ({doubt.message}), and {reason}")
    return replace(row, result=ItemResult.MARKED, error=f"marked for deletion; {reason}")


def _incomplete(row: DeletedTopic, doubt: KctlError | None, timeout_s: float) -> DeletedTopic:
    if doubt:
        return replace(row, result=ItemResult.FAILED, error=f"no response, and the topic still exists: {doubt.message}")
    reason = f"marked for deletion, not complete after {timeout_s:g} s; check if a broker with a replica is down"
    return replace(row, result=ItemResult.MARKED, error=reason)


def _send(client: ClusterClient, rows: Sequence[DeletedTopic], timeout_s: float) -> Any:
    from kafka.protocol.admin import DeleteTopicsRequest

    topic_class = DeleteTopicsRequest.DeleteTopicState
    timeout_ms = int(timeout_s * 1000)
    ids = [topic_id_from_text(row.topic_id) for row in rows if row.topic_id]
    if len(ids) == len(rows):  # topics from before 2.8 have none
        by_id = [topic_class(name=None, topic_id=topic_id) for topic_id in ids]
        try:
            return client.send_to_controller(DeleteTopicsRequest(topics=by_id, timeout_ms=timeout_ms, min_version=6))
        except NotSupported:
            pass
    names = [topic_class(name=row.topic) for row in rows]
    return client.send_to_controller(DeleteTopicsRequest(topics=names, timeout_ms=timeout_ms))


def _errors(response: Any, rows: Sequence[DeletedTopic]) -> dict[str, KctlError]:
    """Return the errors of topics that were not deleted. A topic that no longer exists is not an error."""
    from kctl.protocol.client import error_for

    names = {row.topic_id: row.topic for row in rows}
    errors: dict[str, KctlError] = {}
    for row in response.responses:
        if row.error_code and row.error_code not in {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID}:
            name = row.name or names.get(topic_id_text(row.topic_id), str(row.topic_id))
            errors[name] = error_for(row.error_code, row.error_message, subject=f"topic {name}")
    return errors


def _wait_until_deleted(
    client: ClusterClient,
    rows: Sequence[DeletedTopic],
    *,
    timeout_s: float,
    progress: Callable[[str], None] | None,
) -> tuple[set[str], dict[str, KctlError]]:
    """Return the topics that are not deleted when the time is up, and why the state of topics is unknown.

    A recreated topic has another id and counts as deleted.
    """
    deadline = time.monotonic() + timeout_s
    ids = {row.topic: row.topic_id for row in rows}
    remaining = set(ids)
    unknown: dict[str, KctlError] = {}
    while remaining:
        try:
            remaining, recreated = _existing(client, ids)
            unknown = {}
            if not remaining:
                remaining, unknown = _reserved_names(client, ids.keys() - recreated)
        except KctlError as exc:
            remaining, unknown = set(ids), dict.fromkeys(ids, exc)
        hopeless = all(name in unknown and isinstance(unknown[name], NotAuthorized) for name in remaining)
        if not remaining or hopeless or time.monotonic() > deadline:
            break
        if progress:
            progress(f"{len(remaining)} of {len(ids)} topics still exist")
        time.sleep(_POLL_S)
    return remaining, unknown


def _existing(client: ClusterClient, ids: dict[str, str | None]) -> tuple[set[str], set[str]]:
    """Return the names that a broker shows with the old id, and those shown with another id.

    Raises the first broker's error if no broker responds.
    """
    existing: set[str] = set()
    recreated: set[str] = set()
    responses = client.metadata_of_each(client.metadata(()).brokers, ids)
    errors = [response for response in responses.values() if isinstance(response, KctlError)]
    if len(errors) == len(responses):
        raise errors[0] if errors else OperationFailed("no broker is available")
    for state in responses.values():
        if isinstance(state, KctlError):
            continue  # an unreachable broker shows nothing
        topic_ids = {name: topic.topic_id for name, topic in state.topics.items()} | dict.fromkeys(state.failed)
        for name, topic_id in topic_ids.items():
            (existing if ids[name] in {None, topic_id} else recreated).add(name)
    return existing, recreated


def _reserved_names(client: ClusterClient, names: Collection[str]) -> tuple[set[str], dict[str, KctlError]]:
    """Return the names that the controller still reserves, and why the state of names is unknown.

    A user who may delete topics may not be allowed to create them.
    """
    from kctl.protocol.client import error_for

    if not names or client.api_version(ApiKey.DESCRIBE_QUORUM) is not None:
        return set(), {}
    reserved: set[str] = set()
    unknown: dict[str, KctlError] = {}
    for chunk in request_chunks([NewTopic(name, 1, 1) for name in sorted(names)]):
        response = client.send_to_controller(create_request(chunk, timeout_s=5, validate_only=True))
        for row in response.topics:
            if row.error_code in _NAME_IS_FREE:
                continue
            reserved.add(row.name)
            if row.error_code != ErrorCode.TOPIC_ALREADY_EXISTS:
                unknown[row.name] = error_for(row.error_code, row.error_message, subject=f"topic {row.name}")
    return reserved, unknown
