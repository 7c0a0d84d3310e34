"""Names in a cluster for shell completion: fetched within half a second or not at all, and cached for seconds.

The cache folder has one file (mode 0600) per cluster, login and kind of name. The file also records failed attempts, so
that kctl does not wait for an unresponsive cluster on every key press. Cached names stay usable for ten minutes if the
cluster does not respond.
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
BUDGET_S = 0.5  # connecting included
MAX_NAMES = 20_000
MAX_BYTES = 4 << 20
MAX_FILES = 64

Fetch = Callable[["ClusterClient"], list[str]]


def topics(client: ClusterClient) -> list[str]:
    """Return all topics that the user may describe."""
    return list(client.metadata(None).topics)


def brokers(client: ClusterClient) -> list[str]:
    """Return the ids of all live brokers."""
    return [str(broker) for broker in sorted(client.metadata(()).brokers)]


def groups(client: ClusterClient) -> list[str]:
    """Return all groups that the user may describe."""
    from kctl.cluster.groups.describe import list_groups

    return list(list_groups(client, pauses_s=()).groups)  # no retries: the user can press TAB again


def topic_settings(client: ClusterClient) -> list[str]:
    """Return the settings of topics, see `_settings`; none if there is no topic to describe."""
    return _settings(client, 2, next(iter(client.metadata(None).topics), None))


def broker_settings(client: ClusterClient) -> list[str]:
    """Return the settings of brokers, see `_settings`."""
    return _settings(client, 4, next(iter(brokers(client)), None))


def group_settings(client: ClusterClient) -> list[str]:
    """Return the settings of groups (Kafka 3.8), see `_settings`. The group need not exist."""
    return _settings(client, 32, "kctl")


# Valid values, because DescribeConfigs does not report them (TopicConfig, LogConfig, GroupConfig).
_VALID_VALUES = {
    "cleanup.policy": ("delete", "compact", "compact,delete"),
    "compression.type": ("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"),
    "message.timestamp.type": ("CreateTime", "LogAppendTime"),
    "share.auto.offset.reset": ("earliest", "latest"),
    "share.isolation.level": ("read_uncommitted", "read_committed"),
}
_BOOLEAN = 1  # ConfigEntry.ConfigType


def _settings(client: ClusterClient, kind: int, name: str | None) -> list[str]:
    """Return KEY=VALUE for each valid value of a key; KEY= if the key accepts any value."""
    from kafka.protocol.admin import DescribeConfigsRequest

    if name is None:
        return []
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=None
    )
    node = int(name) if kind == 4 else None
    response = client.send(DescribeConfigsRequest(resources=[resource]), node_id=node)
    return [
        f"{entry.name}={value}"
        for result in response.results
        if not result.error_code
        for entry in result.configs
        for value in (("true", "false") if entry.config_type == _BOOLEAN else _valid_values(entry.name))
    ]


def _valid_values(key: str) -> tuple[str, ...]:
    # The broker-level default of a topic config is named "log." plus the topic config.
    return _VALID_VALUES.get(key) or _VALID_VALUES.get(key.removeprefix("log.")) or ("",)


def users(client: ClusterClient) -> list[str]:
    """Return SCRAM users."""
    from kctl.access.users import list_users

    return [user.user for user in list_users(client)]


def principals(client: ClusterClient) -> list[str]:
    """Return SCRAM users and principals in ACLs, as far as the user may list them."""
    from kctl.access.acl_syntax import format_principal
    from kctl.access.acls import list_acls

    acl_principals = _unless_refused(lambda: [format_principal(acl.principal) for acl in list_acls(client)])
    return [*_unless_refused(lambda: users(client)), *acl_principals]


def _unless_refused(names: Callable[[], list[str]]) -> list[str]:
    try:
        return names()
    except Refused:
        return []


def _quota_entities(part: str) -> Fetch:
    def fetch(client: ClusterClient) -> list[str]:
        from kctl.access.quotas import DEFAULT, list_quotas

        entity_names = {getattr(entity, part) for entity in list_quotas(client)}
        others = _unless_refused(lambda: users(client)) if part == "user" else []
        return [*(name for name in entity_names if name not in {None, DEFAULT}), *others]

    return fetch


def loggers(client: ClusterClient) -> list[str]:
    """Return the loggers of one broker, which stand for those of all brokers."""
    from kctl.brokers.loggers import fetch_loggers

    broker_ids = [int(broker) for broker in brokers(client)[:1]]
    return [
        name for levels in fetch_loggers(client, broker_ids).values() if isinstance(levels, dict) for name in levels
    ]


def transactional_ids(client: ClusterClient) -> list[str]:
    """Return the transactional ids of all coordinators that respond."""
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
    """Return the sorted names of `kind` (a key of FETCHES) in a cluster; empty if they are not available in time."""
    now = time.time() if now is None else now
    path = _path(kind, target)
    cached = _read(path)
    if cached and 0 <= now - cached["tried"] < FRESH_S:
        return _usable(cached, now)
    try:
        names = _fetch(kind, target)
    except (KctlError, OSError):
        stale = cached or {"at": 0.0, "names": []}
        _write(path, {**stale, "tried": now})
        return _usable(stale, now)
    _write(path, {"at": now, "tried": now, "names": names})
    return names


def _fetch(kind: str, target: Target) -> list[str]:
    from kctl.protocol.client import connect

    if kind not in {"topics", "brokers"}:  # import before the deadline starts: it is slow on a busy machine
        import kafka.protocol.admin  # noqa: F401

    deadline = Deadline(BUDGET_S)
    with connect(target, timeout_s=BUDGET_S) as client, client.ending_by(deadline):
        return sorted(set(FETCHES[kind](client)))[:MAX_NAMES]


def _usable(cached: dict[str, Any], now: float) -> list[str]:
    return cached["names"] if 0 <= now - cached["at"] < USABLE_S else []


def _path(kind: str, target: Target) -> Path:
    """Return the path of the cache file.

    The hash hides the cluster's address and separates logins, which may see different names.
    """
    security = target.security
    certificate = security.ssl_certfile or security.ssl_client_pem
    identity = (target.name, target.bootstrap_servers, security.protocol, security.sasl_username, certificate)
    return paths.cache_dir() / "names" / f"{kind}-{hashlib.sha256(repr(identity).encode()).hexdigest()[:32]}.json"


def _read(path: Path) -> dict[str, Any] | None:
    """Return the contents of a file; None if it is missing, too large or not written by `_write`."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
        cached = json.loads(data) if len(data) <= MAX_BYTES else None
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(cached, dict) or not all(isinstance(cached.get(key), (int, float)) for key in ("at", "tried")):
        return None
    names = cached.get("names")
    return cached if isinstance(names, list) and all(isinstance(name, str) for name in names) else None


def _write(path: Path, cached: dict[str, Any]) -> None:
    """Write the cache file atomically, mode 0600. Failures are ignored."""
    data = json.dumps(cached).encode()
    if len(data) > MAX_BYTES:
        return
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".")
        try:
            with open(handle, "wb") as stream:  # noqa: PTH123 - a descriptor, not a path
                stream.write(data)
            Path(temporary).replace(path)
        except OSError:
            Path(temporary).unlink(missing_ok=True)
            raise
        _delete_oldest(path.parent)


def _delete_oldest(folder: Path) -> None:
    files = sorted(os.scandir(folder), key=lambda entry: entry.stat().st_mtime, reverse=True)
    for entry in files[MAX_FILES:]:
        Path(entry.path).unlink(missing_ok=True)
