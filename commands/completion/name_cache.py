"""Names of a cluster for a shell's completion: asked for quickly or not at all, and kept for seconds.

A file per cluster, login and kind of names below the cache folder, 0600. It holds when the cluster was asked last,
also without success: a cluster that does not answer is not waited for at every key. Names that are older are better
than none while it does not answer, for some minutes.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kctl.base import paths
from kctl.base.deadline import Deadline
from kctl.errors import KctlError, Refused

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient
    from kctl.protocol.target import Target

FRESH_S = 10.0
USABLE_S = 600.0
BUDGET_S = 0.5  # for connecting and asking, together
MAX_NAMES = 20_000
MAX_BYTES = 4 << 20
MAX_FILES = 64

Fetch = Callable[["ClusterClient"], list[str]]


def topics(client: ClusterClient) -> list[str]:
    """All that may be described."""
    return list(client.metadata(None).topics)


def brokers(client: ClusterClient) -> list[str]:
    """The registered ids."""
    return [str(broker) for broker in sorted(client.metadata(()).brokers)]


def groups(client: ClusterClient) -> list[str]:
    """All that may be described."""
    from kctl.cluster.groups.describe import list_groups

    return list(list_groups(client, pauses_s=()).groups)  # who presses TAB again asks again


def topic_settings(client: ClusterClient) -> list[str]:
    """What a topic can have, as `_settings` has it; nothing while there is no topic to ask about."""
    return _settings(client, 2, next(iter(client.metadata(None).topics), None))


def broker_settings(client: ClusterClient) -> list[str]:
    """What a broker can have."""
    return _settings(client, 4, next(iter(brokers(client)), None))


def group_settings(client: ClusterClient) -> list[str]:
    """What a group can have (brokers ≥ 3.8): asked of a group that need not be there."""
    return _settings(client, 32, "kctl")


# What Kafka takes for these keys is not told by DescribeConfigs (TopicConfig, LogConfig, GroupConfig).
_FEW = {
    "cleanup.policy": ("delete", "compact", "compact,delete"),
    "compression.type": ("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"),
    "message.timestamp.type": ("CreateTime", "LogAppendTime"),
    "share.auto.offset.reset": ("earliest", "latest"),
    "share.isolation.level": ("read_uncommitted", "read_committed"),
}
_BOOLEAN = 1  # ConfigEntry.ConfigType


def _settings(client: ClusterClient, kind: int, name: str | None) -> list[str]:
    """KEY=VALUE for each value of keys that have few, KEY= of the others."""
    from kafka.protocol.admin import DescribeConfigsRequest

    if name is None:
        return []
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=None
    )
    node = int(name) if kind == 4 else None
    answer = client.send(DescribeConfigsRequest(resources=[resource]), node_id=node)
    return [
        f"{entry.name}={value}"
        for result in answer.results
        if not result.error_code
        for entry in result.configs
        for value in (("true", "false") if entry.config_type == _BOOLEAN else _few(entry.name))
    ]


def _few(key: str) -> tuple[str, ...]:
    # A broker's default for topics has the prefix.
    return _FEW.get(key) or _FEW.get(key.removeprefix("log.")) or ("",)


def users(client: ClusterClient) -> list[str]:
    """Users of SCRAM."""
    from kctl.access.users import list_users

    return [user.user for user in list_users(client)]


def principals(client: ClusterClient) -> list[str]:
    """Users of SCRAM and the principals of ACLs, in words. Whoever may see only one of both gets that."""
    from kctl.access.acl_syntax import format_principal
    from kctl.access.acls import list_acls

    found = _if_told(lambda: [format_principal(acl.principal) for acl in list_acls(client)])
    return [*_if_told(lambda: users(client)), *found]


def _if_told(names: Callable[[], list[str]]) -> list[str]:
    try:
        return names()
    except Refused:
        return []


def _quota_entities(part: str) -> Fetch:
    def fetch(client: ClusterClient) -> list[str]:
        from kctl.access.quotas import DEFAULT, list_quotas

        named = {getattr(entity, part) for entity in list_quotas(client)}
        others = _if_told(lambda: users(client)) if part == "user" else []
        return [*(name for name in named if name not in {None, DEFAULT}), *others]

    return fetch


def loggers(client: ClusterClient) -> list[str]:
    """Of one broker, which all others have too."""
    from kctl.brokers.loggers import fetch_loggers

    one = [int(broker) for broker in brokers(client)[:1]]
    return [name for levels in fetch_loggers(client, one).values() if isinstance(levels, dict) for name in levels]


def transactional_ids(client: ClusterClient) -> list[str]:
    """Of all coordinators that answer."""
    from kctl.transactions.listing import list_transactions

    rows, _ = list_transactions(client)
    return [row.transactional_id for row in rows]


FETCHES: dict[str, Fetch] = {
    "topics": topics,
    "brokers": brokers,
    "groups": groups,
    "topic-settings": topic_settings,
    "broker-settings": broker_settings,
    "group-settings": group_settings,
    "users": users,
    "principals": principals,
    "quota-users": _quota_entities("user"),
    "quota-clients": _quota_entities("client_id"),
    "quota-addresses": _quota_entities("ip"),
    "loggers": loggers,
    "transactional-ids": transactional_ids,
}


def cached_names(kind: str, target: Target, *, now: float | None = None) -> list[str]:
    """The names of `kind` (a key of FETCHES) in a cluster, sorted. Empty when they cannot be had at once."""
    now = time.time() if now is None else now
    path = _path(kind, target)
    kept = _read(path)
    if kept and 0 <= now - kept["tried"] < FRESH_S:
        return _usable(kept, now)
    try:
        names = _fetch(kind, target)
    except (KctlError, OSError):
        old = kept or {"at": 0.0, "names": []}
        _write(path, {**old, "tried": now})
        return _usable(old, now)
    _write(path, {"at": now, "tried": now, "names": names})
    return names


def _fetch(kind: str, target: Target) -> list[str]:
    from kctl.protocol.client import connect

    if kind not in {"topics", "brokers"}:  # the limit is for the cluster: a busy machine needs as long for this alone
        import kafka.protocol.admin  # noqa: F401

    deadline = Deadline(BUDGET_S)
    with connect(target, timeout_s=BUDGET_S) as client, client.ending_by(deadline):
        return sorted(set(FETCHES[kind](client)))[:MAX_NAMES]


def _usable(kept: dict[str, Any], now: float) -> list[str]:
    return kept["names"] if 0 <= now - kept["at"] < USABLE_S else []


def _path(kind: str, target: Target) -> Path:
    """The file's name tells nothing of the cluster. Another login may see other names."""
    security = target.security
    certificate = security.ssl_certfile or security.ssl_client_pem
    whose = (target.name, target.bootstrap_servers, security.protocol, security.sasl_username, certificate)
    return paths.cache_dir() / "names" / f"{kind}-{hashlib.sha256(repr(whose).encode()).hexdigest()[:32]}.json"


def _read(path: Path) -> dict[str, Any] | None:
    """What a file holds; None when it is missing, too large or not what `_write` writes."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
        kept = json.loads(data) if len(data) <= MAX_BYTES else None
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(kept, dict) or not all(isinstance(kept.get(key), (int, float)) for key in ("at", "tried")):
        return None
    names = kept.get("names")
    return kept if isinstance(names, list) and all(isinstance(name, str) for name in names) else None


def _write(path: Path, kept: dict[str, Any]) -> None:
    """Atomically, 0600. What cannot be written is asked for again."""
    data = json.dumps(kept).encode()
    if len(data) > MAX_BYTES:
        return
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".")
        try:
            with open(handle, "wb") as stream:  # noqa: PTH123 - a descriptor, no path
                stream.write(data)
            Path(temporary).replace(path)
        except OSError:
            Path(temporary).unlink(missing_ok=True)
            raise
        _forget_oldest(path.parent)


def _forget_oldest(folder: Path) -> None:
    files = sorted(os.scandir(folder), key=lambda entry: entry.stat().st_mtime, reverse=True)
    for entry in files[MAX_FILES:]:
        Path(entry.path).unlink(missing_ok=True)
