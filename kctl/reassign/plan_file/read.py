"""Read plan files: Kafka's reassignment JSON, and the keys that kctl adds (kctl.reassign.plan_file.document).

Files of kafka-reassign-partitions are accepted as well: `version` and `log_dirs` may be absent, and the original
replicas are unknown (ReassignPartitionsCommand.parsePartitionReassignmentData). A file is untrusted: everything is
validated, and all problems are reported at once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kctl.base.input_file import read_input
from kctl.base.text import counted, printable
from kctl.cluster.kafka_json import load_object, value_text
from kctl.cluster.topic_names import fault_of
from kctl.errors import InvalidFile
from kctl.reassign.plan_file.document import ANY
from kctl.reassign.planner.assignment import Reassignment

MAX_BYTES = 512 << 20  # a million partitions take about 300 MB
_MAX_ID = 2**31 - 1
_MAX_PATH = 4096
_SHOWN = 3
_BULKY = frozenset({"partitions", "current", "rollback", "batches", "topics"})


@dataclass(frozen=True, slots=True)
class PlanFile:
    """A plan as read from a file.

    reassignments: with `before` if the file has the original replicas. batches: positions in reassignments, each in one
    batch; None if the file has none. remove_brokers: brokers that must end up empty; none if the plan is for some
    topics only. complete: the plan reaches its goals (default: True). digest: SHA-256 of the file, in hex.
    partition_counts: of each topic when the plan was made; may be empty. warnings, unmet: of the plan. values: the
    other keys, not validated; see kctl.reassign.plan_file.restore.
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
        """Return True if the file has all original replicas. Files of Kafka's own tool have none."""
        return all(r.before is not None for r in self.reassignments)


def read_plan(path: Path) -> PlanFile:
    """Return the plan in a file; "-" is stdin. Raises NotFound, InvalidFile."""
    return parse_plan(*read_bytes(path))


def read_bytes(path: Path) -> tuple[bytes, str]:
    """Return the contents of a plan file and its name for messages; "-" is stdin. Raises NotFound, InvalidFile."""
    return read_input(path, max_bytes=MAX_BYTES, hint=_WRITE_HINT)


_WRITE_HINT = "write one with `kctl topic reassign plan --out FILE`"


def reversed_plan(plan: PlanFile) -> PlanFile:
    """Return the reverse of a plan. Raises InvalidFile if the file lacks the original replicas.

    Replicas return to the log dirs in the file; the broker chooses a log dir if the file has none. The reverse has no
    batches, because it copies other data.
    """
    unknown = [r.tp for r in plan.reassignments if r.before is None]
    if unknown:
        raise InvalidFile(
            f"the plan does not have the original replicas of {unknown[0]}"
            + (f" and {counted(len(unknown) - 1, 'more partition')}" if len(unknown) > 1 else ""),
            hint="plans of `kctl topic reassign plan` have them; for other files, write the reverse plan by hand",
        )
    reverse = tuple(
        replace(r, before=r.after, after=r.before or (), log_dirs=r.log_dirs_before, log_dirs_before=r.log_dirs)
        for r in plan.reassignments
    )
    return replace(plan, reassignments=reverse, batches=None, remove_brokers=(), complete=True, warnings=(), unmet=())


# --- parsing ----------------------------------------------------------------------------------------------------------


def parse_plan(data: bytes, name: str) -> PlanFile:
    """Parse the contents of a plan file. name: the file's name, for messages.

    Raises InvalidFile; details["problems"] has a line for each problem, the message has the first few.
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
        problems.append(f"cluster_id is {value_text(cluster_id)}")
    if not isinstance(complete, bool):
        problems.append(f"complete is {value_text(complete)}")
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


def _lines(value: object) -> tuple[str, ...]:
    """Return the strings in a key's list; files of other tools may have any value."""
    return tuple(line for line in value if isinstance(line, str)) if isinstance(value, list) else ()


