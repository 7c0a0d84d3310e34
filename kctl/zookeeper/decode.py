"""Decode ZooKeeper nodes that Kafka writes, by their path below the chroot (kafka.zk.ZkData of Kafka 3.9).

Most nodes are JSON with a `version`. SCRAM credentials, delegation tokens and passwords in configs are hidden below any
chroot unless requested: by default, everyone can read ZooKeeper, so kctl must not print secrets by accident.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any, NamedTuple
from urllib.parse import unquote

HIDDEN = "(hidden)"
_SCRAM = re.compile(r"\b(salt|stored_key|server_key)=[^,]*")
_SECRET_CONFIG = re.compile(r"password|secret|jaas\.config|keystore\.key$|certificate\.chain$|certificates$")
# Matches below any chroot: the address may lack the chroot, and an ensemble can hold several clusters.
_SECRET_PATH = re.compile(r"/config/(?:users|brokers)/")
_TOKEN_PATH = re.compile(r"/delegation_token/tokens/")
_ENSEMBLE_PATH = "/zookeeper/config"
_MAX_DEPTH = 100  # nested lists and objects; Kafka's nodes have four levels
_TIMES = frozenset({"timestamp", "expiryTimestamp", "issueTimestamp", "maxTimestamp"})


class Content(NamedTuple):
    """The decoded content of a node.

    value: JSON, a number, text, or None if empty or not UTF-8. hidden: True if secrets were removed.
    """

    value: Any
    hidden: bool = False


# Path below the chroot → description; {0} and {1} are the groups of the pattern.
_DESCRIPTIONS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), text)
    for pattern, text in (
        (r"/brokers", "brokers and topics"),
        (r"/brokers/ids", "brokers with a live session"),
        (r"/brokers/ids/([^/]+)", "broker {0}: deleted when its session ends"),
        (r"/brokers/seqid", "counter for generated broker ids"),
        (r"/brokers/topics", "topics"),
        (r"/brokers/topics/([^/]+)", "topic {0}: replicas of each partition, preferred leader first"),
        (r"/brokers/topics/([^/]+)/partitions", "partitions of topic {0} with a state"),
        (r"/brokers/topics/([^/]+)/partitions/([^/]+)", "partition {0}-{1}"),
        (r"/brokers/topics/([^/]+)/partitions/([^/]+)/state", "partition {0}-{1}: leader and ISR"),
        (r"/controller", "current controller: deleted when its session ends"),
        (r"/controller_epoch", "controller epoch: number of controller elections"),
        (r"/isr_change_notification", "ISR changes that the controller has not processed yet"),
        (r"/isr_change_notification/isr_change_\d+", "partitions whose ISR changed"),
        (r"/log_dir_event_notification", "failed log dirs that the controller has not processed yet"),
        (r"/log_dir_event_notification/log_dir_event_\d+", "a broker with a failed log dir"),
        (r"/admin", "requests to the controller"),
        (r"/admin/delete_topics", "topics being deleted"),
        (r"/admin/delete_topics/([^/]+)", "topic {0} is being deleted"),
        (r"/admin/reassign_partitions", "reassignments requested through ZooKeeper (before KIP-455)"),
        (r"/admin/preferred_replica_election", "preferred leader election requested through ZooKeeper"),
        (r"/config", "dynamic configs"),
        (r"/config/(topics|brokers|users|clients|ips)", "dynamic configs and quotas of {0}"),
        (r"/config/topics/([^/]+)", "configs set on topic {0}"),
        (r"/config/brokers/<default>", "configs set for all brokers"),
        (r"/config/brokers/([^/]+)", "configs set on broker {0}"),
        (r"/config/users/<default>", "default quotas for users"),
        (r"/config/users/([^/]+)", "quotas and SCRAM credentials of user {0}"),
        (r"/config/users/([^/]+)/clients", "quotas of user {0} per client id"),
        (r"/config/users/([^/]+)/clients/([^/]+)", "quotas of user {0} with client id {1}"),
        (r"/config/clients/([^/]+)", "quotas of client id {0}"),
        (r"/config/ips/([^/]+)", "quotas of address {0}"),
        (r"/config/changes", "config change notifications for brokers"),
        (r"/config/changes/config_change_\d+", "a config change notification"),
        (r"/kafka-acl", "ACLs for literal names"),
        (r"/kafka-acl/([^/]+)", "ACLs for resources of type {0}"),
        (r"/kafka-acl/([^/]+)/(.+)", "ACLs for {0} {1}"),
        (r"/kafka-acl-extended", "ACLs for name prefixes"),
        (r"/kafka-acl-extended/prefixed/([^/]+)/(.+)", "ACLs for {0} with name prefix {1}"),
        (r"/kafka-acl-changes", "ACL change notifications for brokers"),
        (r"/kafka-acl-extended-changes", "prefix ACL change notifications for brokers"),
        (r"/cluster/id", "cluster id"),
        (r"/feature", "finalized features"),
        (r"/latest_producer_id_block", "most recently allocated block of producer ids"),
        (r"/consumers", "consumers of Kafka before 0.9"),
        (r"/delegation_token/tokens/([^/]+)", "a delegation token"),
        (r"/migration", "state of the migration to KRaft"),
        (r"/zookeeper", "ZooKeeper's own nodes"),
        (_ENSEMBLE_PATH, "servers of the ensemble"),
        (r"/zookeeper/quota", "ZooKeeper's quotas"),
    )
)  # fmt: skip


def meaning(path: str) -> str | None:
    """Return what Kafka stores at a path below the chroot; None if unknown. Pure."""
    for pattern, text in _DESCRIPTIONS:
        match = pattern.fullmatch(path)
        if match:
            return text.format(*map(unquote, match.groups()))
    return None


def decode(path: str, data: bytes, *, show_secrets: bool = False) -> Content:
    """Decode a node's data. Pure.

    JSON is parsed, with times as ISO 8601. Other UTF-8 data is returned as text. None: empty, or not UTF-8.
    """
    if not data:
        return Content(None)
    if _TOKEN_PATH.search(path) and not show_secrets:
        return Content(HIDDEN, hidden=True)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return Content(None)
    try:
        value = json.loads(text, parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError):
        return _decode_text(path, text, show_secrets)
    if _is_deeper(value, _MAX_DEPTH):
        return _decode_text(path, text, show_secrets)
    hidden = False
    if not show_secrets and _SECRET_PATH.search(path):
        value, hidden = _redact(value)
    return Content(_formatted(value), hidden)


def _is_deeper(value: Any, levels: int) -> bool:
    """Return True if lists and objects are nested more than `levels` deep."""
    level = [value]
    for _ in range(levels + 1):
        level = [
            each
            for holder in level
            if isinstance(holder, (dict, list))
            for each in (holder.values() if isinstance(holder, dict) else holder)
        ]
        if not level:
            return False
    return True


def _finite(text: str) -> float:
    """Parse a finite number. JSON has no infinity and no NaN, but Python's parser accepts them."""
    number = float(text)
    if number - number != 0:
        raise ValueError(text)
    return number


