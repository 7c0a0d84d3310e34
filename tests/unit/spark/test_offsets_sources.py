"""The log of commits by Fetch and as a Spark data source: tests that need neither a broker nor a JVM."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.sql.pandas.types import to_arrow_schema

from kctl.errors import KctlError, OperationFailed
from kctl.history.commits.commit_log import ARROW, Span, offsets_logs, read_fetched
from kctl.lag.offsets_topic import OffsetsLog, fetch_log, partition_of, whole_batches
from kctl.protocol.security import Security
from kctl.protocol.target import Target
from kctl.spark import offsets_source, segments_source
from kctl.spark.offsets_source import LiveShare, Share, file_shares, live_shares
from kctl.spark.task_source import TaskReader
from offsets_files import commit
from segment_files import BASE_TIMESTAMP as T
from segment_files import batch, marker, with_bytes, write

ONE, TWO = batch(5, [commit("g", "t", 0, 1, T)]), batch(6, [commit("g", "t", 0, 2, T + 1), commit("h", "t", 0, 9, T)])


@pytest.mark.parametrize(
    ("group", "partition"),
    [
        ("", 0),
        ("a", 47),  # String.hashCode: 97
        ("polygenelubricants", 0),  # −2³¹, of which Kafka's Utils.abs is 0
        ("hello world", 2),  # 1794106052 overflows on its way
        ("\U0001f600", 49),  # two units of UTF-16: 1772899
        ("BB", 12),  # 2112, as "Aa" is
    ],
)
def test_partition_of_a_group(group: str, partition: int) -> None:
    assert partition_of(group, 50) == partition


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", (0, -1)),
        (ONE, (len(ONE), 6)),
        (ONE + TWO, (len(ONE + TWO), 8)),
        (ONE + TWO[:-1], (len(ONE), 6)),
        (ONE[:20], (0, -1)),
        (with_bytes(ONE, 8, b"\xff\xff\xff\xf0") + TWO, (0, -1)),
        (ONE + with_bytes(TWO, 8, b"\0\0\0\x0f"), (len(ONE), 6)),
        (with_bytes(ONE, 23, b"\xff\xff\xff\xff"), (len(ONE), 6)),
    ],
    ids=[
        "nothing",
        "one",
        "two",
        "the last one is cut",
        "a header is cut",
        "a length below 0",
        "too short",
        "no delta",
    ],
)
def test_whole_batches(data: bytes, expected: tuple[int, int]) -> None:
    assert whole_batches(data) == expected


class _Broker:
    """A broker that answers Fetch requests with these bytes in order. A real one chooses where responses end."""

    def __init__(self, answers: Sequence[bytes | int]) -> None:
        self._answers, self.asked = list(answers), list[int]()

    def send(self, request: Any, *, node_id: int) -> Any:
        assert node_id == 3
        (topic,) = request.topics
        (row,) = topic.partitions
        self.asked.append(row.fetch_offset)
        answer = self._answers.pop(0)
        code, data = (answer, None) if isinstance(answer, int) else (0, answer)
        found = SimpleNamespace(partition_index=row.partition, error_code=code, records=data)
        return SimpleNamespace(error_code=0, responses=[SimpleNamespace(topic=topic.topic, partitions=[found])])


LOG = OffsetsLog(partition=7, leader=3, first=5, end=8)


def _fetched(broker: _Broker) -> list[dict[str, Any]]:
    return [row for each in read_fetched(fetch_log(broker, LOG), 7) for row in each.to_pylist()]  # type: ignore[arg-type]


def test_a_log_is_fetched_to_its_end() -> None:
    """Responses may end within a batch, or be empty."""
    broker = _Broker([ONE + TWO[:30], b"", TWO])
    rows = _fetched(broker)
    assert [(row["log_partition"], row["log_offset"], row["committed_offset"]) for row in rows] == [
        (7, 5, 1), (7, 6, 2), (7, 7, 9),
    ]  # fmt: skip
    assert broker.asked == [5, 6, 6]


def test_a_transaction_spans_responses() -> None:
    first = batch(5, [commit("g", "t", 0, 4, T)], producer=(1, 0, 0), transactional=True)
    rows = _fetched(_Broker([first, marker(6, (1, 0), base_timestamp=T + 9) + batch(7, [commit("h", "t", 0, 1, T)])]))
    assert [(row["group"], row["at_ms"] - T, row["transactional"]) for row in rows] == [("g", 9, True), ("h", 0, False)]


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([ONE, TWO[:30]], "is not readable at offset 6 of 8"),
        ([ONE, *[b""] * 5], "is not readable at offset 6 of 8"),
        ([ONE, ONE], "is not readable at offset 6 of 8"),
        ([6], "__consumer_offsets-7"),
        ([29], "__consumer_offsets-7"),
    ],
    ids=["no whole batch", "nothing", "the same again", "another leader", "not authorized"],
)
def test_a_log_that_cannot_be_fetched(answers: list[bytes | int], message: str) -> None:
    with pytest.raises(KctlError, match=message):
        _fetched(_Broker(answers))


def test_damage_in_a_response_is_an_error_row() -> None:
    rows = _fetched(_Broker([ONE + with_bytes(TWO, 70, b"\xff\xff")]))
    assert [row["committed_offset"] for row in rows] == [1, None]
    assert rows[1]["error"] == f"__consumer_offsets-7 at {len(ONE)}: the CRC is not that of the batch"


# --- data sources ---------------------------------------------------------------------------------------------------


def _travelled(reader: Any) -> Any:
    """Return a pickled copy, as Spark makes it."""
    return cloudpickle.loads(cloudpickle.dumps(reader))  # type: ignore[no-untyped-call]  # pyspark leaves it untyped


def _shares(tmp_path: Path, tasks: int) -> list[Share]:
    for number in range(3):
        recs = [commit(f"g{number}", "t", 0, n, T + n) for n in range(number + 1)]
        write(tmp_path / f"__consumer_offsets-{number}", 0, [batch(0, recs)])
    return file_shares(offsets_logs([tmp_path]), tasks)


def test_each_task_reads_its_share(tmp_path: Path) -> None:
    shares = _shares(tmp_path, 2)
    reader = _travelled(TaskReader(partial(offsets_source.read, span=Span(from_ms=T + 1)), shares))
    found = [[row for b in reader.read(part) for row in b.to_pylist()] for part in reader.partitions()]
    assert len(found) == 2
    rows = sorted((row["group"], row["committed_offset"]) for part in found for row in part)
    assert rows == [("g1", 1), ("g2", 1), ("g2", 2)]
    assert to_arrow_schema(offsets_source.SCHEMA) == ARROW
    assert len(_shares(tmp_path, 9)) == 3


def test_readers_of_segments_can_be_pickled(tmp_path: Path) -> None:
    _shares(tmp_path, 1)
    dealt = segments_source.shares(sorted(tmp_path.iterdir()), 2)
    reader = _travelled(TaskReader(partial(segments_source.read, headers=True), dealt))
    rows = [row for part in reader.partitions() for b in reader.read(part) for row in b.to_pylist()]
    assert sorted((row["partition"], row["records"]) for row in rows) == [(0, 1), (1, 2), (2, 3)]


def test_partitions_are_split_by_their_offsets() -> None:
    target = Target("t", ("h:1",), security=Security(sasl_password="secret"))
    shares = live_shares(target, [OffsetsLog(n, 1, 0, end) for n, end in enumerate((5, 100, 3, 90))], 2)
    assert [[log.partition for log in share.logs] for share in shares if isinstance(share, LiveShare)] == [
        [1],
        [3, 0, 2],
    ]
    assert "secret" not in repr(shares)


def test_an_unreachable_cluster_is_an_error_row() -> None:
    (share,) = live_shares(Target("gone", ("127.0.0.1:1",)), [LOG], 1)
    (row,) = (row for each in offsets_source.read(share) for row in each.to_pylist())
    assert "127.0.0.1:1" in row["error"]
    assert {value for name, value in row.items() if name != "error"} == {None}


def test_a_response_without_the_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = _Broker([b""])
    monkeypatch.setattr(broker, "send", lambda *_, **__: SimpleNamespace(error_code=0, responses=[]))
    with pytest.raises(OperationFailed, match="lacks __consumer_offsets-7"):
        _fetched(broker)
