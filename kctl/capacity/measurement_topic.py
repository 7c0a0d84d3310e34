"""Create and delete the topic of a measurement, and find topics that killed measurements left behind.

Before the topic is created, its name is recorded in a journal file (kctl.base.journal). The measurement locks the file
while it runs, and deletes it after the topic. A file without a lock belongs to a killed run; the next run deletes its
topic. Topics with the name prefix but without a file may belong to a run on another machine; they are only reported.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kctl.base import journal
from kctl.base.outcomes import ItemResult
from kctl.base.paths import state_dir
from kctl.base.units import format_size
from kctl.cluster.log_dirs import fetch_log_dirs
from kctl.errors import Busy, InvalidFile, KctlError, NotFound, OperationFailed, Reason, Refused
from kctl.model import ClusterState
from kctl.topics.create import create_topics, plan_create, wait_for_topics
from kctl.topics.delete import DeletedTopic, delete_topics
from kctl.topics.new_topic import NewTopic

if TYPE_CHECKING:
    from kctl.capacity.measure import MeasureOptions
    from kctl.protocol.client import ClusterClient

PREFIX = "kctl-capacity-"
_SUFFIX = ".jsonl"
_STARTED = "begun"
_APPEARS_S = 3.0  # how long to wait for a topic whose creation was interrupted


@dataclass(frozen=True, slots=True)
class Leftovers:
    """Topics of earlier measurements.

    topics: left by killed runs on this machine; to be deleted. others: have the name prefix, but no journal file here.
    """

    topics: tuple[str, ...]
    others: tuple[str, ...]


def new_name() -> str:
    """Return a new topic name."""
    return PREFIX + secrets.token_hex(4)


def new_topic(options: MeasureOptions) -> NewTopic:
    """Return the topic to create: one partition, the planned replication, not compacted."""
    configs = {"min.insync.replicas": str(options.min_insync_replicas), "cleanup.policy": "delete"}
    return NewTopic(options.topic, 1, options.replication_factor, None, configs)


def check(client: ClusterClient, options: MeasureOptions) -> list[str]:
    """Check that the topic can be created and the disks have enough free space. Changes nothing.

    Return a line for each broker whose free space is unknown. Raises the errors of plan_create, and Refused if a disk
    has less than twice the maximum data free.
    """
    plan_create(client, [new_topic(options)])
    unknown: list[str] = []
    for node, response in fetch_log_dirs(client, client.metadata(()).brokers, topics={}).items():
        if isinstance(response, KctlError):
            unknown.append(f"the free disk space of broker {node} is unknown: {response.message}")
            continue
        for log_dir in response:
            usable = log_dir.usable_bytes
            if usable is not None and log_dir.error is None and usable < 2 * options.max_bytes:
                raise Refused(
                    f"{log_dir.path} of broker {node} has {format_size(usable)} free, less than twice the"
                    f" {format_size(options.max_bytes)} that may be written",
                    hint="lower --max-bytes",
                    reason=Reason.UNSAFE,
                )
    return unknown


# --- leftovers ----------------------------------------------------------------------------------------------------


def folder() -> Path:
    """Return the directory of the journal files."""
    return state_dir() / "capacity"


def find_leftovers(client: ClusterClient, state: ClusterState) -> Leftovers:
    """Return the leftovers in this cluster. state: metadata with all topics that the user may see."""
    names = [path.name.removesuffix(_SUFFIX) for path in folder().glob(f"{PREFIX}*{_SUFFIX}")]
    missing = set(names) - state.topics.keys()
    hidden = client.metadata(missing, keep_errors=True).failed if missing else {}
    return leftovers(state, hidden)


def leftovers(state: ClusterState, hidden: Collection[str] = ()) -> Leftovers:
    """Return the leftovers, and delete the files of topics that no longer exist.

    hidden: topics that the user may not describe.
    """
    recorded: set[str] = set()
    leftover_topics: list[str] = []
    for path in sorted(folder().glob(f"{PREFIX}*{_SUFFIX}")):
        name = path.name.removesuffix(_SUFFIX)
        recorded.add(name)
        if journal.is_locked(path):
            continue
        cluster_id = _cluster_of(path)
        if cluster_id is None or (cluster_id == state.cluster_id and name not in state.topics and name not in hidden):
            path.unlink(missing_ok=True)  # the run was killed before it created the topic, or the topic was deleted
        elif cluster_id == state.cluster_id and name in state.topics:
            leftover_topics.append(name)
    others = sorted(name for name in state.topics if name.startswith(PREFIX) and name not in recorded)
    return Leftovers(tuple(leftover_topics), tuple(others))


def _cluster_of(path: Path) -> str | None:
    """Return the cluster id in a journal file; None if the run had not started."""
    try:
        entries = journal.read(path)
    except (NotFound, InvalidFile):
        return None
    return next((str(entry.get("cluster_id")) for entry in entries if entry.get("step") == _STARTED), None)


def remove_leftover(client: ClusterClient, name: str, *, timeout_s: float) -> None:
    """Delete the topic of a killed run. Does nothing if another run is deleting it. Raises OperationFailed."""
    path = folder() / f"{name}{_SUFFIX}"
    try:
        topic_journal = journal.resume(path)
    except (Busy, NotFound):
        return
    with topic_journal:
        _delete(client, name, timeout_s=timeout_s)
        path.unlink(missing_ok=True)


# --- topic of this run --------------------------------------------------------------------------------------------


class MeasurementTopic:
    """The topic of this run. Call `create`, measure, and always call `delete`. Returned by `measurement_topic`."""

    def __init__(self, client: ClusterClient, options: MeasureOptions, topic_journal: journal.Journal) -> None:
        self._client, self._options, self._journal = client, options, topic_journal
        self._requested = self._created = False

    def create(self) -> ClusterState:
        """Create the topic and return metadata with it. Raises OperationFailed, and the errors of create_topics."""
        new = new_topic(self._options)
        plan = plan_create(self._client, [new])
        self._requested = True
        (row,) = create_topics(self._client, [new], plan, timeout_s=self._options.timeout_s)
        self._created = row.result is ItemResult.CREATED
        if not self._created or row.error:
            raise OperationFailed(f"topic {new.name} cannot be used: {row.error or row.result}")
        return self._client.metadata([new.name])

    def delete(self) -> None:
        """Delete the topic if it exists or may still appear.

        Raises OperationFailed if the topic still exists; the journal file then lets the next run delete it.
        """
        name = self._options.topic
        if self._requested and not self._created:
            self._created = name in wait_for_topics(self._client, [name], timeout_s=_APPEARS_S)
        if self._created:
            _delete(self._client, name, timeout_s=self._options.timeout_s)
        if self._created or not self._requested:  # otherwise the topic may still appear
            self._journal.path.unlink(missing_ok=True)


@contextmanager
def measurement_topic(
    client: ClusterClient, options: MeasureOptions, cluster_id: str | None
) -> Iterator[MeasurementTopic]:
    """Record the topic name in a journal file, and lock the file while the block runs. Raises OperationFailed."""
    with journal.create(folder() / f"{options.topic}{_SUFFIX}") as topic_journal:
        topic_journal.append(_STARTED, topic=options.topic, cluster_id=cluster_id)
        yield MeasurementTopic(client, options, topic_journal)


def _delete(client: ClusterClient, name: str, *, timeout_s: float) -> None:
    topic = client.metadata([name]).topics.get(name)
    if topic is None:
        return
    (row,) = delete_topics(
        client, [DeletedTopic(name, ItemResult.WOULD_DELETE, topic.topic_id, None, None, None)], timeout_s=timeout_s
    )
    if row.result is not ItemResult.DELETED:
        raise OperationFailed(
            f"topic {name} was not deleted: {row.error}",
            hint=f"run `kctl topic delete {name}`; otherwise the next `kctl capacity --measure` deletes it",
        )
