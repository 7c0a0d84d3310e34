"""kctl spark on a real cluster: the figures of `kctl lag` and of the files on the disks, nothing on stderr, and no
process left behind. The jobs run in one embedded Spark of this module; the commands, each in a Spark of its own, are
few because each takes ten seconds.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import cloudpickle

from consumer_groups_tool import described
from kafka_admin import kafka_admin
from kctl.base.deadline import Deadline
from kctl.commands.terminal.interrupts import interrupt_when_terminated
from kctl.commands.terminal.output import jsonable
from kctl.deploy.runtime.class_archive import ClassArchive
from kctl.deploy.runtime.java import find_java
from kctl.errors import OperationFailed, TimedOut
from kctl.history.lag.plan import LagRequest, plan_live
from kctl.history.retention.live_plan import plan_retention
from kctl.history.retention.live_reads import BrokersShare, LogRow
from kctl.lag.retention import PartitionUsage
from kctl.lag.selection import names_of
from kctl.protocol.client import connect
from kctl.protocol.security import Security
from kctl.protocol.target import Target
from kctl.spark import java_command, retention_job, sources
from kctl.spark.lag_source import LagReportJob
from kctl.spark.session import SparkDriver
from kctl.spark.settings import SparkSettings
from kctl.spark.watching import watched
from kctl_testing import Kctl, TestCluster, eventually, within
from report_stores import at_ms, small_cluster

SECRET = "s3cret-that-must-not-leak"
MARK = "KCTL_TEST_MARK"
_IMPORTS = (Path(__file__).parent, Path(__file__).parents[2] / "support")
LAG_KEYS = (
    "group", "state", "topic", "partition", "committed_offset", "log_start_offset", "log_end_offset", "lag", "lost",
    "client_id", "host",
)  # fmt: skip
HEAVY_S = 180.0  # a Spark on a machine that does other things too


# --- what the module shares -----------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Spark:
    """An embedded Spark with an event log, and the cluster with a password in its Target."""

    driver: SparkDriver
    target: Target
    event_log: Path

    def lag(self, by: str = "partition", *, groups: Sequence[str] = (), topics: Sequence[str] = ()) -> list[Any]:
        """The rows of `kctl spark lag`."""
        wanted = LagRequest(groups=names_of(groups), topics=names_of(topics), by=by, tasks=2)
        with connect(self.target) as client:
            plan = plan_live(client, None, wanted, now_ms=lambda: time.time_ns() // 1_000_000)
        rows, errors = LagReportJob(self.driver.session(), plan).read()
        assert (plan.failures, errors) == ((), [])
        return rows

    def retention(self, by: str, **chosen: Any) -> list[Any]:
        """The rows of the retention job."""
        with connect(self.target) as client:
            plan = plan_retention(client, **chosen, parallelism=2)
        now_ms = time.time_ns() // 1_000_000
        job = retention_job.retention_job(self.driver.session(), self.target, plan, now_ms=now_ms)
        assert job.failures() == []
        return job.rows(by)


@pytest.fixture(scope="module")
def spark(cluster: TestCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spark]:
    """One embedded Spark for the module."""
    events = tmp_path_factory.mktemp("events")
    conf = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
    }
    target = Target(
        cluster.name,
        tuple(cluster.bootstrap.split(",")),
        # The session's cluster asks for no password; what counts is where this one goes.
        security=Security(sasl_username="ops", sasl_password=SECRET, ssl_key_password=SECRET),
    )
    with SparkDriver(SparkSettings(conf=conf)) as driver:
        yield Spark(driver, target, events)


@dataclasses.dataclass(frozen=True)
class Load:
    """A topic that is read by groups: one keeps up, one lags, one was overtaken by deletion."""

    topic: str
    keeps_up: str
    lags: str
    overtaken: str


@pytest.fixture(scope="module")
def load(kctl: Kctl, cluster: TestCluster) -> Load:
    """Groups without members, on a topic that nobody writes to any more."""
    tag = f"spark.{os.getpid()}"
    kctl.ok("topic", "create", f"{tag}.read", "--partitions", "3", "--replication-factor", "3")
    lines = "".join(f"{n}\n" for n in range(1000))
    for partition in range(3):
        kctl.ok("produce", f"{tag}.read", "--partition", str(partition), stdin=lines)
    found = Load(f"{tag}.read", f"{tag}.keeps-up", f"{tag}.lags", f"{tag}.overtaken")
    kctl.ok("consume", found.topic, "--group", found.keeps_up, "--from-beginning", "--exit-eof", "--quiet")
    for group in (found.lags, found.overtaken):
        kctl.ok("consume", found.topic, "--group", group, "--from-beginning", "--max-messages", "100", "--quiet")
    _delete_first_records(cluster, found.topic, 600)
    kctl.ok("consume", found.topic, "--group", found.lags, "--max-messages", "5", "--quiet")
    return found


def _delete_first_records(cluster: TestCluster, topic: str, before: int) -> None:
    """What retention does, at once (kctl has no command for it yet)."""
    from kafka.structs import TopicPartition

    with connect(Target(cluster.name, tuple(cluster.bootstrap.split(",")))) as client, kafka_admin(client) as admin:
        admin.delete_records({TopicPartition(topic, partition): before for partition in range(3)})


# --- lag ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def transactions(spark: Spark, load: Load) -> Iterator[str]:
    """A topic written by transactions, and groups on it, by the offset that they have committed of partition 0.

    Partition 0: two messages and their marker, a message and its marker. Partition 1: two messages, not decided yet.
    """
    from kafka.structs import OffsetAndMetadata, TopicPartition

    name = f"{load.topic}.transactions"
    with connect(spark.target) as client, kafka_admin(client) as admin:
        admin.create_topics({name: {"num_partitions": 2, "replication_factor": 3}})
        producer = client.producer(transactional_id=name, transaction_timeout_ms=900_000)
        producer.init_transactions()
        for messages in (2, 1):
            producer.begin_transaction()
            for _ in range(messages):
                producer.send(name, b"x", partition=0)
            producer.commit_transaction()
        producer.begin_transaction()
        for _ in range(2):
            producer.send(name, b"x", partition=1)
        producer.flush()
        for offset in (0, 2, 4, 5):
            positions = {TopicPartition(name, n): OffsetAndMetadata(at, "", -1) for n, at in ((0, offset), (1, 0))}
            admin.alter_group_offsets(f"{name}.{offset}", positions)
        yield name
        producer.abort_transaction()
        producer.close()


def test_lag_is_that_of_kctl_lag_and_of_kafkas_own_tool(
    spark: Spark, kctl: Kctl, cluster: TestCluster, load: Load, transactions: str, kafka_home: Path
) -> None:
    """Of every partition of every group, while nobody reads and writes: live lag + lost is the tool's LAG."""
    theirs = described(cluster.bootstrap, kafka_home)
    ours = spark.lag()
    expected = kctl.json("lag")
    assert {tuple(getattr(row, key) for key in LAG_KEYS) for row in ours} == {
        tuple(row[key] for key in LAG_KEYS) for row in expected
    }
    assert len(ours) == len(expected)
    assert theirs == {
        (row.group, row.topic, str(row.partition)): (
            "-" if row.committed_offset is None else str(row.committed_offset),
            "-" if row.log_end_offset is None else str(row.log_end_offset),
            "-" if row.lag is None else str(row.lag + row.lost),
            row.client_id or "-",
            f"/{row.host}" if row.host else "-",
        )
        for row in ours
    }
    mine = [row for row in ours if row.topic == load.topic]
    assert len(mine) == 9
    assert sum(row.lost for row in mine if row.group == load.overtaken) > 0


