"""What Kafka keeps in a node of ZooKeeper, by its path below the chroot (kafka.zk.ZkData of Kafka 3.9).

Most nodes are JSON with a `version`. SCRAM credentials, delegation tokens and passwords in configs are hidden unless
somebody asks for them, below whatever chroot: ZooKeeper is readable by everybody by default.
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
# Behind any chroot: an ensemble may be addressed without it, and hold several clusters.
_WITH_SECRETS = re.compile(r"/config/(?:users|brokers)/")
_TOKEN = re.compile(r"/delegation_token/tokens/")
_ENSEMBLE = "/zookeeper/config"
_DEEPEST = 100  # lists and objects within each other; Kafka's nodes have four
_TIMES = frozenset({"timestamp", "expiryTimestamp", "issueTimestamp", "maxTimestamp"})


class Content(NamedTuple):
    """value: JSON, a number, a text, or None for nothing; hidden: whether something of it was left out."""

    value: Any
    hidden: bool = False


# Path below the chroot → what it is; groups are the names in the text.
_KNOWN: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), text)
    for pattern, text in (
        (r"/brokers", "brokers and topics"),
        (r"/brokers/ids", "the brokers that have a session now"),
        (r"/brokers/ids/([^/]+)", "broker {0}: gone when its session ends"),
        (r"/brokers/seqid", "source of generated broker ids"),
        (r"/brokers/topics", "the topics"),
        (r"/brokers/topics/([^/]+)", "topic {0}: replicas of each partition, preferred leader first"),
        (r"/brokers/topics/([^/]+)/partitions", "partitions of topic {0} that have a state"),
        (r"/brokers/topics/([^/]+)/partitions/([^/]+)", "partition {0}-{1}"),
        (r"/brokers/topics/([^/]+)/partitions/([^/]+)/state", "partition {0}-{1}: leader and ISR"),
        (r"/controller", "the controller now: gone when its session ends"),
        (r"/controller_epoch", "how many controllers there have been"),
        (r"/isr_change_notification", "ISR changes that the controller has not seen yet"),
        (r"/isr_change_notification/isr_change_\d+", "partitions whose ISR changed"),
        (r"/log_dir_event_notification", "failed log dirs that the controller has not seen yet"),
        (r"/log_dir_event_notification/log_dir_event_\d+", "a broker with a failed log dir"),
        (r"/admin", "work for the controller"),
        (r"/admin/delete_topics", "topics that are being deleted"),
        (r"/admin/delete_topics/([^/]+)", "topic {0} is being deleted"),
        (r"/admin/reassign_partitions", "reassignments of the old kind (before KIP-455)"),
        (r"/admin/preferred_replica_election", "an election that was asked for through ZooKeeper"),
        (r"/config", "dynamic configs"),
        (r"/config/(topics|brokers|users|clients|ips)", "dynamic configs and quotas of {0}"),
        (r"/config/topics/([^/]+)", "configs set on topic {0}"),
        (r"/config/brokers/<default>", "configs set for all brokers"),
        (r"/config/brokers/([^/]+)", "configs set on broker {0}"),
        (r"/config/users/<default>", "quotas of users without their own"),
        (r"/config/users/([^/]+)", "quotas and SCRAM credentials of user {0}"),
        (r"/config/users/([^/]+)/clients", "quotas of user {0} by client id"),
        (r"/config/users/([^/]+)/clients/([^/]+)", "quotas of user {0} with client id {1}"),
        (r"/config/clients/([^/]+)", "quotas of client id {0}"),
        (r"/config/ips/([^/]+)", "quotas of address {0}"),
        (r"/config/changes", "changes of configs that brokers read"),
        (r"/config/changes/config_change_\d+", "a change of configs"),
        (r"/kafka-acl", "ACLs of whole names"),
        (r"/kafka-acl/([^/]+)", "ACLs of resources of type {0}"),
        (r"/kafka-acl/([^/]+)/(.+)", "ACLs of {0} {1}"),
        (r"/kafka-acl-extended", "ACLs of prefixes"),
        (r"/kafka-acl-extended/prefixed/([^/]+)/(.+)", "ACLs of {0} whose names begin with {1}"),
        (r"/kafka-acl-changes", "changes of ACLs that brokers read"),
        (r"/kafka-acl-extended-changes", "changes of ACLs of prefixes that brokers read"),
        (r"/cluster/id", "the cluster's id"),
        (r"/feature", "finalized features"),
        (r"/latest_producer_id_block", "producer ids that were handed out last"),
        (r"/consumers", "consumers of Kafka before 0.9"),
        (r"/delegation_token/tokens/([^/]+)", "a delegation token"),
        (r"/migration", "state of the migration to KRaft"),
        (r"/zookeeper", "ZooKeeper's own"),
        (_ENSEMBLE, "the servers of the ensemble"),
        (r"/zookeeper/quota", "ZooKeeper's quotas"),
    )
)  # fmt: skip


def meaning(path: str) -> str | None:
    """What Kafka keeps at a path below the chroot; None: nothing that is known. Pure."""
    for pattern, text in _KNOWN:
        match = pattern.fullmatch(path)
        if match:
            return text.format(*map(unquote, match.groups()))
    return None


def decode(path: str, data: bytes, *, show_secrets: bool = False) -> Content:
    """A node's data as a value: JSON where it is JSON, with times as ISO 8601; a number; else text, and None for
    nothing and for what is no UTF-8. Pure.
    """
    if not data:
        return Content(None)
    if _TOKEN.search(path) and not show_secrets:
        return Content(HIDDEN, hidden=True)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return Content(None)
    try:
        value = json.loads(text, parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError):
        return _plain(path, text, show_secrets)
    if _deeper(value, _DEEPEST):
        return _plain(path, text, show_secrets)
    hidden = False
    if not show_secrets and _WITH_SECRETS.search(path):
        value, hidden = _without_secrets(value)
    return Content(_readable(value), hidden)


def _deeper(value: Any, levels: int) -> bool:
    """Whether there are more lists and objects within each other than `levels`."""
    row = [value]
    for _ in range(levels + 1):
        row = [
            each
            for holder in row
            if isinstance(holder, (dict, list))
            for each in (holder.values() if isinstance(holder, dict) else holder)
        ]
        if not row:
            return False
    return True


def _finite(text: str) -> float:
    """JSON has no infinity and no NaN, though Python reads them."""
    number = float(text)
    if number - number != 0:
        raise ValueError(text)
    return number


def _plain(path: str, text: str, show_secrets: bool) -> Content:
    """What is no JSON where there should be some: it may still be a secret."""
    if _WITH_SECRETS.search(path) and not show_secrets:
        return Content(HIDDEN, hidden=True)
    if path == _ENSEMBLE:
        rows = (line.partition("=") for line in text.splitlines())
        return Content({key: value for key, sign, value in rows if sign} or text)
    return Content(text)


def _without_secrets(value: Any) -> tuple[Any, bool]:
    """The value without its secrets; nothing of one that is not made as Kafka makes them."""
    config = value.get("config") if isinstance(value, Mapping) else None
    if not isinstance(config, Mapping):
        return HIDDEN, True
    shown = {name: _config_shown(name, each) for name, each in config.items()}
    return {**value, "config": shown}, shown != config


def _config_shown(name: str, value: Any) -> Any:
    if name.startswith("SCRAM-"):
        return _SCRAM.sub(rf"\1={HIDDEN}", str(value))
    return HIDDEN if _SECRET_CONFIG.search(name) else value


def _readable(value: Any) -> Any:
    """Times as ISO 8601, objects with numbers for names in their order."""
    if isinstance(value, list):
        return [_readable(each) for each in value]
    if isinstance(value, str):
        return _encodable(value)
    if not isinstance(value, dict):
        return value
    names = sorted(value, key=int) if value and all(_is_number(name) for name in value) else list(value)
    return {_encodable(name): _time(value[name]) if name in _TIMES else _readable(value[name]) for name in names}


def _encodable(text: str) -> str:
    """Half of a surrogate pair, which JSON can have as an escape, is in no encoding."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) < 12


def _time(value: Any) -> Any:
    try:
        moment = datetime.fromtimestamp(int(value) / 1000, timezone.utc)
    except (ValueError, TypeError, OverflowError, OSError):
        return value
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
