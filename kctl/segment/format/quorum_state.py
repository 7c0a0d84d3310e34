"""Parse quorum-state: the vote and the leader that a KRaft node remembers (FileQuorumStateStore, KIP-595, KIP-853).

One line of JSON with the fields of QuorumStateData. data_version is the version: 0 with static voters, 1 with dynamic
voters (kraft.version 1).
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from kctl.segment.format.release import Release

if TYPE_CHECKING:
    from kctl.segment.format.messages import Field

QUORUM_STATE = "quorum-state"
_VERSION = "data_version"
_MAX_INT = {"int32": 2**31, "int64": 2**63}
_UUID = re.compile(r"[A-Za-z0-9_-]{22}")


class BadQuorumState(ValueError):
    """A file that a node would reject."""


def parse_quorum_state(data: bytes) -> dict[str, Any]:
    """Return the fields by Kafka's names, and data_version. Raises BadQuorumState."""
    from kctl.segment.format.messages import message  # not needed for any other small file

    line = data.split(b"\n", 1)[0]
    if not line.strip():
        raise BadQuorumState("the file is empty")
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        raise BadQuorumState("not JSON") from None
    if not isinstance(values, dict):
        raise BadQuorumState("not a JSON object")
    if _VERSION not in values:
        raise BadQuorumState(f"{_VERSION} is missing")
    definition, version = message("QuorumStateData", Release.KAFKA_4_4), values[_VERSION]
    if not _is_number(version, 2**15) or not definition.versions[0] <= version <= definition.versions[1]:
        raise BadQuorumState(f"unknown {_VERSION} {version!r}")
    _check_fields(definition.fields, values, version)
    return values


def _check_fields(fields: tuple[Field, ...], values: dict[str, Any], version: int) -> None:
    for field in fields:
        if not field.versions[0] <= version <= field.versions[1]:
            continue
        if field.name not in values:
            raise BadQuorumState(f"{field.name} is missing")
        if not _is_valid(field, values[field.name], version):
            raise BadQuorumState(f"{field.name} is {str(values[field.name])[:40]!r}")


def _is_valid(field: Field, value: Any, version: int) -> bool:
    if field.type.startswith("[]"):
        if value is None:
            return field.nullable is not None
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            return False
        for each in value:
            _check_fields(field.fields, each, version)
        return True
    if field.type in _MAX_INT:
        return _is_number(value, _MAX_INT[field.type])
    return isinstance(value, str) and (field.type != "uuid" or _UUID.fullmatch(value) is not None)


def _is_number(value: Any, bound: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -bound <= value < bound
