"""Estimates of the data that a lower retention deletes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from health_testing import partition, state
from kctl.base.outcomes import ItemResult
from kctl.cluster.log_offsets import LogOffsets
from kctl.configs.change import ChangedConfig
from kctl.errors import ConnectionFailed
from kctl.model import ClusterState, TopicPartition
from kctl.topics import retention_loss
from kctl.topics.retention_loss import RetainedLog, loss_of, loss_text, loss_warnings
from kctl.topics.sizes import ReplicaSizes, TopicSizes

AGE, SIZE = {"retention.ms": 1000}, {"retention.bytes": 250}


def _log(start: int, end: int, retained: int | None = None, size: int = 1000, missing: int = 0) -> RetainedLog:
    return RetainedLog(LogOffsets(start, end), retained, ReplicaSizes(3 * size, missing, size))


@pytest.mark.parametrize(
    ("logs", "limits", "text"),
    [
        ([_log(0, 100, 30)], AGE, "estimate: 30 of 100 records will be deleted (900 B of 3 kB on disk, all replicas)"),
        ([_log(50, 100, 60)], AGE, "estimate: 10 of 50 records will be deleted (600 B of 3 kB on disk, all replicas)"),
        ([_log(0, 100, -1)], AGE, "estimate: 100 of 100 records will be deleted (3 kB of 3 kB on disk, all replicas)"),
        ([_log(0, 100)], SIZE, "estimate: 75 of 100 records will be deleted (2.25 kB of 3 kB on disk, all replicas)"),
        (
            [_log(0, 100, 90)],
            AGE | SIZE,
            "estimate: 90 of 100 records will be deleted (2.7 kB of 3 kB on disk, all replicas)",
        ),
        ([_log(0, 100, 0), _log(7, 7, -1, size=0)], AGE, "estimate: no records will be deleted now"),
        ([_log(0, 100, size=200)], SIZE, "estimate: no records will be deleted now"),
        (
            [_log(0, 10, 5, missing=1), _log(0, 10, 10)],
            AGE,
            "estimate: 15 of 20 records will be deleted (size unknown)",
        ),
        (
            [_log(0, 10, 5), RetainedLog(None, None, ReplicaSizes(0, 3, None))],
            AGE,
            (
                "estimate: 5 of 10 records will be deleted (1.5 kB of 3 kB on disk, all replicas);"
                " 1 partition unreadable and not included"
            ),
        ),
        (
            [RetainedLog(LogOffsets(0, 9), None, ReplicaSizes(0, 1, None))],
            SIZE,
            "no estimate of the deleted records; 1 partition unreadable and not included",
        ),
    ],
)
def test_estimate(logs: list[RetainedLog], limits: dict[str, int], text: str) -> None:
    assert loss_text(loss_of(logs, limits)) == text


ONE = state([partition("123", "123")])
TP = TopicPartition("t", 0)


def _change(name: str, before: str, after: str) -> ChangedConfig:
    return ChangedConfig("topic/t", name, ItemResult.WOULD_SET, before, None, after, "topic", False)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A topic with 100 records of which 40 are old. Returns its configs, to be changed."""
    configs = {"cleanup.policy": "delete", "remote.storage.enable": "false"}

    def describe(_client: object, resources: list[Any], **_: object) -> dict[Any, list[Any]]:
        return {
            each: [SimpleNamespace(name=name, value=value) for name, value in configs.items()] for each in resources
        }

    monkeypatch.setattr(retention_loss, "describe_each", describe)
    monkeypatch.setattr(retention_loss, "read_log_offsets", lambda *_, **__: ({TP: LogOffsets(0, 100)}, set(), {}))
    monkeypatch.setattr(retention_loss, "read_offsets_at", lambda *_: ({TP: 40}, set(), {}))
    sizes = TopicSizes({TP: ReplicaSizes(3000, 0, 1000)}, [])
    monkeypatch.setattr(retention_loss, "fetch_sizes", lambda *_: sizes)
    return configs


@pytest.mark.parametrize(
    ("change", "configs", "line"),
    [
        (_change("retention.ms", "2", "1"), {}, "40 of 100 records will be deleted (1.2 kB of 3 kB"),
        (_change("retention.bytes", "-1", "900"), {}, "10 of 100 records will be deleted (300 B of 3 kB"),
        (_change("retention.ms", "1", "2"), {}, None),
        (_change("segment.bytes", "2", "1"), {}, None),
        (
            _change("retention.ms", "2", "1"),
            {"cleanup.policy": "compact"},
            "t: with cleanup.policy=compact, retention deletes no records",
        ),
        (_change("retention.ms", "2", "1"), {"remote.storage.enable": "true"}, "part of the log is in remote storage"),
    ],
)
def test_only_a_lower_retention_is_estimated(
    cluster: dict[str, str], change: ChangedConfig, configs: dict[str, str], line: str | None
) -> None:
    cluster |= configs
    lines = loss_warnings(SimpleNamespace(), {"t": [change]}, state=ONE)  # type: ignore[arg-type]  # not called
    assert (lines == []) if line is None else (len(lines) == 1 and line in lines[0])


def test_a_failed_estimate_is_only_a_warning(cluster: dict[str, str]) -> None:
    def unreachable(_topics: object) -> ClusterState:
        raise ConnectionFailed("no broker responds")

    client: Any = SimpleNamespace(metadata=unreachable)
    assert loss_warnings(client, {"t": [_change("retention.ms", "2", "1")]}) == [
        "the number of deleted records is unknown: no broker responds"
    ]
