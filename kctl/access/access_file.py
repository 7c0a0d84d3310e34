"""The access file: the ACLs and quotas that a cluster should have.

    acls:
      - allow alice read,write topic orders*
      - deny bob all cluster from 10.0.0.1
    quotas:
      - user: alice                  # or client_id, both, or ip; <default>: all without their own quota
        producer_byte_rate: 10MB

Users are not part of it, because it would have to contain their passwords.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kctl.access.acl_syntax import parse_acls
from kctl.access.model import Acl
from kctl.access.quotas import QuotaEntity, parse_quota, selected_entity
from kctl.base.input_file import read_input
from kctl.base.strict_yaml import MAX_BYTES, YamlList, YamlMap, load
from kctl.errors import InvalidFile, UsageError

_SECTIONS = ("acls", "quotas")
_PARTS = ("user", "client_id", "ip")


@dataclass(frozen=True)
class AccessFile:
    """The ACLs and quotas of a file. None: the section is missing, and the cluster's are left alone."""

    acls: list[Acl] | None
    quotas: dict[QuotaEntity, dict[str, float]] | None


def read_access_file(path: Path) -> AccessFile:
    """Read an access file. Raises InvalidFile with file and line, NotFound."""
    data, source = read_input(path, max_bytes=MAX_BYTES)
    return parse_access_file(data, source=source)


def parse_access_file(data: bytes | str, *, source: str) -> AccessFile:
    """Parse the text of an access file; `source` is named in errors."""
    top = load(data, source=source)
    if not isinstance(top, YamlMap):
        raise InvalidFile(f"{source}: expected a mapping with acls, quotas or both")
    _refuse_unknown(top, _SECTIONS)
    if not top:
        raise InvalidFile(f"{source}: the file has neither acls nor quotas")
    acls = _acls(_list(top, "acls")) if "acls" in top else None
    quotas = _quotas(_list(top, "quotas")) if "quotas" in top else None
    return AccessFile(acls, quotas)


def _refuse_unknown(mapping: YamlMap, allowed: Iterable[str]) -> None:
    for key in mapping:
        if key not in allowed:
            raise InvalidFile(
                f"{mapping.where(key)}: {key!r} is not a valid key", hint=f"use one of {', '.join(allowed)}"
            )


def _list(top: YamlMap, key: str) -> YamlList:
    """Return a section. An empty one must be explicit ([]), because with --prune it removes everything."""
    rows = top[key]
    if not isinstance(rows, YamlList):
        raise InvalidFile(f"{top.where(key)}: {key} is not a list", hint=f"write {key}: [] for an empty list")
    return rows


def _acls(rows: YamlList) -> list[Acl]:
    acls: dict[Acl, None] = {}
    for number, text in enumerate(rows):
        if not isinstance(text, str):
            raise InvalidFile(
                f"{rows.where(number)}: expected an ACL as text",
                hint="quote text that contains a # or a colon and a space",
            )
        try:
            acls.update(dict.fromkeys(parse_acls(text)))
        except UsageError as exc:
            raise InvalidFile(f"{rows.where(number)}: {exc.message}", hint=exc.hint, details=exc.details) from None
    return list(acls)


def _quotas(rows: YamlList) -> dict[QuotaEntity, dict[str, float]]:
    quotas: dict[QuotaEntity, dict[str, float]] = {}
    for number, row in enumerate(rows):
        if not isinstance(row, YamlMap):
            raise InvalidFile(f"{rows.where(number)}: expected a mapping with user, client_id or ip")
        entity = _entity(row)
        if entity in quotas:
            raise InvalidFile(f"{rows.where(number)}: {entity} is listed twice")
        quotas[entity] = _values(row, entity)
    return quotas


def _entity(row: YamlMap) -> QuotaEntity:
    names: dict[str, str | None] = dict.fromkeys(_PARTS)
    for part in _PARTS:
        if part in row:
            # YAML parses a name like 0123 or 0x7b as a number, which would change the name.
            if not isinstance(row[part], str):
                hint = "quote a name that consists of digits" if isinstance(row[part], (int, float)) else None
                raise InvalidFile(f"{row.where(part)}: {part} must be a string", hint=hint)
            names[part] = row[part]
    try:
        return selected_entity(**names)
    except UsageError as exc:
        raise InvalidFile(
            f"{row.where()}: {exc.message}", hint="use user: NAME, client_id: NAME or ip: ADDRESS"
        ) from None


def _values(row: Mapping[Any, Any], entity: QuotaEntity) -> dict[str, float]:
    assert isinstance(row, YamlMap)
    values = {}
    for key, value in row.items():
        if key in _PARTS:
            continue
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise InvalidFile(f"{row.where(key)}: {key} has no value")
        try:
            name, number = parse_quota(f"{key}={value}", entity)
        except UsageError as exc:
            raise InvalidFile(f"{row.where(key)}: {exc.message}", hint=exc.hint) from None
        values[name] = number
    if not values:
        raise InvalidFile(f"{row.where()}: {entity} has no quotas", hint="remove the entry, and use --prune")
    return values
