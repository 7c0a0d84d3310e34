"""Files of committed offsets: exports of kctl (JSON or YAML), plans (JSON), and the CSV of Kafka's tool.

    group,topic,partition,offset     or, for one group,     topic,partition,offset

Files may be edited by hand: their size is limited, and every value is checked before any broker is contacted.
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
_OFFSET_KEYS = ("new_offset", "committed_offset", "offset")  # in plans; exports and lag; Kafka's tool
_HINT = "use a file from `kctl group export -o json`, or CSV lines topic,partition,offset as in Kafka's tool"


class FileOffset(NamedTuple):
    """An offset in a file. group: None if the file does not name it."""

    group: str | None
    tp: TopicPartition
    entry: OffsetToCommit


def read_offsets_file(path: Path) -> list[FileOffset]:
    """Return the offsets in a file, "-" being stdin.

    Raises NotFound, and InvalidFile with the location of the error.
    """
    data, name = read_input(path, max_bytes=MAX_BYTES, hint=_HINT)
    return parse_offsets(data, name)


def parse_offsets(data: bytes, name: str) -> list[FileOffset]:
    """Parse the contents of a file. name: for messages. Raises InvalidFile."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise InvalidFile(f"{name}:{data.count(bytes([10]), 0, exc.start) + 1}: not UTF-8 text", hint=_HINT) from None
    first_location: dict[tuple[str | None, TopicPartition], str] = {}
    offsets: list[FileOffset] = []
    for location, row in _rows(text, data, name):
        offset = _offset(location, row)
        key = (offset.group, offset.tp)
        if key in first_location:
            message = f"{location}: duplicate {offset.tp}, first in {first_location[key]}"
            raise InvalidFile(message, hint="nothing was changed")
        first_location[key] = location
        offsets.append(offset)
    if not offsets:
        raise InvalidFile(f"{name} has no offsets", hint=_HINT)
    return offsets


def _rows(text: str, data: bytes, name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the location and fields of each row."""
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
    raise ValueError(f"{text} is not a number")


def _objects(value: object, name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if not isinstance(value, list):
        raise InvalidFile(f"{name}: not a list of offsets", hint=_HINT)
    for number, row in enumerate(value, 1):
        location = f"{name}: entry {number}"
        if not isinstance(row, dict):
            raise InvalidFile(f"{location} is not an object", hint=_HINT)
        yield location, row


def _csv_rows(text: str, name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    reader = csv.reader(io.StringIO(text), strict=True)
    header: list[str] | None = None
    try:
        for cells in reader:
            location = f"{name}:{reader.line_num}"
            if not any(cell.strip() for cell in cells):
                continue
            if header is None and {"topic", "partition"} <= set(cells):
                header = cells
                continue
            names = header or (["group"] if len(cells) == 4 else []) + ["topic", "partition", "offset"]
            if len(names) != len(cells):
                raise InvalidFile(f"{location}: {len(cells)} columns instead of {len(names)}", hint=_HINT)
            yield location, dict(zip(names, cells, strict=True))
    except csv.Error as exc:
        raise InvalidFile(f"{name}:{reader.line_num}: not CSV: {exc}", hint=_HINT) from None


def _offset(location: str, row: Mapping[str, Any]) -> FileOffset:
    group, topic = row.get("group"), row.get("topic")
    key = next((key for key in _OFFSET_KEYS if key in row), None)
    if not isinstance(topic, str) or not (group is None or isinstance(group, str)) or key is None:
        raise InvalidFile(f"{location} lacks a topic, a partition or an offset", hint=_HINT)
    metadata = row.get("metadata")
    if not isinstance(metadata, (str, type(None))):
        raise InvalidFile(f"{location}: its metadata is not text")
    try:
        check_name(topic)
        if group is not None:
            check_group_id(group)
        if metadata:
            metadata.encode()
    except (KctlError, UnicodeEncodeError) as exc:
        raise InvalidFile(f"{location}: {getattr(exc, 'message', 'its metadata is not UTF-8 text')}") from None
    partition = _whole(location, "partition", row.get("partition"), _MAX_PARTITION)
    offset = _whole(location, key, row[key], _MAX_OFFSET)
    return FileOffset(group, TopicPartition(topic, partition), OffsetToCommit(offset, metadata or ""))


def _whole(location: str, what: str, value: object, maximum: int) -> int:
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit() and len(value) <= 20:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= maximum:
        raise InvalidFile(f"{location}: {what} {value!r} is not a whole number from 0 to {maximum}", hint=_HINT)
    return value


def by_group(
    offsets: Iterable[FileOffset], default_group: str | None = None
) -> dict[str, dict[TopicPartition, OffsetToCommit]]:
    """Return the offsets of each group. default_group: the group of lines without a group; None: raise InvalidFile."""
    offsets_by_group: dict[str, dict[TopicPartition, OffsetToCommit]] = {}
    for group, tp, entry in offsets:
        name = default_group if group is None else group
        if name is None:
            raise InvalidFile("the file does not name the group of its offsets", hint="name exactly one group")
        if tp in offsets_by_group.setdefault(name, {}):
            raise InvalidFile(f"the file has two offsets for {tp} of group {name!r}")
        offsets_by_group[name][tp] = entry
    return offsets_by_group
