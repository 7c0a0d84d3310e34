"""The parts of kctl.spark that need no Spark: settings, planning, failures, the seal of the class archive, files."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kctl.commands.history import retention as history_retention
from kctl.commands.history.engine import NO_PARQUET
from kctl.commands.spark.engine import _SparkRun
from kctl.deploy.runtime.class_archive import ClassArchive
from kctl.deploy.runtime.java import Java
from kctl.errors import (
    AlreadyExists,
    ConnectionFailed,
    KctlError,
    NotSupported,
    OperationFailed,
    Refused,
    UsageError,
)
from kctl.history.evaluate.processes import available_cpus
from kctl.history.parquet import check_target
from kctl.history.retention.live_plan import plan_retention, split_evenly
from kctl.history.snapshots.columns import column
from kctl.lag.selection import EVERY
from kctl.model import Broker, ClusterState, PartitionState, TopicState
from kctl.spark import failures, java_command, retention_job, scratch
from kctl.spark.class_archive import class_archive
from kctl.spark.settings import (
    OLDEST_PYSPARK,
    SparkSettings,
    checked,
    parse_conf,
    standalone_masters,
)

# --- settings -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "master", ["local", "local[2]", "local[*]", "local[4,2]", "spark://h:7077", "yarn", "k8s://https://h"]
)
def test_valid_masters(master: str) -> None:
    assert checked(SparkSettings(master=master)).master == master


@pytest.mark.parametrize(
    "master",
    ["", "localhost", "local[0]", "local[two]", "local[2", "mesos://h:5050", "http://h", "yarnx", "k8s://", "spark://",
     "spark://h:port", "spark://h:1,"],
)  # fmt: skip
def test_invalid_masters(master: str) -> None:
    with pytest.raises(UsageError, match="is not a Spark master"):
        checked(SparkSettings(master=master))


def test_an_old_pyspark_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two versions cannot be installed at once, so the metadata is patched."""
    oldest = ".".join(map(str, OLDEST_PYSPARK))
    assert f'"pyspark>={oldest},' in (Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8")
    monkeypatch.setattr("importlib.metadata.version", {"pyspark": "3.5.1"}.__getitem__)
    with pytest.raises(NotSupported, match=f"needs pyspark {oldest} or newer; 3.5.1 is installed"):
        checked(SparkSettings())


@pytest.mark.parametrize("size", ["1g", "512m", "2G", "1048576k", "1gb"])
def test_driver_memory(size: str) -> None:
    assert checked(SparkSettings(driver_memory=size)).driver_memory == size


@pytest.mark.parametrize("size", ["", "0g", "1", "g", "1.5g", "-1g", "1g -XX:+X"])
def test_invalid_driver_memory(size: str) -> None:
    with pytest.raises(UsageError):
        checked(SparkSettings(driver_memory=size))


def test_conf_is_parsed_and_errors_never_contain_values() -> None:
    assert parse_conf(["spark.a=b=c", "spark.x="]) == {"spark.a": "b=c", "spark.x": ""}
    for wrong in (
        "s3cret",
        "hadoop.x=s3cret",
        "spark.master=s3cret",
        "=s3cret",
        "spark.driver.memory=s3cret",
    ):
        with pytest.raises(UsageError) as caught:
            parse_conf([wrong])
        assert "s3cret" not in f"{caught.value.message} {caught.value.hint}"
    assert "s3cret" not in repr(SparkSettings(conf={"spark.k": "s3cret"}))


@pytest.mark.parametrize(
    ("master", "tasks"),
    [("local", available_cpus()), ("local[3]", 3), ("local[*]", available_cpus()), ("spark://h:1", 32)],
)
def test_tasks_are_bounded(master: str, tasks: int) -> None:
    assert SparkSettings(master=master).parallelism == tasks


def test_standalone_masters() -> None:
    assert [str(a) for a in standalone_masters("spark://a:1,b:2,[::1]:3")] == ["a:1", "b:2", "[::1]:3"]
    assert standalone_masters("yarn") == []
    with pytest.raises(UsageError):
        standalone_masters("spark://a:port")


# --- planning -------------------------------------------------------------------------------------------------------


@given(st.lists(st.lists(st.integers(), max_size=9), max_size=12), st.integers(1, 5))
def test_split_evenly_keeps_bundles_whole_and_loses_nothing(bundles: list[list[int]], tasks: int) -> None:
    tagged = [[(i, value) for value in bundle] for i, bundle in enumerate(bundles)]
    shares = split_evenly(tagged, tasks)
    assert len(shares) <= tasks
    assert all(shares)
    assert sorted(x for share in shares for x in share) == sorted(x for bundle in tagged for x in bundle)
    for bundle in filter(None, tagged):
        assert sum(bundle[0] in share for share in shares) == 1
        assert all(item in next(share for share in shares if bundle[0] in share) for item in bundle)
    if shares:  # Graham's bound: no share exceeds the mean by more than the largest bundle
        assert max(map(len, shares)) <= sum(map(len, shares)) / len(shares) + max(map(len, tagged))


def test_a_dead_broker_is_detected_by_its_replicas() -> None:
    """The metadata lists a dead broker only in replicas, and its log dirs cannot be read."""
    partitions = tuple(PartitionState("t", n, 1, 0, each, (1,)) for n, each in enumerate([(1, 2), (1, 2), (1, 3)]))
    state = ClusterState("c", 1, {1: Broker(1, "h", 9092)}, {"t": TopicState("t", False, None, partitions)})
    client = SimpleNamespace(metadata=lambda names: state)
    plan = plan_retention(client, parallelism=2)  # type: ignore[arg-type]
    assert plan.failures == (
        "broker 2 is down: 2 replicas could not be read",
        "broker 3 is down: 1 replica could not be read",
    )
    state.brokers.update({n: Broker(n, "h", 9092) for n in (2, 3)})
    assert plan_retention(client, parallelism=2).failures == ()  # type: ignore[arg-type]


def test_the_live_report_names_a_dead_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """All requests succeeded, but the report is incomplete because a broker could not be queried."""
    partitions = (PartitionState("t", 0, 1, 0, (1, 2), (1,)),)
    state = ClusterState("c", 1, {1: Broker(1, "h", 9092)}, {"t": TopicState("t", False, None, partitions)})
    inv, run, job = MagicMock(), MagicMock(), MagicMock()
    inv.connect.return_value.__enter__.return_value.metadata.return_value = state
    job.failures.return_value, job.rows.return_value = ["topic t: no configs"], []
    monkeypatch.setattr(retention_job, "retention_job", lambda *args, **kwargs: job)
    run.usage = lambda *args: _SparkRun(MagicMock(), None, MagicMock(), NO_PARQUET, 1).usage(*args)
    errors = history_retention._live(inv, run, EVERY, "broker", 1)
    assert errors == ["broker 2 is down: 1 replica could not be read", "topic t: no configs"]
    run.emit.assert_called_once()


# --- Arrow ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
        (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
        (pa.bool_(), st.booleans()),
        (pa.string(), st.text(max_size=5)),
    ],
    ids=str,
)
@given(data=st.data())
def test_arrow_columns_equal_those_of_pyarrow(
    kind: pa.DataType, values: st.SearchStrategy[object], data: st.DataObject
) -> None:
    drawn = data.draw(st.lists(st.one_of(st.none(), values), max_size=40))
    array = column(drawn, kind)
    array.validate(full=True)
    assert array.equals(pa.array(drawn, kind))


