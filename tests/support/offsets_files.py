"""Records of __consumer_offsets for tests, written without kctl, in the layouts of Kafka's messages."""

from __future__ import annotations

import struct

from segment_files import Rec


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def commit_key(group: str, topic: str, partition: int, *, version: int = 1) -> bytes:
    """Return an OffsetCommitKey."""
    return struct.pack(">h", version) + _text(group) + _text(topic) + struct.pack(">i", partition)


def commit_value(offset: int, made_ms: int, *, version: int = 3, leader_epoch: int = -1, metadata: str = "") -> bytes:
    """Return an OffsetCommitValue, version 0 to 4."""
    head = struct.pack(">hq", version, offset)
    if version == 4:
        data = metadata.encode()
        return head + struct.pack(">i", leader_epoch) + bytes([len(data) + 1]) + data + struct.pack(">qb", made_ms, 0)
    if version == 3:
        head += struct.pack(">i", leader_epoch)
    return head + _text(metadata) + struct.pack(">q", made_ms) + (struct.pack(">q", -1) if version == 1 else b"")


def commit(
    group: str,
    topic: str,
    partition: int,
    offset: int | None,
    made_ms: int,
    *,
    leader_epoch: int = -1,
    version: int = 3,
) -> Rec:
    """Return the record of a commit; a tombstone if the offset is None."""
    value = None if offset is None else commit_value(offset, made_ms, version=version, leader_epoch=leader_epoch)
    return Rec(key=commit_key(group, topic, partition), value=value)


def group_key(group: str) -> bytes:
    """Return a GroupMetadataKey."""
    return struct.pack(">h", 2) + _text(group)
