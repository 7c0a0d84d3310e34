"""kctl cluster export of a real cluster."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from kctl_testing import Kctl, TestCluster


def test_the_document(kctl: Kctl, cluster: TestCluster, topic: Callable[..., str]) -> None:
    mine = topic(partitions=2, replication_factor=3, **{"retention.ms": "3600000"})
    kctl.ok("produce", mine, "--partition", "1", stdin="x" * 5000 + "\n")
    document = json.loads(kctl.ok("cluster", "export").out)
    assert list(document) == ["cluster_id", "controller", "brokers", "topics"]
    assert document["controller"] in cluster.broker_ids
    assert [broker["id"] for broker in document["brokers"]] == list(cluster.broker_ids)
    for broker in document["brokers"]:
        assert list(broker) == ["id", "host", "port", "rack", "log_dirs"]
        assert len(broker["log_dirs"]) == 2
        for log_dir in broker["log_dirs"]:
            assert list(log_dir) == ["path", "total_bytes", "usable_bytes", "replicas"]
            assert 0 < log_dir["usable_bytes"] <= log_dir["total_bytes"]
        held = [r for log_dir in broker["log_dirs"] for r in log_dir["replicas"] if r["topic"] == mine]
        assert sorted(r["partition"] for r in held) == [0, 1]
        assert list(held[0]) == ["topic", "partition", "size_bytes", "offset_lag", "future"]
    (found,) = [row for row in document["topics"] if row["name"] == mine]
    assert list(found) == ["name", "topic_id", "configs", "partitions"]
    assert found["configs"] == {"retention.ms": "3600000"}
    first, second = found["partitions"]
    assert list(first) == ["partition", "leader", "replicas", "isr", "adding", "removing", "size_bytes"]
    assert first["size_bytes"] == 0
    assert second["size_bytes"] > 5000
    assert sorted(second["replicas"]) == list(cluster.broker_ids)


def test_to_a_file(kctl: Kctl, cluster: TestCluster, tmp_path: Path) -> None:
    out = tmp_path / "state.json"
    out.write_text("old")
    refused = kctl("cluster", "export", "--out", str(out))
    assert (refused.code, out.read_text()) == (4, "old"), str(refused)
    result = kctl.ok("cluster", "export", "--out", str(out), "--yes")
    assert result.out == ""
    assert "3 brokers" in result.err
    assert len(json.loads(out.read_text())["brokers"]) == 3
    assert list(tmp_path.iterdir()) == [out], "no other file is left"


def test_bad_input(kctl: Kctl, cluster: TestCluster, tmp_path: Path) -> None:
    missing = kctl("cluster", "export", "--out", str(tmp_path / "none" / "x.json"))
    assert missing.code == 2
    assert "does not exist" in missing.err
    assert kctl("cluster", "export", "-o", "csv").code == 2
