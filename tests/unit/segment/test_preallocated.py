"""Zeros at the end of a log: log.preallocate leaves them in the active segment, anywhere else they are damage."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from kctl.commands.app import main
from kctl.segment.verify.context import VerifyOptions
from kctl.segment.verify.verify import verify
from segment_files import BASE_TIMESTAMP, batch, offset_index, time_index, write

pytestmark = pytest.mark.usefixtures("one_command_tree")
LOG = batch(0, 10) + batch(10, 10)
NEXT = batch(20, 10)
EMPTY = {"index": b"", "timeindex": b""}
FULL = {"index": bytes(800), "timeindex": bytes(1200)}


@dataclass(frozen=True)
class Case:
    """segments: logs by base offset; fine: whether nothing is wrong; indexes: beside each log."""

    name: str
    segments: dict[int, bytes]
    fine: bool
    indexes: dict[str, bytes]
    clean: bool = False


CASES = [
    Case("a whole segment's zeros", {0: LOG + bytes(1 << 20)}, True, EMPTY),
    Case("one zero", {0: LOG + bytes(1)}, True, EMPTY),
    Case("16 zeros", {0: LOG + bytes(16)}, True, EMPTY),
    Case("17 zeros", {0: LOG + bytes(17)}, True, EMPTY),
    Case("18 zeros", {0: LOG + bytes(18)}, True, EMPTY),
    Case("100,000 zeros", {0: LOG + bytes(100_000)}, True, EMPTY),
    Case("no records yet", {0: bytes(70_000)}, True, EMPTY),
    Case("no records and no indexes yet", {0: bytes(70_000)}, True, {}),
    Case("preallocated indexes", {0: LOG + bytes(5000)}, True, FULL),
    Case("an empty transaction index", {0: LOG + bytes(5000)}, True, {**EMPTY, "txnindex": b""}),
    Case("the second segment", {0: LOG, 20: NEXT + bytes(5000)}, True, EMPTY),
    Case("the second segment is empty", {0: LOG, 20: bytes(5000)}, True, EMPTY),
    Case("an older segment", {0: LOG + bytes(5000), 20: NEXT}, False, EMPTY),
    Case("an older segment, the last is empty", {0: LOG + bytes(5000), 20: b""}, False, EMPTY),
    Case("both segments", {0: LOG + bytes(5000), 20: NEXT + bytes(5000)}, False, EMPTY),
    Case("an older segment of zeros only", {0: bytes(5000), 20: NEXT}, False, EMPTY),
    Case("something behind the zeros", {0: LOG + bytes(5000) + b"\1"}, False, EMPTY),
    Case("a batch behind the zeros", {0: LOG + bytes(5000) + NEXT}, False, EMPTY),
    Case("something far behind the zeros", {0: LOG + bytes(300_000) + b"\1" + bytes(300_000)}, False, EMPTY),
    Case("a batch that is cut, then zeros", {0: LOG + NEXT[:-5] + bytes(5000)}, False, EMPTY),
    Case("a header, then zeros", {0: LOG + NEXT[:30] + bytes(5000)}, False, EMPTY),
    Case("an offset, then zeros", {0: LOG + NEXT[:8] + bytes(5000)}, False, EMPTY),
    Case("behind a clean shutdown", {0: LOG + bytes(5000)}, False, EMPTY, clean=True),
]


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Case:
    found: Case = request.param
    return found


@pytest.fixture
def folder(case: Case, tmp_path: Path) -> Path:
    folder = tmp_path / "orders-0"
    for base, log in case.segments.items():
        closed = {} if base == max(case.segments) else {"timeindex": time_index([(BASE_TIMESTAMP + 9, 9)])}
        write(folder, base, log, **{**case.indexes, **closed})
    if case.clean:
        (tmp_path / ".kafka_cleanshutdown").touch()
    return folder


def test_verify(case: Case, folder: Path) -> None:
    for deep in (False, True):
        result = verify([folder], VerifyOptions(deep=deep))
        assert result.healthy == case.fine, result.findings
        if case.fine:
            assert [found.code for found in result.findings] == ["zero_tail"]


def test_other_commands(case: Case, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = 0 if case.fine or case.clean else 1  # what a clean start does is not for them to say
    for command in ("dump", "dump --records", "dump -o json", "dump -o kafka --records", "stats", "stats -o json"):
        assert main(["segment", *command.split(), str(folder)]) == code, command
    captured = capsys.readouterr()
    if case.fine:
        assert "zero bytes" in captured.err
        assert "damage:" not in captured.err
        assert "error" not in captured.err


def test_two_replicas(case: Case, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if not any(log.strip(b"\0") for log in case.segments.values()):
        return  # there is nothing to compare
    other = tmp_path / "other" / "orders-0"
    shutil.copytree(folder, other)
    code = 0 if case.fine or case.clean else 1
    assert main(["segment", "diff", "-o", "json", str(folder), str(other)]) == code
    assert json.loads(capsys.readouterr().out)["verdict"] == ("same" if code == 0 else "damaged")


@pytest.mark.parametrize(("offset", "code"), [(5, 0), (20, 4)])
def test_find(offset: int, code: int, tmp_path: Path) -> None:
    write(tmp_path / "orders-0", 0, LOG + bytes(5000), **FULL)
    assert main(["segment", "find", str(tmp_path / "orders-0"), "--offset", str(offset)]) == code


def test_indexes_are_written_up_to_the_zeros(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parts = [batch(10 * number, 10) for number in range(40)]
    log = b"".join(parts)
    wrong = {"index": offset_index([(399, 7)]), "timeindex": time_index([])}
    folder = write(tmp_path / "orders-0", 0, log + bytes(50_000), **wrong).parent
    assert main(["segment", "verify", "--repair-index", "--yes", "-o", "json", str(folder)]) == 0
    (row,) = json.loads(capsys.readouterr().out)["indexes"]
    assert row["result"] == "written"
    assert row["note"] is None
    assert row["entries_after"] > 0
