"""Who uses files: by device and inode, whatever the path is."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kctl.errors import Busy, OperationFailed, Refused
from kctl.segment.log.file_users import FileUsage, FileUser, usage_of
from kctl.segment.log.log_dir_lock import log_dirs_of
from kctl.segment.verify import repair_index
from kctl.segment.verify.findings import FileProblem
from kctl.segment.verify.repair_index import carry_out, plan_repair
from kctl.segment.verify.verify import verify
from segment_files import batch, offset_index, write

NAME = f"{0:020d}"
HOLD_OPEN = "import sys; file = open(sys.argv[1], 'r+b'); print(flush=True); sys.stdin.read()"
HOLD_MAPPED = (
    "import mmap, sys; file = open(sys.argv[1], 'r+b'); kept = mmap.mmap(file.fileno(), 0); file.close(); "
    "print(flush=True); sys.stdin.read()"
)


@contextmanager
def process(code: str, path: Path) -> Iterator[int]:
    """Another process that uses the file; its id."""
    argv = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        try:
            yield child.pid
        finally:
            child.communicate()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A partition's folder in no log dir, with a wrong index."""
    parts = [batch(10 * number, 10) for number in range(60)]
    return write(tmp_path / "orders-0", 0, b"".join(parts), index=offset_index([(9, 7)]), timeindex=b"").parent


def by_path(folder: Path) -> Path:
    return folder


def by_link(folder: Path) -> Path:
    link = folder.parent / "link"
    link.symlink_to(folder)
    return link


def by_linked_parent(folder: Path) -> Path:
    link = folder.parent.parent / f"{folder.parent.name}-link"
    link.symlink_to(folder.parent)
    return link / folder.name


def by_hard_links(folder: Path) -> Path:
    other = folder.parent / "copy" / "orders-0"
    other.mkdir(parents=True)
    for file in folder.iterdir():
        (other / file.name).hardlink_to(file)
    return other


PATHS = [by_path, by_link, by_linked_parent, by_hard_links]


@pytest.mark.parametrize("path_of", PATHS)
@pytest.mark.parametrize(("code", "suffix"), [(HOLD_OPEN, ".log"), (HOLD_OPEN, ".index"), (HOLD_MAPPED, ".index")])
def test_files_in_use_are_refused(path_of: object, code: str, suffix: str, folder: Path) -> None:
    assert callable(path_of)
    path: Path = path_of(folder)
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    plan = plan_repair(verify([path]).findings)
    assert plan.to_write
    with process(code, folder / f"{NAME}{suffix}") as pid:
        with pytest.raises(Busy, match=f"process {pid} "):
            carry_out(plan)
        with pytest.raises(Busy):
            carry_out(plan, assume_stopped=True)
        assert any(f"process {pid} " in warning for warning in plan_repair(verify([path]).findings).warnings)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    assert carry_out(plan)[0].result == "written"


def test_own_files_do_not_count(folder: Path) -> None:
    with (folder / f"{NAME}.log").open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ):
        assert usage_of(folder.iterdir()).users == ()