def test_arrow_columns_of_other_types_are_rejected() -> None:
    with pytest.raises(TypeError):
        column([1.5], pa.dictionary(pa.int32(), pa.string()))
    with pytest.raises(OverflowError):
        column([2**31], pa.int32())


def test_arrow_columns_need_no_pandas() -> None:
    code = (
        "import sys; from pyspark.sql.types import StructType; from kctl.spark.arrow import batches\n"
        "list(batches([(1, 'x')], StructType().add('a', 'long').add('b', 'string')))\n"
        "sys.exit('pandas' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# --- failures -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("x\nTerminating due to java.lang.OutOfMemoryError: Java heap space", OperationFailed, "out of memory"),
        ("Invalid maximum heap size: -Xmx1z", UsageError, "-Xmx1z"),
        ("[PYTHON_VERSION_MISMATCH] Python in worker has different version", NotSupported, "a different Python"),
        ("ModuleNotFoundError: No module named 'kctl'", NotSupported, "has no kctl"),
        ('java.io.IOException: Cannot run program "/opt/py": error=2', NotSupported, "/opt/py"),
        ("org.apache.spark.SparkException: All masters are unresponsive! Giving up.", ConnectionFailed, "master"),
        ("java.lang.UnsupportedClassVersionError: org/apache/spark", NotSupported, "Java 17"),
        ("java.io.IOException: No space left on device", OperationFailed, "disk is full"),
        ("a\nCaused by: java.lang.Foo\nCaused by: a.b.BarException: the reason\n\tat x", OperationFailed, "the reason"),
        ("ExecutorLostFailure (…) Reason: Command exited with code 52", OperationFailed, "an executor ran out"),
        ("Job aborted due to stage failure: x\njava.lang.OutOfMemoryError: Java heap", OperationFailed, "an executor"),
        ("ExecutorLostFailure (…) Reason: Container killed by YARN for exceeding", OperationFailed, "an executor"),
        ("ExecutorLostFailure (executor 3 exited …) Reason: worker lost", OperationFailed, "worker lost"),
        ("Results (1.1 GiB) is bigger than spark.driver.maxResultSize (1024.0 MiB).", OperationFailed, "1024.0 MiB"),
        ("SparkException: Python worker exited unexpectedly (crashed)", OperationFailed, "a Python worker died"),
        ("ModuleNotFoundError: No module named 'kctl.spark.stores'", NotSupported, "a different version of kctl"),
        ("Can't get attribute 'A' on <module 'kctl.spark.b' from", NotSupported, "a different version of kctl"),
        ("[INVALID_CONF_VALUE.TYPE_MISMATCH] 'foo' is no int. SQLSTATE: 22022", UsageError, "'foo' is no int."),
        ("[CODEC_NOT_AVAILABLE.WITH_CONF_SUGGESTION] The codec foo\n", UsageError, "a setting: The codec foo"),
        ("x\n: java.lang.ClassNotFoundException: no.such.Thing\n\tat", UsageError, "no class no.such.Thing"),
        ("[SOME_ERROR] what is wrong\n\tat x", OperationFailed, "something failed: [SOME_ERROR] what is wrong"),
        ("EOFException while reading the port number from pyspark.daemon's stdout.", NotSupported, "exits immediately"),
        ("", OperationFailed, "something failed"),
    ],
)  # fmt: skip
def test_spark_failures_as_messages(text: str, error: type[KctlError], message: str) -> None:
    failure = failures.explain(text, fallback="something failed")
    assert type(failure) is error
    assert message in failure.message
    assert "\n" not in failure.message
    assert failure.hint


