"""The topic that a measurement makes for itself, and what a measurement that was killed has left.

Before the topic is made its name is written into a file of its own (kctl.base.journal), which is held while the
measurement runs and goes when the topic is gone. A file that nobody holds belongs to a run that was killed: its topic
is removed by the next one. Topics of that name without a file here are another machine's, perhaps at work: they are
only told.
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
from kctl.errors import Busy, InvalidFile, KctlError, NotFound, OperationFailed, Refused
from kctl.model import ClusterState
from kctl.topics.create import create_topics, plan_create, wait_for_topics
from kctl.topics.delete import DeletedTopic, delete_topics
from kctl.topics.new_topic import NewTopic

if TYPE_CHECKING:
    from kctl.capacity.measure import MeasureOptions
    from kctl.protocol.client import ClusterClient

PREFIX = "kctl-capacity-"
_SUFFIX = ".jsonl"
_BEGUN = "begun"
_APPEARS_S = 3.0  # for a topic whose creation was interrupted


@dataclass(frozen=True, slots=True)
class Leftovers:
    """topics: left by runs on this machine that are no more, to be removed. others: of the same kind of name, and not
    known here."""

    topics: tuple[str, ...]
    others: tuple[str, ...]


def new_name() -> str:
    """A topic name that nobody has."""
    return PREFIX + secrets.token_hex(4)


def new_topic(options: MeasureOptions) -> NewTopic:
    """The topic as it will be: one partition, as safe as is planned, and never compacted."""
    configs = {"min.insync.replicas": str(options.min_insync_replicas), "cleanup.policy": "delete"}
    return NewTopic(options.topic, 1, options.replication_factor, None, configs)


def check(client: ClusterClient, options: MeasureOptions) -> list[str]:
    """That the controller would make the topic and disks have room; what of it could not be seen, a line each.

    Raises what plan_create raises, Refused when a disk has less than twice the room. Nothing is changed.
    """
    plan_create(client, [new_topic(options)])
    unseen: list[str] = []
    for node, answer in fetch_log_dirs(client, client.metadata(()).brokers, topics={}).items():
        if isinstance(answer, KctlError):
            unseen.append(f"the room on the disks of broker {node} is not known: {answer.message}")
            continue
        for log_dir in answer:
            usable = log_dir.usable_bytes
            if usable is not None and log_dir.error is None and usable < 2 * options.max_bytes:
                raise Refused(
                    f"{log_dir.path} of broker {node} has room for {format_size(usable)}, less than twice the"
                    f" {format_size(options.max_bytes)} that may be written",
                    hint="--max-bytes writes less",
                )
    return unseen


# --- what was left ------------------------------------------------------------------------------------------------


def folder() -> Path:
    """Where the names are kept of topics that measurements make."""
    return state_dir() / "capacity"


def find_leftovers(client: ClusterClient, state: ClusterState) -> Leftovers:
    """Of this cluster. state: metadata with all topics that the user may see."""
    names = [path.name.removesuffix(_SUFFIX) for path in folder().glob(f"{PREFIX}*{_SUFFIX}")]
    unseen = set(names) - state.topics.keys()
    hidden = client.metadata(unseen, keep_errors=True).failed if unseen else {}
    return leftovers(state, hidden)


def leftovers(state: ClusterState, hidden: Collection[str] = ()) -> Leftovers:
    """As find_leftovers. hidden: names that the user may not look at. Files of topics that are gone, go."""
    known: set[str] = set()
    left: list[str] = []
    for path in sorted(folder().glob(f"{PREFIX}*{_SUFFIX}")):
        name = path.name.removesuffix(_SUFFIX)
        known.add(name)
        if journal.held(path):
            continue
        cluster_id = _cluster_of(path)
        if cluster_id is None or (cluster_id == state.cluster_id and name not in state.topics and name not in hidden):
            path.unlink(missing_ok=True)  # it was killed before it made the topic, or somebody has deleted that
        elif cluster_id == state.cluster_id and name in state.topics:
            left.append(name)
    others = sorted(name for name in state.topics if name.startswith(PREFIX) and name not in known)
    return Leftovers(tuple(left), tuple(others))


def _cluster_of(path: Path) -> str | None:
    """The cluster in whose name it is; None when nothing was begun."""
    try:
        entries = journal.read(path)
    except (NotFound, InvalidFile):
        return None
    return next((str(entry.get("cluster_id")) for entry in entries if entry.get("step") == _BEGUN), None)


def remove_leftover(client: ClusterClient, name: str, *, timeout_s: float) -> None:
    """Delete the topic of a run that was killed. Raises OperationFailed when it is not gone; nothing when another run
    does it just now."""
    path = folder() / f"{name}{_SUFFIX}"
    try:
        held = journal.resume(path)
    except (Busy, NotFound):
        return
    with held:
        _remove(client, name, timeout_s=timeout_s)
        path.unlink(missing_ok=True)


# --- the own one --------------------------------------------------------------------------------------------------


class OwnTopic:
    """`make` it, measure, and `remove` it, whatever happened. Made by `own_topic`."""

    def __init__(self, client: ClusterClient, options: MeasureOptions, held: journal.Journal) -> None:
        self._client, self._options, self._held = client, options, held
        self._asked = self._made = False

    def make(self) -> ClusterState:
        """Create the topic; metadata with it. Raises OperationFailed, and what create_topics raises."""
        new = new_topic(self._options)
        plan = plan_create(self._client, [new])
        self._asked = True
        (row,) = create_topics(self._client, [new], plan, timeout_s=self._options.timeout_s)
        self._made = row.result is ItemResult.CREATED
        if not self._made or row.error:
            raise OperationFailed(f"topic {new.name} cannot be used: {row.error or row.result}")
        return self._client.metadata([new.name])

    def remove(self) -> None:
        """Delete it, if it is there or may come to be. Raises OperationFailed when it is not gone: the next run
        finds its name."""
        name = self._options.topic
        if self._asked and not self._made:
            self._made = name in wait_for_topics(self._client, [name], timeout_s=_APPEARS_S)
        if self._made:
            _remove(self._client, name, timeout_s=self._options.timeout_s)
        if self._made or not self._asked:  # else it may come yet
            self._held.path.unlink(missing_ok=True)


@contextmanager
def own_topic(client: ClusterClient, options: MeasureOptions, cluster_id: str | None) -> Iterator[OwnTopic]:
    """Holds the topic's name while the block runs. Raises OperationFailed when it cannot be written down."""
    with journal.create(folder() / f"{options.topic}{_SUFFIX}") as held:
        held.append(_BEGUN, topic=options.topic, cluster_id=cluster_id)
        yield OwnTopic(client, options, held)


def _remove(client: ClusterClient, name: str, *, timeout_s: float) -> None:
    found = client.metadata([name]).topics.get(name)
    if found is None:
        return
    (row,) = delete_topics(
        client, [DeletedTopic(name, ItemResult.WOULD_DELETE, found.topic_id, None, None, None)], timeout_s=timeout_s
    )
    if row.result is not ItemResult.DELETED:
        raise OperationFailed(
            f"topic {name} is not gone: {row.error}",
            hint=f"the next `kctl capacity --measure` removes it, or `kctl topic delete {name}`",
        )
