"""verify --repair-index: the entries are a broker's, old files are kept, and an interrupted run leaves whole files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from kctl.commands.app import main
from kctl.errors import Busy, OperationFailed, Refused
from kctl.segment.format.index_entries import extent
from kctl.segment.format.indexes import OFFSET_ENTRY_SIZE, TIME_ENTRY_SIZE
from kctl.segment.log.log_dir_lock import hold, holder, log_dir_of
from kctl.segment.log.source import Source
from kctl.segment.log.transactions import TransactionTracker
from kctl.segment.verify import repair_index
from kctl.segment.verify.context import VerifyOptions
from kctl.segment.verify.findings import INDEX_CODES
from kctl.segment.verify.rebuild_index import rebuild
from kctl.segment.verify.repair_index import IndexRepair, carry_out, plan_repair
from kctl.segment.verify.verify import VerifyResult, verify
from segment_files import (
    BASE_TIMESTAMP,
    batch,
    marker,
    offset_index,
    positions,
    time_index,
    transaction_index,
    with_bytes,
    write,
)

DATA = Path(__file__).parents[2] / "data" / "segments"
T = BASE_TIMESTAMP
PARTS = [batch(number * 10, 10, base_timestamp=T + number * 100) for number in range(5)]
AT = positions(PARTS)
# What a broker with index.interval.bytes=300 makes of it: batches are of 241 bytes, so each second one gets an entry.
INDEX = offset_index([(29, AT[2]), (49, AT[4])])
TIMES = time_index([(T + 209, 29), (T + 409, 49)])
INTERVAL = 300
NAME = f"{0:020d}"


def healthy(folder: Path) -> Path:
    """A log dir's partition."""
    write(folder, 0, PARTS, index=INDEX, timeindex=TIMES)
    return folder


def content(folder: Path) -> dict[str, bytes]:
    """Name → bytes of every file."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def repair(folder: Path, interval: int = INTERVAL) -> list[IndexRepair]:
    return carry_out(plan_repair(verify([folder]).findings, interval_bytes=interval))


def index_codes(result: VerifyResult) -> set[str]:
    return {found.code for found in result.findings} & INDEX_CODES


# --- entries ----------------------------------------------------------------------------------------------------------

# The brokers of the recorded files had index.interval.bytes=256 for these, the default for KRaft's log.
RECORDED = [(log, 256) for log in sorted(DATA.glob("v2/*/*.log"))]
RECORDED += [(log, 4096) for log in sorted(DATA.glob("internal/kraft*/*.log"))]


@pytest.mark.parametrize(("log", "interval"), RECORDED, ids=lambda each: str(each)[-40:])
def test_entries_are_what_a_real_broker_wrote(log: Path, interval: int) -> None:
    """Up to what it preallocates. Files of an active segment were copied while the broker ran: it writes the time
    index's last entry when it closes the segment, as a recovery does at its end."""
    tracker, problem = repair_index._transactions_at(log.parent, int(log.stem))
    rebuilt = rebuild(log, int(log.stem), tracker, interval_bytes=interval)
    assert (rebuilt.stopped, problem) == (None, None)
    assert rebuilt.index == _filled(log.with_suffix(".index"), OFFSET_ENTRY_SIZE)
    times = _filled(log.with_suffix(".timeindex"), TIME_ENTRY_SIZE)
    active = log == max(log.parent.glob("*.log"))
    assert rebuilt.timeindex == times or (active and rebuilt.timeindex[:-TIME_ENTRY_SIZE] == times)
    transactions = log.with_suffix(".txnindex")
    assert rebuilt.txnindex == (transactions.read_bytes() if transactions.exists() else b"")


def _filled(path: Path, size: int) -> bytes:
    with Source(path) as source:
        return bytes(source.read(0, extent(source, size).entries * size))


