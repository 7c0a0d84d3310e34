"""kctl spark on a real Spark cluster: a standalone master and a worker, with executors of their own."""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kctl.deploy.java_launcher import java_home_for_spark
from kctl.spark.java_command import pyspark_home
from kctl_testing import Kctl, TestCluster, eventually, free_port

pytestmark = pytest.mark.long

_UP_S = 60.0
_JOB_S = 300.0


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a master on loopback with one worker that has two cores."""
    folder = tmp_path_factory.mktemp("spark")
    port, worker_port = free_port(), free_port()
    url = f"spark://127.0.0.1:{port}"
    with ExitStack() as stack:
        _start(stack, folder, "master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
        eventually(lambda: _listens(port), seconds=_UP_S, what="the Spark master listens")
        options = ("--host", "127.0.0.1", "--port", str(worker_port), "--webui-port", "0", "--cores", "2")
        log = _start(stack, folder, "worker", *options, "--memory", "1g", url)
        eventually(
            lambda: "Successfully registered with master" in log.read_text(), seconds=_UP_S, what="the worker joins"
        )
        yield url


def _start(stack: ExitStack, folder: Path, kind: str, *options: str) -> Path:
    """A daemon of Spark's until the stack closes; its log."""
    log = folder / f"{kind}.log"
    main = f"org.apache.spark.deploy.{kind}.{kind.capitalize()}"
    argv = [str(pyspark_home() / "bin" / "spark-class"), main, *options]  # which execs java
    env = {
        **os.environ, "SPARK_HOME": str(pyspark_home()), "SPARK_LOCAL_IP": "127.0.0.1",
        "JAVA_HOME": str(java_home_for_spark()), "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_WORKER_DIR": str(folder / "work"),
    }  # fmt: skip
    with log.open("wb") as output:
        process = subprocess.Popen(
            argv, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
    stack.callback(process.wait, 30)
    stack.callback(process.terminate)
    return log


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python that has nothing installed, for the executors."""
    folder = tmp_path_factory.mktemp("bare") / "venv"
    venv.create(folder, with_pip=False, symlinks=True)
    python = str(folder / "bin" / "python")
    assert subprocess.run([python, "-c", "import kctl"], cwd=folder, capture_output=True, check=False).returncode == 1
    return python


@pytest.fixture(scope="module")
def archive(kctl: Kctl, master: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What `kctl spark bundle` tells."""
    path = tmp_path_factory.mktemp("archive") / "kctl.tgz"
    found: dict[str, str] = kctl.json("spark", "bundle", "--out", str(path), "--master", master, timeout=_UP_S)
    return found


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def test_the_figures_are_those_of_kctl_lag(kctl: Kctl, cluster: TestCluster, master: str) -> None:
    topic, group = f"master.{os.getpid()}", f"master-group.{os.getpid()}"
    kctl.ok("topic", "create", topic, "--partitions", "4", "--replication-factor", "3")
    kctl.ok("produce", topic, stdin="".join(f"{n}\n" for n in range(400)))
    kctl.ok("consume", topic, "--group", group, "--from-beginning", "--max-messages", "100", "--quiet")
    expected = kctl.json("lag", group, "--no-members")
    assert sum(row["lag"] or 0 for row in expected) > 0

    chosen = ("--master", master, "--conf", "spark.executor.memory=512m", "--driver-memory", "512m")
    found = kctl("spark", "lag", "--group", group, *chosen, "-o", "json", timeout=_JOB_S)
    assert found.code == 0, str(found)
    assert found.err == ""
    rows = kctl.json("spark", "retention", "--topic", topic, *chosen, timeout=_JOB_S)
    assert [row["topic"] for row in rows] == [topic]

    keys = ("group", "topic", "partition", "committed_offset", "log_start_offset", "log_end_offset", "lag", "lost")
    assert [tuple(row[k] for k in keys) for row in json.loads(found.out)] == [
        tuple(row[k] for k in keys) for row in expected
    ]


SMALL = ("--conf", "spark.executor.memory=512m")


@pytest.fixture(scope="module")
def topic_of_ten(kctl: Kctl, cluster: TestCluster) -> str:
    """A topic with ten records."""
    name = f"archive.{os.getpid()}"
    kctl.ok("topic", "create", name, "--partitions", "2", "--replication-factor", "1")
    kctl.ok("produce", name, stdin="".join(f"{n}\n" for n in range(10)))
    return name


def test_executors_need_nothing_but_the_archive(
    kctl: Kctl, archive: dict[str, str], bare_python: str, topic_of_ten: str
) -> None:
    command = ("spark", "retention", "--topic", topic_of_ten, "--by", "partition", "-o", "json")
    options = (*shlex.split(archive["kctl_options"]), *SMALL, "--driver-memory", "512m")
    found = kctl(*command, *options, env={"PYSPARK_PYTHON": bare_python}, timeout=_JOB_S)
    assert found.code == 0, str(found)
    assert [row["topic"] for row in json.loads(found.out)] == [topic_of_ten] * 2


def test_without_the_archive_it_is_told_what_is_missing(
    kctl: Kctl, master: str, bare_python: str, topic_of_ten: str
) -> None:
    """Without this the test above would prove nothing."""
    options = ("--master", master, *SMALL, "--driver-memory", "512m")
    found = kctl(
        "spark", "retention", "--topic", topic_of_ten, *options, env={"PYSPARK_PYTHON": bare_python}, timeout=_JOB_S
    )
    assert found.code == 4, str(found)
    assert "the executors' Python has no" in found.err


def test_spark_submit_runs_it(kctl: Kctl, archive: dict[str, str], bare_python: str, topic_of_ten: str) -> None:
    """The printed line, by pyspark's spark-submit."""
    _, *options = shlex.split(archive["spark_submit"])
    argv = [str(pyspark_home() / "bin" / "spark-submit"), *SMALL, "--driver-memory", "512m", *options]
    environment = {
        **kctl.environment, "SPARK_HOME": str(pyspark_home()), "JAVA_HOME": str(java_home_for_spark()),
        "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_DRIVER_PYTHON": sys.executable, "PYSPARK_PYTHON": bare_python,
    }  # fmt: skip
    done = subprocess.run(
        [*argv, "spark", "retention", "--topic", topic_of_ten, "-o", "json"],
        env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_JOB_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    assert [row["topic"] for row in json.loads(done.stdout)] == [topic_of_ten]
