"""What a run of validations makes and breaks, written down before it does, so that it can be taken back: by the run
itself, and when that was killed by the next one on this machine. Pure but for the journal's file.

One journal for each run in kctl's state folder; a run whose journal has no `end` left something, or may have.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kctl.base import journal, run_files
from kctl.base.journal import Journal
from kctl.errors import Busy, InvalidFile, KctlError
from kctl.model import Broker

_KIND = "validations"
BEGIN, TOPIC, DELETED, DOWN, UP, END = "begin", "topic", "deleted", "down", "up", "end"
KEPT = 20  # runs of a cluster whose evidence is kept
PREFIX = "kctl-validate-"  # of every topic that a validation makes


@dataclass
class Left:
    """What is not taken back yet. nodes: by broker id or name of a ZooKeeper, what was done to it last. brokers: of the
    cluster when it began; one that is down tells nothing any more."""

    cluster: str = ""
    evidence: Path | None = None
    topics: list[str] = field(default_factory=list)
    nodes: dict[str, str] = field(default_factory=dict)
    brokers: dict[int, Broker] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.topics or self.nodes)


def left_by(entries: Iterable[Mapping[str, Any]], *, name: str) -> Left:
    """What a journal adds up to. Raises InvalidFile when it is none of a validation. name: for the message."""
    left = Left()
    try:
        for entry in entries:
            _follow(left, entry)
    except (KeyError, ValueError, TypeError) as exc:
        raise InvalidFile(f"{name} is no journal of a validation: {exc}", hint="look at the file") from None
    return left


def _follow(left: Left, entry: Mapping[str, Any]) -> None:
    step = entry["step"]
    if step == BEGIN:
        left.cluster, left.evidence = str(entry["cluster"]), Path(str(entry["evidence"]))
        for row in entry.get("brokers", ()):  # older journals have none
            broker = int(row["broker"])
            left.brokers[broker] = Broker(broker, str(row["host"]), int(row["port"]), row["rack"])
    elif step == TOPIC:
        topic = str(entry["topic"])
        if not topic.startswith(PREFIX):
            raise ValueError(f"{topic} is no topic of a validation")
        left.topics.append(topic)
    elif step == DELETED:
        left.topics = [topic for topic in left.topics if topic != entry["topic"]]
    elif step == DOWN:
        left.nodes[str(entry["node"])] = str(entry["act"])
    elif step == UP:
        left.nodes.pop(str(entry["node"]), None)
    elif step == END:
        left.topics, left.nodes = [], {}
    else:
        raise ValueError(f"{step} is no step of it")


def folder(cluster_id: str) -> Path:
    """Where the journals and the evidence of a cluster's runs are."""
    return run_files.folder(_KIND, cluster_id)


def forget_old(cluster_id: str, keep: int = KEPT) -> None:
    """Remove the journals and the evidence of all but the newest runs; those that have not ended stay. What cannot be
    removed is left."""
    for path in run_files.runs(folder(cluster_id))[keep:]:
        if run_files.ended(path, END):
            evidence = read_left(path).evidence
            if evidence is not None and evidence.parent == path.parent:
                shutil.rmtree(evidence, ignore_errors=True)
            path.unlink(missing_ok=True)


def begin(cluster: str, cluster_id: str, run: str, evidence: Path, brokers: Collection[Broker] = ()) -> Journal:
    """A new journal, held as long as the run lasts. Raises Busy when another run is at work on this cluster."""
    rows = [{"broker": each.id, "host": each.host, "port": each.port, "rack": each.rack} for each in brokers]
    where = folder(cluster_id)
    with run_files.one_at_a_time(where):
        refuse_while_at_work(cluster_id)
        forget_old(cluster_id)
        held = journal.create(where / run_files.new_name(where))
        try:
            held.append(
                BEGIN, cluster=cluster, cluster_id=cluster_id, run=run, evidence=str(evidence), pid=os.getpid(),
                brokers=rows,
            )  # fmt: skip
        except BaseException:
            held.close()
            raise
    return held


def refuse_while_at_work(cluster_id: str) -> None:
    """Raises Busy."""
    for path in run_files.runs(folder(cluster_id)):
        if journal.is_locked(path):
            raise Busy(f"another kctl validates this cluster ({path.stem})", hint="wait until it has ended")


def unfinished(cluster_id: str) -> list[Path]:
    """The journals of the runs of a cluster that left something, or may have; the oldest first."""
    return [path for path in reversed(run_files.runs(folder(cluster_id))) if not run_files.ended(path, END)]


def read_left(path: Path) -> Left:
    """What one of them left. Raises InvalidFile, NotFound."""
    return left_by(journal.read(path), name=str(path))


def brokers_of(cluster_id: str) -> dict[int, Broker]:
    """Those that unfinished runs began with, and those that are noted as down: without an address when an older journal
    does not tell it. Raises InvalidFile, NotFound."""
    found: dict[int, Broker] = {}
    for path in unfinished(cluster_id):
        left = read_left(path)
        down = {int(node): Broker(int(node), "", -1, None) for node in left.nodes if node.isdigit()}
        found |= {**down, **left.brokers}
    return found


def topics_of(cluster_id: str) -> set[str]:
    """All that runs of this user on this machine have made there, as far as their journals are kept and can be read."""
    found: set[str] = set()
    for path in run_files.runs(folder(cluster_id)):
        with suppress(KctlError):  # a journal that is damaged is told where it is needed
            found |= {str(entry["topic"]) for entry in journal.read(path) if entry["step"] == TOPIC}
    return found
