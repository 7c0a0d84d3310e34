"""Parse the small text files of log dirs and partition folders.

*-offset-checkpoint       version 0, a count, then "topic partition offset" (OffsetCheckpointFile)
leader-epoch-checkpoint   version 0, a count, then "epoch startOffset" (LeaderEpochCheckpointFile)
meta.properties           Java properties: cluster and broker of the log dir (MetaProperties)
partition.metadata        "version: 0" and "topic_id: …" (PartitionMetadataFile, KIP-516)
quorum-state              a line of JSON: see kctl.segment.format.quorum_state
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

from kctl.segment.format.quorum_state import QUORUM_STATE, BadQuorumState, parse_quorum_state
from kctl.segment.log.partition import LEADER_EPOCHS, PARTITION_METADATA

OFFSET_CHECKPOINTS = (
    "replication-offset-checkpoint",
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint",
)
META_PROPERTIES = "meta.properties"
NAMES = (*OFFSET_CHECKPOINTS, LEADER_EPOCHS, META_PROPERTIES, PARTITION_METADATA, QUORUM_STATE)
_WHITESPACE = re.compile(r"\s+")
_MAX_LINES = 10_000_000


class BadCheckpoint(ValueError):
    """A checkpoint that a broker would reject: line (from 1) and reason."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")
        self.line = line


@dataclass(frozen=True, slots=True)
class CheckpointOffsetRow:
    """A line of an offset checkpoint."""

    kind: str = field(default="checkpoint_offset", init=False)
    file: str
    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class EpochRow:
    """A line of leader-epoch-checkpoint. start_offset: the first offset of the epoch."""

    kind: str = field(default="leader_epoch", init=False)
    file: str
    epoch: int
    start_offset: int


@dataclass(frozen=True, slots=True)
class SettingRow:
    """A line of meta.properties or partition.metadata, or a field of quorum-state."""

    kind: str = field(default="setting", init=False)
    file: str
    key: str
    value: str


CheckpointRow = CheckpointOffsetRow | EpochRow | SettingRow


def is_checkpoint(path: Path) -> bool:
    """Return True if the file is one of these, by its name."""
    return path.name in NAMES


def read_checkpoint(path: Path, data: bytes) -> list[CheckpointRow]:
    """Return the rows of a file, by its name. Raises BadCheckpoint."""
    name, file = path.name, str(path)
    if name == LEADER_EPOCHS:
        return [EpochRow(file, epoch, start) for epoch, start in parse_leader_epochs(data)]
    if name in OFFSET_CHECKPOINTS:
        return [CheckpointOffsetRow(file, *row) for row in parse_offsets(data)]
    if name == QUORUM_STATE:
        return [SettingRow(file, key, value) for key, value in _quorum_settings(data)]
    separator = "=" if name == META_PROPERTIES else ":"
    return [SettingRow(file, key, value) for key, value in parse_settings(data, separator).items()]


def _quorum_settings(data: bytes) -> list[tuple[str, str]]:
    try:
        values = parse_quorum_state(data)
    except BadQuorumState as exc:
        raise BadCheckpoint(1, str(exc)) from None
    return [
        (_text(key), _text(value if isinstance(value, str) else json.dumps(value))) for key, value in values.items()
    ]


def _text(value: str) -> str:
    """Replace what JSON can escape, but UTF-8 cannot encode."""
    return value.encode("utf-8", "replace").decode()


def parse_leader_epochs(data: bytes) -> list[tuple[int, int]]:
    """Return (epoch, start offset) in file order. Raises BadCheckpoint."""
    rows = []
    for number, words in _entries(data):
        if len(words) != 2:
            raise BadCheckpoint(number, 'expected "epoch startOffset"')
        rows.append((_number(number, words[0]), _number(number, words[1])))
    return rows


def parse_offsets(data: bytes) -> list[tuple[str, int, int]]:
    """Return (topic, partition, offset) in file order. Raises BadCheckpoint."""
    rows = []
    for number, words in _entries(data):
        if len(words) != 3:
            raise BadCheckpoint(number, 'expected "topic partition offset"')
        rows.append((words[0], _number(number, words[1]), _number(number, words[2])))
    return rows


def _entries(data: bytes) -> list[tuple[int, list[str]]]:
    """Return (line number, words) after validating version and count (CheckpointFile.CheckpointReadBuffer)."""
    lines = _lines(data)
    if not lines:
        return []  # like Kafka: an empty file has no entries
    if _number(1, lines[0]) != 0:
        raise BadCheckpoint(1, f"unknown version {lines[0]}")
    if len(lines) < 2:
        raise BadCheckpoint(2, "the number of entries is missing")
    count = _number(2, lines[1])
    entries = [(number, _WHITESPACE.split(line.strip())) for number, line in enumerate(lines[2:], start=3)]
    if count != len(entries):
        raise BadCheckpoint(2, f"the file announces {count} entries, but has {len(entries)}")
    return entries


def parse_settings(data: bytes, separator: str) -> dict[str, str]:
    """Return names and values, without comments. Raises BadCheckpoint."""
    settings: dict[str, str] = {}
    for number, line in enumerate(_lines(data), start=1):
        if not line.strip() or line.lstrip().startswith(("#", "!")):
            continue
        key, has_separator, value = line.partition(separator)
        if not has_separator:
            raise BadCheckpoint(number, f'expected "name{separator}value"')
        settings[key.strip()] = value.strip()
    return settings


def _lines(data: bytes) -> list[str]:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise BadCheckpoint(data.count(b"\n", 0, exc.start) + 1, "not UTF-8 text") from None
    lines = text.split("\n", _MAX_LINES)
    return lines[:-1] if lines[-1] == "" else lines


def _number(line: int, text: str) -> int:
    digits = text.strip().removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 19:
        raise BadCheckpoint(line, f"{text.strip()[:40]!r} is not a number")
    return int(text)