def test_the_time_lag_is_the_age_of_the_next_message(spark: Spark, kctl: Kctl, load: Load) -> None:
    """Told by the log's own time index: there is no history. What is interpolated is at most half of it."""
    behind = [row for row in spark.lag(groups=[load.lags]) if row.lag]
    assert len(behind) == 3
    for row in behind[:1]:
        assert (row.status, row.consumed_per_s) == (None, None)
        options = ("--partition", str(row.partition), "--offset", str(max(row.committed_offset, row.log_start_offset)))
        first = json.loads(kctl.ok("consume", load.topic, *options, "--max-messages", "1", "-o", "json").out)
        written = datetime.fromisoformat(first["timestamp"].replace("Z", "+00:00"))
        true_ms = (row.at - written).total_seconds() * 1000
        assert true_ms / 2 - 50 <= row.time_lag_ms <= true_ms + 50
        assert row.deletion_by_time_ms == 7 * 24 * 3_600_000 - row.time_lag_ms


@pytest.mark.parametrize("by", ["topic", "group"])
def test_sums_are_those_of_kctl_lag(spark: Spark, kctl: Kctl, load: Load, by: str) -> None:
    expected = kctl.json("lag", load.overtaken, load.lags, "--by", by)
    rows = jsonable(spark.lag(by, groups=[load.overtaken, load.lags]))
    assert [{key: row[key] for key in expected[0]} for row in rows] == expected


