"""Reading plan files: Kafka's own reassignment JSON, and the keys that kctl adds (kctl.reassign.plan_file.document).

What kafka-reassign-partitions writes and accepts is a plan as well: `version` may be absent, `log_dirs` too, and then
nobody knows what the replicas were (ReassignPartitionsCommand.parsePartitionReassignmentData). A file comes from
outside: nothing in it is believed before it was looked at, and everything that is wrong is named at once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kctl.base.input_file import read_input
from kctl.base.text import printable
from kctl.cluster.kafka_json import load_object, shown
from kctl.cluster.topic_names import fault_of
from kctl.errors import InvalidFile
from kctl.reassign.plan_file.document import ANY
from kctl.reassign.planner.assignment import Reassignment

MAX_BYTES = 512 << 20  # a million partitions take some 300 MB
_MAX_ID = 2**31 - 1
_MAX_PATH = 4096
_SHOWN = 3
_BULKY = frozenset({"partitions", "current", "rollback", "batches", "topics"})


@dataclass(frozen=True, slots=True)
class PlanFile:
    """A plan as it was written.

    reassignments: with `before` where the file says what the replicas were. batches: positions in reassignments, each
    in one batch; None when the file has none. remove_brokers: those that are to hold nothing in the end, none where
    the plan is for some topics only. complete: does the plan reach its goals (True when it does not tell).
    digest: SHA-256 of the file's bytes, in hex. partition_counts: of each topic when the plan was made; empty when
    the file does not tell. warnings, unmet: what the plan said of itself. values: the other keys of the document, not
    validated; kctl.reassign.plan_file.restore reads them.
    """

    reassignments: tuple[Reassignment, ...]
    batches: tuple[tuple[int, ...], ...] | None
    cluster_id: str | None
    remove_brokers: tuple[int, ...]
    complete: bool
    digest: str
    partition_counts: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    unmet: tuple[str, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def has_before(self) -> bool:
        """Whether the file says what all replicas were. Files of Kafka's own tool do not."""
        return all(r.before is not None for r in self.reassignments)


def read_plan(path: Path) -> PlanFile:
    """Return the plan in a file; "-" is stdin. Raises NotFound, InvalidFile."""
    return parse_plan(*read_bytes(path))


def read_bytes(path: Path) -> tuple[bytes, str]:
    """Return the contents of a plan file and its name for messages; "-" is stdin. Raises NotFound, InvalidFile."""
    return read_input(path, max_bytes=MAX_BYTES, hint=_HOW_TO_GET_ONE)


_HOW_TO_GET_ONE = "`kctl topic reassign plan --out FILE` writes one"


def reversed_plan(plan: PlanFile) -> PlanFile:
    """The plan that takes this one back. Raises InvalidFile when it does not say what the replicas were.

    Log dirs go back where the file says in which ones the replicas were; elsewhere the broker chooses. It has no
    batches: what the reverse copies is something else.
    """
    unknown = [r.tp for r in plan.reassignments if r.before is None]
    if unknown:
        raise InvalidFile(
            f"the plan does not say what the replicas of {unknown[0]} were"
            + (f", nor of {len(unknown) - 1} other partitions" if len(unknown) > 1 else ""),
            hint="a plan of `kctl topic reassign plan` does, under `current`; for others write the reverse by hand",
        )
    back = tuple(
        replace(r, before=r.after, after=r.before or (), log_dirs=r.log_dirs_before, log_dirs_before=r.log_dirs)
        for r in plan.reassignments
    )
    return replace(plan, reassignments=back, batches=None, remove_brokers=(), complete=True, warnings=(), unmet=())


# --- parsing ----------------------------------------------------------------------------------------------------------


def parse_plan(data: bytes, name: str) -> PlanFile:
    """The plan in the bytes of a file. name: of the file, for messages.

    Raises InvalidFile; details["problems"] has a line for everything that is wrong, the message the first few.
    """
    document = load_document(data, name)
    problems: list[str] = []
    entries = _Entries("", document.get("partitions"), problems)
    current = _current(document, entries, problems)
    topics = _topics(document.get("topics"), problems)
    batches = _batches(document.get("batches"), len(entries.rows), problems)
    goals = document.get("goals")
    removed = _removed(goals, problems)
    cluster_id, complete = document.get("cluster_id"), document.get("complete", True)
    if not (cluster_id is None or isinstance(cluster_id, str)):
        problems.append(f"cluster_id is {shown(cluster_id)}")
    if not isinstance(complete, bool):
        problems.append(f"complete is {shown(complete)}")
    if problems:
        raise bad_file(name, problems)
    return PlanFile(
        reassignments=tuple(_reassignments(entries, current, topics)),
        batches=batches,
        cluster_id=cluster_id,
        remove_brokers=removed,
        complete=complete,
        digest=hashlib.sha256(data).hexdigest(),
        partition_counts={topic: count for topic, (_, count) in topics.items()},
        warnings=_lines(document.get("warnings")),
        unmet=_lines(document.get("unmet")),
        values={key: value for key, value in document.items() if key not in _BULKY},
    )