def test_exit_of_a_dead_jvm() -> None:
    assert "signal 9" in failures.died(-9, "").message
    assert "exit code 3" in failures.died(3, "").message


# --- the class archive ----------------------------------------------------------------------------------------------


@pytest.fixture
def archive(tmp_path: Path) -> ClassArchive:
    """Return a sealed class archive of 100 kB."""
    made = ClassArchive(tmp_path / "spark" / "a.jsa", Java(tmp_path / "bin" / "java", 17, tmp_path))
    partial = made.new_partial()
    partial.write_bytes(os.urandom(100_000))
    made.adopt(partial)
    return made


def test_a_complete_archive_is_used(archive: ClassArchive) -> None:
    assert archive.whole
    assert f"-XX:SharedArchiveFile={archive.path}" in archive.options_to_use()
    assert archive.path.stat().st_mode & 0o777 == 0o600


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[50_000] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    "damage",
    [
        _flip,
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: path.write_bytes(b""),
        lambda path: path.unlink(),
        lambda path: path.with_suffix(".seal").unlink(),
        lambda path: path.with_suffix(".seal").write_text("{}"),
        lambda path: path.with_suffix(".seal").write_bytes(b"\xff\xfe"),
    ],
    ids=["one bit", "cut", "empty", "missing", "no seal", "empty seal", "garbage seal"],
)
def test_a_damaged_archive_is_ignored(archive: ClassArchive, damage: object) -> None:
    assert callable(damage)
    damage(archive.path)
    assert not archive.whole
    assert archive.options_to_use() == []