def test_the_interval_counts_from_the_last_entry(tmp_path: Path) -> None:
    log = write(tmp_path, 0, PARTS)
    for interval, expected in [(0, 4), (240, 4), (241, 2), (300, 2), (481, 2), (482, 1), (4096, 0)]:
        rebuilt = rebuild(log, 0, TransactionTracker(), interval_bytes=interval)
        assert len(rebuilt.index) == expected * OFFSET_ENTRY_SIZE, interval


def test_the_latest_record_is_the_last_time_entry(tmp_path: Path) -> None:
    """Also when it is not in the last batch; an entry is made only for a later time."""
    parts = [batch(0, base_timestamp=T + 500), batch(1, base_timestamp=T), batch(2, base_timestamp=T + 700), batch(3)]
    rebuilt = rebuild(write(tmp_path, 0, parts), 0, TransactionTracker(), interval_bytes=0)
    assert rebuilt.timeindex == time_index([(T + 500, 0), (T + 700, 2)])
    assert rebuilt.index == offset_index(list(zip((1, 2, 3), positions(parts)[1:], strict=True)))


# --- files ------------------------------------------------------------------------------------------------------------

WRONG = [
    ("index", None),
    ("index", INDEX[:8] + b"\1" + INDEX[9:]),
    ("index", INDEX[8:] + INDEX[:8]),
    ("index", INDEX + b"\1\2"),
    ("index", b"garbage that is no index at all"),
    ("timeindex", None),
    ("timeindex", TIMES[12:] + TIMES[:12]),
    ("timeindex", time_index([(T + 208, 29)])),
    ("txnindex", transaction_index([(1, 2, 3, 4)])),
    ("txnindex", b"\1"),
]


@pytest.mark.parametrize(("suffix", "data"), WRONG)
def test_a_wrong_index_is_written_anew(suffix: str, data: bytes | None, tmp_path: Path) -> None:
    folder = healthy(tmp_path / "orders-0")
    path = folder / f"{NAME}.{suffix}"
    path.unlink(missing_ok=True)
    like = folder / f"{NAME}.log"
    if data is not None:
        path.write_bytes(data)
        path.chmod(0o640)
        like = path
    if os.geteuid() == 0:
        os.chown(like, 4711, 4712)
    before, status = content(folder), like.stat()
    (row,) = repair(folder)
    assert row.file == str(path)
    assert row.result == "written"
    expected = {"index": INDEX, "timeindex": TIMES, "txnindex": b""}[suffix]
    assert path.read_bytes() == expected
    now = path.stat()
    assert (now.st_uid, now.st_gid, now.st_mode) == (status.st_uid, status.st_gid, status.st_mode)
    added = {name: each for name, each in content(folder).items() if before.get(name) != each} | {path.name: expected}
    if data is None:
        assert (row.entries_before, row.kept) == (None, None)
        assert added == {path.name: expected}
    else:
        assert row.kept is not None
        assert Path(row.kept).name.startswith(f"{path.name}.old-")
        assert added == {path.name: expected, Path(row.kept).name: data}
    result = verify([folder], VerifyOptions(deep=True))
    assert not index_codes(result)
    assert result.healthy
    assert repair(folder) == []


def test_transactions_of_earlier_segments_are_known(tmp_path: Path) -> None:
    """A broker's folder with transactions over six segments: each .txnindex comes back as it was."""
    folder = tmp_path / "orders-0"
    folder.mkdir()
    for path in (DATA / "v2" / "txn").iterdir():
        if path.suffix != ".expected":
            (folder / path.name).write_bytes(path.read_bytes())
    wanted = {path.name: path.read_bytes() for path in folder.glob("*.txnindex")}
    assert len(wanted) == 3
    for name in wanted:
        (folder / name).unlink()
    assert index_codes(verify([folder])) == {"txnindex_lacks"}
    repair(folder, 256)
    assert {path.name: path.read_bytes() for path in folder.glob("*.txnindex")} == wanted
    for path in folder.glob("*.snapshot"):  # then the log is read from its beginning
        path.unlink()
    for name in wanted:
        (folder / name).unlink()
    repair(folder, 256)
    assert {path.name: path.read_bytes() for path in folder.glob("*.txnindex")} == wanted


