"""kctl history and kctl spark are two engines with one answer: on random stores, and on a real cluster's."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kctl.history.lag.evaluate import evaluate
from kctl.history.lag.plan import LagRequest, plan_moment, plan_span
from kctl.history.lag.row_batches import ROWS
from kctl.history.retention.store_reads import reads_of
from kctl.history.rollups.catch_up import catch_up
from kctl.history.rollups.rollup import TABLES
from kctl.history.snapshots import schema
from kctl.history.snapshots.collect import Pass
from kctl.history.snapshots.commit import put_pass
from kctl.history.snapshots.layout import HOUR_MS
from kctl.history.snapshots.rollup_files import rows_of
from kctl.history.snapshots.store import Store, create_store
from kctl.lag.selection import EVERY, names_of
from kctl.spark.lag_source import LagReportJob
from kctl.spark.rollup_job import hours_by_spark
from kctl.spark.session import SparkDriver
from kctl.spark.settings import SparkSettings
from kctl.spark.store_reads import reads_by_spark
from kctl_testing import SCRIPT, Kctl, TestCluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START_MS = 1_790_000_000_000 // HOUR_MS * HOUR_MS
_JOB_S = 300


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """One embedded Spark for the module."""
    with SparkDriver(SparkSettings(master="local[2]")) as driver:
        yield driver.session()


# --- random stores --------------------------------------------------------------------------------------------------

_OFFSETS = st.one_of(st.none(), st.integers(-1, 60))
_COMMITS = st.dictionaries(
    st.tuples(st.sampled_from("abcdé"), st.sampled_from("tu"), st.integers(0, 1)), _OFFSETS, min_size=1, max_size=12
)
_PASS = st.tuples(_COMMITS, st.integers(0, 60), st.booleans())


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[int, Pass]]:
    """Passes some minutes apart: groups come and go, offsets go anywhere, some passes are not complete."""
    at_ms, found = START_MS, []
    for commits, end, complete in draw(st.lists(_PASS, min_size=2, max_size=14)):
        at_ms += draw(st.integers(1, 20)) * 60_000
        groups = sorted({group for group, _, _ in commits})
        state = draw(st.sampled_from(["Stable", "Empty", "Dead"]))
        rows: dict[str, list[tuple[Any, ...]]] = {
            schema.COMMITS: [(*key, offset, 5, end, 3, "id", False) for key, offset in sorted(commits.items())],
            schema.GROUPS: [(group, state, "classic", "consumer", 1, 1) for group in groups],
            schema.OWNERS: [(*key, "m", "client", "/h") for key in sorted(commits) if key[2] == 0],
            schema.LOGS: [(topic, n, "id", 1, 3, 5, end, end, START_MS) for topic in "tu" for n in (0, 1)],
            schema.REPLICAS: [
                (broker, "/d", topic, n, 100 * end, 0, False) for broker in (1, 2) for topic in "tu" for n in (0, 1)
            ],
            schema.LOG_DIRS: [(broker, "/d", 10**6, 10**6 - 400 * end, None) for broker in (1, 2)],
            schema.CONFIGS: [(topic, "delete", 3_600_000, 4_000, 1_000, 1, 1, 1, 1, 0.5) for topic in "tu"],
        }
        found.append((at_ms, Pass(rows=rows, failures=[] if complete else ["broker 3 is down"])))
    return found


def a_store(root: Path, history: list[tuple[int, Pass]]) -> Store:
    store = create_store(root, "c")
    for at_ms, found in history:
        put_pass(store, at_ms, at_ms + 50, found)
    return store


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    history=histories(),
    by=st.sampled_from(sorted(ROWS)),
    groups=st.sampled_from([EVERY, names_of(["*", "!b"])]),
    window=st.integers(2, 5),
)
def test_engines_agree_on_any_history(
    spark: SparkSession, history: list[tuple[int, Pass]], by: str, groups: Any, window: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root, end_ms = Path(folder) / "s", history[-1][0] + 1
        store = a_store(root, history)
        wanted = LagRequest(groups=groups, topics=EVERY, by=by, observations=window, tasks=2)
        for plan in (plan_span(root, START_MS, end_ms, wanted), plan_moment(root, end_ms, wanted)):
            two = dataclasses.replace(plan, ranges=_halves())
            assert evaluate(two) == LagReportJob(spark, two).read()
        span = (str(root), START_MS, end_ms)
        (here, _), (there, _) = (each.outlook() for each in (reads_of(*span), reads_by_spark(spark, 2, *span)))
        for report in ("by_topic", "by_partition", "by_replica", "by_broker", "by_log_dir"):
            assert getattr(here, report)() == getattr(there, report)()
        readers = [sorted(each.readers(here)) for each in (reads_of(*span), reads_by_spark(spark, 2, *span))]
        assert readers[0] == readers[1]
        copy = a_store(Path(folder) / "copy", history)
        made = [catch_up(store), catch_up(copy, make_hours=hours_by_spark(spark, 2))]
        assert made[0] == made[1]
        for table in TABLES:
            assert rows_of(store, table, 0, 10**14, days=False) == rows_of(copy, table, 0, 10**14, days=False)


def _halves() -> tuple[Any, ...]:
    from kctl.history.evaluate.group_ranges import GroupRange

    return GroupRange(None, "c"), GroupRange("c", None)


# --- a real cluster -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def collected(cluster: TestCluster, kctl: Kctl, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with some passes of the cluster, while a group reads a part of a topic."""
    store, name = tmp_path_factory.mktemp("history") / "store", f"history-{os.getpid()}"
    kctl.ok("topic", "create", name, "--partitions", "3", "--replication-factor", "2")
    for count in (20, 40):
        kctl.ok("produce", name, stdin="x\n" * 50)
        kctl.ok("consume", name, "--group", name, "--from-beginning", "--max-messages", str(count), "--quiet")
        kctl.ok("history", "snapshot", "--store", str(store), "--every", "1s", "--for", "2500ms")
    return store


