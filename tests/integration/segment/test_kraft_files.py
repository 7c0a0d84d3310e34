"""The log dir of a KRaft node of 4.4.0 is sound while it runs, and dumped as by Kafka's tool when it has stopped."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer

from cluster_testing import clusters_dir, nothing_left_running
from java_dumps import Printed, run_tool
from kctl_testing import SCRIPT, Kctl, eventually
from message_schemas import definitions, release_of

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

TOPIC, SHARED, GROUP = "segment-orders", "segment-shared", "segment-share"
SETTINGS = {
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
    "share.coordinator.state.topic.num.partitions": 1,
    "metadata.log.max.snapshot.interval.ms": 10_000,
}
DECODERS = {
    "__consumer_offsets-0": "offsets",
    "__transaction_state-0": "transaction-log",
    "__share_group_state-0": "share-group-state",
    "__cluster_metadata-0": "cluster-metadata",
}


# --- a node that wrote records of every kind --------------------------------------------------------------------------


@contextmanager
def _share_consumer(kafka_home: Path, bootstrap: str) -> Iterator[None]:
    argv = ["java", "-Xmx128M", "-XX:TieredStopAtLevel=1", "-cp", f"{kafka_home}/libs/*",
            "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
            "--bootstrap-server", bootstrap, "--topic", SHARED, "--group", GROUP]  # fmt: skip
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait(timeout=60)


def _write_transactions(bootstrap: str) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id="segment-t", acks="all")
    producer.init_transactions()
    for turn in range(4):
        producer.begin_transaction()
        for number in range(5):
            producer.send(TOPIC, b"value %d" % number, key=None if number else b"key", headers=[("h", b"1")])
        producer.flush()
        producer.commit_transaction() if turn % 2 else producer.abort_transaction()
    producer.close()


def _produce(kctl: Kctl) -> bool:
    """Produce records. A share group starts at the latest offset, when its consumer fetches for the first time."""
    kctl.ok("produce", SHARED, stdin="".join(f"line {number}\n" for number in range(20)))
    return True


def _commit(bootstrap: str) -> None:
    consumer = KafkaConsumer(
        TOPIC, group_id="segment-classic", bootstrap_servers=bootstrap, auto_offset_reset="earliest",
        enable_auto_commit=False,
    )  # fmt: skip
    try:
        assert consumer.poll(timeout_ms=20_000)
        consumer.commit()
    finally:
        consumer.close()


@pytest.fixture(scope="module")
def kctl(tmp_path_factory: pytest.TempPathFactory, shared: dict[str, str], kafka_4_home: Path) -> Kctl:
    return Kctl(tmp_path_factory.mktemp("kraft-segments"), {**shared, "KAFKA_HOME": str(kafka_4_home)})


@pytest.fixture(scope="module")
def log_dir(kctl: Kctl, kafka_4_home: Path) -> Iterator[Path]:
    """Yield the log dir of a running node."""
    settings = [word for name, value in SETTINGS.items() for word in ("--config", f"{name}={value}")]
    with nothing_left_running(kctl):
        kctl.ok("cluster", "create", "c", "--use", "--layout", "kraft-single", "--heap", "320m", *settings, timeout=240)
        bootstrap = kctl.json("cluster", "status", "c")["bootstrap_servers"][0]
        kctl.ok("topic", "create", TOPIC, "--config", "segment.bytes=1048576")
        kctl.ok("topic", "create", SHARED)
        (meta,) = clusters_dir(kctl).rglob("meta.properties")
        with _share_consumer(kafka_4_home, bootstrap):
            _write_transactions(bootstrap)
            _commit(bootstrap)
            states = meta.parent / "__share_group_state-0" / f"{0:020d}.log"
            eventually(lambda: states.exists() and states.stat().st_size > 0, what="the share group has a state")
            initial = states.stat().st_size
            eventually(
                lambda: _produce(kctl) and states.stat().st_size > initial, what="the share group acknowledged records"
            )
        metadata = meta.parent / "__cluster_metadata-0"
        eventually(lambda: len([*metadata.glob("*.checkpoint")]) > 1, what="a snapshot of the metadata")
        yield meta.parent


@pytest.fixture(scope="module")
def stopped(kctl: Kctl, log_dir: Path) -> Path:
    """Return the log dir after the node has stopped."""
    kctl.ok("cluster", "stop", "c", "--yes", timeout=90)
    return log_dir


# --- verify -----------------------------------------------------------------------------------------------------------


def test_a_live_log_dir_is_sound(kctl: Kctl, log_dir: Path) -> None:
    result = kctl.json("segment", "verify", "--deep", str(log_dir))
    assert result["findings"] == []
    assert result["checked"]["partition_count"] == len([*log_dir.glob("*-0")])


def test_a_stopped_log_dir_is_sound(kctl: Kctl, stopped: Path) -> None:
    assert kctl.json("segment", "verify", "--deep", str(stopped))["findings"] == []


@pytest.mark.parametrize(
    ("name", "position", "code"),
    [("quorum-state", 0, "quorum_state"), ("*.checkpoint", 100, "kraft_snapshot"), ("*.log", 200, "batch_crc")],
)
def test_damage_is_found(kctl: Kctl, stopped: Path, tmp_path: Path, name: str, position: int, code: str) -> None:
    folder = tmp_path / "__cluster_metadata-0"
    shutil.copytree(stopped / folder.name, folder, ignore=shutil.ignore_patterns("*index"))
    path = min(folder.glob(name))
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.chmod(0o600)
    path.write_bytes(data)
    result = kctl("segment", "verify", "-o", "json", str(folder))
    assert result.code == 1
    assert (code, str(path)) in {(each["code"], each["file"]) for each in json.loads(result.out)["findings"]}


def test_quorum_state(kctl: Kctl, stopped: Path) -> None:
    shown = kctl.ok("segment", "dump", "-o", "json", str(stopped / "__cluster_metadata-0/quorum-state")).out
    values = {row["key"]: row["value"] for row in map(json.loads, shown.splitlines())}
    assert (values["leaderId"], values["data_version"]) == ("1", "1")


# --- dump -------------------------------------------------------------------------------------------------------------


def _runs(log_dir: Path) -> list[list[str]]:
    def files(pattern: str) -> str:
        return ",".join(map(str, sorted(log_dir.glob(pattern))))

    logs, metadata = files("*-0/*.log"), "__cluster_metadata-0"
    snapshots = files(f"{metadata}/*.checkpoint")
    return [
        ["--files", f"{logs},{snapshots}"],
        ["--deep-iteration", "--files", f"{logs},{snapshots}"],
        ["--print-data-log", "--files", files(f"{TOPIC}-0/*.log")],
        ["--print-data-log", "--skip-record-metadata", "--files", files("segment-*-0/*.log")],
        ["--cluster-metadata-decoder", "--files", snapshots],
        ["--cluster-metadata-decoder", "--skip-record-metadata", "--files", snapshots],
        *(
            [f"--{decoder}-decoder", *skip, "--files", files(f"{folder}/*.log")]
            for folder, decoder in DECODERS.items()
            for skip in ([], ["--skip-record-metadata"])
        ),
        ["--files", f"{files('*-0/*.index')},{files('*-0/*.timeindex')}"],
        ["--index-sanity-check", "--files", f"{files('segment-*-0/*.index')},{files('segment-*-0/*.timeindex')}"],
        ["--files", f"{files('*-0/*.txnindex')},{files('*-0/*.snapshot')}"],
    ]


def _own(kctl: Kctl, arguments: Sequence[str]) -> tuple[bytes, bytes, int]:
    argv = [str(SCRIPT), "segment", "dump", "-o", "kafka", *arguments]
    done = subprocess.run(argv, env=kctl.environment, capture_output=True, timeout=120, check=False)
    return done.stdout, done.stderr.partition(b"error: ")[0], done.returncode


def test_dumps_are_those_of_kafka(kctl: Kctl, stopped: Path, kafka_4_home: Path) -> None:
    """The release is not given: the metadata log shows it."""
    runs = _runs(stopped)
    printed = run_tool(kafka_4_home, ["\t".join(run) for run in runs], stopped)
    for run, theirs in zip(runs, printed, strict=True):
        assert theirs.exception is None, run
        out, err, code = _own(kctl, run)
        assert out.splitlines() == theirs.stdout.splitlines(), run
        assert out == theirs.stdout
        assert err == theirs.stderr
        assert code == 0
    _check_variety(printed)


def _check_variety(printed: Sequence[Printed]) -> None:
    out = b"".join(each.stdout for each in printed)
    for text in (
        b" LeaderChange: {", b" SnapshotHeader {", b" SnapshotFooter {", b" KRaftVersion {", b" KRaftVoters {",
        b" endTxnMarker: ABORT", b'"transactionStatus":"CompleteAbort"', b'"deliveryState"', b'"snapshotEpoch"',
        b'"type":"REGISTER_CONTROLLER_RECORD"', b'"group":"segment-classic"', b'"groupId":"segment-share"',
        b" lastStableOffset: ", b"passed sanity check",
    ):  # fmt: skip
        assert text in out, text


def test_definitions_are_those_of_the_jars(kafka_home: Path, kafka_4_home: Path) -> None:
    """`python tests/support/message_schemas.py KAFKA_HOME…` writes them."""
    folder = files("kctl.segment.format")
    for home in (kafka_home, kafka_4_home):
        text = folder.joinpath(f"messages_{release_of(home)}.json").read_text(encoding="utf-8")
        assert json.loads(text) == definitions(home)
