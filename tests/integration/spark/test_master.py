"""kctl spark on a real Spark cluster: a standalone master and a worker of the pip-installed pyspark, with executors
whose Python has nothing installed. One application does the jobs of all reports; commands, each with an application of
its own, are few because each takes a quarter of a minute.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import time
import urllib.request
import venv
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from kctl.deploy.runtime.java_launcher import java_home_for_spark
from kctl.history.lag.plan import LagRequest, plan_live, plan_span
from kctl.history.lag.row_batches import read as read_lag
from kctl.history.lag.status_rows import PartitionStatus
from kctl.history.report.build import read_here, report_of
from kctl.history.retention.live_plan import plan_retention
from kctl.history.retention.store_reads import reads_of
from kctl.history.rollups.catch_up import catch_up
from kctl.history.snapshots.store import Store
from kctl.lag.selection import EVERY, names_of
from kctl.protocol.client import connect
from kctl.protocol.security import Security
from kctl.protocol.target import Target
from kctl.spark import retention_job, rollup_job
from kctl.spark.java_command import pyspark_home
from kctl.spark.lag_source import LagReportJob
from kctl.spark.report_source import read_by_spark
from kctl.spark.session import SparkDriver
from kctl.spark.settings import SparkSettings, parse_conf
from kctl.spark.store_reads import reads_by_spark
from kctl_testing import Kctl, TestCluster, eventually, free_port
from report_stores import PASSES, at_ms, small_cluster

pytestmark = [pytest.mark.long, pytest.mark.timeout(600), pytest.mark.usefixtures("spark_archive")]

SECRET = "s3cret-of-the-cluster"
SMALL = ("--conf", "spark.executor.memory=512m", "--driver-memory", "512m")
_UP_S = 60.0
_JOB_S = 300.0


# --- the Spark cluster ----------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Standalone:
    """A master with one worker that has two cores. folder: all that master, worker and executors write."""

    url: str
    folder: Path
    pages: tuple[str, ...]


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """A Spark cluster on loopback."""
    folder = tmp_path_factory.mktemp("spark")
    port, worker_port = free_port(), free_port()
    url = f"spark://127.0.0.1:{port}"
    with ExitStack() as stack:
        master = _start(stack, folder, "master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
        eventually(lambda: _listens(port), seconds=_UP_S, what="the Spark master listens")
        options = ("--host", "127.0.0.1", "--port", str(worker_port), "--webui-port", "0", "--cores", "2")
        worker = _start(stack, folder, "worker", *options, "--memory", "1g", url)
        eventually(
            lambda: "Successfully registered with master" in worker.read_text(), seconds=_UP_S, what="the worker joins"
        )
        yield Standalone(url, folder, tuple(_page(log) for log in (master, worker)))


def _start(stack: ExitStack, folder: Path, kind: str, *options: str) -> Path:
    """A daemon of Spark's until the stack closes; its log."""
    log = folder / f"{kind}.log"
    main = f"org.apache.spark.deploy.{kind}.{kind.capitalize()}"
    argv = [str(pyspark_home() / "bin" / "spark-class"), main, *options]  # which execs java
    local = folder / "local"  # of executors: broadcasts, blocks, what is shuffled
    local.mkdir(exist_ok=True)
    env = {
        **os.environ, "SPARK_HOME": str(pyspark_home()), "SPARK_LOCAL_IP": "127.0.0.1",
        "JAVA_HOME": str(java_home_for_spark()), "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_WORKER_DIR": str(folder / "work"), "SPARK_LOCAL_DIRS": str(local),
    }  # fmt: skip
    with log.open("wb") as output:
        process = subprocess.Popen(
            argv, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
    stack.callback(process.wait, 30)
    stack.callback(process.terminate)
    return log


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def _page(log: Path) -> str:
    """A daemon's web page."""
    found = re.search(r"Bound (?:Master|Worker)WebUI to \S+, and started at http://[^:]+:(\d+)", log.read_text())
    assert found, log.read_text()
    return f"http://127.0.0.1:{found[1]}"


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python that has nothing installed, for the executors."""
    folder = tmp_path_factory.mktemp("bare") / "venv"
    venv.create(folder, with_pip=False, symlinks=True)
    python = str(folder / "bin" / "python")
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [python, "-c", "import kctl"]
    assert subprocess.run(command, cwd=folder, env=alone, capture_output=True, check=False).returncode == 1
    return python


@pytest.fixture(scope="module")
def bundle(kctl: Kctl, standalone: Standalone, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What `kctl spark bundle` tells."""
    path = tmp_path_factory.mktemp("archive") / "kctl.tgz"
    options = ("--out", str(path), "--master", standalone.url)
    found: dict[str, str] = kctl.json("spark", "bundle", *options, timeout=_JOB_S)
    return found


# --- one application for the jobs of all reports --------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Application:
    """A driver on the Spark cluster, and the Kafka cluster with a password in its Target."""

    driver: SparkDriver
    target: Target
    event_log: Path


@pytest.fixture(scope="module")
def application(
    cluster: TestCluster,
    standalone: Standalone,
    bundle: dict[str, str],
    bare_python: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Application]:
    """Executors get the archive, and have a bare Python."""
    events = tmp_path_factory.mktemp("events")
    _, *conf = [word for word in shlex.split(bundle["kctl_options"]) if word not in {"--conf", "--master"}]
    settings = SparkSettings(
        master=standalone.url,
        driver_memory="512m",
        conf={
            **parse_conf(conf),
            "spark.executor.memory": "512m",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": events.as_uri(),
            "spark.eventLog.rolling.enabled": "false",
            "spark.eventLog.compress": "false",
            "spark.ui.port": str(free_port()),
        },
    )
    # The session's cluster asks for no password; what counts is where this one goes.
    security = Security(sasl_username="ops", sasl_password=SECRET, ssl_key_password=SECRET)
    target = Target(cluster.name, tuple(cluster.bootstrap.split(",")), security=security)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", bare_python)
        patch.setenv("KAFKA_PASSWORD_OF_MINE", SECRET)
        with SparkDriver(settings, withheld=security.secrets) as driver:
            yield Application(driver, target, events)


@pytest.fixture(scope="module")
def read_topic(kctl: Kctl, cluster: TestCluster) -> tuple[str, str]:
    """A topic with 400 records, and a group that has read 100 of them."""
    topic, group = f"master.{os.getpid()}", f"master-group.{os.getpid()}"
    kctl.ok("topic", "create", topic, "--partitions", "4", "--replication-factor", "3")
    for partition in range(4):
        kctl.ok("produce", topic, "--partition", str(partition), stdin="".join(f"{n}\n" for n in range(100)))
    kctl.ok("consume", topic, "--group", group, "--from-beginning", "--max-messages", "100", "--quiet")
    return topic, group


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """An hour of snapshots."""
    return small_cluster(tmp_path_factory.mktemp("stores") / "store")


HOUR = (at_ms(0), at_ms(PASSES))
WANTED = LagRequest(groups=EVERY, topics=EVERY, tasks=2)


def test_live_lag(application: Application, kctl: Kctl, read_topic: tuple[str, str]) -> None:
    _, group = read_topic
    wanted = dataclasses.replace(WANTED, groups=names_of([group]))
    with connect(application.target) as client:
        plan = plan_live(client, None, wanted, now_ms=lambda: time.time_ns() // 1_000_000)
    rows, errors = LagReportJob(application.driver.session(), plan).read()
    expected = kctl.json("lag", group, "--no-members")
    keys = ("group", "topic", "partition", "committed_offset", "log_start_offset", "log_end_offset", "lag", "lost")
    assert sum(row["lag"] or 0 for row in expected) > 0
    assert errors == []
    assert [tuple(getattr(row, key) for key in keys) for row in rows] == [
        tuple(row[key] for key in keys) for row in expected
    ]


def test_lag_of_a_store(application: Application, store: Store) -> None:
    plan = plan_span(store.root, *HOUR, WANTED)
    read, errors = LagReportJob(application.driver.session(), plan).read()
    rows = [row for row in read if isinstance(row, PartitionStatus)]
    here = [row for batch in read_lag(plan.query) for row in batch.to_pylist()]
    assert errors == []
    assert len(rows) == len(here) > 5
    assert {(row.group, row.partition, row.lag, row.status, row.consumed_per_s) for row in rows} == {
        (row["group"], row["partition"], row["lag"], row["status"], row["consumed_per_s"]) for row in here
    }


def test_retention(application: Application, read_topic: tuple[str, str]) -> None:
    """Executors ask the brokers: the Target has to reach them."""
    topic, _ = read_topic
    with connect(application.target) as client:
        plan = plan_retention(client, topics=[topic], parallelism=2)
    now_ms = time.time_ns() // 1_000_000
    job = retention_job.retention_job(application.driver.session(), application.target, plan, now_ms=now_ms)
    assert job.failures() == []
    (row,) = job.rows("topic")
    assert row.replicas_bytes > row.size_bytes > 0


def test_retention_of_a_store(application: Application, store: Store) -> None:
    by_spark = reads_by_spark(application.driver.session(), 2, str(store.root), *HOUR)
    by_kctl = reads_of(str(store.root), *HOUR)
    assert by_spark.outlook()[0].by_topic() == by_kctl.outlook()[0].by_topic() != []
    assert by_spark.errors == []


def test_the_page(application: Application, store: Store) -> None:
    plan = plan_span(store.root, *HOUR, WANTED)
    made_at = datetime.now(timezone.utc)
    by_spark = report_of(plan, made_at=made_at, read_groups=read_by_spark(application.driver.session()))
    assert by_spark.lacking == []
    assert by_spark == report_of(plan, made_at=made_at, read_groups=read_here)


def test_trends(application: Application, tmp_path: Path) -> None:
    """Tasks write roll-ups into the store."""
    found: list[Any] = []
    for name, spark in (("by-spark", application.driver.session()), ("by-kctl", None)):
        # The last hour has not ended.
        made = small_cluster(tmp_path / name, passes=PASSES * 2 + 1)
        caught = catch_up(made, make_hours=None if spark is None else rollup_job.hours_by_spark(spark, 2))
        files = {path.relative_to(made.root): path.read_bytes() for path in sorted(made.root.rglob("rollups/**/*.*"))}
        assert (caught.hours, caught.errors, len(files) > 2) == (2, [], True)
        found.append(files)
    assert found[0] == found[1]


def test_an_executor_that_does_not_see_the_store(
    application: Application, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The path means another folder to each process, as that of a disk that is not shared does."""
    monkeypatch.chdir(store.root.parent)
    plan = plan_span(Path("/proc/self/cwd") / store.root.name, *HOUR, WANTED)
    rows, errors = LagReportJob(application.driver.session(), plan).read()
    assert rows == []
    (error,) = errors
    assert f"the store /proc/self/cwd/store cannot be read on {socket.gethostname()}" in error


# --- secrets --------------------------------------------------------------------------------------------------------


def test_a_password_is_nowhere_to_be_read(
    application: Application, standalone: Standalone, read_topic: tuple[str, str]
) -> None:
    """Argv and environment of every process but this one, files of master, worker, executors and driver, pages."""
    test_retention(application, read_topic)  # executors have just had it
    seen = 0
    for folder in Path("/proc").glob("[0-9]*"):
        if int(folder.name) == os.getpid():  # its own environment is where the password comes from
            continue
        for name in ("cmdline", "environ"):
            try:
                data = (folder / name).read_bytes()
            except OSError:
                continue
            seen += b"CoarseGrainedExecutorBackend" in data or b"pyspark.daemon" in data
            assert SECRET.encode() not in data, (folder.name, name)
    assert seen >= 2, "the executor and its Python"

    session = application.driver.session()
    assert SECRET not in str(session.sparkContext.getConf().getAll())
    driver = Path(session.sparkContext.getConf().get("spark.eventLog.dir", "").removeprefix("file://"))
    assert driver == application.event_log
    texts = _files(standalone.folder) | _files(application.event_log) | _files(application.driver.folder)
    assert [path for path, data in texts.items() if SECRET.encode() in data] == []
    (log,) = [data for path, data in texts.items() if path.parent == application.event_log and path.suffix != ".crc"]
    assert b"kctl_log_dirs" in log, "the event log has the plans"
    assert any(b"kctlenv" in data for path, data in texts.items() if path.name == "stderr"), "executors' logs are read"

    ui = f"{session.sparkContext.uiWebUrl}"
    application_id = session.sparkContext.applicationId
    pages = [f"{page}{path}" for page in standalone.pages for path in ("/", "/json/")]
    pages += [f"{ui}/environment/", f"{ui}/api/v1/applications/{application_id}/environment", f"{ui}/SQL/"]
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for page in pages:
        text = direct.open(page, timeout=30).read()
        assert SECRET.encode() not in text, page
        assert len(text) > 200, page


def _files(folder: Path) -> dict[Path, bytes]:
    """What can be read below a folder; what goes meanwhile is passed over. Without the archive's own files."""
    found = {}
    for path in folder.rglob("*"):
        if "kctlenv" in path.parts or path.suffix in {".tgz", ".jar"}:
            continue
        try:
            if path.is_file():
                found[path] = path.read_bytes()
        except OSError:
            continue
    return found


# --- commands -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def free_cores(application: Application) -> None:
    """The application's executor has all of the worker's until it ends."""
    application.driver.finish()


def test_the_printed_options_of_kctl(
    kctl: Kctl, bundle: dict[str, str], bare_python: str, read_topic: tuple[str, str], free_cores: None
) -> None:
    topic, _ = read_topic
    options = (*shlex.split(bundle["kctl_options"]), *SMALL)
    found = kctl(
        "spark", "retention", "--topic", topic, "--by", "partition", *options, "-o", "json",
        env={"PYSPARK_PYTHON": bare_python}, timeout=_JOB_S,
    )  # fmt: skip
    assert found.code == 0, str(found)
    assert all(re.search(r": [\d,]+ of [\d,]+ tasks ", line) for line in found.err.splitlines()), found.err  # progress
    assert [row["topic"] for row in json.loads(found.out)] == [topic] * 4


def test_without_the_archive_it_is_told_what_is_missing(
    kctl: Kctl, standalone: Standalone, bare_python: str, read_topic: tuple[str, str], free_cores: None
) -> None:
    """Without this the tests above would prove nothing."""
    options = ("--master", standalone.url, *SMALL)
    found = kctl(
        "spark", "retention", "--topic", read_topic[0], *options, env={"PYSPARK_PYTHON": bare_python}, timeout=_JOB_S
    )
    assert found.code == 4, str(found)
    assert "the executors' Python has no" in found.err
    assert "`kctl spark bundle`" in found.err


def test_sigterm_ends_driver_and_executors(
    kctl: Kctl, standalone: Standalone, free_cores: None, tmp_path: Path
) -> None:
    options = ("--master", standalone.url, *SMALL)
    before = _executors()  # those of the last test may be about to end
    with kctl.with_environment(TMPDIR=str(tmp_path)).running("spark", "lag", *options) as process:
        eventually(lambda: bool(_executors() - before), seconds=_JOB_S, what="the executor runs")
        process.terminate()
        assert process.wait(timeout=30) == 130
        assert process.stderr is not None
        assert process.stderr.read().strip() in {"", "interrupted"}
    eventually(lambda: not _executors(), seconds=30, what="the executor is gone")
    assert list(tmp_path.iterdir()) == []


def _executors() -> set[str]:
    """The pids of this machine's executors."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended meanwhile
            line = path.read_bytes()
            if b"CoarseGrainedExecutorBackend" in line and b"spark://" in line:
                found.add(path.parent.name)
    return found


def test_spark_submit_runs_it(
    kctl: Kctl, bundle: dict[str, str], bare_python: str, store: Store, free_cores: None
) -> None:
    """The printed line, by pyspark's spark-submit."""
    _, *options = shlex.split(bundle["spark_submit"])
    argv = [str(pyspark_home() / "bin" / "spark-submit"), *SMALL, *options]
    environment = {
        **kctl.environment, "SPARK_HOME": str(pyspark_home()), "JAVA_HOME": str(java_home_for_spark()),
        "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_DRIVER_PYTHON": sys.executable, "PYSPARK_PYTHON": bare_python,
    }  # fmt: skip
    from_, to = (datetime.fromtimestamp(each / 1000, timezone.utc).isoformat() for each in HOUR)
    command = ["spark", "lag", "--store", str(store.root), "--from", from_, "--to", to, "--by", "group", "-o", "json"]
    done = subprocess.run(
        [*argv, *command],
        env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_JOB_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    assert {"falls-behind", "keeps-up", "stopped"} <= {row["group"] for row in json.loads(done.stdout)}
