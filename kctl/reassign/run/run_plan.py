"""The first entry of a run's journal, which lets a run continue without the plan file.

{"step": "begin", "version": 1, "kind": "apply", "source": "plan.json", "digest": "…", "cluster_id": "…",
 "cluster": "prod", "remove_brokers": [4], "throttle_bytes": 50000000, "elect": true, "stall_after_ms": 60000,
 "pid": 4711, "topics": [["orders", "topic id or null"]],
 "partitions": [[topic's position, partition, before, after, size_bytes, log_dirs, log_dirs_before]],
 "batches": [[positions in partitions]]}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kctl.errors import InvalidFile
from kctl.reassign.planner.assignment import Reassignment
from kctl.reassign.planner.batches import receivers_of

VERSION = 1
KINDS = ("apply", "rollback")


@dataclass(frozen=True, slots=True)
class RunPlan:
    """A plan with the original replicas of each partition, and the options of its run.

    kind: "apply" or "rollback". source: the plan file's name, for messages. cluster: the context's name at the start.
    batches: positions in reassignments; partitions in no batch were already at their target. throttle_bytes: per second
    and broker; None: no throttle. stall_after_ms: the time to wait without progress. throttle_left: throttles that the
    previous run could not restore (kctl.reassign.run.throttle as JSON).
    """

    kind: str
    source: str
    digest: str
    cluster_id: str
    cluster: str
    reassignments: tuple[Reassignment, ...]
    batches: tuple[tuple[int, ...], ...]
    remove_brokers: tuple[int, ...] = ()
    throttle_bytes: int | None = None
    elect: bool = True
    stall_after_ms: int = 60_000
    throttle_left: dict[str, Any] | None = None

    def batch(self, number: int) -> list[Reassignment]:
        """Return the partitions of a batch, counted from 0."""
        return [self.reassignments[position] for position in self.batches[number]]

    def rest(self, done: int) -> tuple[int, int]:
        """Return the copies and bytes of the batches after the first `done`."""
        rows = [r for number in range(done, len(self.batches)) for r in self.batch(number)]
        return sum(len(receivers_of(r)) for r in rows), sum(map(copy_bytes, rows))

    def bytes_of(self, number: int) -> int:
        """Return the bytes that a batch copies; unknown sizes count as 0."""
        return sum(copy_bytes(r) for r in self.batch(number))


def copy_bytes(r: Reassignment) -> int:
    """Return the bytes that a partition's move copies; 0 if its size is unknown."""
    return len(receivers_of(r)) * (r.size_bytes or 0)


def begin_entry(plan: RunPlan) -> dict[str, Any]:
    """Return the fields of the entry, without the process id."""
    topics: dict[tuple[str, str | None], int] = {}
    rows = []
    for r in plan.reassignments:
        topic = topics.setdefault((r.topic, r.topic_id), len(topics))
        rows.append([topic, r.partition, r.before, r.after, r.size_bytes, r.log_dirs, r.log_dirs_before])
    return {
        "version": VERSION,
        "kind": plan.kind,
        "source": plan.source,
        "digest": plan.digest,
        "cluster_id": plan.cluster_id,
        "cluster": plan.cluster,
        "remove_brokers": list(plan.remove_brokers),
        "throttle_bytes": plan.throttle_bytes,
        "elect": plan.elect,
        "stall_after_ms": plan.stall_after_ms,
        "throttle_left": plan.throttle_left,
        "topics": [list(topic) for topic in topics],
        "partitions": rows,
        "batches": plan.batches,
    }


def plan_of(entry: Mapping[str, Any]) -> RunPlan:
    """Parse an entry of `begin_entry`. Raises InvalidFile for any other entry."""
    try:
        if entry["version"] != VERSION:
            raise InvalidFile(
                f"it has version {entry['version']!r}, but this kctl reads version {VERSION}",
                hint="continue with the kctl release that started the run",
            )
        topics = [(str(name), _text_or_none(topic_id)) for name, topic_id in entry["topics"]]
        rows = tuple(_reassignment(topics, row) for row in entry["partitions"])
        batches = tuple(tuple(map(int, batch)) for batch in entry["batches"])
        if any(not 0 <= position < len(rows) for batch in batches for position in batch):
            raise ValueError("a batch has an unknown partition")
        throttle = entry["throttle_bytes"]
        if entry["kind"] not in KINDS:
            raise ValueError("kind is neither apply nor rollback")
        return RunPlan(
            kind=str(entry["kind"]),
            source=str(entry["source"]),
            digest=str(entry["digest"]),
            cluster_id=str(entry["cluster_id"]),
            cluster=str(entry["cluster"]),
            reassignments=rows,
            batches=batches,
            remove_brokers=tuple(map(int, entry["remove_brokers"])),
            throttle_bytes=None if throttle is None else int(throttle),
            elect=bool(entry["elect"]),
            stall_after_ms=int(entry["stall_after_ms"]),
            throttle_left=None if entry.get("throttle_left") is None else dict(entry["throttle_left"]),
        )
    except (KeyError, TypeError, ValueError, IndexError) as exc:
        raise InvalidFile(f"its first entry does not start a reassignment ({exc})") from None


def _reassignment(topics: list[tuple[str, str | None]], row: Any) -> Reassignment:
    position, partition, before, after, size, dirs, dirs_before = row
    topic, topic_id = topics[position]
    return Reassignment(
        topic=topic,
        partition=int(partition),
        after=tuple(map(int, after)),
        before=tuple(map(int, before)),
        log_dirs=None if dirs is None else tuple(map(_text_or_none, dirs)),
        log_dirs_before=None if dirs_before is None else tuple(map(_text_or_none, dirs_before)),
        size_bytes=None if size is None else int(size),
        topic_id=topic_id,
    )


def _text_or_none(value: Any) -> str | None:
    return None if value is None else str(value)