def test_control_records_are_no_messages(spark: Spark, transactions: str) -> None:
    found = {(row.group.rpartition(".")[2], row.partition): row for row in spark.lag(topics=[transactions])}
    assert {key: (row.lag, row.control_records, row.undecided) for key, row in found.items()} == {
        ("0", 0): (5, 2, 0), ("2", 0): (3, 2, 0), ("4", 0): (1, 1, 0), ("5", 0): (0, 0, 0),
        **{(offset, 1): (2, 0, 2) for offset in ("0", "2", "4", "5")},
    }  # fmt: skip
    behind_nothing = found["4", 0]
    assert (behind_nothing.time_lag_ms, behind_nothing.deletion_ms, behind_nothing.loss_ms) == (0, None, None)
    assert found["2", 0].time_lag_ms > 0
    assert found["2", 0].deletion_ms > 0


def test_a_broker_that_cannot_be_asked_is_told_and_the_rest_is_shown(spark: Spark, kctl: Kctl, load: Load) -> None:
    with connect(spark.target) as client:
        plan = plan_retention(client, topics=[load.topic], parallelism=2)
    plan = dataclasses.replace(plan, brokers=(*plan.brokers, BrokersShare((4711,), None)))
    job = retention_job.retention_job(spark.driver.session(), spark.target, plan, now_ms=0)
    (failure,) = job.failures()
    assert failure.startswith("log dirs of broker 4711: ")
    assert len(job.rows("partition")) == 3


# --- retention ------------------------------------------------------------------------------------------------------


def _segments(log_dir: str, topic: str) -> int:
    """Bytes of a topic's segments below a log dir."""
    return sum(path.stat().st_size for path in Path(log_dir).glob(f"{topic}-*/*.log"))


def _quiet_topic(kctl: Kctl, topic: Callable[..., str]) -> str:
    name = topic(partitions=4, replication_factor=2, retention_bytes="40000", segment_bytes="10000")
    for partition in range(4):
        kctl.ok("produce", name, "--partition", str(partition), stdin="".join(f"{'x' * 50}{n}\n" for n in range(500)))
    return name


def test_sizes_are_those_of_the_files(spark: Spark, kctl: Kctl, topic: Callable[..., str]) -> None:
    name = _quiet_topic(kctl, topic)
    rows = spark.retention("log-dir", topics=[name])

    def as_on_disk() -> bool:  # followers may still be fetching
        nonlocal rows
        rows = spark.retention("log-dir", topics=[name])
        return all(row.size_bytes == _segments(row.log_dir, name) for row in rows)

    eventually(as_on_disk, seconds=60, what="sizes equal to the segments on the disk")
    assert sum(row.replica_count for row in rows) == 8
    assert sum(row.size_bytes for row in rows) > 2 * 2000 * 50
    for row in rows:
        disk = os.statvfs(row.log_dir)
        assert row.total_bytes == disk.f_blocks * disk.f_frsize
    (whole,) = spark.retention("topic", topics=[name])
    assert whole.replicas_bytes == sum(row.size_bytes for row in rows)
    assert whole.size_bytes * 2 == whole.replicas_bytes
    by_broker = spark.retention("broker", topics=[name])
    assert sum(row.size_bytes for row in by_broker) == whole.replicas_bytes
    assert len(by_broker) == 3


