"""The journal of a run: topics and faults, recorded before they are created or injected.

The run itself cleans up; if it was killed, the next run on this machine does. Pure except for the file. Each run has a
journal in kctl's state folder. A run whose journal has no `end` may have left topics or nodes behind.
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
MAX_RUNS = 20  # runs per cluster with stored evidence
PREFIX = "kctl-validate-"  # of the names of test topics


@dataclass
class RunLeftovers:
    """The leftovers of a run.

    nodes: broker id, or name of a ZooKeeper server or controller → the last act on it. brokers: of the cluster at the
    start, because a broker that is down reports no address.
    """

    cluster: str = ""
    evidence: Path | None = None
    topics: list[str] = field(default_factory=list)
    nodes: dict[str, str] = field(default_factory=dict)
    brokers: dict[int, Broker] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.topics or self.nodes)


def leftovers_of(entries: Iterable[Mapping[str, Any]], *, name: str) -> RunLeftovers:
    """Return the leftovers in a journal. name: for messages. Raises InvalidFile if it is not a validation journal."""
    remains = RunLeftovers()
    try:
        for entry in entries:
            _apply(remains, entry)
    except (KeyError, ValueError, TypeError) as exc:
        raise InvalidFile(f"{name} is not a validation journal: {exc}", hint="check the file") from None
    return remains


def _apply(remains: RunLeftovers, entry: Mapping[str, Any]) -> None:
    step = entry["step"]
    if step == BEGIN:
        remains.cluster, remains.evidence = str(entry["cluster"]), Path(str(entry["evidence"]))
        for row in entry.get("brokers", ()):  # older journals have none
            broker = int(row["broker"])
            remains.brokers[broker] = Broker(broker, str(row["host"]), int(row["port"]), row["rack"])
    elif step == TOPIC:
        topic = str(entry["topic"])
        if not topic.startswith(PREFIX):
            raise ValueError(f"{topic} is not a test topic")
        remains.topics.append(topic)
    elif step == DELETED:
        remains.topics = [topic for topic in remains.topics if topic != entry["topic"]]
    elif step == DOWN:
        remains.nodes[str(entry["node"])] = str(entry["act"])
    elif step == UP:
        remains.nodes.pop(str(entry["node"]), None)
    elif step == END:
        remains.topics, remains.nodes = [], {}
    else:
        raise ValueError(f"unknown step {step}")


def folder(cluster_id: str) -> Path:
    """Return the folder of a cluster's journals and evidence."""
    return run_files.folder(_KIND, cluster_id)


def forget_old(cluster_id: str, keep: int = MAX_RUNS) -> None:
    """Remove journals and evidence of all but the newest runs. Unfinished runs are kept. Errors are ignored."""
    for path in run_files.runs(folder(cluster_id))[keep:]:
        if run_files.ended(path, END):
            evidence = read_leftovers(path).evidence
            if evidence is not None and evidence.parent == path.parent:
                shutil.rmtree(evidence, ignore_errors=True)
            path.unlink(missing_ok=True)


def begin(cluster: str, cluster_id: str, run: str, evidence: Path, brokers: Collection[Broker] = ()) -> Journal:
    """Return a new journal, locked during the run. Raises Busy if another run of this cluster is active."""
    rows = [{"broker": each.id, "host": each.host, "port": each.port, "rack": each.rack} for each in brokers]
    path = folder(cluster_id)
    with run_files.one_at_a_time(path):
        refuse_while_active(cluster_id)
        forget_old(cluster_id)
        run_journal = journal.create(path / run_files.new_name(path))
        try:
            run_journal.append(
                BEGIN, cluster=cluster, cluster_id=cluster_id, run=run, evidence=str(evidence), pid=os.getpid(),
                brokers=rows,
            )  # fmt: skip
        except BaseException:
            run_journal.close()
            raise
    return run_journal


def refuse_while_active(cluster_id: str) -> None:
    """Raise Busy if a run of the cluster is active."""
    for path in run_files.runs(folder(cluster_id)):
        if journal.is_locked(path):
            raise Busy(f"another validation of this cluster is running ({path.stem})", hint="wait until it has ended")


def unfinished(cluster_id: str) -> list[Path]:
    """Return the journals of runs that may have left topics or nodes behind, oldest first."""
    return [path for path in reversed(run_files.runs(folder(cluster_id))) if not run_files.ended(path, END)]


def read_leftovers(path: Path) -> RunLeftovers:
    """Read a run's leftovers from its journal. Raises InvalidFile, NotFound."""
    return leftovers_of(journal.read(path), name=str(path))


def brokers_of(cluster_id: str) -> dict[int, Broker]:
    """Return the brokers in journals of unfinished runs; without an address if an older journal lacks it.

    Raises InvalidFile, NotFound.
    """
    brokers: dict[int, Broker] = {}
    for path in unfinished(cluster_id):
        remains = read_leftovers(path)
        down = {int(node): Broker(int(node), "", -1, None) for node in remains.nodes if node.isdigit()}
        brokers |= {**down, **remains.brokers}
    return brokers


def topics_of(cluster_id: str) -> set[str]:
    """Return the topics that runs of this user on this machine created, from readable journals."""
    topics: set[str] = set()
    for path in run_files.runs(folder(cluster_id)):
        with suppress(KctlError):  # a damaged journal is reported where it is needed
            topics |= {str(entry["topic"]) for entry in journal.read(path) if entry["step"] == TOPIC}
    return topics