def _decode_text(path: str, text: str, show_secrets: bool) -> Content:
    """Return data that is not JSON. It may still hold a secret."""
    if _SECRET_PATH.search(path) and not show_secrets:
        return Content(HIDDEN, hidden=True)
    if path == _ENSEMBLE_PATH:
        rows = (line.partition("=") for line in text.splitlines())
        return Content({key: value for key, sign, value in rows if sign} or text)
    return Content(text)


def _redact(value: Any) -> tuple[Any, bool]:
    """Return (value without secrets, True if something was removed).

    A value that does not have Kafka's format is hidden as a whole.
    """
    config = value.get("config") if isinstance(value, Mapping) else None
    if not isinstance(config, Mapping):
        return HIDDEN, True
    redacted = {name: _redact_config(name, each) for name, each in config.items()}
    return {**value, "config": redacted}, redacted != config


def _redact_config(name: str, value: Any) -> Any:
    if name.startswith("SCRAM-"):
        return _SCRAM.sub(rf"\1={HIDDEN}", str(value))
    return HIDDEN if _SECRET_CONFIG.search(name) else value


def _formatted(value: Any) -> Any:
    """Format times as ISO 8601, and sort objects whose keys are all numbers."""
    if isinstance(value, list):
        return [_formatted(each) for each in value]
    if isinstance(value, str):
        return _encodable(value)
    if not isinstance(value, dict):
        return value
    names = sorted(value, key=int) if value and all(_is_number(name) for name in value) else list(value)
    return {_encodable(name): _time(value[name]) if name in _TIMES else _formatted(value[name]) for name in names}


def _encodable(text: str) -> str:
    """Escape lone surrogates, which JSON can contain and no encoding can represent."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) < 12


def _time(value: Any) -> Any:
    try:
        timestamp = datetime.fromtimestamp(int(value) / 1000, timezone.utc)
    except (ValueError, TypeError, OverflowError, OSError):
        return value
    return timestamp.isoformat(timespec="milliseconds").replace("+00:00", "Z")
