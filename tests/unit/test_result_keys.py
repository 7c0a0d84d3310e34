"""One name for one thing: the keys of all results mean the same and have the same shape in each command.

docs/architecture.md has the vocabulary. What commands can emit is found by reading their imports: each dataclass of
the library that a module of commands/ names, and those that its fields name. JSON is made of dataclasses by their
field names (commands/output.py).
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]

# key → what its type has to look like, without «| None»
_NUMBER, _TEXT, _TRUTH = r"int", r"str", r"bool"
_LIST = r"(list|tuple|Sequence)\[.*\]"
_MAP = r"(dict|Mapping)\[str, .*\]"
VOCABULARY = {
    "topic": _TEXT, "group": _TEXT, "log_dir": _TEXT, "state": r"str|State|Literal\[.*\]",
    "partition": _NUMBER, "broker": _NUMBER, "node_id": _NUMBER, "controller_id": _NUMBER, "coordinator": _NUMBER,
    "leader": _NUMBER, "preferred_leader": _NUMBER, "leaders": _NUMBER,
    "topics": _LIST, "partitions": _LIST, "topic_partitions": _LIST, "replicas": _LIST, "isr": _LIST, "members": _LIST,
    "brokers": _LIST, "groups": _LIST, "log_dirs": _LIST, "processes": _LIST, "config_entries": _LIST,
    "config_changes": _LIST,
    "configs": _MAP,
    "is_controller": _TRUTH, "is_leader": _TRUTH, "is_future": _TRUTH,
}  # fmt: skip
# Other names of the same: topic, group, broker (or node_id), state.
NEVER = {"id", "topic_name", "group_id", "group_name", "broker_id", "node", "controller", "transaction_state"}
