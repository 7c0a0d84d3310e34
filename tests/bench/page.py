"""docs/performance.md, made from results/: `python tests/bench/page.py`. The newest file of each case counts."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).with_name("results")
TARGET = Path(__file__).resolve().parents[2] / "docs" / "performance.md"

HEAD = """# Performance

All figures are medians of whole processes. kctl and the tool that it is compared with alternate on the same input
in one run. CPU is user plus system time; memory is the maximum resident set size. Ratios refer to the row of
Kafka's tool above, or to the first row of the table. Machines differ, so compare the ratios.

`python tests/bench/page.py` writes this page from the files in `tests/bench/results`. `python tests/bench/run.py`
repeats the measurements.

For Spark reports, CPU and memory include all processes that a command starts: kctl, the JVM and its Python workers.
Memory is the largest sum of their resident sets, which counts shared pages several times. Wall time ends with the
result. Spark figures published before 2026-11-22 did not include the Python workers.
"""

TITLES = {
    "startup": "Start-up",
    "topics": "Topics: list and describe 20, offsets of one",
    "configs": "Configs: all configs of a broker, overrides of a topic",
    "groups": "Groups: list 50, describe one",
    "brokers": "Brokers: log dirs and API versions of three brokers",
    "transactions": "Transactions: list",
    "lag": "Lag of 50 groups × 60 partitions",
    "scale": "Lag by number of groups (60 partitions each)",
    "cluster": "Clusters of three brokers: three ZooKeeper servers and three brokers, and three combined KRaft nodes",
    "produce": "Produce lines to a topic with three replicas, acks=all",
    "clone": "Copy a topic with `topic clone --data`, before and after",
    "consume-100": "Consume records of 100 B",
    "consume-1k": "Consume records of 1,000 B",
    "segment-batches": "Segment of 315 MB: dump batches as text, verify; one core",
    "segment-records": "Segment: 1.5 million records of 200 B as text, by codec; one core",
    "segment-jobs": "Segment: the same records with two processes; all cores",
    "segment-json": "Segment: the same records as JSON Lines; one core",
    "segment-find": "Segment: find a record",
    "segment-stats": "Segment: statistics and a deep check of the same records; one core",
    "reassign": "Reassignment: plan for 100 brokers and 100,000 partitions, from file to file",
    "reassign-million": "Reassignment: plan for 1,000 brokers and 1,000,000 partitions, from file to file",
    "reassign-read": "Reassignment: read a cluster of 100 brokers, from recorded responses",
    "spark": "Spark: reports from a cold start (200 groups × 60 partitions of a live cluster)",
    "spark-window": "Spark: a status for each of 30 million rows, from its last ten rows; two cores, equal results",
    "spark-rows": "Spark: `kctl spark lag` over a store, by rows and parallel tasks",
    "history": "History: a store of 100,000 group-partitions each minute, with and without Spark",
    "spark-day": "Spark: a day of 100,000 group-partitions each minute, and a month of roll-ups",
}


NOTES = {
    "clone": (
        "A topic of four partitions on one broker, with 500,000 records of 100 B and 100,000 of 1,000 B in batches of"
        " 16 KB. Before: kctl with kafka-python's consumer and producer, record by record. After: kctl copies whole"
        " batches; for another codec, it compresses their payload again."
    ),
    "spark": (
        "The goal was a result within 12 s with the class archive and 18 s without it. Most of the time is the start of"
        " the JVM and of Python workers: a bare data source and an aggregate took 10 and 19 s. For an immediate result,"
        " use `kctl lag`."
    ),
    "spark-window": (
        "The goals were 0.7 million rows a CPU second and three times the rate of Spark SQL. kctl's rows also compute"
        " time lags, rates and more, and kctl in Spark includes the start of Spark."
    ),
    "history": (
        "The goals were 7 s for the last 15 minutes, and the time of Spark for the whole store. Ratios refer to the row"
        " of Spark above. Both engines return the same rows. The last 15 minutes include the 60 minutes before, which"
        " rates and windows need. This run had a store of 8 hours instead of a day (`KCTL_BENCH_HOURS=8`)."
        " Memory is the sum of two processes."
    ),
    "spark-day": (
        "The goals were 5 minutes for the day, 15 s for its last 15 minutes (**missed by 2 s**) and 20 s for the month."
        " The last 15 minutes include the 60 minutes before, which rates and windows need: 7.5 million rows. The"
        " fixed cost of the 100,000 partitions is as large as that of these rows."
    ),
}

BY_ROWS, DAY = "spark-rows", "spark-day"  # plot.py
_NAME = re.compile(r"[\d,]+ rows, (\d+) at once")
BYTES_PER_ROW = 13  # of `commits`, in compacted files


def newest() -> dict[str, dict[str, Any]]:
    """case → the content of its newest file."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(RESULTS.glob("*.json")):
        body = json.loads(path.read_text())
        if body["case"] not in found or body["at"] >= found[body["case"]]["at"]:
            found[body["case"]] = body
    return found