def test_a_log_dir_behind_a_link(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder's path has no log dir above, the folder itself has; and the other way round."""
    data = folder.parent / "data"
    data.mkdir()
    folder.rename(data / "orders-0")
    (data / "meta.properties").touch()
    link = folder.parent / "elsewhere" / "orders-0"
    link.parent.mkdir()
    link.symlink_to(data / "orders-0")
    assert log_dirs_of(link) == [data.resolve()]
    (link.parent / "meta.properties").touch()
    assert log_dirs_of(link) == [link.parent.resolve(), data.resolve()]
    monkeypatch.chdir(data / "orders-0")
    assert log_dirs_of(Path()) == [data.resolve()]


def fake_process(proc: Path, pid: int, *, command: bytes, maps: str = "", mode: int = 0o755) -> Path:
    """An entry of /proc."""
    entry = proc / str(pid)
    (entry / "fd").mkdir(parents=True)
    (entry / "comm").write_text("java\n")
    (entry / "cmdline").write_bytes(command)
    (entry / "maps").write_text(maps)
    (entry / "fd").chmod(mode)
    return entry


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    proc = tmp_path / "proc"
    (proc / "self").mkdir(parents=True)
    fake_process(proc, 1, command=b"init\0")
    return proc


def test_a_mapped_file_by_its_device_and_inode(folder: Path, proc: Path) -> None:
    index = folder / f"{NAME}.index"
    status = index.stat()
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"
    lines = [
        "7f00-7f10 r--p 00000000 00:00 0 [heap]",
        f"7f10-7f20 rw-s 00000000 {device} {status.st_ino + 1} /another file",
        f"7f20-7f30 rw-s 00000000 {device} {status.st_ino} /mnt/of a container/x.index (deleted)",
    ]
    fake_process(proc, 4711, command=b"java\0kafka.Kafka\0", maps="\n".join(lines))
    assert usage_of([index], proc=proc).users == (FileUser(4711, "java", index),)
    fake_process(proc, 4712, command=b"java\0", maps="\n".join(lines[:2]))
    assert len(usage_of([index], proc=proc).users) == 1


def test_a_file_through_an_overlay(folder: Path, proc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another device, but the same inode, size and time."""
    log = folder / f"{NAME}.log"
    fds = fake_process(proc, 4711, command=b"java\0") / "fd"
    (fds / "5").symlink_to(log)
    real = Path.stat

    def other_device(path: Path, **options: bool) -> os.stat_result:
        status = real(path, **options)
        if path.parent != fds:
            return status
        return os.stat_result((*status[:2], status.st_dev + 1, *status[3:]), {"st_mtime_ns": status.st_mtime_ns})

    monkeypatch.setattr(Path, "stat", other_device)
    assert usage_of([log], proc=proc).users == (FileUser(4711, "java", log),)


@pytest.mark.parametrize(
    ("command", "seen"),
    [(b"java\0-cp\0x\0kafka.Kafka\0", False), (b"/opt/kafka/kafka.Kafka\0", False), (b"nginx\0", True), (b"", True)],
)
def test_what_cannot_be_seen(
    command: bytes, seen: bool, folder: Path, proc: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process whose files are hidden counts when it may be a broker."""
    fds = fake_process(proc, 4711, command=command) / "fd"
    real = Path.iterdir

    def hidden(path: Path) -> Iterator[Path]:
        if path == fds:
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(Path, "iterdir", hidden)
    usage = usage_of(folder.iterdir(), proc=proc)
    assert (usage.users, usage.unseen is None) == ((), seen)


@pytest.mark.parametrize("missing", ["self", "1"])
def test_a_proc_that_shows_too_little(missing: str, folder: Path, proc: Path) -> None:
    (proc / missing).rename(proc / "other")
    assert usage_of(folder.iterdir(), proc=proc).unseen is not None


def test_nothing_is_guessed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repair_index, "usage_of", lambda _: FileUsage((), "processes are hidden"))
    plan = plan_repair(verify([folder]).findings)
    with pytest.raises(Refused, match="processes are hidden"):
        carry_out(plan)
    assert carry_out(plan, assume_stopped=True)[0].result == "written"


def test_a_lock_is_enough(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repair_index, "usage_of", lambda _: FileUsage((), "processes are hidden"))
    (folder.parent / "meta.properties").touch()
    assert carry_out(plan_repair(verify([folder]).findings))[0].result == "written"


def test_opened_while_it_was_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter([(), (FileUser(4711, "java", folder / f"{NAME}.index"),)])
    plan = plan_repair(verify([folder]).findings)
    monkeypatch.setattr(repair_index, "usage_of", lambda _: FileUsage(next(looks)))
    with pytest.raises(OperationFailed, match="process 4711"):
        carry_out(plan)


def test_a_read_only_file_system(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    findings: tuple[FileProblem, ...] = verify([folder]).findings
    real = os.statvfs(folder)
    monkeypatch.setattr(os, "statvfs", lambda _: os.statvfs_result((*real[:8], real.f_flag | os.ST_RDONLY, real[9])))
    with pytest.raises(Refused, match="read-only"):
        carry_out(plan_repair(findings))
