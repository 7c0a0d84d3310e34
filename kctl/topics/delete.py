"""Deleting topics: what would be lost is told first, and what became of it is looked at afterwards.

With ZooKeeper, a topic vanishes from metadata as soon as its deletion begins; it is gone when every replica is,
which takes for ever while a broker that holds one is down. Only the controller knows: it refuses to validate the
creation of a topic under the name until then. With KRaft it is gone as soon as metadata say so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kctl.base.moments import moment_text
from kctl.base.outcomes import ItemResult
from kctl.cluster.quorum import DESCRIBE_QUORUM
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
from kctl.protocol.codes import ErrorCode
from kctl.protocol.metadata_messages import topic_id_from_text, topic_id_text
from kctl.topics.new_topic import NewTopic, create_request, request_chunks
from kctl.topics.offsets import newest_records
from kctl.topics.readers import Reader, fetch_readers
from kctl.topics.sizes import fetch_sizes

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

NOTHING_WRITTEN = -1
# These are checked after the name; INVALID_TOPIC_EXCEPTION: it collides with another.
_NAME_IS_FREE = frozenset(
    {ErrorCode.NONE, ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.INVALID_CONFIG, ErrorCode.POLICY_VIOLATION}
)
_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class TopicReader:
    """A group that reads the topic. assigned_partitions: of it, to the group's members now."""

    group: str
    state: str
    assigned_partitions: int
    committed_partitions: int