def test_an_index_goes_up_to_the_damage(tmp_path: Path) -> None:
    """There a broker's recovery would cut the log."""
    folder = healthy(tmp_path / "orders-0")
    damaged = [*PARTS[:3], with_bytes(PARTS[3], 80, b"\xff"), PARTS[4]]
    write(folder, 0, damaged, index=INDEX[8:] + INDEX[:8])
    (row,) = repair(folder)
    assert row.note == f"the log is damaged at {AT[3]}: the CRC does not match"
    assert (folder / f"{NAME}.index").read_bytes() == INDEX[:8]
    assert {found.code for found in verify([folder]).findings} == {"batch_crc", "unknown_file"}


@pytest.mark.parametrize(
    ("parts", "note"),
    [
        ([*PARTS, PARTS[1], batch(50)], f"offset 19 at {AT[4] + len(PARTS[4])} follows offset 49"),
        (
            [PARTS[0], batch(2**31 + 10)],
            f"offset {2**31 + 10} at {AT[1]} does not fit into a segment with base offset 0",
        ),
        ([batch(0, producer=(7, 0, 0), transactional=True), batch(1, producer=(7, 0, -1), transactional=True,
          control=True)], f"the marker at {len(batch(0))} cannot be read: a control record without a type"),
        ([*PARTS, bytes(100), b"!"],
         f"the log is damaged at {AT[4] + len(PARTS[4])}: the batch length 0 is below the minimum of 14"),
        ([*PARTS, bytes(100)], None),  # log.preallocate
    ],
)  # fmt: skip
def test_where_a_broker_would_stop(parts: list[bytes], note: str | None, tmp_path: Path) -> None:
    log = write(tmp_path, 0, parts)
    assert rebuild(log, 0, TransactionTracker(), interval_bytes=0).stopped == note


def test_an_index_is_not_larger_than_a_broker_allows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kctl.segment.verify.rebuild_index.MAX_INDEX_BYTES", 16)
    rebuilt = rebuild(write(tmp_path, 0, PARTS), 0, TransactionTracker(), interval_bytes=0)
    assert rebuilt.stopped == f"the index is full at {AT[3]}: 16 bytes"
    assert len(rebuilt.index) == 16


def test_what_is_right_is_left_alone(tmp_path: Path) -> None:
    """Another interval makes other entries, that are as right."""
    folder = healthy(tmp_path / "orders-0")
    assert plan_repair(verify([folder]).findings, interval_bytes=0).indexes == ()


# --- brokers ----------------------------------------------------------------------------------------------------------

