"""Builders of log files for tests: batches of magic 2, index entries, snapshots, checkpoints.

They share no code with kctl, so that tests compare two implementations of the formats.

    first, second = batch(0, 10), batch(10, 5, codec="zstd", producer=(7, 0, 0), transactional=True)
    write(folder, 0, [first, second, marker(15, (7, 0))], index=offset_index([(14, len(first))]))
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import cramjam
import lz4.frame
import zstandard
from crc32c import crc32c

BASE_TIMESTAMP = 1_700_000_000_000
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
NO_PRODUCER = (-1, -1, -1)
_HEADER = struct.Struct(">qiibIhiqqqhii")
_BEHIND_CRC = struct.Struct(">hiqqqhii")


@dataclass(frozen=True)
class Rec:
    """A record. offset, timestamp: relative to the batch; None: its number in the batch."""

    key: bytes | None = b"k"
    value: bytes | None = b"v" * 10
    headers: Sequence[tuple[bytes, bytes | None]] = ()
    offset: int | None = None
    timestamp: int | None = None


def varint(number: int) -> bytes:
    """Return a zigzag varint, as in records."""
    rest = (number << 1) ^ (number >> 63)
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _sized(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def record(rec: Rec, number: int) -> bytes:
    """Return the bytes of a record with its length."""
    body = (
        b"\0"
        + varint(number if rec.timestamp is None else rec.timestamp)
        + varint(number if rec.offset is None else rec.offset)
        + _sized(rec.key)
        + _sized(rec.value)
        + varint(len(rec.headers))
        + b"".join(_sized(key) + _sized(value) for key, value in rec.headers)
    )
    return varint(len(body)) + body


def compress(codec: str, payload: bytes) -> bytes:
    """Compress like producers; snappy without xerial's framing."""
    if codec == "gzip":
        return gzip.compress(payload, mtime=0)
    if codec == "snappy":
        return bytes(cramjam.snappy.compress_raw(payload))
    if codec == "lz4":
        return bytes(lz4.frame.compress(payload, block_linked=False))
    return zstandard.ZstdCompressor().compress(payload) if codec == "zstd" else payload


def batch(
    base_offset: int,
    records: int | Sequence[Rec] = 1,
    *,
    codec: str = "none",
    producer: tuple[int, int, int] = NO_PRODUCER,
    transactional: bool = False,
    control: bool = False,
    append_time: bool = False,
    epoch: int = 0,
    base_timestamp: int = BASE_TIMESTAMP,
    max_timestamp: int | None = None,
    last_offset_delta: int | None = None,
    count: int | None = None,
    attributes: int | None = None,
    payload: bytes | None = None,
    magic: int = 2,
) -> bytes:
    """Return a batch with a correct CRC. records: or a number of plain ones; producer: (id, epoch, base sequence).

    The last parameters are wrong header values. payload: instead of the records, compressed or not.
    """
    recs = [Rec() for _ in range(records)] if isinstance(records, int) else list(records)
    offsets = [number if rec.offset is None else rec.offset for number, rec in enumerate(recs)]
    times = [number if rec.timestamp is None else rec.timestamp for number, rec in enumerate(recs)]
    if payload is None:
        payload = compress(codec, b"".join(record(rec, number) for number, rec in enumerate(recs)))
    if attributes is None:
        attributes = CODECS[codec] | append_time << 3 | transactional << 4 | control << 5
    behind = _BEHIND_CRC.pack(
        attributes,
        max(offsets, default=0) if last_offset_delta is None else last_offset_delta,
        base_timestamp,
        base_timestamp + max(times, default=0) if max_timestamp is None else max_timestamp,
        *producer,
        len(recs) if count is None else count,
    )
    body = behind + payload
    return struct.pack(">qiibI", base_offset, len(body) + 9, epoch, magic, crc32c(body)) + body


def marker(
    offset: int,
    producer: tuple[int, int],
    *,
    commit: bool = True,
    coordinator_epoch: int = 0,
    epoch: int = 0,
    base_timestamp: int = BASE_TIMESTAMP,
) -> bytes:
    """Return a control batch that ends a transaction. producer: (id, epoch)."""
    rec = Rec(key=struct.pack(">hh", 0, int(commit)), value=struct.pack(">hi", 0, coordinator_epoch))
    return batch(
        offset, [rec], producer=(*producer, -1), transactional=True, control=True, epoch=epoch,
        base_timestamp=base_timestamp,
    )  # fmt: skip


def positions(parts: Iterable[bytes]) -> list[int]:
    """Return the position of each batch when they follow each other."""
    found, position = [], 0
    for part in parts:
        found.append(position)
        position += len(part)
    return found


def with_bytes(data: bytes, position: int, new: bytes) -> bytes:
    """Return `data` with other bytes at `position`, without a new CRC."""
    return data[:position] + new + data[position + len(new) :]


def offset_index(entries: Iterable[tuple[int, int]], base_offset: int = 0) -> bytes:
    """Return an .index with entries (offset, position)."""
    return b"".join(struct.pack(">ii", offset - base_offset, position) for offset, position in entries)


def time_index(entries: Iterable[tuple[int, int]], base_offset: int = 0) -> bytes:
    """Return a .timeindex with entries (timestamp, offset)."""
    return b"".join(struct.pack(">qi", timestamp, offset - base_offset) for timestamp, offset in entries)


def transaction_index(entries: Iterable[tuple[int, int, int, int]], version: int = 0) -> bytes:
    """Return a .txnindex with (producer id, first offset, last offset, last stable offset)."""
    return b"".join(struct.pack(">hqqqq", version, *entry) for entry in entries)


def producer_snapshot(entries: Iterable[tuple[int, int, int, int, int, int, int, int]] = ()) -> bytes:
    """Return a .snapshot with (producer id, epoch, last sequence, last offset, offset delta, timestamp,
    coordinator epoch, first offset of the open transaction or −1)."""
    rows = [struct.pack(">qhiqiqiq", *entry) for entry in entries]
    body = struct.pack(">i", len(rows)) + b"".join(rows)
    return struct.pack(">hI", 1, crc32c(body)) + body


def leader_epochs(entries: Iterable[tuple[int, int]]) -> bytes:
    """Return a leader-epoch-checkpoint with (epoch, start offset)."""
    rows = list(entries)
    return f"0\n{len(rows)}\n{''.join(f'{epoch} {start}' + chr(10) for epoch, start in rows)}".encode()


def offset_checkpoint(entries: Mapping[tuple[str, int], int]) -> bytes:
    """Return a log dir's offset checkpoint of (topic, partition) → offset."""
    rows = [f"{topic} {partition} {offset}\n" for (topic, partition), offset in entries.items()]
    return f"0\n{len(rows)}\n{''.join(rows)}".encode()


def write(folder: Path, base_offset: int, log: bytes | Iterable[bytes] | None, **companions: bytes) -> Path:
    """Write a segment and companions by suffix: index=…, timeindex=…, txnindex=…, snapshot=…. Return the log's path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{base_offset:020d}.log"
    if log is not None:
        path.write_bytes(log if isinstance(log, bytes) else b"".join(log))
    for suffix, data in companions.items():
        path.with_suffix(f".{suffix}").write_bytes(data)
    return path
