"""Files of KRaft nodes: quorum-state, the release that wrote a log dir, --kafka-version, folders of live nodes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from control_records import FILES, control, leader_change, snapshot
from kctl.commands.app import main
from kctl.segment.format.quorum_state import BadQuorumState, parse_quorum_state
from kctl.segment.format.release import Release
from kctl.segment.log.writer_release import writer_release
from kctl.segment.verify.verify import verify
from segment_files import Rec, batch, offset_index, producer_snapshot, time_index, write

Capture = pytest.CaptureFixture[str]
DATA = Path(__file__).parents[2] / "data" / "segments" / "internal"
STATE: dict[str, Any] = {
    "leaderId": 1, "leaderEpoch": 9, "votedId": -1, "votedDirectoryId": "AAAAAAAAAAAAAAAAAAAAAA", "data_version": 1,
}  # fmt: skip
STATIC: dict[str, Any] = {
    "clusterId": "", "leaderId": 1, "leaderEpoch": 1, "votedId": -1, "appliedOffset": 0,
    "currentVoters": [{"voterId": 1}], "data_version": 0,
}  # fmt: skip
MISSING = object()

# --- quorum-state -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "change", "problem"),
    [
        (STATE, {}, None),
        (STATIC, {}, None),
        (STATIC, {"currentVoters": None}, None),
        (STATE, {"later": 1}, None),
        (STATE, {"data_version": 2}, "unknown data_version 2"),
        (STATE, {"data_version": -1}, "unknown data_version -1"),
        (STATE, {"data_version": "1"}, "unknown data_version '1'"),
        (STATE, {"data_version": True}, "unknown data_version True"),
        (STATE, {"data_version": MISSING}, "data_version is missing"),
        (STATE, {"leaderEpoch": MISSING}, "leaderEpoch is missing"),
        (STATE, {"leaderEpoch": None}, "leaderEpoch is 'None'"),
        (STATE, {"leaderId": 2**31}, "leaderId is '2147483648'"),
        (STATE, {"votedDirectoryId": "AAAA"}, "votedDirectoryId is 'AAAA'"),
        (STATE, {"votedDirectoryId": "@" * 22}, f"votedDirectoryId is '{'@' * 22}'"),
        (STATIC, {"currentVoters": [1]}, "currentVoters is '[1]'"),
        (STATIC, {"currentVoters": [{}]}, "voterId is missing"),
    ],
)
def test_quorum_state(state: Mapping[str, Any], change: Mapping[str, Any], problem: str | None) -> None:
    values = {key: value for key, value in {**state, **change}.items() if value is not MISSING}
    data = json.dumps(values).encode()
    if problem is None:
        assert parse_quorum_state(data) == values
        return
    with pytest.raises(BadQuorumState) as caught:
        parse_quorum_state(data)
    assert str(caught.value) == problem


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "the file is empty"),
        (b"\n{}", "the file is empty"),
        (b'{"leaderId":', "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[1]", "not a JSON object"),
    ],
)
def test_a_quorum_state_that_is_none(data: bytes, problem: str) -> None:
    with pytest.raises(BadQuorumState, match=problem):
        parse_quorum_state(data)


def test_quorum_state_is_shown(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "quorum-state"
    path.write_text(json.dumps(STATIC))
    assert main(["segment", "dump", "-o", "json", str(path)]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["kind"] for row in rows} == {"setting"}
    assert {row["key"]: row["value"] for row in rows} == {
        "clusterId": "", "leaderId": "1", "leaderEpoch": "1", "votedId": "-1", "appliedOffset": "0",
        "currentVoters": '[{"voterId": 1}]', "data_version": "0",
    }  # fmt: skip
    path.write_text(json.dumps({**STATIC, "\ud800": "\ud800"}))
    assert main(["segment", "dump", str(path)]) == 0
    path.write_text("{}")
    assert main(["segment", "dump", str(path)]) == 1
    assert "data_version is missing" in capsys.readouterr().err
    assert main(["segment", "verify", str(path)]) == 1
    assert "does not start" in capsys.readouterr().out


# --- the release that wrote a log dir ---------------------------------------------------------------------------------


def _registration(kind: int, node: int, level: int) -> Rec:
    """Return a record of version 0 or 3 with one feature: of a broker (type 0) or a controller (type 27)."""
    feature = b"\2\x11metadata.version" + (7).to_bytes(2, "big") + level.to_bytes(2, "big") + b"\0"
    number, incarnation, endpoints = node.to_bytes(4, "big"), bytes(16), b"\1"
    if kind == 27:
        return Rec(None, b"\1\x1b\0" + number + incarnation + b"\0" + endpoints + feature + b"\0")
    return Rec(None, b"\1\0\0" + number + incarnation + bytes(8) + endpoints + feature + b"\0" + b"\0" + b"\0")


def _feature_level(level: int) -> Rec:
    return Rec(None, b"\1\x0c\0\x11metadata.version" + level.to_bytes(2, "big") + b"\0")


def _log_dir(path: Path, meta: str | None, records: list[Rec], snapshot_records: list[Rec]) -> Path:
    path.mkdir()
    if meta is not None:
        (path / "meta.properties").write_text(meta)
    write(path / "orders-0", 0, [batch(0)])
    if records:
        write(
            path / "__cluster_metadata-0", 0, [batch(0, [control(2, leader_change())], control=True), batch(1, records)]
        )
    if snapshot_records:
        name = "00000000000000000001-0000000001.checkpoint"
        (path / "__cluster_metadata-0" / name).write_bytes(batch(0, snapshot_records))
    return path


KRAFT = "version=1\nnode.id=2\ncluster.id=abc\n"
OLD, NEW = Release.KAFKA_3_9, Release.KAFKA_4_4


@pytest.mark.parametrize(
    ("meta", "records", "in_snapshot", "release"),
    [
        ("version=0\nbroker.id=1\n", [], [], OLD),
        ("broker.id=1\n", [], [], OLD),
        (None, [], [], None),
        (KRAFT, [], [], None),
        (KRAFT, [_feature_level(21)], [], OLD),
        (KRAFT, [_feature_level(22)], [], NEW),
        (KRAFT, [_feature_level(21), _registration(0, 2, 33)], [], NEW),  # upgraded, not finalized
        (KRAFT, [_feature_level(21), _registration(27, 2, 33)], [], NEW),
        (KRAFT, [_registration(0, 2, 21), _registration(0, 1, 33)], [], OLD),  # others are upgraded first
        (KRAFT, [_registration(0, 2, 21), _registration(0, 2, 33)], [], NEW),
        (KRAFT, [_registration(0, 1, 33)], [], NEW),
        (KRAFT, [_registration(0, 2, 33)], [_registration(0, 2, 21)], NEW),
        (KRAFT, [Rec(None, b"\1\0\0short")], [_feature_level(33)], NEW),
        (KRAFT.replace("2", "x"), [_registration(0, 2, 33)], [], NEW),
        (None, [_registration(0, 2, 33)], [], NEW),
    ],
)
def test_writer_release(
    tmp_path: Path, meta: str | None, records: list[Rec], in_snapshot: list[Rec], release: Release | None
) -> None:
    path = _log_dir(tmp_path / "data", meta, records, in_snapshot)
    assert writer_release(path / "orders-0") == release
    assert writer_release(path) == release


def test_a_damaged_metadata_log_decides_nothing(tmp_path: Path) -> None:
    path = _log_dir(tmp_path / "data", KRAFT, [_feature_level(33)], [])
    log = path / "__cluster_metadata-0" / f"{0:020d}.log"
    log.write_bytes(b"\xff" * 3000)
    assert writer_release(path / "orders-0") is None
    log.unlink()
    log.mkdir()
    assert writer_release(path / "orders-0") is None


@pytest.mark.parametrize(
    ("folder", "arguments", "text"),
    [
        (None, [], "controlType: LEADER_CHANGE(2)"),
        (33, [], "LeaderChange: {"),
        (33, ["--kafka-version", "3.9"], "controlType: LEADER_CHANGE(2)"),
        (33, ["--kafka-version", "3.9.2"], "controlType: LEADER_CHANGE(2)"),
        (21, [], "controlType: LEADER_CHANGE(2)"),
        (21, ["--kafka-version", "4.4"], "LeaderChange: {"),
        (21, ["--kafka-version", "4.4.0"], "LeaderChange: {"),
    ],
)
def test_kafka_version(tmp_path: Path, capsys: Capture, folder: int | None, arguments: list[str], text: str) -> None:
    path = _log_dir(tmp_path / "data", KRAFT, [] if folder is None else [_registration(0, 2, folder)], [])
    log = write(path / "orders-0", 0, [batch(0, [control(2, leader_change())], control=True)])
    assert main(["segment", "dump", "-o", "kafka", "--deep-iteration", *arguments, str(log)]) == 0
    assert text in capsys.readouterr().out


@pytest.mark.parametrize("version", ["4", "4.40", "5.0", "3.9x", ""])
def test_versions_that_are_not_supported(tmp_path: Path, capsys: Capture, version: str) -> None:
    log = str(write(tmp_path, 0, [batch(0)]))
    assert main(["segment", "dump", "-o", "kafka", "--kafka-version", version, log]) == 2
    assert "only the output of 3.9 and 4.4 is supported" in capsys.readouterr().err
    assert main(["segment", "dump", "--kafka-version", "4.4", log]) == 2
    assert "requires -o kafka" in capsys.readouterr().err


def test_the_first_offset_of_a_later_segment_is_no_mismatch(tmp_path: Path, capsys: Capture) -> None:
    """The tool of Kafka 4 expects every log to start at 0."""
    logs = [str(write(tmp_path, base, [batch(base, 3)])) for base in (0, 340)]
    arguments = ["segment", "dump", "-o", "kafka", "--deep-iteration", *logs]
    assert main([*arguments, "--kafka-version", "4.4"]) == 0
    assert capsys.readouterr().err == f"Non-consecutive offsets in {logs[1]}\n  -1 is followed by 340\n"
    assert main(arguments) == 0
    assert capsys.readouterr().err == ""
    write(tmp_path, 340, [batch(340, 3), batch(345, 3)])
    assert main([*arguments, "--kafka-version", "4.4"]) == 1
    assert "  -1 is followed by 340\n  342 is followed by 345\nerror: damage in 1 place\n" in capsys.readouterr().err


def test_unknown_control_records_are_reported(tmp_path: Path, capsys: Capture) -> None:
    log = str(write(tmp_path, 0, [batch(0, [control(99, b"")], control=True)]))
    for arguments in (["-o", "kafka", "--deep-iteration"], ["--records"], ["-o", "json", "--cluster-metadata-decoder"]):
        assert main(["segment", "dump", *arguments, log]) == 1, arguments
        assert "1 record could not be decoded" in capsys.readouterr().err


def test_control_records_are_objects(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / FILES[2]
    path.write_bytes(snapshot())
    assert main(["segment", "dump", "-o", "json", "--cluster-metadata-decoder", str(path)]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["control"], row["value"]["type"]) for row in rows] == [
        ("SNAPSHOT_HEADER", "SnapshotHeaderRecord"), ("KRAFT_VERSION", "KRaftVersionRecord"),
        ("KRAFT_VOTERS", "VotersRecord"), (None, "FeatureLevelRecord"), ("SNAPSHOT_FOOTER", "SnapshotFooterRecord"),
    ]  # fmt: skip
    endpoint = {"name": "CONTROLLER", "host": "host-1.lan", "port": 9093}
    assert rows[2]["value"]["data"]["voters"][0]["endpoints"] == [endpoint]


# --- verify -----------------------------------------------------------------------------------------------------------


def test_a_metadata_folder_of_3_9_is_sound(tmp_path: Path) -> None:
    folder = tmp_path / "__cluster_metadata-0"
    shutil.copytree(DATA / "kraft-3.9-cluster_metadata", folder, ignore=shutil.ignore_patterns("*.expected"))
    result = verify([folder])
    assert result.findings == ()
    assert result.checked.files == 12


def test_the_metadata_log_keeps_its_preallocated_indexes(tmp_path: Path) -> None:
    """A clean shutdown trims the indexes of other partitions."""
    indexes = {"index": offset_index([]) + bytes(80), "timeindex": time_index([]) + bytes(120)}
    for name in ("__cluster_metadata-0", "orders-0"):
        write(tmp_path / name, 0, [batch(0)], **indexes)
    (tmp_path / "meta.properties").write_text(KRAFT)
    (tmp_path / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}')
    findings = verify([tmp_path]).findings
    assert {(Path(each.file).parent.name, each.code) for each in findings} == {
        ("orders-0", "index_tail"), ("orders-0", "timeindex_tail"),
    }  # fmt: skip
    assert verify([tmp_path / "__cluster_metadata-0"]).findings == ()
    assert verify([tmp_path / "__cluster_metadata-0" / f"{0:020d}.log"]).findings == ()


def test_a_bootstrap_snapshot_is_checked(tmp_path: Path) -> None:
    write(tmp_path / "orders-0", 0, [batch(0)], snapshot=producer_snapshot())
    (tmp_path / "meta.properties").write_text(KRAFT)
    (tmp_path / "bootstrap.checkpoint").write_bytes(snapshot())
    assert not [each.code for each in verify([tmp_path]).findings if "kraft" in each.code]
    (tmp_path / "bootstrap.checkpoint").write_bytes(snapshot()[:-1])
    assert [each.code for each in verify([tmp_path]).findings if "kraft" in each.code] == ["kraft_snapshot_footer"]
