"""kctl segment dump for people and programs: rows of each kind of file, filters, logs that grow, decoders."""

from __future__ import annotations

import csv
import io
import json
import shutil
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kctl.commands.app import main
from kctl.segment.dump.dump import DumpOptions, DumpRun
from kctl.segment.dump.query import Query
from segment_files import (
    BASE_TIMESTAMP,
    Rec,
    batch,
    offset_index,
    producer_snapshot,
    time_index,
    transaction_index,
    with_bytes,
    write,
)

pytestmark = pytest.mark.usefixtures("one_command_tree")
DATA = Path(__file__).parents[2] / "data" / "segments"
Capture = pytest.CaptureFixture[str]


def lines(capsys: Capture, *args: str, code: int = 0) -> list[dict[str, Any]]:
    assert main(["segment", "dump", *args, "-o", "json"]) == code
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


# --- batches and records --------------------------------------------------------------------------------------------


def test_rows_are_typed(tmp_path: Path, capsys: Capture) -> None:
    rec = Rec(b"k", b"\xff\xfe", headers=[(b"h", None), (b"\xe2\x98\x83", b"1")])
    log = write(tmp_path, 5, [batch(5, [rec, Rec(None, None)], producer=(7, 1, 3), transactional=True, codec="gzip")])
    (row,) = lines(capsys, str(log))
    assert row == {
        "kind": "batch", "file": str(log), "position": 0, "size_bytes": log.stat().st_size, "magic": 2,
        "base_offset": 5, "last_offset": 6, "count": 2, "partition_leader_epoch": 0, "timestamp_type": "CreateTime",
        "base_timestamp": "2023-11-14T22:13:20.000Z", "max_timestamp": "2023-11-14T22:13:20.001Z", "codec": "gzip",
        "producer_id": 7, "producer_epoch": 1, "base_sequence": 3, "last_sequence": 4, "transactional": True,
        "control": False, "delete_horizon": None, "crc": row["crc"], "valid": True,
        "damage": None,
    }  # fmt: skip
    first, second = lines(capsys, "--records", str(log))
    assert first == {
        "kind": "record", "file": str(log), "position": 0, "offset": 5, "timestamp": "2023-11-14T22:13:20.000Z",
        "timestamp_type": "CreateTime", "key": "k", "key_encoding": "utf-8", "value": "//4=",
        "value_encoding": "base64", "key_size_bytes": 1, "value_size_bytes": 2,
        "headers": [
            {"key": "h", "key_encoding": "utf-8", "value": None, "value_encoding": None},
            {"key": "☃", "key_encoding": "utf-8", "value": "1", "value_encoding": "utf-8"},
        ],
        "producer_id": 7, "sequence": 3, "transactional": True, "control": None, "valid": True, "decode_error": None,
    }  # fmt: skip
    assert (second["key"], second["key_encoding"], second["value_size_bytes"]) == (None, None, None)


@pytest.mark.parametrize("records", [(), ("--records",)])
@pytest.mark.parametrize("query", [("--offsets", "15"), ("--producer-id", "77"), ("--since", "2099-01-01")])
def test_a_damaged_batch_is_told_whatever_its_header_says(
    capsys: Capture, records: tuple[str, ...], query: tuple[str, ...]
) -> None:
    rows = lines(capsys, *records, *query, str(DATA / "corrupt/magic-minus1"), code=1)
    (damaged,) = [row for row in rows if row["kind"] != "record"]
    assert (damaged["position"], damaged["size_bytes"]) == (1643, 2070)
    assert damaged["damage"] == "unknown magic -1; read as magic 2, the CRC matches"


@pytest.mark.parametrize("records", [(), ("--records",)])
def test_a_wrong_crc_outside_of_the_query_is_told(tmp_path: Path, capsys: Capture, records: tuple[str, ...]) -> None:
    bad = with_bytes(batch(2, 2), 23, (0).to_bytes(4, "big"))  # lastOffsetDelta: 3 is in it, and it denies that
    log = write(tmp_path, 0, [batch(0, 2), bad, batch(4, 2)])
    rows = lines(capsys, *records, "--offsets", "3", str(log), code=1)
    assert [(row["kind"], row["damage"]) for row in rows] == [("damage", "the CRC does not match")]