def test_shares_and_oldest_records(spark: Spark, kctl: Kctl, topic: Callable[..., str]) -> None:
    name = _quiet_topic(kctl, topic)
    empty = topic(partitions=1, retention_ms="1000", cleanup_policy="compact")
    rows: list[PartitionUsage] = spark.retention("partition", topics=[name, empty])
    described = {(row.topic, row.partition): row for row in rows}
    nothing = described.pop((empty, 0))
    assert (nothing.size_bytes, nothing.oldest_timestamp, nothing.retention_ms_used) == (0, None, None)
    assert (nothing.cleanup_policy, nothing.retention_ms) == ("compact", 1000)
    assert len(described) == 4
    for row in described.values():
        first = json.loads(
            kctl.ok(
                "consume",
                name,
                "--partition",
                str(row.partition),
                "--from-beginning",
                "--max-messages",
                "1",
                "-o",
                "json",
            ).out
        )
        assert jsonable(row.oldest_timestamp) == first["timestamp"]
        assert row.oldest_age_ms is not None
        assert 0 <= row.oldest_age_ms < 600_000
        assert row.retention_bytes == 40_000
        assert row.size_bytes is not None
        assert row.retention_bytes_used == row.size_bytes / 40_000
        assert row.retention_ms == 7 * 24 * 3_600_000  # the broker's default
        assert row.retention_ms_used == row.oldest_age_ms / row.retention_ms
        assert (row.log_start_offset, row.replica_count) == (first["offset"], 2)


# --- secrets, limits ------------------------------------------------------------------------------------------------


def _descendants(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text()
        except OSError:
            continue
        children.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(folder.name))
    found = [pid]
    for parent in found:
        found += children.get(parent, [])
    return found


def test_passwords_reach_the_workers_and_no_place_where_they_could_be_read(spark: Spark, load: Load) -> None:
    assert spark.retention("broker")  # so that there are workers, and something in the event log
    pids = _descendants(spark.driver.pid)
    assert len(pids) > 2, "the JVM, daemons and workers"
    for pid in pids:
        for what in ("cmdline", "environ"):
            assert SECRET.encode() not in Path(f"/proc/{pid}/{what}").read_bytes(), (pid, what)
    session = spark.driver.session()
    assert SECRET not in str(session.sparkContext.getConf().getAll())
    (log,) = [path for path in spark.event_log.rglob("*") if path.is_file() and not path.name.endswith(".crc")]
    text = log.read_text(encoding="utf-8")
    assert "kctl_log_dirs" in text, "the event log has the plans"
    assert SECRET not in text


class _Sleeper:
    """Reads nothing, for a long time. Pickled by value, since the workers of a task cannot import this module."""

    def __call__(self, _target: Target, _share: object, *, timeout_s: float) -> Iterator[LogRow]:
        time.sleep(600)
        return iter(())


def _sleeping_source() -> sources.SourceKind:
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
    return sources.LOGS._replace(read_rows=_Sleeper())


