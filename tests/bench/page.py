"""docs/performance.md, made from results/: `python tests/bench/page.py`. The newest file of each case counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).with_name("results")
TARGET = Path(__file__).resolve().parents[2] / "docs" / "performance.md"

HEAD = """# Performance

Medians of whole processes, kctl and its peer in turn on the same input in one run. CPU is user plus system time;
memory is the largest resident set. Ratios are to the line of Kafka's tool above, or to
the first line of the table. Made by `python tests/bench/page.py`
from the files in `tests/bench/results`; `python tests/bench/run.py` measures anew. Machines differ: look at the ratios.
"""

TITLES = {
    "startup": "Start-up",
    "topics": "Listing topics",
    "lag": "Lag of 50 groups × 60 partitions",
    "scale": "Lag against the number of groups (60 partitions each)",
    "cluster": "Three ZooKeepers and three brokers",
    "spark": "Spark reports from a cold start (50 groups × 60 partitions)",
    "segment-batches": "A segment of 315 MB: batches as text, and verified; one core",
    "segment-records": "The same segment: 1.5 million records of 200 B as text, by codec; one core",
    "segment-jobs": "The same records by two processes; all cores",
    "segment-json": "The same records as JSON Lines; one core",
    "segment-find": "Finding a record",
    "segment-stats": "Statistics and a deep check of the same records; one core",
    "reassign": "Plans for 100 brokers and 100,000 partitions, from file to file",
    "reassign-million": "A plan for 1,000 brokers and 1,000,000 partitions, from file to file",
    "reassign-read": "Reading a cluster of 100 brokers for a plan, from recorded answers",
}


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
    lines = [f"## {title}\n", f"| command | {' | '.join(columns)} |", f"| --- |{' ---: |' * len(columns)}"]
    lines += [f"| {name} | {' | '.join(str(r.get(key, '')) for key in keys)} |" for name, r in rows.items()]
    runs = next(iter(rows.values()))["runs"]
    memory = machine["memory_bytes"] // 10**9
    lines.append(
        f"\n{body['at'][:10]}, {machine['cores']} × {machine['cpu']}, {memory} GB, Linux {machine['kernel']}, "
        f"Python {machine['python']}, load {machine['load_1m']:.1f}, {runs} runs each.\n"
    )
    return lines


def render() -> str:
    """The page as Markdown."""
    found = newest()
    lines = [HEAD]
    for case, title in TITLES.items():
        if case in found:
            lines += _section(title, found[case])
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    TARGET.write_text(render())