def test_a_batch_of_unknown_magic_says_little(capsys: Capture) -> None:
    _, row, _ = lines(capsys, str(DATA / "corrupt/magic-minus1"), code=1)
    assert (row["magic"], row["base_offset"], row["valid"]) == (-1, 12, False)
    assert {row[name] for name in ("last_offset", "count", "codec", "timestamp_type", "max_timestamp")} == {None}
    assert main(["segment", "dump", str(DATA / "corrupt/magic-minus1")]) == 1
    assert "MAGIC -1, CRC matches magic 2" in capsys.readouterr().out


def test_the_last_record_that_a_header_counts_is_shown_and_then_the_rest_told(capsys: Capture) -> None:
    rows = lines(capsys, "--records", "--offsets", "12..23", str(DATA / "corrupt/count-minus1-crc-ok"), code=1)
    assert [row.get("offset", row["kind"]) for row in rows] == [*range(12, 23), "damage"]
    assert rows[-1]["damage"] == "there are bytes after the last record"


def test_a_column_without_contents_is_left_out_until_it_has_one(tmp_path: Path, capsys: Capture) -> None:
    with_header = [Rec(b"k", headers=[(b"h", b"1")])]
    log = write(tmp_path, 0, [batch(0, 300), batch(300, with_header), batch(301, 2)])
    assert main(["segment", "dump", "--records", str(log)]) == 0
    shown = capsys.readouterr().out.splitlines()
    headings = {number: line.split() for number, line in enumerate(shown) if line.startswith("OFFSET")}
    everything = ["OFFSET", "TIMESTAMP", "KEY", "VALUE", "HEADERS", "CONTROL"]
    assert headings == {0: everything[:4], 302: everything}
    assert "h=1" in shown[303]
    assert [int(line.split()[0]) for line in shown if line.strip()[:1].isdigit()] == list(range(303))


def test_a_log_without_an_offset_in_its_name_has_a_title(tmp_path: Path, capsys: Capture) -> None:
    path = write(tmp_path, 0, [batch(0, 2)]).rename(tmp_path / "abc.log")
    assert main(["segment", "dump", str(path)]) == 0
    assert capsys.readouterr().out.startswith(f"{path}\n")


GARBAGE = b"\xff" * 40  # as records it is damage


@pytest.mark.parametrize(
    ("args", "offsets"),
    [
        (["--offsets", "5..6"], [5, 6]),
        (["--offsets", "..1"], [0, 1]),
        (["--since", str(BASE_TIMESTAMP + 4000), "--offsets", "..9"], list(range(4, 10))),
        (["--producer-id", "7"], list(range(10))),
        (["--transactional"], list(range(10))),
    ],
)
def test_what_a_header_rules_out_is_not_decoded(
    tmp_path: Path, capsys: Capture, args: list[str], offsets: list[int]
) -> None:
    good = batch(0, [Rec(timestamp=1000 * n) for n in range(10)], producer=(7, 0, 0), transactional=True)
    early = batch(10, 10, payload=GARBAGE, max_timestamp=BASE_TIMESTAMP)
    log = write(tmp_path, 0, [good, early])
    rows = lines(capsys, "--records", *args, str(log))
    assert [row["offset"] for row in rows] == offsets
    damaged = lines(capsys, "--records", str(log), code=1)
    assert [row["kind"] for row in damaged] == ["record"] * 10 + ["damage"]


@pytest.mark.parametrize(
    ("args", "offsets"),
    [
        (["--key", "key-3"], [3]),
        (["--key-regex", "^key-[24]$"], [2, 4]),
        (["--grep", "needle"], [6]),
        (["--until", str(BASE_TIMESTAMP + 2)], [0, 1]),
        (["--limit", "3"], [0, 1, 2]),
        (["--key", "nobody"], []),
    ],
)
def test_filters_of_records(tmp_path: Path, capsys: Capture, args: list[str], offsets: list[int]) -> None:
    recs = [Rec(f"key-{n}".encode(), b"a needle" if n == 6 else b"hay") for n in range(8)]
    log = write(
        tmp_path, 0, [batch(0, recs[:4], codec="snappy"), batch(4, recs[4:], base_timestamp=BASE_TIMESTAMP + 4)]
    )
    assert [row["offset"] for row in lines(capsys, "--records", *args, str(log))] == offsets
    found = sorted({0 if offset < 4 else 4 for offset in offsets})
    if "--limit" not in args:
        assert [row["base_offset"] for row in lines(capsys, *args, str(log))] == found


