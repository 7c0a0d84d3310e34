"""kctl spark report: Spark's tasks read what one process reads; the whole way from a cluster to the page."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from kctl_testing import Kctl, TestCluster
from report_stores import small_cluster

SPAN = ("--from", "2026-09-21T14:00:00Z", "--to", "2026-09-21T15:00:00Z")


def test_spark_reads_what_kctl_reads(kctl: Kctl, tmp_path: Path) -> None:
    small_cluster(tmp_path / "store")
    options = ("spark", "report", "--store", str(tmp_path / "store"), *SPAN)
    here = kctl.json(*options)
    there = kctl.json(*options, "--master", "local[2]", timeout=180)
    here.pop("made_at")
    there.pop("made_at")
    assert there == here
    assert len(here["groups"]) == 5


def test_from_a_cluster_to_the_page(
    cluster: TestCluster, kctl: Kctl, topic: Callable[..., str], tmp_path: Path
) -> None:
    name = topic(partitions=2)
    group = f"{name}-reader"
    kctl.ok("produce", name, stdin="x\n" * 100)
    kctl.ok("consume", name, "--group", group, "--from-beginning", "--max-messages", "30", "--quiet")
    store, page = tmp_path / "store", tmp_path / "report.html"
    kctl.ok("spark", "snapshot", "--store", str(store), "--every", "1s", "--for", "2500ms")
    done = kctl("spark", "report", "--store", str(store), "--group", group, "--html", str(page))
    assert done.code == 0, done.err
    (body,) = re.findall(r'<script type="application/json" id="report">(.*?)</script>', page.read_text(), re.DOTALL)
    report = json.loads(body)
    assert report["span"]["passes"] == 3
    (found,) = report["groups"]
    (live,) = kctl.json("lag", group, "--by", "group")
    assert live["lag"] == 70
    assert (found["now"]["lag"], found["now"]["lost"], found["now"]["state"]) == (70, 0, "Empty")
    assert found["lag_over_time"][-1] == 70
    assert {row["now"]["broker"] for row in report["log_dirs"]} == set(cluster.broker_ids)
    assert name in {row["now"]["topic"] for row in report["topics"]}
    assert report["lacking"] == []
