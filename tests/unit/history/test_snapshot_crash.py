"""A crash at any step of writing leaves all of a pass or nothing of it, and so for compactions and expiries.

The steps are the calls that change the disk (rename, fsync, unlink, mkdir, rmdir) and each write; one after the other
is made to be the last one that ran. What ran before it stays on the disk, as after a kill; only what a process does
on its way out (removing its temporary file) is prevented as well.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kctl.errors import OperationFailed
from kctl.history.snapshots import files, schema
from kctl.history.snapshots.compact import compact, discard
from kctl.history.snapshots.expire import expire, sweep
from kctl.history.snapshots.layout import HOUR_MS, parse_name
from kctl.history.snapshots.store import Store, create_store
from snapshot_stores import HOUR, a_pass, compact_all, put, seen, store_with


@pytest.fixture(autouse=True)
def no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that dies loses nothing by it, and the disk is slow. test_the_order has what a loss of power needs."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)


class Crash(BaseException):
    """The process is gone: nothing that it would still do is done."""


class _Steps:
    """Counts calls that change the disk, and crashes at the one numbered `last`; from then on none works."""

    def __init__(self, last: int) -> None:
        self.count = 0
        self._last = last

    def wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            self.count += 1
            if self.count >= self._last:
                raise Crash
            return function(*args, **options)

        return call


@contextmanager
def crashing(last: int) -> Iterator[_Steps]:
    steps = _Steps(last)
    with pytest.MonkeyPatch.context() as patch:
        real_open, making = os.open, steps.wrap(os.open)
        patch.setattr(
            os, "open", lambda path, flags, *mode: (making if flags & os.O_CREAT else real_open)(path, flags, *mode)
        )
        patch.setattr(os, "replace", steps.wrap(os.replace))
        patch.setattr(os, "fsync", steps.wrap(lambda fd: None))
        for name in ("unlink", "rmdir", "mkdir"):
            patch.setattr(Path, name, steps.wrap(getattr(Path, name)))
        yield steps


def crash_everywhere(
    tmp_path: Path, prepare: Callable[[Path], Store], act: Callable[[Store], object]
) -> Iterator[Store]:
    """A store after a crash at the first, the second, … step of `act`, until it comes to its end."""
    template = prepare(tmp_path / "template")
    for last in range(1, 1000):
        store = Store(tmp_path / f"{last}", template.cluster_id)
        shutil.copytree(template.root, store.root, copy_function=shutil.copy2)
        with crashing(last) as steps:
            try:
                act(store)
            except Crash:
                pass
            else:
                assert steps.count < last
                return
        yield store
    pytest.fail("it never came to its end")


def leftovers(store: Store) -> list[str]:
    return [path.name for path in store.root.rglob(".*") if path.name != ".lock"]


def test_a_pass(tmp_path: Path) -> None:
    old = seen(store_with(tmp_path / "old", [0]))
    both = store_with(tmp_path / "new", [0, 10])
    new, crashes, stored = seen(both), 0, 0
    for store in crash_everywhere(
        tmp_path, lambda root: store_with(root, [0]), lambda store: put(store, 10, a_pass(1))
    ):
        crashes += 1
        found = seen(store)
        assert found in (old, new)
        stored += found == new
        sweep(store, HOUR)
        assert seen(store) == found
        assert not leftovers(store)
        if found == old:
            put(store, 10, a_pass(1))
        assert seen(store) == new
    assert crashes > 20
    assert 0 < stored < 4  # only what comes after the last rename


def test_a_compaction(tmp_path: Path) -> None:
    """While it runs and after a crash a reader sees each row once; the next one finishes it."""
    expected = seen(store_with(tmp_path / "same", [0, 10]))
    crashes = compacted = 0
    for store in crash_everywhere(tmp_path, lambda root: store_with(root, [0, 10]), compact_all):
        crashes += 1
        assert seen(store) == expected
        compacted += store.valid_files(HOUR).through_ms is not None
        sweep(store, HOUR)
        compact_all(store)
        assert seen(store) == expected
        assert not leftovers(store)
        (file,) = store.valid_files(HOUR).files
        assert file.compacted
    assert crashes > 20
    assert 0 < compacted < 4


def test_what_was_replaced_is_removed(tmp_path: Path) -> None:
    expected = seen(store_with(tmp_path / "same", [0, 10]))

    def prepared(root: Path) -> Store:
        store = store_with(root, [0, 10])
        compact_all(store)
        return store

    for store in crash_everywhere(tmp_path, prepared, lambda store: discard(store, HOUR, grace_ms=0)):
        assert seen(store) == expected
        discard(store, HOUR, grace_ms=0)
        assert seen(store) == expected
        assert len(list(store.root.rglob("*.parquet"))) == 4


def test_an_expiry(tmp_path: Path) -> None:
    """An hour is there as a whole, or not at all; the next expiry removes what is left of it."""
    whole = seen(store_with(tmp_path / "whole", [-HOUR_MS, 0]))
    rest = {table: [row for row in rows if row[0] >= HOUR.start_ms] for table, rows in whole.items()}
    for store in crash_everywhere(
        tmp_path, lambda root: store_with(root, [-HOUR_MS, 0]), lambda store: list(expire(store, HOUR.start_ms))
    ):
        assert seen(store) in (whole, rest)
        list(expire(store, HOUR.start_ms))
        assert seen(store) == rest
        assert not leftovers(store)
        left = [path for path in store.root.rglob("*") if parse_name(path.name)]
        assert len(left) == 4


def test_the_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a loss of power needs: a file is on the disk before it gets its name, and names are on the disk before the
    one in `passes` by which they count is there.
    """
    store = store_with(tmp_path / "s", [0])
    calls: list[tuple[str, Path]] = []
    rename = os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: calls.append(("sync", Path(f"/proc/self/fd/{fd}").readlink())))

    def replace(source: Path, target: Path) -> None:
        calls.append(("rename", Path(target)))
        rename(source, target)

    monkeypatch.setattr(os, "replace", replace)
    for act, kind in ((lambda: put(store, 10, a_pass(1)), "pass"), (lambda: compact_all(store), "hour")):
        calls.clear()
        act()
        renamed = [(place, path) for place, (what, path) in enumerate(calls) if what == "rename"]
        assert [path.name.split("-")[0] for _, path in renamed] == [kind] * 4
        counts, last = renamed[-1]
        assert last.is_relative_to(store.root / schema.PASSES)
        for place, path in renamed:
            assert calls[place - 1] == ("sync", path.with_name(f".{path.name}.tmp"))
            synced = [at for at, call in enumerate(calls) if call == ("sync", path.parent) and at > place]
            assert synced
            assert path == last or synced[0] < counts