def test_a_wrong_crc_is_told_with_the_records(tmp_path: Path, capsys: Capture) -> None:
    log = write(tmp_path, 0, [with_bytes(batch(0, 2), 17, b"\0\0\0\0")])
    rows = lines(capsys, "--records", str(log), code=1)
    assert [(row["kind"], row.get("valid")) for row in rows] == [("damage", None), ("record", False), ("record", False)]


def test_max_bytes_and_limit_cut_without_damage(tmp_path: Path, capsys: Capture) -> None:
    parts = [batch(10 * n, 10) for n in range(3)]
    log = write(tmp_path, 0, parts)
    assert [row["base_offset"] for row in lines(capsys, "--max-bytes", str(len(parts[0]) + 70), str(log))] == [0]
    assert [row["base_offset"] for row in lines(capsys, "--limit", "2", str(log))] == [0, 10]


def test_a_record_that_is_too_large_is_damage(tmp_path: Path, capsys: Capture) -> None:
    log = write(tmp_path, 0, [batch(0, [Rec(value=bytes(5000))], codec="gzip"), batch(1, 1)])
    rows = lines(capsys, "--records", "--max-message-size", "1000", str(log), code=1)
    assert [row["kind"] for row in rows] == ["damage", "record"]


# --- the other files ------------------------------------------------------------------------------------------------

NAME = "00000000000000000100"


def _file(folder: Path, suffix: str, data: bytes) -> str:
    path = folder / (NAME + suffix)
    path.write_bytes(data)
    return str(path)