def load_document(data: bytes, name: str) -> dict[str, Any]:
    """Return the JSON object of a plan file, with version 1 and `partitions`. Raises InvalidFile."""
    hint = _WRITE_HINT
    if data.lstrip().startswith(b"Current partition replica assignment"):
        hint = 'keep only the JSON under "Proposed partition reassignment configuration"'
    document = load_object(data, name, keys=None, hint=hint)
    if "partitions" not in document:
        hint = _WRITE_HINT
        if isinstance(document.get("brokers"), list):
            raise InvalidFile(
                f"{name} is an export of a cluster, not a plan",
                hint="make a plan from it with `kctl topic reassign plan --from-file`",
            )
        if isinstance(document.get("topics"), list):
            hint = "it lists topics: make a plan for them with `kctl topic reassign plan --topics-file`"
        raise InvalidFile(f"{name} is not a plan: it has no partitions", hint=hint)
    return document


def text_of_file(data: bytes) -> str:
    """Return the JSON of a plan file as text; JSON may be UTF-16 as well."""
    try:
        return data.decode().removesuffix("\n")
    except UnicodeDecodeError:
        return json.dumps(json.loads(data))


def bad_file(name: str, problems: Sequence[str]) -> InvalidFile:
    """Return the error with the problems of a plan file."""
    more = f"; and {len(problems) - _SHOWN:,} more" if len(problems) > _SHOWN else ""
    count = "1 problem" if len(problems) == 1 else f"{len(problems):,} problems"
    return InvalidFile(
        f"{name} has {count}: {'; '.join(problems[:_SHOWN])}{more}",
        hint="nothing was changed; -o json lists every problem" if more else "nothing was changed; correct the file",
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
    """A list of {topic, partition, replicas, log_dirs}. rows: valid entries; positions: partition → index in rows."""

    def __init__(self, where: str, rows: object, problems: list[str]) -> None:
        self.where = where
        self.problems = problems
        self.rows: list[_Row] = []
        self.positions: dict[tuple[str, int], int] = {}
        self._faults: dict[str, str | None] = {}
        if not isinstance(rows, list):
            problems.append(f"{where}partitions is not a list")
            return
        for number, row in enumerate(rows):
            self._add(number, row)

    def _add(self, number: int, row: object) -> None:
        if not isinstance(row, dict):
            self.problems.append(f"{self.where}entry {number} is not an object: {value_text(row)}")
            return
        topic: Any = row.get("topic")
        partition: Any = row.get("partition")
        fault = self._name_fault(topic)
        if fault:
            self.problems.append(f"{self.where}entry {number}: topic {value_text(topic)}: {fault}")
            return
        if not _is_id(partition):
            self.problems.append(f"{self.where}entry {number}: partition of {topic} is {value_text(partition)}")
            return
        name = f"{self.where}{topic}-{partition}"
        replicas: Any = row.get("replicas")
        size = row.get("size_bytes")
        fault = _replicas_fault(replicas) or self._log_dirs_fault(row, replicas)
        if not fault and not (size is None or (type(size) is int and size >= 0)):
            fault = f"size_bytes is {value_text(size)}"
        if (topic, partition) in self.positions:
            fault = "listed twice"
        if fault:
            self.problems.append(f"{name}: {fault}")
        self.positions[topic, partition] = len(self.rows)
        if not fault:
            dirs = row.get("log_dirs")
            paths = None if dirs is None else tuple([None if path == ANY else path for path in dirs])
            self.rows.append(_Row(topic, partition, tuple(replicas), paths if paths and any(paths) else None, size))

    def _name_fault(self, topic: object) -> str | None:
        if not isinstance(topic, str):
            return "not a string"
        if topic not in self._faults:
            self._faults[topic] = fault_of(topic)
        return self._faults[topic]

    def _log_dirs_fault(self, row: Mapping[str, Any], replicas: Any) -> str | None:
        if "log_dirs" not in row:
            return None
        dirs = row["log_dirs"]
        if not isinstance(dirs, list):
            return "log_dirs is not a list"
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
        return "its list of replicas is empty"
    for node in replicas:
        if not _is_id(node):
            return f"{value_text(node)} is not a broker id"
    if len(set(replicas)) < len(replicas):
        return f"two replicas on one broker: {value_text(replicas)}"
    return None


def _path_fault(path: object) -> str | None:
    if not isinstance(path, str) or not path.startswith("/") or "\0" in path or len(path) > _MAX_PATH:
        return f'log dir {value_text(path)} is neither an absolute path nor "any"'
    return None


def _current(document: Mapping[str, Any], entries: _Entries, problems: list[str]) -> _Entries | None:
    """Return the original replicas of the same partitions; None if the file has none."""
    value = document.get("current")
    if value is None:
        return None
    if not isinstance(value, dict):
        problems.append("current is not an object")
        return None
    current = _Entries("current: ", value.get("partitions"), problems)
    problems += [
        f"current: {t}-{p}: not in partitions" for t, p in current.positions if (t, p) not in entries.positions
    ]
    problems += [f"{t}-{p}: not in current" for t, p in entries.positions if (t, p) not in current.positions]
    return current


def _topics(value: object, problems: list[str]) -> dict[str, tuple[str | None, int]]:
    """Return topic → its id and number of partitions when the plan was made."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        problems.append("topics is not an object")
        return {}
    topics: dict[str, tuple[str | None, int]] = {}
    for name, row in value.items():
        topic_id, count = (row.get("topic_id"), row.get("partitions")) if isinstance(row, dict) else (0, 0)
        if not (topic_id is None or isinstance(topic_id, str)) or type(count) is not int or count < 0:
            problems.append(f"topics: {printable(name)[:60]}: {value_text(row)}")
            continue
        topics[name] = (topic_id, count)
    return topics


def _batches(value: object, entries: int, problems: list[str]) -> tuple[tuple[int, ...], ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(batch, list) for batch in value):
        problems.append("batches is not a list of lists")
        return None
    positions: set[int] = set()
    for number, batch in enumerate(value):
        for position in batch:
            if type(position) is not int or not 0 <= position < entries:
                problems.append(f"batch {number}: no entry {value_text(position)}")
            elif position in positions:
                problems.append(f"batch {number}: entry {position} is listed twice")
            else:
                positions.add(position)
    if len(positions) < entries and not problems:
        problems.append(f"{entries - len(positions)} entries are in no batch")
    return tuple(tuple(batch) for batch in value if batch)


def _removed(goals: object, problems: list[str]) -> tuple[int, ...]:
    """Return the brokers that must end up empty; none if the plan selects topics, because other topics stay."""
    value = goals.get("remove_broker", []) if isinstance(goals, dict) else []
    if goals is not None and not isinstance(goals, dict):
        problems.append("goals is not an object")
    if not isinstance(value, list) or not all(map(_is_id, value)):
        problems.append(f"goals: remove_broker is {value_text(value)}")
        return ()
    # topic_regex: the key before --match
    selected = isinstance(goals, dict) and any(
        goals.get(key) for key in ("topic", "match", "topic_regex", "topics_file")
    )
    return () if selected else tuple(value)


def _reassignments(
    entries: _Entries, current: _Entries | None, topics: Mapping[str, tuple[str | None, int]]
) -> Iterable[Reassignment]:
    no_topic = (None, 0)
    for row in entries.rows:
        original = current.rows[current.positions[row.topic, row.partition]] if current else None
        yield Reassignment(
            topic=row.topic,
            partition=row.partition,
            after=row.replicas,
            before=original.replicas if original else None,
            log_dirs=row.log_dirs,
            log_dirs_before=original.log_dirs if original else None,
            size_bytes=(original.size_bytes if original else None) if row.size_bytes is None else row.size_bytes,
            topic_id=topics.get(row.topic, no_topic)[0],
        )