def _lines(found: object) -> tuple[str, ...]:
    """What a plan says of itself; files of other tools may have anything under that key."""
    return tuple(line for line in found if isinstance(line, str)) if isinstance(found, list) else ()


def load_document(data: bytes, name: str) -> dict[str, Any]:
    """The JSON object of a plan file, of version 1 and with `partitions`. Raises InvalidFile."""
    hint = _HOW_TO_GET_ONE
    if data.lstrip().startswith(b"Current partition replica assignment"):
        hint = 'keep only the JSON under "Proposed partition reassignment configuration"'
    document = load_object(data, name, keys=None, hint=hint)
    if "partitions" not in document:
        hint = _HOW_TO_GET_ONE
        if isinstance(document.get("brokers"), list):
            raise InvalidFile(
                f"{name} is an export of a cluster, no plan",
                hint="`kctl topic reassign plan --from-file` makes a plan of it",
            )
        if isinstance(document.get("topics"), list):
            hint = "it lists topics to move: `kctl topic reassign plan --topics-file` makes a plan of it"
        raise InvalidFile(f"{name} is no plan: it has no partitions", hint=hint)
    return document


def text_of_file(data: bytes) -> str:
    """Return the JSON of a plan file as text; JSON may be UTF-16 as well."""
    try:
        return data.decode().removesuffix("\n")
    except UnicodeDecodeError:
        return json.dumps(json.loads(data))


def bad_file(name: str, problems: Sequence[str]) -> InvalidFile:
    """The error that names what is wrong in a plan file."""
    more = f"; and {len(problems) - _SHOWN:,} more" if len(problems) > _SHOWN else ""
    count = "1 problem" if len(problems) == 1 else f"{len(problems):,} problems"
    return InvalidFile(
        f"{name} has {count}: {'; '.join(problems[:_SHOWN])}{more}",
        hint="nothing was changed; -o json lists every problem" if more else "nothing was changed; mend the file",
        details={"problems": list(problems)},
    )


@dataclass(frozen=True, slots=True)
class _Row:
    topic: str
    partition: int
    replicas: tuple[int, ...]
    log_dirs: tuple[str | None, ...] | None
    size_bytes: int | None


class _Entries:
    """A list of {topic, partition, replicas, log_dirs}. rows: those that are good; places: their partitions."""

    def __init__(self, where: str, rows: object, problems: list[str]) -> None:
        self.where = where
        self.problems = problems
        self.rows: list[_Row] = []
        self.places: dict[tuple[str, int], int] = {}
        self._faults: dict[str, str | None] = {}
        if not isinstance(rows, list):
            problems.append(f"{where}partitions is no list")
            return
        for number, row in enumerate(rows):
            self._add(number, row)

    def _add(self, number: int, row: object) -> None:
        if not isinstance(row, dict):
            self.problems.append(f"{self.where}entry {number} is no object: {shown(row)}")
            return
        topic: Any = row.get("topic")
        partition: Any = row.get("partition")
        fault = self._name_fault(topic)
        if fault:
            self.problems.append(f"{self.where}entry {number}: topic {shown(topic)}: {fault}")
            return
        if not _is_id(partition):
            self.problems.append(f"{self.where}entry {number}: partition of {topic} is {shown(partition)}")
            return
        name = f"{self.where}{topic}-{partition}"
        replicas: Any = row.get("replicas")
        size = row.get("size_bytes")
        wrong = _replicas_fault(replicas) or self._log_dirs_fault(row, replicas)
        if not wrong and not (size is None or (type(size) is int and size >= 0)):
            wrong = f"size_bytes is {shown(size)}"
        if (topic, partition) in self.places:
            wrong = "it is there twice"
        if wrong:
            self.problems.append(f"{name}: {wrong}")
        self.places[topic, partition] = len(self.rows)
        if not wrong:
            dirs = row.get("log_dirs")
            named = None if dirs is None else tuple([None if path == ANY else path for path in dirs])
            self.rows.append(_Row(topic, partition, tuple(replicas), named if named and any(named) else None, size))

    def _name_fault(self, topic: object) -> str | None:
        if not isinstance(topic, str):
            return "it is no text"
        if topic not in self._faults:
            self._faults[topic] = fault_of(topic)
        return self._faults[topic]

    def _log_dirs_fault(self, row: Mapping[str, Any], replicas: Any) -> str | None:
        if "log_dirs" not in row:
            return None
        dirs = row["log_dirs"]
        if not isinstance(dirs, list):
            return "log_dirs is no list"
        if len(dirs) != len(replicas):
            return f"{len(dirs)} log_dirs for {len(replicas)} replicas"
        for path in dirs:
            if path != ANY and (fault := _path_fault(path)):
                return fault
        return None