def _short(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [tuple(value for key, value in row.items() if key != "file") for row in rows]


def test_indexes(tmp_path: Path, capsys: Capture) -> None:
    index = _file(tmp_path, ".index", offset_index([(119, 400), (139, 800)], 100) + bytes(80))
    assert _short(lines(capsys, index)) == [
        ("offset_index_entry", 119, 400),
        ("offset_index_entry", 139, 800),
        ("note", 16, 80, "80 bytes preallocated by the broker for the active segment"),
    ]
    assert _short(lines(capsys, index, "--offsets", "120.."))[0] == ("offset_index_entry", 139, 800)
    times = _file(tmp_path, ".timeindex", time_index([(BASE_TIMESTAMP, 119), (BASE_TIMESTAMP + 5, 139)], 100) + b"\1")
    assert _short(lines(capsys, times, code=1)) == [
        ("time_index_entry", "2023-11-14T22:13:20.000Z", 119),
        ("time_index_entry", "2023-11-14T22:13:20.005Z", 139),
        ("damage", 24, 1, "incomplete entry: the broker rebuilds this index when it starts"),
    ]
    assert len(lines(capsys, times, "--since", str(BASE_TIMESTAMP + 1), code=1)) == 2
    txns = _file(tmp_path, ".txnindex", transaction_index([(7, 100, 120, 121), (8, 110, 140, 141)]))
    assert _short(lines(capsys, txns, "--producer-id", "8")) == [("aborted_transaction", 8, 110, 140, 141, 0)]
    newer = _file(tmp_path, ".txnindex", transaction_index([(7, 100, 120, 121)], version=3))
    assert _short(lines(capsys, newer, code=1)) == [("damage", 0, 34, "an entry of the unknown version 3")]


def test_an_index_of_zeros_alone_has_no_entries(tmp_path: Path, capsys: Capture) -> None:
    index = _file(tmp_path, ".index", bytes(10 << 20))
    assert [row["kind"] for row in lines(capsys, index)] == ["note"]
    assert main(["segment", "dump", index]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert f"{10 << 20} bytes preallocated by the broker" in err


def test_snapshots(tmp_path: Path, capsys: Capture) -> None:
    data = producer_snapshot([(7, 1, 9, 120, 4, BASE_TIMESTAMP, 3, 116), (8, 0, -1, -1, 0, -1, -1, -1)])
    snapshot = _file(tmp_path, ".snapshot", data)
    assert _short(lines(capsys, snapshot)) == [
        ("producer", 7, 1, 3, 5, 9, 120, 4, "2023-11-14T22:13:20.000Z", 116),
        ("producer", 8, 0, -1, None, None, None, 0, None, None),
    ]
    broken = _file(tmp_path, ".snapshot", with_bytes(data, 12, b"\xff"))
    (row,) = lines(capsys, broken, code=1)
    assert (row["kind"], row["size_bytes"]) == ("damage", len(data))
    assert "CRC" in row["damage"]


SETTINGS = [("setting", "version", "0"), ("setting", "topic_id", "x")]


@pytest.mark.parametrize(
    ("name", "text", "rows"),
    [
        ("leader-epoch-checkpoint", "0\n2\n0 0\n3 17\n", [("leader_epoch", 0, 0), ("leader_epoch", 3, 17)]),
        ("replication-offset-checkpoint", "0\n1\na 0 5\n", [("checkpoint_offset", "a", 0, 5)]),
        ("recovery-point-offset-checkpoint", "0\n0\n", []),
        ("log-start-offset-checkpoint", "0\n1\na 1 5\n", [("checkpoint_offset", "a", 1, 5)]),
        ("cleaner-offset-checkpoint", "0\n1\na 2 5\n", [("checkpoint_offset", "a", 2, 5)]),
        ("meta.properties", "#x\nbroker.id=1\n", [("setting", "broker.id", "1")]),
        (
            "partition.metadata",
            "version: 0\ntopic_id: x\n",
            [("setting", "version", "0"), ("setting", "topic_id", "x")],
        ),
    ],
)
def test_checkpoints(tmp_path: Path, capsys: Capture, name: str, text: str, rows: list[tuple[Any, ...]]) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert _short(lines(capsys, str(path))) == rows
    path.write_bytes(b"0\n\xff")
    (row,) = lines(capsys, str(path), code=1)
    assert row["kind"] == "damage"


def test_a_checkpoint_as_large_as_a_log_is_refused(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    with path.open("wb") as file:
        file.truncate(1 << 30)
    assert main(["segment", "dump", str(path)]) == 4
    assert "the limit for this kind of file is" in capsys.readouterr().err


def test_a_mixture(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(DATA / "v2" / "txn")
    names = [f"00000000000000000011.{suffix}" for suffix in ("log", "index", "txnindex", "snapshot")]
    rows = lines(capsys, *names, "leader-epoch-checkpoint")
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    assert kinds == ["batch", "offset_index_entry", "aborted_transaction", "producer", "leader_epoch"]
    assert main(["segment", "dump", *names[1:]]) == 0
    out = capsys.readouterr().out
    assert [line for line in out.splitlines() if line in names] == names[1:]  # a table each, with its name
    assert main(["segment", "dump", *names, "-o", "csv"]) == 2
    assert "-o csv requires files of one kind" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("notes.txt", 2, "is not a Kafka file, by its name"),
        ("x.index", 2, "is not named after a base offset"),
        ("missing.log", 4, "does not exist"),
        ("missing", 4, "does not exist"),
    ],
)
def test_names(tmp_path: Path, capsys: Capture, name: str, code: int, message: str) -> None:
    if not name.startswith("missing"):
        (tmp_path / name).write_bytes(bytes(16))
    assert main(["segment", "dump", str(tmp_path / name)]) == code
    assert message in capsys.readouterr().err


def test_deleted_files_are_of_their_kind(tmp_path: Path, capsys: Capture) -> None:
    shutil.copy(DATA / "v2" / "none" / f"{0:020d}.log", tmp_path / f"{0:020d}.log.deleted")
    assert [row["base_offset"] for row in lines(capsys, str(tmp_path / f"{0:020d}.log.deleted"))] == [0, 12, 24]


@pytest.mark.parametrize(
    ("args", "header"),
    [
        (["00000000000000000000.log", "--offsets", "999.."], "kind,file,position,size_bytes,magic,"),
        (["00000000000000000000.log", "--records", "--key", "nobody"], "kind,file,position,offset,timestamp,"),
        (["00000000000000000108.index"], "kind,file,offset,position"),
        (["leader-epoch-checkpoint"], "kind,file,epoch,start_offset"),
    ],
)
def test_csv_has_its_header_without_rows(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, args: list[str], header: str
) -> None:
    monkeypatch.chdir(DATA / "v2" / "none")
    assert main(["segment", "dump", "-o", "csv", *args]) == 0
    out = capsys.readouterr().out
    assert out.startswith(header)
    rows = list(csv.DictReader(io.StringIO(out)))
    assert all(None not in row and None not in row.values() for row in rows)


def test_yaml_is_refused(capsys: Capture) -> None:
    assert main(["segment", "dump", "-o", "yaml", str(DATA / "v2" / "none")]) == 2
    assert "-o yaml is not supported" in capsys.readouterr().err


# --- decoders -------------------------------------------------------------------------------------------------------


def test_consumer_offsets_are_objects(capsys: Capture) -> None:
    rows = lines(capsys, "--offsets-decoder", str(DATA / "internal" / "kafka-2.8-consumer_offsets"))
    assert {row["kind"] for row in rows} == {"record"}
    commit = next(row for row in rows if row["key"]["type"] == "OffsetCommitKey")
    assert commit["key"]["data"] == {"group": "seg-grp-a", "topic": "seg-v1-none", "partition": 0}
    assert (commit["key_encoding"], commit["value_encoding"], commit["decode_error"]) == ("json", "json", None)
    assert commit["value"]["data"]["offset"] == 33


def test_transactions_are_objects_with_names_of_states(capsys: Capture) -> None:
    rows = lines(capsys, "--transaction-log-decoder", str(DATA / "internal" / "zk-3.9-transaction_state"))
    states = {row["value"]["data"]["transactionStatus"] for row in rows if row["value"]}
    assert {"Empty", "Ongoing", "CompleteCommit"} <= states
    assert {row["key"]["type"] for row in rows} == {"TransactionLogKey"}


def test_metadata_of_a_log_and_of_its_snapshot_are_objects(capsys: Capture) -> None:
    folder = DATA / "internal" / "kraft-3.9-cluster_metadata"
    files = [str(file) for file in sorted(folder.glob("*.checkpoint"))]
    rows = lines(capsys, "--cluster-metadata-decoder", str(folder)) + lines(
        capsys, "--cluster-metadata-decoder", *files
    )
    assert not [row for row in rows if row["decode_error"]]
    data = [row for row in rows if row["control"] is None]
    assert {row["value_encoding"] for row in data} == {"json"}
    assert {"TopicRecord", "PartitionRecord", "FeatureLevelRecord"} <= {row["value"]["type"] for row in data}
    assert {row["control"] for row in rows} >= {"LEADER_CHANGE", "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER"}


def test_what_no_decoder_can_read_stays_as_it_is(tmp_path: Path, capsys: Capture) -> None:
    log = str(write(tmp_path, 0, [batch(0, [Rec(b"\0\1x", b"v"), Rec(None, b"v")])]))
    for option in ("--offsets-decoder", "--transaction-log-decoder", "--share-group-state-decoder"):
        rows = lines(capsys, option, log, code=1)
        assert [(row["value"], bool(row["decode_error"])) for row in rows] == [("v", True), ("v", True)], option
    for option in ("--cluster-metadata-decoder", "--remote-log-metadata-decoder"):
        assert all(row["decode_error"] for row in lines(capsys, option, log, code=1))


def test_remote_log_metadata_is_an_object(tmp_path: Path, capsys: Capture) -> None:
    """RemotePartitionDeleteMetadataRecord: frame 1, type 2, version 0, by hand (KIP-405, KIP-482)."""
    body = b"\1\2\0" + b"\2t" + bytes(16) + struct.pack(">i", 3) + b"\0" + struct.pack(">iqb", 1, 5, 1) + b"\0"
    log = str(write(tmp_path, 0, [batch(0, [Rec(None, body)])]))
    (row,) = lines(capsys, "--remote-log-metadata-decoder", log)
    assert row["decode_error"] is None
    assert row["value"]["data"]["remotePartitionDeleteState"] == "DELETE_PARTITION_STARTED"


@pytest.mark.parametrize(
    ("decoder", "data", "value", "encoding", "failed"),
    [
        ("long", struct.pack(">q", -5), -5, "long", False),
        ("org.apache.kafka.tools.api.LongDecoder", struct.pack(">q", 2**62), 2**62, "long", False),
        ("integer", struct.pack(">i", 7), 7, "integer", False),
        ("double", struct.pack(">d", 0.5), 0.5, "double", False),
        ("double", struct.pack(">d", float("nan")), "nan", "double", False),
        ("bytes", b"text", "dGV4dA==", "base64", False),
        ("string", b"text", "text", "utf-8", False),
        ("long", b"text", "text", "utf-8", True),
        ("long", None, None, None, False),
    ],
)
def test_decoder_classes(
    tmp_path: Path, capsys: Capture, decoder: str, data: bytes | None, value: object, encoding: str, failed: bool
) -> None:
    log = str(write(tmp_path, 0, [batch(0, [Rec(b"k", data)])]))
    (row,) = lines(capsys, "--value-decoder-class", decoder, log, code=1 if failed else 0)
    assert (row["value"], row["value_encoding"], bool(row["decode_error"])) == (value, encoding, failed)
    assert row["key"] == "k"


# --- __share_group_state, by the message definitions of Kafka 4.2 ---------------------------------------------------

TOPIC_ID = bytes(range(16))
TOPIC_TEXT = "AAECAwQFBgcICQoLDA0ODw"


def share_key(kind: int) -> bytes:
    """Not flexible: a string has an i16 length."""
    return struct.pack(">hh", kind, 3) + b"gs1" + TOPIC_ID + struct.pack(">i", 2)


STATE_BATCHES = b"\2" + struct.pack(">qqbh", 10, 14, 2, 1) + b"\0"  # compact array of one, its tagged fields
SNAPSHOT = struct.pack(">hiiiqqq", 0, 1, 2, 3, 10, 111, 222) + STATE_BATCHES
UPDATE = struct.pack(">hiiq", 0, 1, 3, -1) + STATE_BATCHES
DELIVERED = b"\1\0\4" + struct.pack(">i", 4)  # one tagged field: tag 0, 4 bytes
BATCHES_TEXT = '"stateBatches":[{"firstOffset":10,"lastOffset":14,"deliveryState":2,"deliveryCount":1}]}}'


@pytest.fixture
def share_log(tmp_path: Path) -> str:
    recs = [
        Rec(share_key(0), SNAPSHOT + DELIVERED),
        Rec(share_key(1), UPDATE + b"\0"),
        Rec(share_key(0), None),
        Rec(struct.pack(">h", 0x7FFF), b""),
        Rec(share_key(1), b"\0\0\0\0"),
    ]
    return str(write(tmp_path, 0, [batch(0, recs)]))


def test_share_groups_as_kafka_prints_them(share_log: str, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["segment", "dump", "-o", "kafka", "--share-group-state-decoder", share_log]) == 1
    texts = [
        line.split(" key: ", 1)[1] for line in capsysbinary.readouterr().out.decode().splitlines() if " key: " in line
    ]
    key = f'"data":{{"groupId":"gs1","topicId":"{TOPIC_TEXT}","partition":2}}}}'
    snapshot = (
        '{"version":"0","data":{"snapshotEpoch":1,"stateEpoch":2,"leaderEpoch":3,"startOffset":10,'
        f'"deliveryCompleteCount":4,"createTimestamp":111,"writeTimestamp":222,{BATCHES_TEXT}'
    )
    update = f'{{"version":"0","data":{{"snapshotEpoch":1,"leaderEpoch":3,"startOffset":-1,{BATCHES_TEXT}'
    error = "Could not read record with version 0 from value's buffer due to: null."
    assert texts == [
        f'{{"type":"0",{key} payload: {snapshot}',
        f'{{"type":"1",{key} payload: {update}',
        f'{{"type":"0",{key} payload: <DELETE>',
        "Unknown record type 32767 at offset 3, skipping.",
        f"Error at offset 4, skipping. {error}",
    ]


def test_share_groups_as_objects(share_log: str, capsys: Capture) -> None:
    rows = lines(capsys, "--share-group-state-decoder", share_log, code=1)
    assert [row["key"]["type"] if row["key_encoding"] == "json" else None for row in rows] == [
        "ShareSnapshotKey", "ShareUpdateKey", "ShareSnapshotKey", None, None,
    ]  # fmt: skip
    assert rows[0]["key"]["data"] == {"groupId": "gs1", "topicId": TOPIC_TEXT, "partition": 2}
    assert rows[0]["value"]["data"]["deliveryCompleteCount"] == 4
    assert rows[1]["value"]["data"]["stateBatches"][0]["lastOffset"] == 14
    assert (rows[2]["value"], rows[2]["value_encoding"]) == (None, None)
    assert [bool(row["decode_error"]) for row in rows] == [False, False, False, True, True]


def test_a_share_group_record_without_a_key_ends_as_in_kafka(tmp_path: Path, capsys: Capture) -> None:
    log = str(write(tmp_path, 0, [batch(0, [Rec(None, b"v")])]))
    assert main(["segment", "dump", "-o", "kafka", "--share-group-state-decoder", log]) == 1
    assert "at offset 0 using the specified decoder (message had a missing key)" in capsys.readouterr().err


# --- logs that grow -------------------------------------------------------------------------------------------------


class Following:
    """A dump that follows a log, one event after the other. None: it waits."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> None:
        monkeypatch.setattr("kctl.segment.log.follow.POLL_S", 0.001)
        self.run = DumpRun([path], DumpOptions(follow=True, **options))
        self._rows: Iterator[Any] = self.run.rows()

    def until_it_waits(self) -> list[Any]:
        return list(iter(lambda: next(self._rows), None))

    def rest(self) -> list[Any]:
        return [row for row in self._rows if row is not None]


def _append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def test_follow_waits_for_whole_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = batch(0, 3), batch(3, 2, codec="lz4")
    log = write(tmp_path, 0, [first, second[:40]])
    following = Following(log, monkeypatch)
    assert [row.base_offset for row in following.until_it_waits()] == [0]
    _append(log, second[40:50])
    assert following.until_it_waits() == []
    _append(log, second[50:])
    assert [(row.base_offset, row.valid) for row in following.until_it_waits()] == [(3, True)]
    assert following.run.damaged == 0


def test_follow_sees_a_truncation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = batch(0, 3), batch(3, 30), batch(3, 2, epoch=1)
    log = write(tmp_path, 0, [first, second])
    following = Following(log, monkeypatch)
    assert [row.base_offset for row in following.until_it_waits()] == [0, 3]
    with log.open("r+b") as file:
        file.truncate(len(first))
    (note,) = following.until_it_waits()
    assert (note.kind, note.position, note.size_bytes) == ("note", len(first), len(second))
    _append(log, third)
    assert [(row.base_offset, row.partition_leader_epoch) for row in following.until_it_waits()] == [(3, 1)]


def test_follow_reads_what_is_written_into_preallocated_zeros(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = write(tmp_path, 0, [batch(0, 3), bytes(5000)])
    following = Following(log, monkeypatch)
    assert [row.base_offset for row in following.until_it_waits()] == [0]
    with log.open("r+b") as file:
        file.seek(len(batch(0, 3)))
        file.write(batch(3, 2))
    assert [row.base_offset for row in following.until_it_waits()] == [3]


def test_follow_goes_on_in_the_next_segment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = write(tmp_path, 0, [batch(0, 3)])
    following = Following(log, monkeypatch)
    following.until_it_waits()
    write(tmp_path, 3, [batch(3, 2)])
    (row,) = following.until_it_waits()
    assert (row.base_offset, Path(row.file).name) == (3, f"{3:020d}.log")


def test_follow_tells_damage_in_the_middle_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = write(tmp_path, 0, [batch(0, 3), b"\xff" * 30, batch(3, 2)])
    following = Following(log, monkeypatch, query=Query(first=0))
    assert [row.kind for row in following.until_it_waits()] == ["batch", "damage", "batch"]


def test_follow_ends_when_nothing_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = write(tmp_path, 0, [batch(0, 3), batch(3, 3)[:30]])
    assert [row.kind for row in Following(log, monkeypatch, idle_s=0.01).rest()] == ["batch"]


@pytest.mark.parametrize("output", ["json", "csv", "table"])
def test_follow_shows_rows_before_it_waits(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    """--limit ends it with the batch that another thread appends once the first one was shown."""
    monkeypatch.setattr("kctl.segment.log.follow.POLL_S", 0.005)
    log = write(tmp_path, 0, [batch(0, 3)])
    shown = ""
    appended = threading.Event()

    def append_when_shown() -> None:
        nonlocal shown
        while not appended.wait(0.005):
            shown += capsys.readouterr().out
            if "2023-11-14T22:13:20" in shown:
                _append(log, batch(3, 1))
                return

    writer = threading.Thread(target=append_when_shown)
    writer.start()
    try:
        code = main(["segment", "dump", "--follow", "--limit", "2", "--timeout", "20s", "-o", output, str(log)])
    finally:
        appended.set()
        writer.join()
    assert code == 0
    assert (shown + capsys.readouterr().out).count("2023-11-14T22:13:20.00") >= 2