def test_a_new_store(tmp_path: Path) -> None:
    (tmp_path / "any").mkdir()
    for last in range(1, 50):
        root = tmp_path / f"{last}"
        with crashing(last):
            try:
                create_store(root, "c")
            except Crash:
                pass
            else:
                return
        assert create_store(root, "c").cluster_id == "c"
    pytest.fail("it never came to its end")


@pytest.mark.parametrize("at", range(1, 9))
def test_a_full_disk_is_told_and_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """fsync fails, as it does when delayed allocation finds no room. (A write that fails takes the same way.)"""
    store = store_with(tmp_path / "s", [0, 10])
    before, count = seen(store), 0
    real = os.fsync

    def full(fd: int) -> None:
        nonlocal count
        count += 1
        if count >= at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(fd)

    for act in (lambda: put(store, 20, a_pass(2)), lambda: list(compact(store, HOUR))):
        count = 0
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            if at < 8:  # the fourth and last file's name has been put in place by then
                with pytest.raises(OperationFailed, match="No space left"):
                    act()
        assert seen(store) == before
        assert not leftovers(store)


def test_writing_fails_as_well_when_a_stream_does(tmp_path: Path) -> None:
    """Half a file's bytes are written, then the disk is full: nothing of it stays."""
    path = tmp_path / "x"
    path.write_text("old")

    def half() -> None:
        with files.writing(path) as stream:
            stream.write(b"new")
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        half()
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["x"]


def test_an_interrupt_in_the_middle_leaves_no_half_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = store_with(tmp_path / "s", [0])
    before, real, count = seen(store), os.replace, 0

    def interrupted(source: Path, target: Path) -> None:
        nonlocal count
        count += 1
        if count == 2:
            raise KeyboardInterrupt
        real(source, target)

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        put(store, 10, a_pass(1))
    assert seen(store) == before
    assert not leftovers(store)
    assert schema.COMMITS in seen(store)
