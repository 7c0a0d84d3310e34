"""kctl segment as a person meets it: files that are none, terminals, pipes that close, sparse gigabytes, bombs.

The console script runs as a process of its own where that matters; what takes long to start otherwise runs in this one.
"""

from __future__ import annotations

import gzip
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import cramjam
import lz4.frame
import pytest
from rich.cells import cell_len

import segment_files as build
from kctl.commands.app import main
from kctl.segment.dump.decoders import TEXT
from kctl.segment.dump.dump import DumpOptions, DumpRun
from kctl.segment.dump.kafka_text import KafkaText
from kctl.segment.dump.kafka_text_options import KafkaTextOptions
from kctl_testing import SCRIPT
from peak_memory import PeakMemory
from segment_files import Rec

DATA = Path(__file__).parents[2] / "data" / "segments"
NAME = "00000000000000000000"
GOOD = DATA / "v2" / "none" / f"{NAME}.log"
MOST_RSS_BYTES = 100 << 20
HOSTILE = "\x1b[2J\x1b]0;title\x07\r\n\x00\x7f\x9b31m\u202egnp.exe\u2028"

Capture = pytest.CaptureFixture[str]


# --- wrong command lines and files that are none --------------------------------------------------------------------

WRONG = [
    ("dump", 2, "no file given"),
    ("dump --nosuch {good}", 2, "--nosuch"),
    ("dump -o xml {good}", 2, "xml"),
    ("dump -o yaml {good}", 2, "yaml"),
    ("dump --offsets 5..1 {good}", 2, "5..1"),
    ("dump --offsets x {good}", 2, "'x'"),
    ("dump --offsets " + "9" * 5000 + " {good}", 2, "is not a range"),
    ("dump --since -999999999d {good}", 2, "not a time"),
    ("dump --since -99999999999999d {good}", 2, "not a time"),
    ("dump --until 99999-01-01 {good}", 2, "not a time"),
    ("dump --key-regex ( {good}", 2, "regular expression"),
    ("dump --grep a{99999999999999999999} {good}", 2, "regular expression"),
    ("dump --limit 0 {good}", 2, "--limit"),
    ("dump --jobs 0 {good}", 2, "--jobs"),
    ("dump --max-message-size -5 {good}", 2, "size"),
    ("dump --max-bytes -1 {good}", 2, "--max-bytes"),
    ("dump --key-decoder-class nosuch {good}", 2, "nosuch"),
    ("dump -o kafka --value-decoder-class nosuch {good}", 2, "nosuch"),
    ("dump {folder}/nosuch.log", 4, "nosuch.log does not exist"),
    ("dump {folder}/fifo.log", 2, "is not a file"),
    ("dump {folder}/folder.log", 2, "has no log segment"),
    ("dump {folder}", 2, "is not a file"),
    ("dump /dev/zero", 2, "/dev/zero"),
    ("dump -o kafka /dev/zero", 2, "/dev/zero"),
    ("dump -o kafka {folder}/00000000000000000007.log", 2, "is not a file"),
    ("dump --files {good},{folder}/00000000000000000099.log -o kafka", 4, "99.log does not exist"),
    ("dump -o kafka {folder}/nope.log", 4, "nope.log does not exist"),
    ("find {partition}", 2, "--offset"),
    ("find {partition} --offset -1", 2, "--offset"),
    ("find {partition} --offset 99999999999999999999", 4, "was not found"),
    ("find {folder}/nosuch --offset 1", 4, "does not exist"),
    ("verify {folder}/nosuch", 4, "does not exist"),
    ("verify {folder}/fifo.log", 2, "fifo.log"),
    ("verify {folder}", 1, "error"),
    ("stats {folder}/nosuch", 4, "does not exist"),
    ("stats {folder}", 2, "{folder}"),
    ("stats {partition} --retention-ms soon", 2, "soon"),
    ("diff {partition}", 2, "DIR2"),
    ("diff {partition} {folder}/nosuch", 4, "does not exist"),
    ("diff {partition} {folder}", 2, "{folder}"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder without a log, in which what is called a log is none."""
    for name in ("fifo", "00000000000000000007"):
        os.mkfifo(tmp_path / f"{name}.log")
    (tmp_path / "folder.log").mkdir()
    return tmp_path


@pytest.mark.usefixtures("one_command_tree")
@pytest.mark.parametrize(("line", "code", "says"), WRONG, ids=[row[0][:40] for row in WRONG])
def test_wrong(folder: Path, capsys: Capture, line: str, code: int, says: str) -> None:
    names = {"{good}": str(GOOD), "{folder}": str(folder), "{partition}": str(GOOD.parent)}

    def named(text: str) -> str:
        for name, path in names.items():
            text = text.replace(name, path)
        return text

    assert main(["segment", *map(named, line.split())]) == code
    told = capsys.readouterr().err
    assert named(says) in told
    assert "unexpected" not in told


@pytest.mark.usefixtures("one_command_tree")
def test_an_empty_log_and_one_without_an_offset(tmp_path: Path, capsys: Capture) -> None:
    empty, named = tmp_path / f"{NAME}.log", tmp_path / "copy.log"
    empty.write_bytes(b"")
    named.write_bytes(GOOD.read_bytes())
    for command in ("dump", "verify", "stats"):
        assert main(["segment", command, str(empty)]) == 0
    assert main(["segment", "dump", str(named)]) == 0
    assert main(["segment", "dump", "-o", "kafka", str(named)]) == 1  # the JVM's tool dies of the name
    assert "copy.log is not named after a base offset" in capsys.readouterr().err


@pytest.mark.usefixtures("one_command_tree")
def test_missing_companions(tmp_path: Path, capsys: Capture) -> None:
    """Indexes without a log, a time index without an index: a clear line, and nothing is made beside them."""
    for suffix in (".index", ".timeindex"):
        (tmp_path / f"{NAME}{suffix}").write_bytes(GOOD.with_suffix(suffix).read_bytes())
        assert main(["segment", "dump", "-o", "kafka", str(tmp_path / f"{NAME}{suffix}")]) == 1
        assert f"{NAME}.log does not exist" in capsys.readouterr().err
    (tmp_path / f"{NAME}.index").unlink()
    (tmp_path / f"{NAME}.log").write_bytes(GOOD.read_bytes())
    assert main(["segment", "dump", "-o", "kafka", str(tmp_path / f"{NAME}.timeindex")]) == 1
    assert f"{NAME}.index does not exist" in capsys.readouterr().err
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".log", ".timeindex"]


COMMANDS = ("dump", "dump -o json --records", "verify", "stats", "find --offset 1", "diff {good}")


@pytest.fixture
def forbidden() -> Iterator[Path]:
    """A partition that nobody may read, and nobody's rights for the test: root may read everything.

    The modules of all commands are imported before.
    """
    folder = Path(tempfile.mkdtemp())  # pytest's own folders are root's alone
    folder.chmod(0o755)
    partition = folder / "orders-0"
    partition.mkdir()
    (partition / f"{NAME}.log").write_bytes(GOOD.read_bytes())
    for command in COMMANDS:
        main(["segment", *command.replace("{good}", str(GOOD.parent)).split(), str(GOOD.parent)])
    root = os.geteuid() == 0
    try:
        if root:
            shutil.copytree(GOOD.parent, folder / "good-0")
            for path in (folder / "good-0", *(folder / "good-0").iterdir(), partition, *partition.iterdir()):
                os.chown(path, 65534, -1)
            os.seteuid(65534)
        yield partition
    finally:
        if root:
            os.seteuid(0)
        partition.chmod(0o700)
        shutil.rmtree(folder)


@pytest.mark.usefixtures("one_command_tree")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("inner", [True, False], ids=["file", "folder"])
def test_permission_denied(forbidden: Path, capsys: Capture, command: str, inner: bool) -> None:
    """The log itself, or the folder around it."""
    log = forbidden / f"{NAME}.log"
    (log if inner else forbidden).chmod(0)
    capsys.readouterr()
    good = forbidden.parent / "good-0"
    code = main(["segment", *command.replace("{good}", str(good)).split(), str(log)])
    told = capsys.readouterr()
    assert "permission denied" in told.err + told.out
    assert code == 4, told.err


# --- processes ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """code: as the shell has it; peak_bytes: the largest resident set."""

    code: int
    out: bytes
    err: str
    seconds: float
    peak_bytes: int


def run(folder: Path, *args: str, seconds: float = 30) -> Run:
    """The console script with its streams in files."""
    environment = {**os.environ, "HOME": str(folder), "COLUMNS": "80"}
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        started = time.monotonic()
        process = subprocess.Popen(
            [str(SCRIPT), "segment", *args], stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment
        )
        memory = PeakMemory(process.pid)
        while True:
            memory.look()
            pid, status = os.waitpid(process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() - started > seconds:
                process.kill()
                os.waitpid(process.pid, 0)
                pytest.fail(f"kctl segment {' '.join(args)} took longer than {seconds:g} s")
            time.sleep(0.01)
        process.returncode = os.waitstatus_to_exitcode(status)
    return Run(
        process.returncode, (folder / "out").read_bytes(), (folder / "err").read_text(errors="replace"),
        time.monotonic() - started, memory.peak_bytes,
    )  # fmt: skip


def _sparse(path: Path, size: int, head: bytes = b"") -> Path:
    path.write_bytes(head)
    os.truncate(path, size)
    return path


EVERY = (["dump"], ["dump", "--records"], ["dump", "-o", "kafka", "--print-data-log"], ["verify", "--deep"], ["stats"])


@pytest.mark.parametrize("args", EVERY, ids=" ".join)
def test_gigabytes_of_zeros(tmp_path: Path, args: list[str]) -> None:
    log = _sparse(tmp_path / f"{NAME}.log", 4 << 30, GOOD.read_bytes())
    found = run(tmp_path, *args, str(log), seconds=20)
    assert found.code == 1, found.err
    assert found.peak_bytes < MOST_RSS_BYTES


@pytest.mark.long
@pytest.mark.parametrize(
    "name", [f"{NAME}.index", f"{NAME}.timeindex", f"{NAME}.txnindex", f"{NAME}.snapshot", "leader-epoch-checkpoint"]
)
def test_gigabytes_beside_a_log(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    (folder / f"{NAME}.log").write_bytes(GOOD.read_bytes())
    (folder / f"{NAME}.index").write_bytes(b"")
    hostile = _sparse(folder / name, 1 << 30)
    commands = [["verify", str(folder)], ["find", str(folder), "--offset", "20"], ["stats", str(folder)]]
    if not name.endswith(".txnindex"):  # there zeros are entries, and all are printed
        commands.append(["dump", "-o", "kafka", str(hostile)])
    for args in commands:
        found = run(tmp_path, *args, seconds=20)
        assert found.code in {0, 1}, found.err
        assert "unexpected" not in found.err
        assert found.peak_bytes < MOST_RSS_BYTES, args


def _header_only(size: int) -> bytes:
    return struct.pack(">qiibIhiqqqhii", 0, size - 12, 0, 2, 1, 0, 0, 0, 0, -1, -1, -1, 1)


@pytest.mark.long
@pytest.mark.parametrize("args", EVERY, ids=" ".join)
def test_a_batch_larger_than_memory_may_be(tmp_path: Path, args: list[str]) -> None:
    """It lies: there is nothing but zeros in it."""
    log = _sparse(tmp_path / f"{NAME}.log", 256 << 20, _header_only((256 << 20) - 1000))
    with log.open("r+b") as file:
        file.seek((256 << 20) - 1000)
        file.write(build.batch(1, 3)[:900])
    found = run(tmp_path, *args, str(log), seconds=30)
    assert found.code == 1, found.err
    assert found.peak_bytes < MOST_RSS_BYTES


@pytest.fixture(scope="module")
def bomb() -> bytes:
    """522 kB that unpack to 512 MB: one record, as its length says. Its zeros are packed once and repeated."""
    record, zeros = build.varint(512 << 20) + bytes(3), bytes(1 << 20)
    packer, crc = zlib.compressobj(9, wbits=-15), zlib.crc32(record)
    head = packer.compress(record) + packer.flush(zlib.Z_FULL_FLUSH)
    body = packer.compress(zeros) + packer.flush(zlib.Z_FULL_FLUSH)
    for _ in range(512):
        crc = zlib.crc32(zeros, crc)
    trailer = struct.pack("<II", crc, len(record) + (512 << 20))
    packed = gzip.compress(b"", mtime=0)[:10] + head + body * 512 + packer.flush() + trailer
    assert len(packed) < 600_000
    assert zlib.decompressobj(31).decompress(packed, 100)[: len(record) + 2] == record + bytes(2)
    return packed


@pytest.mark.parametrize("args", EVERY[1:], ids=" ".join)
def test_a_bomb(tmp_path: Path, bomb: bytes, args: list[str]) -> None:
    log = build.write(tmp_path, 0, [build.batch(0, 1, codec="gzip", payload=bomb), build.batch(1, 2)])
    found = run(tmp_path, *args, str(log), seconds=20)
    assert found.code == 1, found.err
    assert found.peak_bytes < MOST_RSS_BYTES


def test_tiny_frames_take_no_longer_than_their_size(tmp_path: Path) -> None:
    """Each is cheap; copying what is behind each of them would take minutes."""
    block = bytes(cramjam.snappy.compress_raw(b"\0"))
    xerial = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + (struct.pack(">i", len(block)) + block) * 100_000
    payloads = {"gzip": gzip.compress(b"", mtime=0) * 50_000, "lz4": lz4.frame.compress(b"") * 50_000, "snappy": xerial}
    parts = [build.batch(n, 1, codec=codec, payload=payloads[codec]) for n, codec in enumerate(payloads)]
    log = build.write(tmp_path, 0, parts)
    found = run(tmp_path, "dump", "-o", "kafka", "--print-data-log", str(log), seconds=15)
    assert found.code == 1
    assert found.peak_bytes < MOST_RSS_BYTES


@pytest.mark.parametrize("options", [[], ["--max-message-size", "1"]], ids=" ".join)
def test_large_records_are_printed_as_kafka_does(tmp_path: Path, options: list[str]) -> None:
    """Its --max-message-size (5 MB) is about indexes only; topics may allow larger messages."""
    parts = [build.batch(n, [Rec(value=b"v" * (6 << 20))], codec=codec) for n, codec in enumerate(build.CODECS)]
    log = build.write(tmp_path, 0, parts)
    found = run(tmp_path, "dump", "-o", "kafka", "--print-data-log", *options, str(log))
    assert found.code == 0, found.err
    assert found.out.count(b" payload: " + b"v" * (6 << 20) + b"\n") == len(parts)


def test_huge_values_in_tables(tmp_path: Path) -> None:
    """A small file with a value of 50 MB of control characters: a table shows its beginning."""
    log = build.write(tmp_path, 0, [build.batch(0, [Rec(b"k", bytes(50 << 20))], codec="gzip")])
    found = run(tmp_path, "dump", "--records", str(log), seconds=20)
    assert found.code == 0
    assert len(found.out) < 100_000
    assert found.peak_bytes < 4 * MOST_RSS_BYTES  # within --max-message-size: it is read


# --- pipes and signals ----------------------------------------------------------------------------------------------

FORMATS = (["--records"], ["--records", "-o", "json"], ["--records", "-o", "csv"], ["-o", "kafka", "--print-data-log"])


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """More than any pipe holds."""
    parts = [build.batch(number * 100, [Rec(value=b"v" * 200)] * 100) for number in range(200)]
    return build.write(tmp_path_factory.mktemp("large"), 0, parts)


@pytest.mark.parametrize("options", FORMATS, ids=" ".join)
def test_a_pipe_that_closes(large: Path, options: list[str]) -> None:
    process = subprocess.Popen(
        [str(SCRIPT), "segment", "dump", *options, str(large)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout
    assert process.stdout.readline()
    process.stdout.close()
    assert process.wait(20) == 0
    assert process.stderr
    assert process.stderr.read() == b""
    process.stderr.close()


@pytest.mark.parametrize("options", FORMATS, ids=" ".join)
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_streams_that_are_not_there(large: Path, options: list[str], closed: str) -> None:
    line = f'"$0" segment dump "$@" {closed}'
    done = subprocess.run(
        ["/bin/sh", "-c", line, str(SCRIPT), *options, str(GOOD)],
        capture_output=True,
        timeout=20,
        check=False,
    )
    assert b"Traceback" not in done.stderr
    assert b"unexpected" not in done.stderr
    if closed != ">&-":
        assert done.returncode == 0
        assert done.stdout


@pytest.mark.parametrize("options", [*FORMATS[:3], []], ids=" ".join)
def test_ctrl_c_ends_a_follow(tmp_path: Path, options: list[str]) -> None:
    log = build.write(tmp_path, 0, [build.batch(0, 2)])
    process = subprocess.Popen(
        [str(SCRIPT), "segment", "dump", "--follow", *options, str(log)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        assert process.stdout
        assert _read_some(process.stdout.fileno())
        with log.open("ab") as file:
            file.write(build.batch(2, [Rec(b"later")]))
        while b"later" not in _read_some(process.stdout.fileno()) and options:
            pass
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130
    finally:
        process.kill()
        _, told = process.communicate()
    assert b"Traceback" not in told


def _read_some(fd: int, *, seconds: float = 10) -> bytes:
    ready, _, _ = select.select([fd], [], [], seconds)
    assert ready, f"nothing came within {seconds:g} s"
    return os.read(fd, 1 << 16)


@pytest.mark.parametrize("deep", [True, False])
def test_a_log_that_is_cut_while_it_is_read(tmp_path: Path, deep: bool) -> None:
    """As by a broker that truncates to what its leader has."""
    content = build.batch(0, [Rec(value=b"v" * 1000)] * 100)
    log = build.write(tmp_path, 0, [content] * 20)

    def cut(_text: object) -> None:
        os.truncate(log, len(content) * 3 + 100)

    text = KafkaText(KafkaTextOptions(deep=deep, parser=TEXT if deep else None, plain=True), cut)
    text.dump(str(log))
    assert text.findings
    log.write_bytes(content * 20)
    rows = DumpRun([log], DumpOptions(records=deep)).rows()
    next(rows)
    cut(None)
    assert len(list(rows)) < 100 * 20


# --- terminals ------------------------------------------------------------------------------------------------------


def on_a_terminal(*args: str, columns: int = 80) -> str:
    """What a terminal gets of results; progress and warnings go elsewhere."""
    environment = {**os.environ, "COLUMNS": str(columns), "LINES": "40", "TERM": "xterm-256color"}
    main_fd, terminal = pty.openpty()
    process = subprocess.Popen(
        [str(SCRIPT), "segment", *args],
        stdin=terminal,
        stdout=terminal,
        stderr=subprocess.DEVNULL,
        env=environment,
        close_fds=True,
    )
    os.close(terminal)
    parts = []
    try:
        while part := os.read(main_fd, 1 << 16):
            parts.append(part)
    except OSError:  # the other end is closed
        pass
    finally:
        os.close(main_fd)
        process.wait(20)
    return b"".join(parts).decode()


_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_STEERS = re.compile("[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    text = HOSTILE.encode()
    recs = [Rec(text, text, [(text, text)]), Rec(b"\xff" + text, b"\xed\xa0\x80")]
    return build.write(tmp_path, 0, [build.batch(0, recs), build.batch(2, 1)])


@pytest.mark.parametrize(
    "args",
    [
        ["dump", "--records"],
        ["dump", "--records", "-o", "json"],
        ["dump", "--records", "-o", "csv"],
        ["dump", "-o", "kafka", "--print-data-log"],
        ["dump", "-o", "kafka", "--print-data-log", "--jobs", "2"],
        ["find", "--offset", "0"],
        ["find", "--offset", "0", "-o", "json"],
        ["stats"],
        ["stats", "-o", "json"],
    ],
    ids=" ".join,
)
def test_contents_do_not_steer_the_terminal(hostile: Path, args: list[str]) -> None:
    shown = on_a_terminal(*args, str(hostile))
    assert re.search(r"\\(x|u00)1b", shown)
    assert _STEERS.findall(_COLOUR.sub("", shown)) == []
    assert "\x1b[2J" not in shown
    assert "\x1b[31m" not in shown


def test_json_says_the_same_on_a_terminal(hostile: Path, capsys: Capture) -> None:
    """What is escaped there is escaped as JSON has it."""
    shown = on_a_terminal("dump", "--records", "-o", "json", str(hostile)).split("\r\n")[:-1]
    main(["segment", "dump", "--records", "-o", "json", str(hostile)])
    piped = capsys.readouterr().out.split("\n")[:-1]
    assert [json.loads(line) for line in shown] == [json.loads(line) for line in piped]
    assert json.loads(piped[0])["key"] == HOSTILE


def test_wide_and_right_to_left_text_fits(tmp_path: Path) -> None:
    texts = ["日本語" * 20, "שלום עולם" * 8, "مرحبا بالعالم" * 6, "👩‍👩‍👧‍👦🇩🇪" * 10, "e\u0301" * 70]
    recs = [Rec(text.encode(), text.encode()) for text in texts]
    log = build.write(tmp_path, 0, [build.batch(0, recs)])
    shown = on_a_terminal("dump", "--records", str(log))
    lines = [_COLOUR.sub("", line) for line in shown.splitlines()]
    assert "日本語" in shown
    assert max(map(cell_len, lines)) <= 80


def test_tables_fit_a_terminal() -> None:
    for command in ("dump", "dump --records", "stats", "find --offset 100"):
        shown = on_a_terminal(*command.split(), str(DATA / "v2" / "txn"))
        lines = [_COLOUR.sub("", line) for line in shown.splitlines() if str(DATA) not in line]
        assert max(map(cell_len, lines)) <= 80, command


@pytest.mark.parametrize(
    ("command", "code"),
    [("verify {bad}", 1), ("diff {bad} {good}", 1), ("stats {bad}", 1), ("find --offset 999 {good}", 4)],
)
@pytest.mark.parametrize("merged", ["", "2>&1"])
def test_the_exit_code_without_a_reader(command: str, code: int, merged: str) -> None:
    """`| true`: the code is what it would have been, and Python says nothing of its own."""
    argv = command.format(bad=DATA / "corrupt" / "size-huge", good=DATA / "v2" / "none").split()
    script = f'"$0" segment "$@" {merged} | true; echo "${{PIPESTATUS[0]}}"'
    done = subprocess.run(
        ["/bin/bash", "-c", script, str(SCRIPT), *argv], capture_output=True, text=True, timeout=20, check=False
    )
    assert done.stdout.strip() == str(code)
    assert "Exception" not in done.stderr
