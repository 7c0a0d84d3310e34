"""Valid topic names, and names that collide.

Source: org.apache.kafka.common.internals.Topic (validate, hasCollision, isInternal), Kafka 3.9.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from kctl.base.name_patterns import meant_as_pattern
from kctl.errors import UsageError

MAX_NAME_LENGTH = 249
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"})

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+", re.ASCII)


def fault_of(name: str) -> str | None:
    """Return why `name` is invalid, as the end of a sentence; None if Kafka accepts it."""
    if not name:
        return "it is empty"
    if name in {".", ".."}:
        return "'.' and '..' are not allowed"
    if not _LEGAL.fullmatch(name):
        return "only ASCII letters, digits, '.', '_' and '-' are allowed"
    if len(name) > MAX_NAME_LENGTH:
        return f"it has {len(name)} characters; the maximum is {MAX_NAME_LENGTH}"
    return None


def check_name(name: str) -> str:
    """Return `name`. Raises UsageError if Kafka does not accept it."""
    fault = fault_of(name)
    if fault:
        short_name = name if len(name) <= 60 else name[:57] + "…"
        pattern = meant_as_pattern(name)
        hint = f"{pattern}; a topic name is e.g. orders" if pattern else "valid names: orders, billing.orders-v2"
        raise UsageError(f"{short_name!r} is not a topic name: {fault}", hint=hint)
    return name


def unified(name: str) -> str:
    """Return the topic's name in metrics, where '.' and '_' are the same."""
    return name.replace(".", "_")


def collisions(name: str, existing: Iterable[str]) -> list[str]:
    """Return other topics whose names differ from `name` only in '.' and '_'; Kafka rejects such a name."""
    key = unified(name)
    return sorted(other for other in existing if other != name and unified(other) == key)


def is_internal(name: str) -> bool:
    """Return True for an internal topic; kctl hides internal topics in lists and never deletes them."""
    return name in INTERNAL_TOPICS
