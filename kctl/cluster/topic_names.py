"""Which topic names Kafka accepts, and which of them collide.

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
    """What is wrong with `name`, as the end of a sentence; None when Kafka accepts it."""
    if not name:
        return "it is empty"
    if name in {".", ".."}:
        return "'.' and '..' are not allowed"
    if not _LEGAL.fullmatch(name):
        return "only ASCII letters, digits, '.', '_' and '-' are allowed"
    if len(name) > MAX_NAME_LENGTH:
        return f"it has {len(name)} characters, {MAX_NAME_LENGTH} are allowed"
    return None


def check_name(name: str) -> str:
    """`name` itself. Raises UsageError when no broker would accept it."""
    fault = fault_of(name)
    if fault:
        shown = name if len(name) <= 60 else name[:57] + "…"
        pattern = meant_as_pattern(name)
        hint = f"{pattern}; for example orders" if pattern else "for example orders, or billing.orders-v2"
        raise UsageError(f"{shown!r} is not a topic name: {fault}", hint=hint)
    return name


def unified(name: str) -> str:
    """The name under which metrics know the topic: '.' and '_' are one there."""
    return name.replace(".", "_")


def collisions(name: str, existing: Iterable[str]) -> list[str]:
    """Other topics whose names differ from `name` only in '.' and '_'; brokers refuse to create beside them."""
    key = unified(name)
    return sorted(other for other in existing if other != name and unified(other) == key)


def is_internal(name: str) -> bool:
    """Kafka's own topics, which are hidden from lists and never deleted by kctl."""
    return name in INTERNAL_TOPICS
