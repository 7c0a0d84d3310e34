"""What the producer and the consumer of a validation are told, and the file by which they are told it.

The file has the login's secrets: it is 0600 in a folder of this user, and the process removes it when it has read it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kctl.deploy.process import ProcessIdentity, identify
from kctl.errors import InvalidFile, NotFound, OperationFailed, UsageError
from kctl.protocol.security import Security
from kctl.protocol.target import Target
from kctl.validate.workload.records import LEAST_VALUE_BYTES


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """acks: «all», «1» or «0». idempotent: needs «all». resend: without it, repeat what got no answer with five batches
    under way, as producers with retries do. partitions: None for all. per_s: records a second in all partitions
    together, None: as many as brokers take. timeout_s: how long a partition may take nothing before what waits for it
    is given up, as delivery.timeout.ms; brokers may take half of it, 15 s at most, for an answer. Raises UsageError for
    what excludes each other.
    """

    topic: str
    run: str
    acks: str = "all"
    idempotent: bool = True
    resend: bool = False
    compression: str = "none"
    partitions: tuple[int, ...] | None = None
    per_s: float | None = 1000.0
    value_bytes: int = LEAST_VALUE_BYTES
    linger_ms: int = 5
    timeout_s: float = 120.0

    def __post_init__(self) -> None:
        if self.idempotent and (self.acks != "all" or self.resend):
            raise UsageError("idempotence needs acks=all, and repeats by itself")


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    """partitions: None for all. timeout_s: how long a leader may be silent before another one is looked for."""

    topic: str
    run: str
    partitions: tuple[int, ...] | None = None
    timeout_s: float = 5.0


@dataclass(frozen=True, slots=True)
class Task:
    """What a process is to do. parent: when that has gone, so does the process."""

    target: Target
    settings: ProducerSettings | ConsumerSettings
    journal: Path
    parent: ProcessIdentity


def write_task(path: Path, target: Target, settings: ProducerSettings | ConsumerSettings, journal: Path) -> None:
    """Raises OperationFailed when it cannot be written, also when it exists."""
    parent = identify(os.getpid())
    assert parent is not None
    document = {
        "role": _ROLES[type(settings)],
        "target": asdict(target),
        "settings": asdict(settings),
        "journal": str(journal.absolute()),
        "parent": asdict(parent),
    }
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            json.dump(document, file)
    except OSError as exc:
        raise OperationFailed(f"cannot write {path}: {exc.strerror}") from None


def take_task(path: Path) -> Task:
    """Read it and remove it. Raises NotFound, InvalidFile; no error holds what is in it."""
    try:
        text = path.read_text(encoding="utf-8")
        path.unlink()
    except FileNotFoundError:
        raise NotFound(f"there is no {path}: it is made and read once") from None
    except (OSError, UnicodeDecodeError):
        raise InvalidFile(f"{path} cannot be read") from None
    try:
        return _task(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InvalidFile(f"{path} is not what kctl writes for a validation") from None


def _task(document: Mapping[str, Any]) -> Task:
    kind = {role: kind for kind, role in _ROLES.items()}[document["role"]]
    given = dict(document["target"])
    security, zookeeper_security = (Security(**given.pop(name)) for name in ("security", "zookeeper_security"))
    servers = tuple(given.pop("bootstrap_servers"))
    settings = dict(document["settings"])
    if settings["partitions"] is not None:
        settings["partitions"] = tuple(settings["partitions"])
    return Task(
        target=Target(bootstrap_servers=servers, security=security, zookeeper_security=zookeeper_security, **given),
        settings=kind(**settings),
        journal=Path(document["journal"]),
        parent=ProcessIdentity(**document["parent"]),
    )


_ROLES: dict[type[ProducerSettings | ConsumerSettings], str] = {
    ProducerSettings: "producer",
    ConsumerSettings: "consumer",
}
