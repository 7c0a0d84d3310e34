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

Medians of whole processes, kctl and its peer in turn on the same input in one run. CPU is user plus system time;
memory is the largest resident set. Ratios are to the line of Kafka's tool above, or to
the first line of the table. Made by `python tests/bench/page.py`
from the files in `tests/bench/results`; `python tests/bench/run.py` measures anew. Machines differ: look at the ratios.

Of Spark's reports, CPU and memory are those of all processes that a command starts: kctl, the JVM and its Python
workers; memory is the largest sum of their resident sets, in which shared pages count in each. Wall time is until the
answer. Figures of Spark that were published before 2026-11-22 left the Python workers out.
"""

TITLES = {
    "startup": "Start-up",
    "topics": "Topics: 20 listed and described, the ends of one",
    "configs": "Configs: all of a broker, those set on a topic",
    "groups": "Groups: 50 listed, one described",
    "brokers": "Brokers: log dirs and API versions of three",
    "transactions": "Transactions listed",
    "lag": "Lag of 50 groups × 60 partitions",
    "scale": "Lag against the number of groups (60 partitions each)",
    "cluster": "Three ZooKeepers and three brokers",
    "produce": "Writing lines to a topic of three replicas, acks=all",
    "clone": "Copying a topic of four partitions on one broker with `topic clone --data`, before and after",
    "consume-100": "Reading records of 100 B",
    "consume-1k": "Reading records of 1,000 B",
    "segment-batches": "A segment of 315 MB: batches as text, and verified; one core",
    "segment-records": "The same segment: 1.5 million records of 200 B as text, by codec; one core",
    "segment-jobs": "The same records by two processes; all cores",
    "segment-json": "The same records as JSON Lines; one core",
    "segment-find": "Finding a record",
    "segment-stats": "Statistics and a deep check of the same records; one core",
    "reassign": "Plans for 100 brokers and 100,000 partitions, from file to file",
    "reassign-million": "A plan for 1,000 brokers and 1,000,000 partitions, from file to file",
    "reassign-read": "Reading a cluster of 100 brokers for a plan, from recorded answers",
    "spark": "Spark reports from a cold start (200 groups × 60 partitions of a live cluster); wall: until the answer",
    "spark-window": "A status for each of 30 million rows by its last ten; two cores, the same answers",
    "spark-rows": "`kctl spark lag` over a store: rows, and tasks at once",
    "history": "One store of 100,000 group-partitions each minute, with Spark and without",
    "spark-day": "A day of 100,000 group-partitions each minute, and a month of its roll-ups",
}


NOTES = {
    "clone": (
        "500,000 records of 100 B and 100,000 of 1,000 B in batches of 16 KB, on one broker. Before: kctl over"
        " kafka-python's consumer and producer, record by record. Now batches are passed on with their records as they"
        " are; for another codec their payload is compressed anew."
    ),
    "spark": (
        "The aim was an answer within 12 s with the class archive and 18 s without it. Most of it is the start of the"
        " JVM and of Python workers: a bare data source and an aggregate took 10 and 19 s. `kctl lag` is the tool for"
        " at once."
    ),
    "spark-window": (
        "The aims were 0.7 million rows a CPU second and three times what Spark SQL gives. kctl's lines also tell time"
        " lags, rates and more, and kctl in Spark includes the start of Spark."
    ),
    "history": (
        "The aims were 7 s for the last 15 minutes, and the time of Spark for all of the store. Ratios are to the line"
        " of Spark above. Both engines give the same rows. The last 15 minutes include the 60 minutes before, which"
        " rates and windows need. This run had a store of 8 hours instead of a day (`KCTL_BENCH_HOURS=8`)."
        " Memory is the sum of two processes."
    ),
    "spark-day": (
        "The aims were 5 minutes for the day, 15 s for its last 15 minutes (**missed by 2 s**) and 20 s for the month."
        " With 15 minutes go the 60 before them that rates and windows need: 7.5 million rows; what each of 100,000"
        " partitions takes besides is as much as that."
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
        f"Python {machine['python']}, load {machine['load_1m']:.1f}, {runs} runs each.\n"
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
    """What the cost of a row says of a cluster that nobody has tried."""
    least, most = (choose(figures, key=lambda each: each["rows"]) for choose in (min, max))
    row_us = (most["cpu_ms"] - least["cpu_ms"]) * 1000 / (most["rows"] - least["rows"])
    rows_per_s = 100 * 1_000_000 / row_us
    day_s = 10 * 144_000_000 / rows_per_s
    return (
        f"**A cluster of 100 executors**, reckoned, not tried: beyond the start, a row costs {row_us:.2f} µs of CPU,"
        " reading included. There is no shuffle and tasks share nothing, so 100 executors of one core each would go"
        f" through {rows_per_s / 1e6:,.0f} million rows a second: a day of a million group-partitions each minute"
        f" (1.4 billion rows) in {day_s:.0f} s after a start of some ten. What bounds it before: the storage has to"
        f" deliver {rows_per_s * BYTES_PER_ROW / 1e9:.1f} GB a second; a group is never divided, so that the largest"
        " one is the least time; and each task opens every file of its span, of which it reads the footer and the row"
        " groups that hold its groups: with passes that are not compacted that is some thousand small reads a task."
    )


def render() -> str:
    """The page as Markdown."""
    found = newest()
    lines = [HEAD]
    for case, title in TITLES.items():
        if case in found:
            lines += _section(title, found[case])
        if case == BY_ROWS and (figures := by_rows(found)):
            lines += ["![Wall time against rows, by one task and by two](spark-speed.svg)\n"]
            lines += [_scaled([figure for _, figure in figures]) + "\n"]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    TARGET.write_text(render())
