"""Write the log dirs of controllers as Kafka 4 does, with control records only: a voters record, and elections."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from pathlib import Path

from kctl.segment.format.batch import CONTROL_MASK, encode_v2

CLUSTER = "7yUtlDciQ4a0HSfwPcdlLg"
DIRECTORIES = {1: bytes([1] * 16), 2: bytes([2] * 16), 3: bytes([3] * 16), 9: bytes([9] * 16)}
LEADER_CHANGE, HEADER, FOOTER, VOTERS = 2, 3, 4, 6
_TIME_MS = 1_795_858_752_638


def directory_id(node: int) -> str:
    """Return the directory id of a node as meta.properties has it."""
    import base64

    return base64.urlsafe_b64encode(DIRECTORIES[node]).decode().rstrip("=")


def write_log_dir(
    log_dir: Path,
    node: int,
    *,
    voters: Sequence[int] = (1, 2, 3),
    epochs: Sequence[int] = (1, 2),
    cluster: str = CLUSTER,
    directory: int | None = None,
    host: str = "127.0.0.1",
    state: dict[str, object] | None = None,
) -> Path:
    """Write a log dir, and return it. epochs: of the batches of the log: a voters record, then one election each.

    directory: the node whose directory id the log dir has (default: `node`). state: of quorum-state; {}: no file.
    """
    folder = log_dir / "__cluster_metadata-0"
    folder.mkdir(parents=True)
    meta = {"version": 1, "cluster.id": cluster, "node.id": node, "directory.id": directory_id(directory or node)}
    (log_dir / "meta.properties").write_text("".join(f"{key}={value}\n" for key, value in meta.items()))
    (folder / "00000000000000000000-0000000000.checkpoint").write_bytes(
        batch(0, 0, [(HEADER, b"\0\0" + struct.pack(">q", _TIME_MS) + b"\0")])
        + batch(1, 0, [(VOTERS, voters_record(voters, host))])
        + batch(2, 0, [(FOOTER, b"\0\0\0")])
    )
    log = b"".join(batch(n, epoch, [(LEADER_CHANGE, election(1, voters))]) for n, epoch in enumerate(epochs))
    (folder / f"{0:020d}.log").write_bytes(log)
    if state is None:
        state = {"leaderId": 1, "leaderEpoch": max(epochs, default=0)}
    if state:
        unset = {"votedId": -1, "votedDirectoryId": "A" * 22, "data_version": 1}
        (folder / "quorum-state").write_text(json.dumps({**unset, **state}))
    return log_dir


def voters_record(voters: Sequence[int], host: str) -> bytes:
    """Return the value of a record KRAFT_VOTERS: voter n listens at port 21000 + n."""
    name = host.encode()
    rows = b"".join(
        struct.pack(">i", voter) + DIRECTORIES[voter] + b"\x02"
        + b"\x0bCONTROLLER" + bytes([len(name) + 1]) + name + struct.pack(">H", 21000 + voter) + b"\0"
        + b"\0\0\0\x01\0" + b"\0"
        for voter in voters
    )  # fmt: skip
    return b"\0\0" + bytes([len(voters) + 1]) + rows + b"\0"


def election(leader: int, voters: Sequence[int]) -> bytes:
    """Return the value of a record LEADER_CHANGE of version 1; all voters but the last one voted for the leader."""

    def rows(ids: Sequence[int]) -> bytes:
        return bytes([len(ids) + 1]) + b"".join(struct.pack(">i", each) + DIRECTORIES[each] + b"\0" for each in ids)

    return b"\0\x01" + struct.pack(">i", leader) + rows(voters) + rows(voters[:-1]) + b"\0"


def batch(offset: int, epoch: int, records: Sequence[tuple[int, bytes]]) -> bytes:
    """Return a batch of control records: (type, value) each."""
    body = b"".join(_record(n, kind, value) for n, (kind, value) in enumerate(records))
    header = bytearray(
        encode_v2(
            body, attributes=CONTROL_MASK, last_offset_delta=len(records) - 1, base_timestamp=_TIME_MS,
            max_timestamp=_TIME_MS, producer_id=-1, producer_epoch=-1, base_sequence=-1, record_count=len(records),
        )
    )  # fmt: skip
    struct.pack_into(">q", header, 0, offset)
    struct.pack_into(">i", header, 12, epoch)
    return bytes(header) + body


def _record(number: int, kind: int, value: bytes) -> bytes:
    key = struct.pack(">hh", 0, kind)
    body = b"\0\0" + _varint(number) + _varint(len(key)) + key + _varint(len(value)) + value + b"\0"
    return _varint(len(body)) + body


def _varint(value: int) -> bytes:
    value, out = value << 1, bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])
