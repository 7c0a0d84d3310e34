"""kctl spark report: Spark's tasks read what one process reads; the whole way from a cluster to a page in a browser."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from headless_browser import Browser, Page
from kctl.history.snapshots import schema
from kctl.history.snapshots.read import read_table
from kctl.history.snapshots.store import open_store
from kctl_testing import Kctl, TestCluster
from report_pages import report_in
from report_stores import small_cluster

SPAN = ("--from", "2026-09-21T14:00:00Z", "--to", "2026-09-21T15:00:00Z")


@pytest.mark.usefixtures("spark_archive")
def test_spark_reads_what_kctl_reads(kctl: Kctl, tmp_path: Path) -> None:
    small_cluster(tmp_path / "store")
    options = ("spark", "report", "--store", str(tmp_path / "store"), *SPAN)
    here = kctl.json(*options)
    there = kctl.json(*options, "--master", "local[2]", timeout=180)
    here.pop("made_at")
    there.pop("made_at")
    assert there == here
    assert len(here["groups"]) == 5


@pytest.fixture(scope="module")
def collected(
    cluster: TestCluster, kctl: Kctl, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., tuple[str, Path]]:
    """collected(topic) → a group that has read 30 of its 100 records, and a store with three passes of the cluster."""

    def collect(name: str) -> tuple[str, Path]:
        group, store = f"{name}-reader", tmp_path_factory.mktemp("report") / "store"
        kctl.ok("produce", name, stdin="x\n" * 100)
        kctl.ok("consume", name, "--group", group, "--from-beginning", "--max-messages", "30", "--quiet")
        kctl.ok("spark", "snapshot", "--store", str(store), "--every", "1s", "--for", "2500ms")
        return group, store

    return collect


def test_from_a_cluster_to_the_page(
    cluster: TestCluster,
    kctl: Kctl,
    topic: Callable[..., str],
    collected: Callable[..., tuple[str, Path]],
    tmp_path: Path,
) -> None:
    name, page = topic(partitions=2), tmp_path / "report.html"
    group, store = collected(name)
    done = kctl("spark", "report", "--store", str(store), "--group", group, "--html", str(page))
    assert done.code == 0, done.err
    report = report_in(page.read_text())
    assert report["span"]["passes"] >= 2  # of three; a machine that does other things may miss one
    (found,) = report["groups"]
    (live,) = kctl.json("lag", group, "--by", "group")
    assert live["lag"] == 70
    assert (found["now"]["lag"], found["now"]["lost"], found["now"]["state"]) == (70, 0, "Empty")
    assert found["lag_over_time"][-1] == 70
    assert {row["now"]["broker"] for row in report["log_dirs"]} == set(cluster.broker_ids)
    assert name in {row["now"]["topic"] for row in report["topics"]}
    assert report["lacking"] == []
    # What brokers said of their replicas in the last pass is what lies in the page, all told.
    last = round(datetime.fromisoformat(report["span"]["to_at"].replace("Z", "+00:00")).timestamp() * 1000)
    batches = read_table(open_store(store), schema.REPLICAS, last, last + 1, damaged=lambda _: None)
    told = sum(sum(batch.column("size_bytes").to_pylist()) for batch in batches)
    assert report["overview"]["replicas_bytes"] == told > 0


@pytest.mark.long
def test_the_page_of_a_cluster_in_a_browser(
    kctl: Kctl, topic: Callable[..., str], collected: Callable[..., tuple[str, Path]], tmp_path: Path
) -> None:
    name, file = topic(partitions=2), tmp_path / "report.html"
    group, store = collected(name)
    kctl.ok("spark", "report", "--store", str(store), "--html", str(file))
    with Browser() as browser, browser.page(file) as page:
        assert page.run("document.documentElement.dataset.drawn") == "yes"
        assert page.complaints == []
        _filter(page, "groups", group)
        row = page.run("[...document.querySelectorAll('#groups-table tbody td')].map((td) => td.textContent)")
        assert row[0] == group
        assert row[2] == "70"
        assert page.run("document.querySelectorAll('#timeline .track').length") == 1
        _filter(page, "topics", name)  # other tests' topics are larger, and fill what is shown at once
        assert name in page.run("document.querySelector('#topics-table tbody').textContent")


def _filter(page: Page, table: str, words: str) -> None:
    """Type into the field above a table."""
    page.run(
        f"(() => {{ const input = document.querySelector('#{table}-table input'); input.value = {words!r};"
        " input.dispatchEvent(new Event('input')); })()"
    )
