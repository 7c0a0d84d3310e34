"""Files of committed offsets: our own export (JSON or YAML), plans (JSON), and the CSV of Kafka's own tool.

    group,topic,partition,offset     or, for one group,     topic,partition,offset

A file comes from a person: its size is bounded, and every value is checked before anything is asked of a broker.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kctl.base.input_file import read_input
from kctl.cluster.groups.names import check_group_id
from kctl.cluster.topic_names import check_name
from kctl.errors import InvalidFile, KctlError
from kctl.groups.commit import OffsetToCommit
from kctl.model import TopicPartition

MAX_BYTES = 64 << 20
_MAX_PARTITION, _MAX_OFFSET = 2**31 - 1, 2**63 - 1
_OFFSET_KEYS = ("new_offset", "committed_offset", "offset")  # of plans, exports and lag, of Kafka's tool
_HINT = "`kctl group export -o json` writes such a file; Kafka's tool writes topic,partition,offset"


class FileOffset(NamedTuple):
    """A line of a file. group: None where the file does not say."""

    group: str | None
    tp: TopicPartition
    entry: OffsetToCommit


def read_offsets_file(path: Path) -> list[FileOffset]:
    """What a file says, «-» being stdin. Raises NotFound, and InvalidFile with the place of what is wrong."""
    data, name = read_input(path, max_bytes=MAX_BYTES, hint=_HINT)
    return parse_offsets(data, name)


def parse_offsets(data: bytes, name: str) -> list[FileOffset]:
    """As read_offsets_file, of bytes at hand. name: what errors call it."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise InvalidFile(f"{name}:{data.count(bytes([10]), 0, exc.start) + 1}: not UTF-8 text", hint=_HINT) from None
    seen: dict[tuple[str | None, TopicPartition], str] = {}
    found: list[FileOffset] = []
    for where, row in _rows(text, data, name):
        offset = _offset(where, row)
        key = (offset.group, offset.tp)
        if key in seen:
            raise InvalidFile(f"{where}: {offset.tp} is there twice, first in {seen[key]}", hint="nothing was changed")
        seen[key] = where
        found.append(offset)
    if not found:
        raise InvalidFile(f"{name} has no offsets", hint=_HINT)
    return found


def _rows(text: str, data: bytes, name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The place and the fields of each row."""
    start = text.lstrip()[:2]
    if start[:1] in {"[", "{"}:
        yield from _json_rows(text, name)
    elif start in {"- ", "-\n"} or Path(name).suffix in {".yaml", ".yml"}:
        from kctl.base.strict_yaml import load

        yield from _objects(load(data, source=name, max_bytes=MAX_BYTES), name)
    else:
        yield from _csv_rows(text, name)


def _json_rows(text: str, name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as exc:
        raise InvalidFile(f"{name}: not JSON: {exc}", hint=_HINT) from None
    yield from _objects(value, name)


def _no_constant(text: str) -> object:
    raise ValueError(f"{text} is no number")


def _objects(value: object, name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if not isinstance(value, list):
        raise InvalidFile(f"{name}: not a list of offsets", hint=_HINT)
    for number, row in enumerate(value, 1):
        where = f"{name}: entry {number}"
        if not isinstance(row, dict):
            raise InvalidFile(f"{where} is not an object", hint=_HINT)
        yield where, row


def _csv_rows(text: str, name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    reader = csv.reader(io.StringIO(text), strict=True)
    header: list[str] | None = None
    try:
        for cells in reader:
            where = f"{name}:{reader.line_num}"
            if not any(cell.strip() for cell in cells):
                continue
            if header is None and {"topic", "partition"} <= set(cells):
                header = cells
                continue
            names = header or (["group"] if len(cells) == 4 else []) + ["topic", "partition", "offset"]
            if len(names) != len(cells):
                raise InvalidFile(f"{where}: {len(cells)} columns, not {len(names)}", hint=_HINT)
            yield where, dict(zip(names, cells, strict=True))
    except csv.Error as exc:
        raise InvalidFile(f"{name}:{reader.line_num}: not CSV: {exc}", hint=_HINT) from None


def _offset(where: str, row: Mapping[str, Any]) -> FileOffset:
    group, topic = row.get("group"), row.get("topic")
    key = next((key for key in _OFFSET_KEYS if key in row), None)
    if not isinstance(topic, str) or not (group is None or isinstance(group, str)) or key is None:
        raise InvalidFile(f"{where} has no topic, partition and offset", hint=_HINT)
    metadata = row.get("metadata")
    if not isinstance(metadata, (str, type(None))):
        raise InvalidFile(f"{where}: its metadata is not text")
    try:
        check_name(topic)
        if group is not None:
            check_group_id(group)
        if metadata:
            metadata.encode()
    except (KctlError, UnicodeEncodeError) as exc:
        raise InvalidFile(f"{where}: {getattr(exc, 'message', 'its metadata is not UTF-8 text')}") from None
    partition = _whole(where, "partition", row.get("partition"), _MAX_PARTITION)
    offset = _whole(where, key, row[key], _MAX_OFFSET)
    return FileOffset(group, TopicPartition(topic, partition), OffsetToCommit(offset, metadata or ""))


def _whole(where: str, what: str, value: object, most: int) -> int:
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit() and len(value) <= 20:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise InvalidFile(f"{where}: {what} {value!r} is not a whole number from 0 to {most}", hint=_HINT)
    return value


def by_group(offsets: Iterable[FileOffset], only: str | None = None) -> dict[str, dict[TopicPartition, OffsetToCommit]]:
    """The offsets of each group. only: the group that lines without one are of. Raises InvalidFile without it."""
    found: dict[str, dict[TopicPartition, OffsetToCommit]] = {}
    for group, tp, entry in offsets:
        name = only if group is None else group
        if name is None:
            raise InvalidFile("the file does not say of which group its offsets are", hint="name one group")
        if tp in found.setdefault(name, {}):
            raise InvalidFile(f"the file has two offsets of {tp} for group {name!r}")
        found[name][tp] = entry
    return found
