"""The settings of the producer and the consumer of a validation, and the file that passes them.

The file contains credentials: its mode is 0600, its folder is private to this user, and the process deletes it after
reading.
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
from kctl.validate.workload.records import MIN_VALUE_BYTES


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """Settings of the producer.

    acks: all, 1 or 0. idempotent: requires all. resend: without idempotence, retry batches that got no response, five
    in flight, like a producer with retries. partitions: None for all. per_s: records per second over all partitions,
    None: unlimited. timeout_s: like delivery.timeout.ms; the request timeout is half of it, at most 15 s. Raises
    UsageError for conflicting settings.
    """

    topic: str
    run: str
    acks: str = "all"
    idempotent: bool = True
    resend: bool = False
    compression: str = "none"
    partitions: tuple[int, ...] | None = None
    per_s: float | None = 1000.0
    value_bytes: int = MIN_VALUE_BYTES
    linger_ms: int = 5
    timeout_s: float = 120.0

    def __post_init__(self) -> None:
        if self.idempotent and (self.acks != "all" or self.resend):
            raise UsageError("idempotence needs acks=all, and excludes resend")


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    """Settings of the consumer.

    partitions: None for all. timeout_s: time without a response until a new leader is looked up.
    """

    topic: str
    run: str
    partitions: tuple[int, ...] | None = None
    timeout_s: float = 5.0


@dataclass(frozen=True, slots=True)
class Task:
    """The task of a process. parent: when it exits, the process exits, too."""

    target: Target
    settings: ProducerSettings | ConsumerSettings
    journal: Path
    parent: ProcessIdentity


def write_task(path: Path, target: Target, settings: ProducerSettings | ConsumerSettings, journal: Path) -> None:
    """Write a task file. Raises OperationFailed if it cannot be written or exists."""
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
    """Read and delete a task file. Raises NotFound, InvalidFile; errors never quote its content."""
    try:
        text = path.read_text(encoding="utf-8")
        path.unlink()
    except FileNotFoundError:
        raise NotFound(f"{path} does not exist; a task file is read only once") from None
    except (OSError, UnicodeDecodeError):
        raise InvalidFile(f"{path} cannot be read") from None
    try:
        return _task(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InvalidFile(f"{path} is not a task file of a validation") from None


def _task(document: Mapping[str, Any]) -> Task:
    kind = {role: kind for kind, role in _ROLES.items()}[document["role"]]
    target = dict(document["target"])
    security, zookeeper_security = (Security(**target.pop(name)) for name in ("security", "zookeeper_security"))
    servers = tuple(target.pop("bootstrap_servers"))
    settings = dict(document["settings"])
    if settings["partitions"] is not None:
        settings["partitions"] = tuple(settings["partitions"])
    return Task(
        target=Target(bootstrap_servers=servers, security=security, zookeeper_security=zookeeper_security, **target),
        settings=kind(**settings),
        journal=Path(document["journal"]),
        parent=ProcessIdentity(**document["parent"]),
    )


_ROLES: dict[type[ProducerSettings | ConsumerSettings], str] = {
    ProducerSettings: "producer",
    ConsumerSettings: "consumer",
}
