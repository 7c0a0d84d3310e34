"""A file that says which ACLs and quotas a cluster shall have.

    acls:
      - allow alice read,write topic orders*
      - deny bob all cluster from 10.0.0.1
    quotas:
      - user: alice                  # or client_id, both, or ip; <default> for all without one of their own
        producer_byte_rate: 10MB

Users are not in it: their passwords would be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kctl.access.model import Acl
from kctl.access.quotas import Entity, entity, parse_quota
from kctl.access.words import parse_acls
from kctl.base.input_file import read_input
from kctl.base.strict_yaml import MAX_BYTES, YamlList, YamlMap, load
from kctl.errors import InvalidFile, UsageError

_SECTIONS = ("acls", "quotas")
_PARTS = ("user", "client_id", "ip")


@dataclass(frozen=True)
class AccessFile:
    """None: the file does not speak of them, and they are left alone."""

    acls: list[Acl] | None
    quotas: dict[Entity, dict[str, float]] | None


def read_access_file(path: Path) -> AccessFile:
    """Raises InvalidFile with file and line, NotFound."""
    data, source = read_input(path, max_bytes=MAX_BYTES)
    return parse_access_file(data, source=source)


def parse_access_file(data: bytes | str, *, source: str) -> AccessFile:
    """The same, for text at hand."""
    top = load(data, source=source)
    if not isinstance(top, YamlMap):
        raise InvalidFile(f"{source}: a mapping with acls, quotas or both is wanted")
    _refuse_unknown(top, _SECTIONS)
    if not top:
        raise InvalidFile(f"{source}: neither acls nor quotas are in it")
    acls = _acls(_list(top, "acls")) if "acls" in top else None
    quotas = _quotas(_list(top, "quotas")) if "quotas" in top else None
    return AccessFile(acls, quotas)


def _refuse_unknown(found: YamlMap, known: Iterable[str]) -> None:
    for key in found:
        if key not in known:
            raise InvalidFile(f"{found.where(key)}: {key!r} is unknown", hint=f"one of {', '.join(known)}")


def _list(top: YamlMap, key: str) -> YamlList:
    """An empty section is an empty list only when it says so ([]): with --prune it would remove everything."""
    found = top[key]
    if not isinstance(found, YamlList):
        raise InvalidFile(f"{top.where(key)}: {key} is a list", hint=f"{key}: [] for none")
    return found


def _acls(rows: YamlList) -> list[Acl]:
    found: dict[Acl, None] = {}
    for number, text in enumerate(rows):
        if not isinstance(text, str):
            raise InvalidFile(
                f"{rows.where(number)}: an ACL in words is wanted",
                hint="text with a colon and a space, or a #, is written in quotes",
            )
        try:
            found.update(dict.fromkeys(parse_acls(text)))
        except UsageError as exc:
            raise InvalidFile(f"{rows.where(number)}: {exc.message}", hint=exc.hint, details=exc.details) from None
    return list(found)


def _quotas(rows: YamlList) -> dict[Entity, dict[str, float]]:
    found: dict[Entity, dict[str, float]] = {}
    for number, row in enumerate(rows):
        if not isinstance(row, YamlMap):
            raise InvalidFile(f"{rows.where(number)}: a mapping with user, client_id or ip is wanted")
        who = _who(row)
        if who in found:
            raise InvalidFile(f"{rows.where(number)}: {who} is there twice")
        found[who] = _values(row, who)
    return found


def _who(row: YamlMap) -> Entity:
    names: dict[str, str | None] = dict.fromkeys(_PARTS)
    for part in _PARTS:
        if part in row:
            # A number would lose how it is written: 0123 and 0x7b are other names than 123.
            if not isinstance(row[part], str):
                hint = "put a name of digits in quotes" if isinstance(row[part], (int, float)) else None
                raise InvalidFile(f"{row.where(part)}: {part} is a name", hint=hint)
            names[part] = row[part]
    try:
        return entity(**names)
    except UsageError as exc:
        raise InvalidFile(f"{row.where()}: {exc.message}", hint="user: NAME, client_id: NAME or ip: ADDRESS") from None


def _values(row: Mapping[Any, Any], who: Entity) -> dict[str, float]:
    assert isinstance(row, YamlMap)
    values = {}
    for key, value in row.items():
        if key in _PARTS:
            continue
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise InvalidFile(f"{row.where(key)}: {key} has no value")
        try:
            name, number = parse_quota(f"{key}={value}", who)
        except UsageError as exc:
            raise InvalidFile(f"{row.where(key)}: {exc.message}", hint=exc.hint) from None
        values[name] = number
    if not values:
        raise InvalidFile(f"{row.where()}: {who} has no quota here", hint="leave it out, and use --prune")
    return values