@pytest.mark.usefixtures("spark_archive")
@pytest.mark.parametrize(
    "words",
    [
        ("lag", "--last", "1h"),
        ("lag", "--last", "1h", "--by", "group", "--window", "3", "--worst", "2"),
        ("lag", "--at", "AT", "--explain", "--group", "history-*"),
        ("retention", "--by", "partition"),
        ("retention", "--by", "log-dir", "--explain"),
        ("retention", "--show", "losses"),
        ("retention", "--what-if", "retention.ms=1h"),
        ("trends", "--of", "topics", "--master", "local[2]"),
    ],
    ids=" ".join,
)
def test_engines_agree_on_a_real_store(kctl: Kctl, collected: Path, words: tuple[str, ...], tmp_path: Path) -> None:
    at = kctl.json("history", "lag", "--store", str(collected), "--last", "1h", "--worst", "1")[0]["at"]
    args = [at if word == "AT" else word for word in words]
    alone = [word for word in args if word not in {"--master", "local[2]"}]
    store = ("--store", str(collected), "-o", "json")
    here = kctl("history", *alone, *store, timeout=_JOB_S)
    there = kctl("spark", *args, *store, timeout=_JOB_S)
    assert (here.code, json.loads(here.out)) == (there.code, json.loads(there.out))
    assert here.code == 0
    if words[0] != "trends" and "losses" not in words:
        assert json.loads(here.out)


@pytest.mark.usefixtures("spark_archive")
def test_engines_agree_on_a_live_cluster(kctl: Kctl, collected: Path, tmp_path: Path) -> None:
    """`retention` without a store: figures of a topic that nothing is written to, and the Parquet files of both."""
    import pyarrow.parquet as pq

    written = []
    for engine in ("history", "spark"):
        rows = kctl.json(
            engine, "retention", "--topic", "history-*", "--by", "partition", "--parquet", str(tmp_path / engine),
            timeout=_JOB_S,
        )  # fmt: skip
        assert [row["partition"] for row in rows] == [0, 1, 2]
        ages = ("oldest_age_ms", "retention_ms_used")
        table = sorted(pq.read_table(tmp_path / engine).to_pylist(), key=lambda row: row["partition"])
        for row in table:  # Spark's own format of timestamps has no zone
            row["oldest_timestamp"] = row["oldest_timestamp"] and row["oldest_timestamp"].replace(tzinfo=None)
        written.append([[{k: v for k, v in row.items() if k not in ages} for row in each] for each in (rows, table)])
    assert written[0] == written[1]


def test_history_needs_no_spark_and_no_java(kctl: Kctl, collected: Path) -> None:
    env = {**kctl.environment, "PYTHONPROFILEIMPORTTIME": "1", "JAVA_HOME": "/nowhere"}
    done = subprocess.run(
        [str(SCRIPT), "history", "lag", "--store", str(collected), "--now", "-o", "json",
         "--bootstrap-server", "127.0.0.1:1"],
        env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 3
    done = subprocess.run(
        [str(SCRIPT), "history", "lag", "--store", str(collected), "--last", "1h", "-o", "json"],
        env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert done.returncode == 0
    assert "numpy" in imported
    assert not imported & {"pyspark", "pandas", "py4j"}


def test_now_with_a_store(kctl: Kctl, collected: Path) -> None:
    """Without a time: the cluster as it is, with the store as history."""
    (row, *_) = kctl.json("history", "lag", "--store", str(collected), "--group", "history-*", "--by", "group")
    (plain,) = {(each["group"], each["lag"]) for each in [row]}
    assert plain[1] == sum(each["lag"] for each in kctl.json("lag", plain[0]))
    assert row["status"] in {"OK", "WARN", "ERR"}