LOCKING = """
import fcntl, sys
file = open(sys.argv[1], "r+b")
fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def another_process_holds(lock: Path) -> Iterator[int]:
    """Its process id, while it holds the lock as Java's FileChannel does."""
    lock.touch()
    argv = [sys.executable, "-c", LOCKING, str(lock)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process.pid
        process.communicate("")


def broken(tmp_path: Path) -> Path:
    """A partition in a log dir, whose index is wrong."""
    folder = healthy(tmp_path / "data" / "orders-0")
    (tmp_path / "data" / "meta.properties").write_text("broker.id=1\n", encoding="utf-8")
    (folder / f"{NAME}.index").write_bytes(INDEX[8:])
    (folder / f"{NAME}.index").write_bytes(INDEX[8:] + INDEX[:8])
    return folder


def test_a_running_broker_is_not_disturbed(tmp_path: Path) -> None:
    folder = broken(tmp_path)
    lock = folder.parent / ".lock"
    with another_process_holds(lock) as process:
        plan = plan_repair(verify([folder]).findings, interval_bytes=INTERVAL)
        assert plan.warnings == (f"process {process} holds {lock}: stop the broker before writing indexes",)
        before = content(folder)
        with pytest.raises(Busy, match=f"process {process} holds"):
            carry_out(plan)
        assert content(folder) == before
    assert lock.exists()
    assert carry_out(plan)[0].result == "written"
    assert lock.exists()


def test_no_broker_can_start_meanwhile(tmp_path: Path) -> None:
    """A broker that stopped cleanly has removed its lock file; it is made for the time being."""
    log_dir = broken(tmp_path).parent
    lock = log_dir / ".lock"
    code = (
        "from pathlib import Path\nfrom kctl.segment.log.log_dir_lock import holder\n"
        f"print(holder(Path({str(log_dir)!r})))"
    )
    with hold(log_dir):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout == f"process {os.getpid()}\n"
    assert not lock.exists()
    assert holder(log_dir) is None


def test_a_copy_is_in_no_log_dir(tmp_path: Path) -> None:
    folder = broken(tmp_path)
    (folder.parent / "meta.properties").unlink()
    assert log_dir_of(folder) is None
    plan = plan_repair(verify([folder]).findings, interval_bytes=INTERVAL)
    assert plan.warnings == (f"{folder} is not in a log dir: make sure that no broker uses it",)
    assert carry_out(plan)[0].result == "written"


def test_a_log_that_changed_since(tmp_path: Path) -> None:
    folder = broken(tmp_path)
    plan = plan_repair(verify([folder]).findings, interval_bytes=INTERVAL)
    with (folder / f"{NAME}.log").open("ab") as file:
        file.write(batch(50))
    before = content(folder)
    with pytest.raises(Refused, match="has changed"):
        carry_out(plan)
    assert content(folder) == before


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    folder = broken(tmp_path)
    path, elsewhere = folder / f"{NAME}.index", tmp_path / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    before = elsewhere.read_bytes()
    with pytest.raises(Refused, match="not a regular file"):
        repair(folder)
    assert elsewhere.read_bytes() == before


# --- interruptions ----------------------------------------------------------------------------------------------------

STEPS = ["os.fsync", "os.fchmod", "_link_old", "sync_folder", "second sync_folder", "Path.replace", "hardlink_to"]


@pytest.mark.parametrize("step", STEPS)
def test_interrupted_anywhere(step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is the old one or the new one, and the next run ends what was begun, with the old file kept once."""
    folder = broken(tmp_path)
    path = folder / f"{NAME}.index"
    old = path.read_bytes()
    with monkeypatch.context() as patch:
        _interrupt(patch, step)
        with pytest.raises(KeyboardInterrupt):
            repair(folder)
    assert path.read_bytes() in {old, INDEX}
    assert holder(folder.parent) is None
    repair(folder)
    assert path.read_bytes() == INDEX
    kept = list(folder.glob("*.old-*"))
    assert [each.read_bytes() for each in kept] == [old]
    assert not [name for name in content(folder) if name.endswith(".new") and path.read_bytes() != INDEX]


def _interrupt(patch: pytest.MonkeyPatch, step: str) -> None:
    calls = 0

    def stop(*args: object) -> None:
        nonlocal calls
        calls += 1
        if step.startswith("second") and calls < 2:
            return
        raise KeyboardInterrupt

    if step.startswith("os."):
        patch.setattr(os, step[3:], stop)
    elif step in {"Path.replace", "hardlink_to"}:
        patch.setattr(Path, step.removeprefix("Path."), stop)
    else:
        patch.setattr(repair_index, step.removeprefix("second "), stop)


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = broken(tmp_path)
    old = (folder / f"{NAME}.index").read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OperationFailed, match="No space left"):
        repair(folder)
    assert (folder / f"{NAME}.index").read_bytes() == old


def test_a_file_system_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = broken(tmp_path)
    old = (folder / f"{NAME}.index").read_bytes()

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    (row,) = repair(folder)
    assert row.kept is not None
    assert Path(row.kept).read_bytes() == old


# --- the command ------------------------------------------------------------------------------------------------------


def run(*args: str | Path) -> int:
    return main(["segment", "verify", *map(str, args)])


def test_fine_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(healthy(tmp_path / "orders-0")) == 0
    out, err = capsys.readouterr()
    assert out == (
        "no damage in headers, CRCs and indexes (records not decoded, use --deep): "
        "1 partition, 1 segment, 3 files, 5 batches, 50 records, 1.21 kB checked\n"
    )
    assert run("--deep", tmp_path / "orders-0") == 0
    assert capsys.readouterr().out.startswith("fine: 1 partition, ")
    assert err == ""


def test_findings_as_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = broken(tmp_path)
    assert run("--deep", folder) == 1
    out, err = capsys.readouterr()
    finding = f"the entry (offset 29, position {AT[2]}) follows (offset 49, position {AT[4]})"
    assert out.splitlines()[:3] == [
        str(folder / f"{NAME}.index"),
        "SEVERITY  CODE         AT  OFFSET  FINDING",
        f"error     index_order   8       -  {finding}",
    ]
    assert out.splitlines()[-1] == "1 error: 1 partition, 1 segment, 3 files, 5 batches, 50 records, 1.21 kB checked"
    assert "reads at wrong positions" in out
    assert err == (
        "error: not healthy: 1 error\n  run `kctl segment verify --repair-index` to see which indexes can be rebuilt\n"
    )


def test_findings_as_json_and_csv(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = broken(tmp_path)
    assert run(folder, "-o", "json") == 1
    result = json.loads(capsys.readouterr().out)
    assert list(result) == [
        "paths", "deep", "checked", "errors", "warnings", "infos", "denied", "findings", "omitted",
    ]  # fmt: skip
    assert list(result["checked"]) == [
        "log_dir_count", "partition_count", "segments", "files", "batches", "records", "size_bytes",
    ]  # fmt: skip
    assert result["findings"] == [
        {
            "code": "index_order",
            "severity": "error",
            "file": str(folder / f"{NAME}.index"),
            "position": 8,
            "offset": None,
            "message": f"the entry (offset 29, position {AT[2]}) follows (offset 49, position {AT[4]})",
            "effect": "reads at wrong positions until the index is rebuilt; a start after a clean shutdown does not "
            "detect it",
            "first_offset": None,
            "last_offset": None,
        }
    ]
    assert run(folder, "-o", "csv") == 1
    header = "code,severity,file,position,offset,message,effect,first_offset,last_offset"
    assert capsys.readouterr().out.startswith(f"{header}\nindex_order,error,")


def test_a_dry_run_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = broken(tmp_path)
    before = content(folder)
    for options in (["-v"], ["--dry-run"], ["--dry-run", "--yes"]):
        assert run("--repair-index", "--index-interval-bytes", str(INTERVAL), *options, folder) == 1
        out, err = capsys.readouterr()
        assert "would write" in out
        assert "nothing was written: " in err
        assert ("this was a dry run" in err) == ("--dry-run" in options)
        assert ("there is no terminal to confirm on" in err) == ("--dry-run" not in options)
        assert content(folder) == before


def test_yes_writes_and_looks_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = broken(tmp_path)
    arguments: list[str | Path] = [
        "--repair-index",
        f"--index-interval-bytes={INTERVAL}",
        "--yes",
        "-o",
        "json",
        folder,
    ]
    assert run(*arguments) == 0
    result = json.loads(capsys.readouterr().out)
    assert list(result) == ["dry_run", "indexes", "verified"]
    assert result["dry_run"] is False
    (row,) = result["indexes"]
    assert {key: row[key] for key in row if key not in {"file", "kept"}} == {
        "codes": ["index_order"],
        "entries_before": 2,
        "entries_after": 2,
        "bytes_after": 16,
        "note": None,
        "result": "written",
    }
    assert result["verified"]["errors"] == 0
    assert (folder / f"{NAME}.index").read_bytes() == INDEX
    assert run(*arguments) == 0
    assert json.loads(capsys.readouterr().out)["indexes"] == []


def test_a_held_log_dir_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = broken(tmp_path)
    before = content(folder)
    with another_process_holds(folder.parent / ".lock"):
        assert run("--repair-index", "--yes", folder) == 4
    assert "a broker uses this log dir" in capsys.readouterr().err
    assert content(folder) == before


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["nowhere"], 4), (["--dry-run", "orders-0"], 2), (["notes.txt"], 2), (["--max-findings", "0", "orders-0"], 2)],
)
def test_wrong_use(arguments: list[str], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    healthy(tmp_path / "orders-0")
    (tmp_path / "notes.txt").write_text("hello", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert run(*arguments) == code


def test_an_aborted_transaction_is_found_again(tmp_path: Path) -> None:
    """From the log alone: the entry says who, from where to where, and the last stable offset."""
    parts = [
        batch(0, 5, producer=(7, 0, 0), transactional=True),
        batch(5, 5, producer=(8, 0, 0), transactional=True),
        marker(10, (7, 0), commit=False),
        marker(11, (8, 0), commit=False),
    ]
    folder = write(tmp_path / "orders-0", 0, parts, index=b"", timeindex=b"").parent
    repair(folder)
    assert (folder / f"{NAME}.txnindex").read_bytes() == transaction_index([(7, 0, 10, 5), (8, 5, 11, 12)])


# --- anything at all --------------------------------------------------------------------------------------------------


def _mutated(data: bytes, random: Random) -> bytes:
    place, kind = random.randrange(len(data) + 1), random.randrange(5)
    if kind == 0 and data:
        return with_bytes(data, place - 1 if place else 0, random.randbytes(1))
    if kind == 1:
        return data[:place]
    if kind == 2:
        number = random.choice([b"\xff" * 8, b"\x7f" + b"\xff" * 7, b"\x80" + bytes(7), bytes(8)])
        return with_bytes(data, place, number)
    return data[:place] + random.randbytes(random.randrange(100)) + (data[place:] if kind == 3 else b"")


@pytest.mark.parametrize("seed", range(8))
def test_damaged_folders_of_brokers(seed: int, tmp_path: Path) -> None:
    """Whatever is in the files, verify ends with findings; indexes written anew are fine where their log is."""
    random = Random(seed)
    folders = sorted({log.parent for log in DATA.glob("v*/*/*.log")})
    for number in range(20):
        folder = tmp_path / f"orders-{number}"
        folder.mkdir()
        files = [path for path in random.choice(folders).iterdir() if path.suffix != ".expected"]
        damaged = random.choice(files)
        for path in files:
            data = path.read_bytes()
            (folder / path.name).write_bytes(_mutated(data, random) if path == damaged else data)
        result = verify([folder], VerifyOptions(deep=True))
        carry_out(plan_repair(result.findings, interval_bytes=256))
        if damaged.suffix != ".log":
            assert not index_codes(verify([folder])), (damaged, result.findings)


def test_more_open_transactions_than_are_followed(tmp_path: Path) -> None:
    """Then .txnindex cannot be known: it goes up to there, and that is said."""
    batches = [batch(number, 1, producer=(number, 0, 0), transactional=True) for number in range(4)]
    log = write(tmp_path, 0, [*batches, marker(4, (3, 0), commit=False)])
    rebuilt = rebuild(log, 0, TransactionTracker(max_open=2), interval_bytes=4096)
    assert rebuilt.stopped is not None
    assert "transactions are open at" in rebuilt.stopped
    assert rebuild(log, 0, TransactionTracker(), interval_bytes=4096).stopped is None
