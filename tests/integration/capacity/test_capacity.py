"""kctl capacity beside a real cluster: rates of one partition, and nothing of it left whatever ends it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kctl_testing import Kctl, TestCluster, eventually, within

PREFIX = "kctl-capacity-"
# Tiny records: it takes a while until so many bytes of them are written.
LONG = ("capacity", "--measure", "--duration", "60s", "--record-size", "10", "--max-bytes", "300MB", "--yes")


def _topics(kctl: Kctl) -> set[str]:
    """Those of measurements."""
    return {row["topic"] for row in kctl.json("topic", "list") if row["topic"].startswith(PREFIX)}


def _records(kctl: Kctl) -> list[str]:
    return sorted(path.stem for path in (kctl.home / ".local/state/kctl/capacity").glob("*"))


@pytest.fixture
def before(kctl: Kctl, cluster: TestCluster) -> set[str]:
    """What others have there."""
    return _topics(kctl)


def test_a_measured_plan(kctl: Kctl, before: set[str]) -> None:
    found = kctl.json(
        "capacity", "--measure", "--duration", "1s", "--max-bytes", "20MB", "--throughput", "1GB/s", "--retention",
        "1h", "--replication-factor", "2", "--min-insync-replicas", "1", "--yes",
    )  # fmt: skip
    measured = found["measured"]
    assert list(measured) == [
        "topic", "replication_factor", "min_insync_replicas", "acks", "compression", "record_bytes", "producer",
        "consumer",
    ]  # fmt: skip
    assert (measured["replication_factor"], measured["min_insync_replicas"], measured["acks"]) == (2, 1, "all")
    assert measured["record_bytes"] == 1000
    for way in (measured["producer"], measured["consumer"]):
        assert list(way) == ["records", "bytes", "duration_ms", "bytes_per_s"]
        assert 0 < way["bytes"] == way["records"] * 1000
    assert 0 < measured["producer"]["bytes"] <= 20_000_000
    (topic,) = found["plan"]["topic_plans"]
    lines = {term["name"]: term for term in topic["terms"]}
    for name, way in (("producer_rate", "producer"), ("consumer_rate", "consumer")):
        assert (lines[name]["value"], lines[name]["source"]) == (measured[way]["bytes_per_s"], "measured")
    codes = {caution["code"] for caution in found["plan"]["cautions"]}
    assert ("consumer_rate_assumed" in codes, "consumer_rate_measured" in codes) == (False, True)
    assert (_topics(kctl), _records(kctl)) == (before, [])


@pytest.mark.parametrize("compression", ["none", "lz4"])
def test_measured_alone(kctl: Kctl, before: set[str], compression: str) -> None:
    found = kctl.json(
        "capacity", "--measure", "--duration", "2s", "--max-bytes", "2MB", "--acks", "1", "--compression-codec",
        compression, "--replication-factor", "1", "--yes",
    )  # fmt: skip
    assert found["plan"] is None
    assert (found["measured"]["acks"], found["measured"]["compression"]) == ("1", compression)
    assert found["measured"]["consumer"]["bytes"] <= found["measured"]["producer"]["bytes"] + 2_000_000
    assert (_topics(kctl), _records(kctl)) == (before, [])


def test_nothing_is_made_unasked(kctl: Kctl, before: set[str]) -> None:
    refused = kctl("capacity", "--measure")
    assert (refused.code, refused.out) == (4, "")
    assert "write for 5 s" in refused.err
    assert "not confirmed" in refused.err
    planned = kctl.ok("capacity", "--measure", "--dry-run", "--yes")
    assert "at most 1 GB" in planned.err
    many = kctl("capacity", "--measure", "--replication-factor", "50", "--yes")
    assert many.code == 4, str(many)
    full = kctl("capacity", "--measure", "--max-bytes", "900TB", "--yes")
    assert (full.code, "less than twice" in full.err) == (4, True), str(full)
    assert (_topics(kctl), _records(kctl)) == (before, [])


def _until_it_writes(kctl: Kctl, process: subprocess.Popen[str], before: set[str]) -> str:
    """The topic of a measurement that is under way."""

    def made() -> bool:
        assert process.poll() is None, process.communicate()
        return bool(_topics(kctl) - before) and bool(_records(kctl))

    eventually(made, seconds=within(20), what="a topic of the measurement")
    (name,) = _topics(kctl) - before
    return name


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(kctl: Kctl, before: set[str], number: signal.Signals) -> None:
    with kctl.running(*LONG) as process:
        _until_it_writes(kctl, process, before)
        process.send_signal(number)
        _, err = process.communicate(timeout=within(30))
    assert process.returncode == 130, err
    assert (_topics(kctl), _records(kctl)) == (before, [])


@pytest.fixture
def killed(kctl: Kctl, before: set[str]) -> Iterator[str]:
    """A topic that a measurement left which was killed."""
    with kctl.running(*LONG) as process:
        name = _until_it_writes(kctl, process, before)
        process.kill()
    yield name
    kctl("topic", "delete", name, "--if-exists", "--yes")


def test_what_a_killed_one_left(kctl: Kctl, before: set[str], killed: str, tmp_path: Path) -> None:
    assert _topics(kctl) == before | {killed}
    told = kctl.ok("capacity", "--measure", "--dry-run")
    assert f"{killed}, left by a measurement that was killed, will be deleted first" in told.err
    elsewhere = kctl.with_environment(XDG_STATE_HOME=str(tmp_path))
    other = elsewhere.ok("capacity", "--measure", "--dry-run")
    assert f"{killed} may be left by another machine" in other.err
    assert _topics(kctl) == before | {killed}, "a dry run deletes nothing"
    done = kctl.ok("capacity", "--measure", "--duration", "2s", "--max-bytes", "1MB", "--yes")
    assert f"deleted {killed}" in done.err
    assert (_topics(kctl), _records(kctl)) == (before, [])


def test_what_the_cluster_has(kctl: Kctl, cluster: TestCluster) -> None:
    name = f"capacity-seen-{os.getpid()}"
    kctl.ok(
        "topic", "create", name, "--partitions", "2", "--replication-factor", "2", "--config", "segment.bytes=1000000"
    )
    try:
        kctl.ok("produce", name, "--size", "1kB", "--count", "500")
        found = kctl.ok(
            "capacity", "--from-cluster", "--match", name, "--window", "200ms", "--times", "3", "--network", "1Gbit/s",
            "-o", "json",
        )  # fmt: skip
        plan = json.loads(found.out)["plan"]
        (topic,) = plan["topic_plans"]
        lines = {term["name"]: term for term in topic["terms"]}
        assert {lines[key]["source"] for key in ("data", "replication_factor", "partitions_now")} == {"seen"}
        assert 500_000 < lines["data"]["value"] < 600_000
        assert (topic["partition_count"], topic["replication_factor"]) == (2, 2), "as it is: that does"
        assert topic["disk_bytes"] == pytest.approx(lines["data"]["value"] * 3 * 2)
        whole = {term["name"]: term for term in plan["terms"]}
        assert whole["brokers_now"]["value"] == len(cluster.broker_ids)
        assert (whole["disk"]["source"], whole["network"]["source"]) == ("seen", "given")
        missing = kctl("capacity", "--from-cluster", "--match", f"{name}-not")
        assert (missing.code, missing.out) == (4, ""), str(missing)
    finally:
        kctl.ok("topic", "delete", name, "--yes")