def test_a_crash_while_adopting_leaves_no_archive(archive: ClassArchive, monkeypatch: pytest.MonkeyPatch) -> None:
    partial = archive.new_partial()
    partial.write_bytes(b"new")

    def crash(*_: object, **__: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_text", crash)  # a real crash cannot be timed exactly here
    with pytest.raises(KeyboardInterrupt):
        archive.adopt(partial)
    monkeypatch.undo()
    assert not archive.whole
    archive.remove_others()
    assert [path.name for path in archive.path.parent.iterdir()] == ["a.jsa"]


def test_archive_names_depend_on_java_and_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    home = tmp_path / "jdk"
    home.mkdir()
    (home / "release").write_text('JAVA_VERSION="17.0.1"')
    first = class_archive(Java(home / "bin" / "java", 17, home)).path
    assert class_archive(Java(home / "bin" / "java", 17, home)).path == first
    (home / "release").write_text('JAVA_VERSION="17.0.2"')
    assert class_archive(Java(home / "bin" / "java", 17, home)).path != first
    assert class_archive(Java(home / "bin" / "java", 25, home)).path.suffix == ".aot"


def test_java_without_a_base_archive_cannot_create_one(archive: ClassArchive, tmp_path: Path) -> None:
    with pytest.raises(NotSupported):
        archive.options_to_make(tmp_path / "new.jsa")
    newer = ClassArchive(archive.path, Java(tmp_path / "java", 25, tmp_path))
    assert f"-XX:AOTCacheOutput={tmp_path / 'new.aot'}" in newer.options_to_make(tmp_path / "new.aot")


# --- files ----------------------------------------------------------------------------------------------------------


def test_parquet_goes_to_a_new_folder(tmp_path: Path) -> None:
    check_target(str(tmp_path / "new"), overwrite=False, embedded=True)
    with pytest.raises(AlreadyExists):
        check_target(str(tmp_path), overwrite=False, embedded=True)
    with pytest.raises(Refused):
        check_target(str(tmp_path / "no" / "parent"), overwrite=False, embedded=True)
    with pytest.raises(Refused):
        check_target(str(tmp_path / "new"), overwrite=False, embedded=False)
    check_target("hdfs://nn/x", overwrite=False, embedded=False)


def test_only_folders_written_by_spark_are_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "_SUCCESS").touch()
    (folder / "part-00000-0d2f-c000.snappy.parquet").touch()
    check_target(str(folder), overwrite=True, embedded=True)
    (folder / "thesis.doc").touch()
    with pytest.raises(Refused, match=r"thesis\.doc"):
        check_target(str(folder), overwrite=True, embedded=True)
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(Refused):
        check_target(str(tmp_path / "link"), overwrite=True, embedded=True)


def test_folders_of_killed_drivers_are_removed_and_those_of_live_ones_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    long_ago = time.time() - 3600
    abandoned = tmp_path / f"{scratch.PREFIX}left"
    (abandoned / "blockmgr").mkdir(parents=True)
    os.utime(abandoned, (long_ago, long_ago))
    with scratch.scratch_folder() as folder:
        assert not abandoned.exists()
        os.utime(folder, (long_ago, long_ago))
        scratch.sweep()
        assert folder.is_dir()
    assert not folder.exists()


def test_properties_are_escaped_for_java() -> None:
    # java.util.Properties.load: \uXXXX escapes, so no character has a special meaning.
    assert java_command.properties({"spark.a": "x"}) == "spark.a=x\n"
    assert java_command.properties({"spark.a": "a b=c:\\#é\n😀"}) == (
        "spark.a=a b\\u003dc\\u003a\\u005c\\u0023\\u00e9\\u000a\\ud83d\\ude00\n"
    )
    assert java_command.properties({"spark.a": " x"}) == "spark.a=\\u0020x\n"


def test_user_settings_are_not_in_argv(tmp_path: Path) -> None:
    settings = SparkSettings(master="yarn", conf={"spark.ssl.keyPassword": "s3cret"})
    assert "s3cret" not in " ".join(java_command.submit_command(settings, folder=tmp_path, environ={}))
    local = SparkSettings(conf={"spark.ssl.keyPassword": "s3cret", "spark.driver.extraJavaOptions": "-Xss4m -Da='b c'"})
    argv = java_command.embedded_command(tmp_path / "java", local, folder=tmp_path, archive_options=[])
    assert "s3cret" not in " ".join(argv)
    assert argv[-3:-1] == ["-Xss4m", "-Da=b c"]
    bad = SparkSettings(conf={"spark.driver.extraJavaOptions": "-Da='s3cret"})
    with pytest.raises(UsageError, match="cannot be split into words") as caught:
        java_command.embedded_command(tmp_path / "java", bad, folder=tmp_path, archive_options=[])
    assert "s3cret" not in caught.value.message


def test_java_options_of_user_and_spark_defaults_are_retained(tmp_path: Path) -> None:
    user_conf = {"spark.driver.extraJavaOptions": "-Da=b", "spark.driver.defaultJavaOptions": "-Dc=d"}
    conf = java_command.submit_conf(user_conf, folder=tmp_path)
    assert conf["spark.driver.extraJavaOptions"] == "-Da=b"
    assert conf["spark.driver.defaultJavaOptions"].endswith('log4j2.properties" -Dc=d')
    assert "--driver-java-options" not in java_command.submit_command(SparkSettings(), folder=tmp_path, environ={})


def test_the_environment_of_another_spark_is_ignored() -> None:
    environment = {
        "SPARK_HOME": "/opt/spark",
        "SPARK_REMOTE": "sc://x",
        "PYSPARK_PYTHON": "python2",
        "PATH": "/bin",
    }
    result = java_command.embedded_environment(environment)
    assert "SPARK_HOME" not in result  # workers would import pyspark from its zip
    assert "SPARK_REMOTE" not in result
    assert result["PYSPARK_PYTHON"] != "python2"
    assert result["PATH"] == "/bin"