def _is_id(value: object) -> bool:
    return type(value) is int and 0 <= value <= _MAX_ID


def _replicas_fault(replicas: object) -> str | None:
    if not isinstance(replicas, list):
        return "it has no list of replicas"
    if not replicas:
        return "its replicas are empty"
    for node in replicas:
        if not _is_id(node):
            return f"{shown(node)} is no broker id"
    if len(set(replicas)) < len(replicas):
        return f"two replicas on one broker: {shown(replicas)}"
    return None


def _path_fault(path: object) -> str | None:
    if not isinstance(path, str) or not path.startswith("/") or "\0" in path or len(path) > _MAX_PATH:
        return f'log dir {shown(path)} is neither an absolute path nor "any"'
    return None


def _current(document: Mapping[str, Any], entries: _Entries, problems: list[str]) -> _Entries | None:
    """What `current` says of the same partitions; None when it is not there."""
    found = document.get("current")
    if found is None:
        return None
    if not isinstance(found, dict):
        problems.append("current is no object")
        return None
    current = _Entries("current: ", found.get("partitions"), problems)
    problems += [
        f"current: {t}-{p}: the plan does not move it" for t, p in current.places if (t, p) not in entries.places
    ]
    problems += [f"{t}-{p}: current does not have it" for t, p in entries.places if (t, p) not in current.places]
    return current


def _topics(found: object, problems: list[str]) -> dict[str, tuple[str | None, int]]:
    """Topic → its id and number of partitions when the plan was made."""
    if found is None:
        return {}
    if not isinstance(found, dict):
        problems.append("topics is no object")
        return {}
    topics: dict[str, tuple[str | None, int]] = {}
    for name, row in found.items():
        topic_id, count = (row.get("topic_id"), row.get("partitions")) if isinstance(row, dict) else (0, 0)
        if not (topic_id is None or isinstance(topic_id, str)) or type(count) is not int or count < 0:
            problems.append(f"topics: {printable(name)[:60]}: {shown(row)}")
            continue
        topics[name] = (topic_id, count)
    return topics


def _batches(found: object, entries: int, problems: list[str]) -> tuple[tuple[int, ...], ...] | None:
    if found is None:
        return None
    if not isinstance(found, list) or not all(isinstance(batch, list) for batch in found):
        problems.append("batches is no list of lists")
        return None
    seen: set[int] = set()
    for number, batch in enumerate(found):
        for position in batch:
            if type(position) is not int or not 0 <= position < entries:
                problems.append(f"batch {number}: there is no entry {shown(position)}")
            elif position in seen:
                problems.append(f"batch {number}: entry {position} is there twice")
            else:
                seen.add(position)
    if len(seen) < entries and not problems:
        problems.append(f"{entries - len(seen)} entries are in no batch")
    return tuple(tuple(batch) for batch in found if batch)


def _removed(goals: object, problems: list[str]) -> tuple[int, ...]:
    """Brokers that are to hold nothing in the end: none where topics were chosen, because they keep the others."""
    found = goals.get("remove_broker", []) if isinstance(goals, dict) else []
    if goals is not None and not isinstance(goals, dict):
        problems.append("goals is no object")
    if not isinstance(found, list) or not all(map(_is_id, found)):
        problems.append(f"goals: remove_broker is {shown(found)}")
        return ()
    # topic_regex: what kctl wrote before --match
    chosen = isinstance(goals, dict) and any(goals.get(key) for key in ("topic", "match", "topic_regex", "topics_file"))
    return () if chosen else tuple(found)


def _reassignments(
    entries: _Entries, current: _Entries | None, topics: Mapping[str, tuple[str | None, int]]
) -> Iterable[Reassignment]:
    nothing = (None, 0)
    for row in entries.rows:
        was = current.rows[current.places[row.topic, row.partition]] if current else None
        yield Reassignment(
            topic=row.topic,
            partition=row.partition,
            after=row.replicas,
            before=was.replicas if was else None,
            log_dirs=row.log_dirs,
            log_dirs_before=was.log_dirs if was else None,
            size_bytes=(was.size_bytes if was else None) if row.size_bytes is None else row.size_bytes,
            topic_id=topics.get(row.topic, nothing)[0],
        )