@dataclass(frozen=True, slots=True)
class DeletedTopic:
    """What becomes of one topic. result: «would delete», «deleted», «absent», «marked» or «failed».

    size_bytes: all replicas on all disks; None when a broker did not tell: known_size_bytes is what the others told,
    None when none did. readers: groups that have commits of it or members that it is assigned to; None when none is
    known and some may be. newest_timestamp: the largest timestamp of its records, ISO 8601; None: no records, or not
    known. marked: the controller has accepted the deletion, and it is not finished, or nobody could tell that it is.
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
    """What deleting would remove, and what could not be found out about it (one line each).

    Raises UsageError for impossible names, NotFound (unless `if_exists`), Refused for Kafka's own topics.
    """
    wanted = list(dict.fromkeys(check_name(name) for name in names))
    if if_exists and wanted:
        there = client.metadata(wanted).topics
        absent = [name for name in wanted if name not in there]
    else:
        absent = []
    present = [name for name in wanted if name not in absent]
    if not present and not match:
        if not wanted:
            raise UsageError("no topic is named", hint="give names, or --match REGEX")
        return [_absent(name) for name in wanted], []
    state, chosen = choose_to_change(client, present, match)
    rows, doubts = losses(client, state, chosen)
    by_name = {row.topic: row for row in rows} | {name: _absent(name) for name in absent}
    return [by_name[name] for name in (*wanted, *sorted(by_name.keys() - set(wanted)))], doubts


def losses(
    client: ClusterClient, state: ClusterState, chosen: Sequence[TopicState]
) -> tuple[list[DeletedTopic], list[str]]:
    """What would be lost with `chosen`, which are of `state`; and what could not be found out about it."""
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
        told = size.known_bytes if size.missing < sum(len(p.replicas) for p in topic.partitions) else None
        rows.append(
            DeletedTopic(
                topic=topic.name,
                result=ItemResult.WOULD_DELETE,
                topic_id=topic.topic_id,
                partition_count=len(topic.partitions),
                replication_factor=topic.replication_factor,
                size_bytes=size.bytes,
                readers=_told(readers, topic.name, whole=not unread),
                newest_timestamp=moment_text(last.get(topic.name, NOTHING_WRITTEN)),
                known_size_bytes=told,
            )
        )
    return rows, [*sizes.failures, *unread, *notes]


def _told(readers: Mapping[str, Sequence[Reader]] | None, topic: str, *, whole: bool) -> tuple[TopicReader, ...] | None:
    """None when none is known and some may be: nobody told, or (not `whole`) not of all groups."""
    found = tuple(map(_reader, readers[topic])) if readers else ()
    return found if found or (readers is not None and whole) else None


def _reader(reader: Reader) -> TopicReader:
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
    """Delete what `plan` says «would delete», wait until no broker shows it, and say what was seen.

    By topic id where brokers have them, so that a topic made anew under the name meanwhile is left alone.
    """
    todo = [row for row in plan if row.result is ItemResult.WOULD_DELETE]
    said: dict[str, KctlError] = {}
    unanswered: KctlError | None = None
    if todo:
        try:
            said = _errors(_send(client, todo, timeout_s), todo)
        except (OutcomeUnknown, TimedOut, ConnectionFailed) as exc:
            unanswered = exc  # it may have been carried out all the same: look
    # After a timeout in the controller a topic may go all the same: it is awaited like the others.
    errors = {name: error.message for name, error in said.items() if not isinstance(error, OutcomeUnknown)}
    expected = [row for row in todo if row.topic not in errors]
    left, untold = _wait_until_gone(client, expected, timeout_s=timeout_s, progress=progress)
    done: list[DeletedTopic] = []
    for row in plan:
        if row.result is not ItemResult.WOULD_DELETE:
            done.append(row)
        elif row.topic in errors:
            done.append(replace(row, result=ItemResult.FAILED, error=errors[row.topic]))
        elif row.topic in untold:
            done.append(_not_told(row, untold[row.topic], said.get(row.topic) or unanswered))
        elif row.topic not in left:
            done.append(replace(row, result=ItemResult.DELETED))
        else:
            done.append(_still_there(row, said.get(row.topic) or unanswered, timeout_s))
    return done


def _not_told(row: DeletedTopic, untold: KctlError, doubt: KctlError | None) -> DeletedTopic:
    """Nobody told whether it is gone. doubt: why it is not even known that it was marked."""
    reason = f"whether it is finished could not be asked: {untold.message}"
    if doubt:
        return replace(row, result=ItemResult.FAILED, error=f"no answer ({doubt.message}), and {reason}")
    return replace(row, result=ItemResult.MARKED, error=f"marked for deletion; {reason}")


def _still_there(row: DeletedTopic, doubt: KctlError | None, timeout_s: float) -> DeletedTopic:
    if doubt:
        return replace(row, result=ItemResult.FAILED, error=f"no answer, and still there: {doubt.message}")
    reason = f"marked for deletion, not finished after {timeout_s:g} s; is a broker that holds a replica down?"
    return replace(row, result=ItemResult.MARKED, error=reason)


def _send(client: ClusterClient, rows: Sequence[DeletedTopic], timeout_s: float) -> Any:
    from kafka.protocol.admin import DeleteTopicsRequest

    topic_class = DeleteTopicsRequest.DeleteTopicState
    timeout_ms = int(timeout_s * 1000)
    ids = [topic_id_from_text(row.topic_id) for row in rows if row.topic_id]
    if len(ids) == len(rows):  # a topic from before 2.8 has none
        by_id = [topic_class(name=None, topic_id=topic_id) for topic_id in ids]
        try:
            return client.send_to_controller(DeleteTopicsRequest(topics=by_id, timeout_ms=timeout_ms, min_version=6))
        except NotSupported:
            pass
    names = [topic_class(name=row.topic) for row in rows]
    return client.send_to_controller(DeleteTopicsRequest(topics=names, timeout_ms=timeout_ms))


def _errors(response: Any, rows: Sequence[DeletedTopic]) -> dict[str, KctlError]:
    """Topics that were not deleted, with the reason. One that is gone already is no failure."""
    from kctl.protocol.client import error_for

    names = {row.topic_id: row.topic for row in rows}
    errors: dict[str, KctlError] = {}
    for row in response.responses:
        if row.error_code and row.error_code not in {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID}:
            name = row.name or names.get(topic_id_text(row.topic_id), str(row.topic_id))
            errors[name] = error_for(row.error_code, row.error_message, subject=f"topic {name}")
    return errors


def _wait_until_gone(
    client: ClusterClient,
    rows: Sequence[DeletedTopic],
    *,
    timeout_s: float,
    progress: Callable[[str], None] | None,
) -> tuple[set[str], dict[str, KctlError]]:
    """Names that are not gone when time is up, and those of which nobody tells whether they are, with the reason.

    A topic made anew has another id, and does not count.
    """
    deadline = time.monotonic() + timeout_s
    ids = {row.topic: row.topic_id for row in rows}
    left = set(ids)
    untold: dict[str, KctlError] = {}
    while left:
        try:
            left, anew = _shown(client, ids)
            untold = {}
            if not left:
                left, untold = _still_marked(client, ids.keys() - anew)
        except KctlError as exc:
            left, untold = set(ids), dict.fromkeys(ids, exc)
        forever = all(name in untold and isinstance(untold[name], NotAuthorized) for name in left)
        if not left or forever or time.monotonic() > deadline:
            break
        if progress:
            progress(f"{len(left)} of {len(ids)} topics are still there")
        time.sleep(_POLL_S)
    return left, untold


def _shown(client: ClusterClient, ids: dict[str, str | None]) -> tuple[set[str], set[str]]:
    """Names that a broker shows under the id that was to go; names that it shows under another one.

    Raises the first broker's error when none answers.
    """
    shown: set[str] = set()
    anew: set[str] = set()
    answers = client.metadata_of_each(client.metadata(()).brokers, ids)
    errors = [answer for answer in answers.values() if isinstance(answer, KctlError)]
    if len(errors) == len(answers):
        raise errors[0] if errors else OperationFailed("there is no broker to be asked")
    for state in answers.values():
        if isinstance(state, KctlError):
            continue  # a broker that is down shows nothing
        topic_ids = {name: topic.topic_id for name, topic in state.topics.items()} | dict.fromkeys(state.failed)
        for name, topic_id in topic_ids.items():
            (shown if ids[name] in {None, topic_id} else anew).add(name)
    return shown, anew


def _still_marked(client: ClusterClient, names: Collection[str]) -> tuple[set[str], dict[str, KctlError]]:
    """Names that the controller still holds back for topics whose deletion is not finished; and of them those of which
    it does not tell: who may delete topics may not be allowed to create some.
    """
    from kctl.protocol.client import error_for

    if not names or client.api_version(DESCRIBE_QUORUM) is not None:
        return set(), {}
    left: set[str] = set()
    untold: dict[str, KctlError] = {}
    for chunk in request_chunks([NewTopic(name, 1, 1) for name in sorted(names)]):
        response = client.send_to_controller(create_request(chunk, timeout_s=5, validate_only=True))
        for row in response.topics:
            if row.error_code in _NAME_IS_FREE:
                continue
            left.add(row.name)
            if row.error_code != ErrorCode.TOPIC_ALREADY_EXISTS:
                untold[row.name] = error_for(row.error_code, row.error_message, subject=f"topic {row.name}")
    return left, untold
