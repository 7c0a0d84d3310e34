"""The folder of clusters: locks, entries, ports that are reserved, atomic writes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from kctl.base import paths
from kctl.deploy import create as create_module
from kctl.deploy import store
from kctl.deploy.create import create
from kctl.deploy.destroy import destroy, destroy_plan
from kctl.deploy.host import LocalHost
from kctl.deploy.layout import LayoutRequest
from kctl.deploy.runtime.runtime import KafkaRuntime
from kctl.errors import AlreadyExists, Busy, InvalidFile, NotFound, NotSupported, OperationFailed, Refused


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for variable in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "KCTL_CONFIG", "KCTL_CONTEXT"):
        monkeypatch.delenv(variable, raising=False)


HOST = LocalHost()


def _names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def make(name: str, *, base_port: int | None = None, directory: Path | None = None, version: str = "3.9.2") -> Path:
    """A cluster of files only; its folder."""
    runtime = KafkaRuntime(version, Path("/nowhere/libs"), "test")
    request = LayoutRequest(name=name, layout="single")
    return create(HOST, request, runtime=runtime, base_port=base_port, directory=directory, start_it=False).directory


def test_create_load_list_destroy() -> None:
    from kctl.contexts.choose import current_context, list_contexts

    directory = make("dev")
    assert directory == paths.clusters_dir() / "dev"
    assert [c.name for c in store.list_clusters(HOST)] == ["dev"]
    assert store.load(HOST, "dev").directory == directory
    assert (directory / "broker-1/server.properties").stat().st_mode & 0o077 == 0
    assert list(list_contexts()) == ["dev"]
    assert current_context() is None  # chosen by nobody
    with pytest.raises(AlreadyExists):
        make("dev")
    assert destroy(HOST, "dev").kept == ()
    assert not directory.exists()
    assert _names(paths.clusters_dir()) == [".ports.lock"]
    assert list_contexts() == {}
    with pytest.raises(NotFound, match="does not exist"):
        destroy(HOST, "dev")


def test_a_folder_elsewhere_keeps_what_kctl_did_not_make(tmp_path: Path) -> None:
    directory = make("dev", directory=tmp_path / "else/where")
    assert (paths.clusters_dir() / "dev").is_symlink()
    assert store.load(HOST, "dev").directory == directory
    (directory / "notes.txt").write_text("mine")
    assert destroy(HOST, "dev").kept == ("notes.txt",)
    assert _names(directory) == ["notes.txt"]
    assert not os.path.lexists(paths.clusters_dir() / "dev")
    with pytest.raises(Refused, match="not an empty folder"):
        make("dev", directory=directory)
    assert not store.exists("dev")


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("ending", ["destroyed", "damaged", "failed", "older file"])
def test_a_folder_that_was_there_before_stays(
    before: bool, ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also an empty one; and one of which cluster.json does not say so any more."""
    folder = tmp_path / "place"
    if before:
        folder.mkdir(mode=0o750)
    if ending == "failed":
        monkeypatch.setattr(create_module, "write_missing", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            make("dev", directory=folder)
    else:
        make("dev", directory=folder)
        spec = folder / "cluster.json"
        if ending == "damaged":
            spec.write_text("{")
        elif ending == "older file":
            spec.write_text(re.sub(',\n  "own_directory": (true|false)', "", spec.read_text()))
            assert "own_directory" not in spec.read_text()
        assert destroy(HOST, "dev").kept == ()
    assert not store.exists("dev")
    if before and ending != "older file":
        assert _names(folder) == []
        assert folder.stat().st_mode & 0o777 == 0o750
    elif ending == "damaged":
        assert _names(folder) == []
    else:
        assert not folder.exists()


@pytest.mark.parametrize("where", ["/sys/kctl", "/etc/passwd/kctl", "/proc/1/kctl"])
def test_a_folder_that_cannot_be_made_leaves_no_entry(where: str) -> None:
    with pytest.raises(OperationFailed, match=where):
        make("dev", directory=Path(where))
    assert not store.exists("dev")
    assert _names(paths.clusters_dir()) == [".ports.lock"]


def test_a_link_in_the_folder_is_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("x")
    directory = make("dev")
    (directory / "broker-1" / "data-1" / "link").symlink_to(precious)
    destroy(HOST, "dev")
    assert (precious / "file").exists()


def test_two_clusters_never_share_ports() -> None:
    first = store.load(HOST, make("one").name).ports
    second = store.load(HOST, make("two").name).ports
    assert not first & second
    with pytest.raises(Busy, match="belongs to cluster one"):
        make("three", base_port=min(first) - 1)
    assert not store.exists("three")


def test_an_interrupted_create_can_be_done_again() -> None:
    for rest in ("folder", "link"):
        entry = store.entry_path("dev")
        entry.parent.mkdir(parents=True, exist_ok=True)
        if rest == "folder":
            entry.mkdir()
        else:
            entry.symlink_to(entry.parent.parent / "gone")
        with pytest.raises(NotFound, match="incomplete"):
            store.load(HOST, "dev")
        make("dev")
        destroy(HOST, "dev")


@pytest.mark.parametrize("damage", ["damaged", "gone"])
def test_what_cannot_be_read_is_listed_and_can_be_destroyed(damage: str) -> None:
    directory = make("dev")
    (directory / "broker-9").mkdir()
    (directory / "broker-9" / "mine").write_text("not a broker's folder")
    if damage == "damaged":
        (directory / "cluster.json").write_text("{")
    else:
        (directory / "cluster.json").unlink()
    (listed,) = store.list_clusters(HOST)
    assert listed.spec is None
    assert listed.problem
    with pytest.raises((InvalidFile, NotFound)):
        store.load(HOST, "dev")
    assert [Path(path).name for path in destroy_plan(HOST, "dev").removed] == ["broker-1", "zookeeper-1"]
    assert destroy(HOST, "dev").kept == ("broker-9",)
    assert _names(directory) == ["broker-9"]


def test_a_moved_cluster_is_refused(tmp_path: Path) -> None:
    directory = make("dev", directory=tmp_path / "a")
    directory.rename(tmp_path / "b")
    store.entry_path("dev").unlink()
    store.entry_path("dev").symlink_to(tmp_path / "b")
    with pytest.raises(InvalidFile, match="describes cluster dev in"):
        store.load(HOST, "dev")


def test_a_context_of_the_same_name_is_not_overwritten() -> None:
    from kctl.contexts.change import put_context
    from kctl.contexts.choose import get_context
    from kctl.contexts.context import Context

    theirs = Context(bootstrap_servers=("kafka.example.com:9092",))
    put_context("dev", theirs, make_current=False)
    with pytest.raises(AlreadyExists, match="context dev"):
        make("dev")
    assert get_context("dev") == theirs
    assert not store.exists("dev")


def test_kafka_without_zookeeper_is_refused() -> None:
    with pytest.raises(NotSupported, match=r"4\.0\.0 does not support ZooKeeper"):
        make("dev", version="4.0.0")
    assert not store.exists("dev")


HOLDER = """
import sys
from kctl.deploy import store
with store.lock_cluster("dev"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_one_at_a_time() -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        refused = pytest.raises(Busy, match=rf"another kctl \(pid {holder.pid}\) is working on cluster dev")
        with refused, store.lock_cluster("dev"):
            pass
        with store.lock_cluster("other"):
            pass
        holder.kill()  # a lock dies with its holder
    with store.lock_cluster("dev"):
        pass


def test_a_removed_lock_file_locks_nobody_out_of_step() -> None:
    with store.lock_cluster("dev"):
        store.remove_lock("dev")
    with store.lock_cluster("dev"), pytest.raises(Busy), store.lock_cluster("dev"):
        pass


def test_writes_are_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "a" / "file"
    HOST.write_file(path, b"one")
    HOST.write_file(path, b"two")
    assert path.read_bytes() == b"two"
    assert _names(path.parent) == ["file"]
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(OperationFailed, match="cannot write /proc/"):
        HOST.write_file(Path("/proc/kctl"), b"x")


def _interrupted_create(name: str, at: int) -> bool:
    """Create a cluster, with a Ctrl-C before the at-th line of create.py or store.py; False: it was over before.

    In a process of its own, whose end releases the locks, as after a real Ctrl-C.
    """
    child = os.fork()
    if child == 0:
        code = 1
        try:
            sys.settrace(_interrupting(at))
            make(name)
            code = 0
        except KeyboardInterrupt:
            code = 130
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in {0, 130}
    return code == 130


def _interrupting(at: int) -> Callable[[FrameType, str, Any], Any]:
    seen = 0
    files = {create_module.__file__, store.__file__}

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal seen
        if frame.f_code.co_filename not in files:
            return None
        if event == "line":
            seen += 1
            if seen == at:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    return trace


def test_a_create_interrupted_at_any_line_leaves_nothing() -> None:
    """All of it or nothing: not one line on the way, releasing the locks included, where a Ctrl-C leaves a part."""
    from kctl.contexts.choose import list_contexts

    paths.clusters_dir().mkdir(parents=True)
    moments = 0
    while _interrupted_create("dev", moments + 1):
        moments += 1
        made = [c.name for c in store.list_clusters(HOST)]
        assert made in ([], ["dev"]), f"line {moments}"
        assert list(list_contexts()) == made, f"line {moments}"
        if made:  # the last lines, after the context stands
            assert destroy(HOST, "dev").kept == ()
        else:
            assert set(_names(paths.clusters_dir())) <= {".ports.lock", ".dev.lock"}, f"line {moments}"
    assert moments > 100


def test_a_cluster_that_is_not_there_is_not_offered_to_be_made() -> None:
    """Whoever destroys or starts one meant another."""
    with pytest.raises(NotFound) as caught:
        destroy_plan(HOST, "nope")
    assert caught.value.hint == "there are no clusters; `kctl cluster create` creates one"
    make("shop")
    for name, hint in (("shpo", "did you mean shop?"), ("nope", "clusters: shop")):
        with pytest.raises(NotFound) as caught:
            store.load(HOST, name)
        assert caught.value.hint == hint
