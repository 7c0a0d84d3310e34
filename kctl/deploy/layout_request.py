"""The options for a new cluster: their checks, and the cluster that they describe. Pure, except for random ids."""

from __future__ import annotations

import base64
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kctl.deploy.layout import (
    DEFAULT_CHROOT,
    DEFAULT_HEAP,
    KRAFT_LAYOUTS,
    LAYOUTS,
    BrokerNode,
    ClusterSpec,
    ControllerNode,
    ZooKeeperNode,
    check_chroot,
    check_directory,
    check_name,
    heap_bytes,
)
from kctl.deploy.runtime.runtime import DEFAULT_VERSION, KRAFT_VERSION
from kctl.errors import UsageError

MAX_BROKERS = 50
MAX_COMBINED = 9  # each node votes; larger quorums only slow the metadata log down
MAX_LOG_DIRS = 20
CONTROLLER_COUNTS = (1, 3, 5)
FIRST_CONTROLLER_ID = 101  # brokers and controllers share one range of node ids
_SEPARATE_HINT = "--layout kraft-separate has dedicated controllers"
_RACK = re.compile(r"[A-Za-z0-9._-]{1,63}")


@dataclass(frozen=True, slots=True)
class LayoutRequest:
    """The user's options for a new cluster. None: the layout's default."""

    name: str
    layout: str
    brokers: int | None = None
    controllers: int | None = None
    chroot: str = DEFAULT_CHROOT
    rack: str | None = None
    log_dirs: int = 1
    heap: str = DEFAULT_HEAP
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)


def check_request(request: LayoutRequest) -> None:
    """Raise UsageError for the first invalid option."""
    check_name(request.name)
    broker_count(request.layout, request.brokers)
    controller_count(request.layout, request.controllers)
    check_chroot(request.chroot)
    if request.layout in KRAFT_LAYOUTS and request.chroot != DEFAULT_CHROOT:
        raise UsageError(f"--chroot is a path in ZooKeeper, which layout {request.layout} does not use")
    racks(request.rack, broker_count(request.layout, request.brokers))
    heap_bytes(request.heap)
    if not 1 <= request.log_dirs <= MAX_LOG_DIRS:
        raise UsageError(f"--log-dirs {request.log_dirs} is not between 1 and {MAX_LOG_DIRS}")


def broker_count(layout: str, brokers: int | None) -> int:
    """Return the number of brokers of `layout`. Raises UsageError."""
    if layout not in LAYOUTS:
        raise UsageError(f"there is no layout {layout!r}", hint=f"choose one of {', '.join(LAYOUTS)}")
    fixed = {"single": 1, "three-node": 3, "kraft-single": 1}.get(layout)
    if fixed is not None and brokers not in {None, fixed}:
        variable = "kraft-combined" if layout in KRAFT_LAYOUTS else "pseudo-distributed"
        raise UsageError(
            f"layout {layout} has {fixed} broker{'s' if fixed > 1 else ''}, not {brokers}",
            hint=f"--layout {variable} takes any number with --brokers",
        )
    count = fixed or (3 if brokers is None else brokers)
    most = MAX_COMBINED if layout == "kraft-combined" else MAX_BROKERS
    if not 1 <= count <= most:
        hint = f"--layout kraft-separate takes up to {MAX_BROKERS}" if most == MAX_COMBINED else None
        raise UsageError(f"--brokers {count} is not between 1 and {most}", hint=hint)
    return count


def controller_count(layout: str, controllers: int | None) -> int:
    """Return the number of dedicated controllers of `layout`. Raises UsageError."""
    if layout != "kraft-separate":
        if controllers is not None:
            raise UsageError(f"--controllers: layout {layout} has no dedicated controllers", hint=_SEPARATE_HINT)
        return 0
    count = 3 if controllers is None else controllers
    if count not in CONTROLLER_COUNTS:
        raise UsageError(f"--controllers {count} is not 1, 3 or 5")
    return count


def racks(rack: str | None, brokers: int) -> tuple[str | None, ...]:
    """Return a rack for each broker: r1, r2, … for "auto"; a list is assigned round-robin. Raises UsageError."""
    if rack is None:
        return (None,) * brokers
    names: Sequence[str] = [f"r{n}" for n in range(1, brokers + 1)] if rack == "auto" else rack.split(",")
    for name in names:
        if not _RACK.fullmatch(name):
            raise UsageError(f"--rack: {name!r} is not a valid rack name", hint="e.g. r1,r2,r3, or auto")
    if len(names) > brokers:
        raise UsageError(f"--rack has {len(names)} racks for {brokers} broker{'s' if brokers > 1 else ''}")
    return tuple(names[n % len(names)] for n in range(brokers))


def default_version(layout: str) -> str:
    """Return the Kafka version of a new cluster with this layout."""
    return KRAFT_VERSION if layout in KRAFT_LAYOUTS else DEFAULT_VERSION


def port_count(request: LayoutRequest) -> int:
    """Return the number of consecutive ports that the cluster needs."""
    brokers = broker_count(request.layout, request.brokers)
    controllers = controller_count(request.layout, request.controllers)
    if request.layout in KRAFT_LAYOUTS:
        return brokers + (controllers or brokers)
    return brokers + (9 if request.layout == "three-node" else 1)


def build_spec(
    request: LayoutRequest,
    *,
    directory: Path,
    base_port: int,
    kafka_version: str,
    kafka_libs: Path,
    created_at: str,
) -> ClusterSpec:
    """Return the cluster that a valid request describes. With KRaft, it has new cluster and directory ids."""
    count = broker_count(request.layout, request.brokers)
    kraft = request.layout in KRAFT_LAYOUTS
    controllers = controller_count(request.layout, request.controllers)
    next_port = base_port + count
    return ClusterSpec(
        name=request.name,
        layout=request.layout,
        directory=check_directory(directory),
        created_at=created_at,
        kafka_version=kafka_version,
        kafka_libs=kafka_libs,
        zookeepers=() if kraft else _zookeepers(request.layout, next_port),
        brokers=_brokers(request, base_port, combined=kraft and not controllers),
        chroot="" if kraft else check_chroot(request.chroot),
        heap=request.heap,
        log_dirs=request.log_dirs,
        settings=dict(request.settings),
        controllers=tuple(
            ControllerNode(FIRST_CONTROLLER_ID + n, next_port + n, new_kafka_uuid()) for n in range(controllers)
        ),
        cluster_id=new_kafka_uuid() if kraft else None,
    )


def _brokers(request: LayoutRequest, base_port: int, *, combined: bool) -> tuple[BrokerNode, ...]:
    count = broker_count(request.layout, request.brokers)
    return tuple(
        BrokerNode(n, base_port + n - 1, rack, base_port + count + n - 1, new_kafka_uuid())
        if combined
        else BrokerNode(n, base_port + n - 1, rack)
        for n, rack in enumerate(racks(request.rack, count), start=1)
    )


def _zookeepers(layout: str, base: int) -> tuple[ZooKeeperNode, ...]:
    if layout != "three-node":
        return (ZooKeeperNode(id=1, port=base),)
    return tuple(ZooKeeperNode(n, base + n - 1, base + n + 2, base + n + 5) for n in (1, 2, 3))


def new_kafka_uuid() -> str:
    """Return a random id like org.apache.kafka.common.Uuid.randomUuid(): base64url, not starting with a hyphen."""
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return text