@pytest.mark.long
def test_an_own_timeout_ends_spark_and_its_workers(cluster: TestCluster) -> None:
    # In a process of its own: pyspark has one Spark in a process, and the module's must live on.
    environment = {**os.environ, MARK: uuid.uuid4().hex, "PYTHONPATH": os.pathsep.join(map(str, _IMPORTS))}
    done = subprocess.run(
        [sys.executable, "-c", "import test_jobs; test_jobs.run_into_a_timeout()"],
        env=environment, capture_output=True, text=True, timeout=HEAVY_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "was not done within 3 s (reading)" in done.stdout
    eventually(lambda: not _marked(environment[MARK]), seconds=10, what="the JVM and its workers are gone")


def run_into_a_timeout() -> None:
    """A job that does not end, with a limit of 3 s; says what was raised."""
    kind = _sleeping_source()
    try:
        with SparkDriver(SparkSettings()) as driver:
            frame = sources.load(driver.session(), kind, Target("nobody", ()), [0, 1])
            started = time.monotonic()
            with watched(driver, "reading", deadline=Deadline(3)):
                frame.collect()
    except TimedOut as exc:
        assert time.monotonic() - started < 30
        sys.stdout.write(exc.message)


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_job_that_runs_is_interrupted_at_once(cluster: TestCluster, number: signal.Signals) -> None:
    environment = {**os.environ, MARK: uuid.uuid4().hex, "PYTHONPATH": os.pathsep.join(map(str, _IMPORTS))}
    with subprocess.Popen(
        [sys.executable, "-c", "import test_jobs; test_jobs.run_until_interrupted()"],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "the task runs\n"
        process.send_signal(number)
        out, err = process.communicate(timeout=30)  # the task would take ten minutes
    assert (process.returncode, out, err) == (0, "interrupted", "")
    eventually(lambda: not _marked(environment[MARK]), seconds=10, what="the JVM and its workers are gone")


def run_until_interrupted() -> None:
    """A job that does not end; tells when its tasks run, and that it was interrupted."""

    def told(message: str, _done: float | None = None, total: float | None = None) -> None:
        if total:
            sys.stdout.write("the task runs\n")
            sys.stdout.flush()
            progress.update = lambda *_: None

    progress = SimpleNamespace(update=told)
    kind = _sleeping_source()
    try:
        with interrupt_when_terminated(), SparkDriver(SparkSettings()) as driver:
            frame = sources.load(driver.session(), kind, Target("nobody", ()), [0, 1])
            with watched(driver, "reading", deadline=Deadline(HEAVY_S), progress=progress):
                frame.collect()
    except KeyboardInterrupt:
        sys.stdout.write("interrupted")


# --- the command ----------------------------------------------------------------------------------------------------


def _marked(mark: str) -> list[str]:
    """The processes that have the mark in their environment, as JVM and Python workers inherit it."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:80])
        except OSError:
            continue
    return found


@pytest.fixture
def marked(kctl: Kctl, tmp_path: Path) -> Kctl:
    """kctl with a mark that all its processes inherit, and a folder of its own for temporary files."""
    (tmp_path / "tmp").mkdir()
    return kctl.with_environment(**{MARK: uuid.uuid4().hex, "TMPDIR": str(tmp_path / "tmp")})


def _nothing_left(marked: Kctl, *, seconds: float = 0.5) -> None:
    mark = marked.environment[MARK]
    eventually(lambda: not _marked(mark), seconds=seconds, what="no process is left")
    assert list(Path(marked.environment["TMPDIR"]).iterdir()) == []


@pytest.mark.long
def test_the_command_is_quiet_and_leaves_nothing(
    marked: Kctl, kctl: Kctl, load: Load, spark_archive: Mapping[str, Any], tmp_path: Path
) -> None:
    import pyarrow.parquet

    where = tmp_path / "lag"
    own = kctl.with_environment(**marked.environment)
    result = own("spark", "lag", "--group", load.lags, "--parquet", str(where), "-o", "json", timeout=HEAVY_S)
    assert result.code == 0, str(result)
    assert result.err.endswith(f"written to {where}\n")  # after lines of progress on a slow machine
    rows = json.loads(result.out)
    offsets = ("partition", "committed_offset", "log_start_offset", "log_end_offset", "lag", "lost")
    assert [[row[key] for key in offsets] for row in rows] == [
        [row[key] for key in offsets] for row in kctl.json("lag", load.lags)
    ]
    _nothing_left(own)
    table = pyarrow.parquet.read_table(where).to_pylist()
    assert [list(row) for row in table] == [list(row) for row in rows]
    assert sorted([row[key] for key in offsets] for row in table) == [[row[key] for key in offsets] for row in rows]
    again = own("spark", "lag", "--parquet", str(where))
    assert again.code == 4
    assert "exists" in again.err


@pytest.mark.long
def test_retention_as_a_table_and_as_parquet(
    marked: Kctl, load: Load, spark_archive: Mapping[str, Any], tmp_path: Path
) -> None:
    import pyarrow.parquet

    where = tmp_path / "retention"
    where.mkdir()  # empty: --overwrite may replace it
    result = marked(
        "spark", "retention", "--topic", load.topic, "--by", "partition", "--parquet", str(where), "--overwrite",
        timeout=HEAVY_S,
    )  # fmt: skip
    assert result.code == 0, str(result)
    header, *lines = result.out.splitlines()
    assert header.split()[:3] == ["TOPIC", "PART", "SIZE"]
    assert [line.split()[0] for line in lines] == [load.topic] * 3
    names = {field.name for field in dataclasses.fields(PartitionUsage)}
    assert set(pyarrow.parquet.read_schema(next(where.glob("*.parquet"))).names) == names
    _nothing_left(marked)


@pytest.mark.long
def test_max_lag_makes_exit_code_1_and_an_archive_that_does_not_fit_is_passed_over(
    marked: Kctl, load: Load, spark_archive: Mapping[str, Any], tmp_path: Path
) -> None:
    # Sealed, so that it gets as far as the JVM: a damaged one is not even given to it (tests/unit/spark/test_parts.py).
    name = Path(spark_archive["path"]).name
    archive = ClassArchive(tmp_path / "cache" / "kctl" / "spark" / name, find_java())
    partial = archive.new_partial()
    partial.write_bytes(b"no class archive" * 10_000)
    archive.adopt(partial)
    assert archive.options_to_use()
    own = marked.with_environment(XDG_CACHE_HOME=str(tmp_path / "cache"))
    result = own("spark", "lag", "--group", load.lags, "--by", "group", "--max-lag", "10", timeout=HEAVY_S)
    assert result.code == 1, str(result)
    assert "error: 1 group over the limit of 10: " in result.err  # after lines of progress on a slow machine
    _nothing_left(marked)


@pytest.mark.long
def test_warming_again_keeps_the_archive(kctl: Kctl, spark_archive: Mapping[str, Any]) -> None:
    assert Path(spark_archive["path"]).stat().st_size == spark_archive["size_bytes"]
    again = kctl.json("spark", "warm")
    assert again == {**spark_archive, "made": False, "duration_ms": again["duration_ms"]}


def _started(marked: Kctl) -> subprocess.Popen[str]:
    """`kctl spark lag`, once its Python workers are at work."""
    process = subprocess.Popen(
        [str(Path(sys.executable).with_name("kctl")), "spark", "lag"],
        env=marked.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    eventually(
        lambda: any("pyspark.daemon" in line for line in _marked(marked.environment[MARK])),
        seconds=HEAVY_S, what="Spark's Python workers run",
    )  # fmt: skip
    return process


@pytest.mark.long
def test_ctrl_c_ends_everything(marked: Kctl, cluster: TestCluster, spark_archive: Mapping[str, Any]) -> None:
    process = _started(marked)
    process.send_signal(signal.SIGINT)
    _out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert err.strip() in {"", "interrupted"}
    _nothing_left(marked, seconds=5)


@pytest.mark.long
def test_a_master_that_never_answers_is_waited_for_as_long_as_asked(marked: Kctl, tmp_path: Path) -> None:
    store = small_cluster(tmp_path / "store")
    span = ("--from", datetime.fromtimestamp(at_ms(0) / 1000, timezone.utc).isoformat())
    with socket.create_server(("127.0.0.1", 0)) as silent:
        master = f"spark://127.0.0.1:{silent.getsockname()[1]}"
        options = ("--master", master, "--driver-memory", "512m", "--timeout", "6s")
        result = marked("spark", "lag", "--store", str(store.root), *span, *options, timeout=HEAVY_S)
    assert result.code == 5, str(result)
    assert re.fullmatch(r"error: Spark(?:'s JVM)? did not start within 6 s.*\n  .*--timeout.*\n", result.err)
    _nothing_left(marked, seconds=5)


@pytest.mark.long
def test_kill_9_of_kctl_leaves_no_process(marked: Kctl, cluster: TestCluster, spark_archive: Mapping[str, Any]) -> None:
    process = _started(marked)
    process.kill()
    process.communicate(timeout=30)
    eventually(lambda: not _marked(marked.environment[MARK]), seconds=30, what="the JVM went after kctl")


# --- bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "code", "says"),
    [
        (("lag", "--group", "no-such-group"), 4, "group 'no-such-group' does not exist"),
        (("retention", "--topic", "no-such-topic"), 4, "topic 'no-such-topic' does not exist"),
        (("lag", "--master", "spark://127.0.0.1:1"), 3, "cannot reach the Spark master"),
        (("lag", "--master", "mesos://h:5050"), 2, "is not a Spark master"),
        (("lag", "--driver-memory", "much"), 2, "is not a size"),
        (("lag", "--conf", "x"), 2, "--conf takes spark.KEY=VALUE"),
        (("lag", "--overwrite"), 2, "--overwrite needs --parquet"),
        (("lag", "--parquet", "/proc"), 4, "/proc exists"),
        (("lag", "--parquet", "/proc", "--overwrite"), 4, "the folder is not replaced"),
        (("lag", "--state", "asleep"), 2, "not a group state"),
        (("retention", "--topic", "a/b"), 2, "is not a topic name"),
        (("lag", "--bootstrap-server", "127.0.0.1:1"), 3, "127.0.0.1:1"),
        (("lag", "--context", "nowhere"), 4, "'nowhere'"),
    ],
)
def test_bad_input_is_told_at_once(
    marked: Kctl, cluster: TestCluster, argv: tuple[str, ...], code: int, says: str
) -> None:
    result = marked("spark", *argv, timeout=HEAVY_S)
    assert (result.code, says in result.err) == (code, True), str(result)
    assert result.out == ""
    assert "Traceback" not in result.err
    assert result.seconds < within(15)  # 5 on a quiet machine
    _nothing_left(marked, seconds=5)


def test_too_little_memory_is_told(marked: Kctl, cluster: TestCluster) -> None:
    result = marked("spark", "lag", "--driver-memory", "64m", timeout=HEAVY_S)
    assert result.code in {2, 5}, str(result)
    assert "memory" in result.err
    assert "--driver-memory" in result.err
    _nothing_left(marked, seconds=5)


@pytest.mark.parametrize("command", [("lag",), ("retention",), ("warm",)])
def test_missing_pyspark_gives_the_hint(kctl: Kctl, cluster: TestCluster, command: tuple[str, ...]) -> None:
    # A venv without pyspark takes a minute to make; None in sys.modules is what importlib takes for "not there".
    code = (
        "import sys; sys.modules['pyspark'] = None; sys.argv[1:] = ['spark', *sys.argv[1:]]\n"
        "from kctl.__main__ import main; sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *command],
        env=kctl.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 4
    assert "not installed: pyspark" in done.stderr
    assert "pip install 'kctl[spark]'" in done.stderr
    assert done.stdout == ""


# --- the JVM --------------------------------------------------------------------------------------------------------


def test_module_options_are_those_of_sparks_own_launcher() -> None:
    """The installed pyspark's launcher says with which options it would start a driver."""
    home = java_command.pyspark_home()
    printed = subprocess.run(
        [str(find_java().executable), "-cp", f"{home / 'jars'}/*", "org.apache.spark.launcher.Main",
         "org.apache.spark.deploy.SparkSubmit", "pyspark-shell"],
        env={**os.environ, "SPARK_HOME": str(home), "SPARK_SCALA_VERSION": "2.13"},
        capture_output=True, timeout=60, check=True,
    ).stdout.decode()  # fmt: skip
    own = [option for option in printed.split("\0") if option.startswith(("--", "-XX", "-D"))]
    assert set(own) - set(java_command.MODULE_OPTIONS) <= {"--add-modules=jdk.incubator.vector"}
    assert len(own) > 10


def test_a_job_that_fails_is_told_in_a_sentence(spark: Spark) -> None:
    with pytest.raises(OperationFailed, match="the Spark job failed") as caught, spark.driver.explained():
        spark.driver.session().sql("select raise_error('made to fail')").collect()
    assert "\n" not in caught.value.message