def _section(title: str, body: dict[str, Any]) -> list[str]:
    machine = body["machine"]
    rows = body["figures"]
    columns = ["CPU ms", "wall ms", "memory MB", "CPU ×", "wall ×"]
    keys = ["cpu_ms", "wall_ms", "max_rss_mb", "cpu_ratio", "wall_ratio"]
    if any("moves" in r for r in rows.values()):
        columns.append("replica moves")
        keys.append("moves")
    if any("rows" in r for r in rows.values()):
        columns.append("rows a CPU s")
        keys.append("rows_per_cpu_s")
    lines = [f"## {title}\n", f"| command | {' | '.join(columns)} |", f"| --- |{' ---: |' * len(columns)}"]
    lines += [f"| {name} | {' | '.join(str(r.get(key, '')) for key in keys)} |" for name, r in rows.items()]
    runs = next(iter(rows.values()))["runs"]
    memory = machine["memory_bytes"] // 10**9
    if body["case"] in NOTES:
        lines.append(f"\n{NOTES[body['case']]}")
    lines.append(
        f"\n{body['at'][:10]}, {machine['cores']} × {machine['cpu']}, {memory} GB, Linux {machine['kernel']}, "
        f"Python {machine['python']}, load {machine['load_1m']:.1f}, {runs} {'run' if runs == 1 else 'runs'} each.\n"
    )
    return lines


def by_rows(found: Mapping[str, Mapping[str, Any]]) -> list[tuple[int, dict[str, Any]]]:
    """(tasks at once, figure) of `kctl spark lag` over a store; the day's are as many as the machine has cores."""
    figures = []
    for case in (BY_ROWS, DAY):
        body = found.get(case, {"figures": {}})
        for name, figure in body["figures"].items():
            match = _NAME.fullmatch(name)
            if match or "rows" in figure:
                figures.append((int(match[1]) if match else body["machine"]["cores"], figure))
    return figures


def _scaled(figures: list[dict[str, Any]]) -> str:
    """Return an estimate for a large cluster, from the cost of a row."""
    least, most = (choose(figures, key=lambda each: each["rows"]) for choose in (min, max))
    row_us = (most["cpu_ms"] - least["cpu_ms"]) * 1000 / (most["rows"] - least["rows"])
    rows_per_s = 100 * 1_000_000 / row_us
    day_s = 10 * 144_000_000 / rows_per_s
    return (
        f"**A cluster of 100 executors**, estimated, not measured: after the start, a row costs {row_us:.2f} µs of CPU,"
        " including reads. There is no shuffle and tasks share nothing, so 100 executors with one core each would"
        f" process {rows_per_s / 1e6:,.0f} million rows a second: a day of a million group-partitions each minute"
        f" (1.4 billion rows) in {day_s:.0f} s after a start of about ten. Three limits apply earlier. The storage must"
        f" deliver {rows_per_s * BYTES_PER_ROW / 1e9:.1f} GB a second. A group is never divided, so the largest group"
        " is a lower bound. Each task opens every file of its span and reads the footer and the row groups with its"
        " groups: about a thousand small reads per task if passes are not compacted."
    )


def render() -> str:
    """The page as Markdown."""
    found = newest()
    lines = [HEAD]
    for case, title in TITLES.items():
        if case in found:
            lines += _section(title, found[case])
        if case == BY_ROWS and (figures := by_rows(found)):
            lines += ["![Wall time by rows, with one task and with two](spark-speed.svg)\n"]
            lines += [_scaled([figure for _, figure in figures]) + "\n"]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    TARGET.write_text(render())
