"""Benchmarks: `python tests/bench/run.py [NAME…] [--runs 7] [--before CHECKOUT]`; the names are below.

Each compares kctl and a peer on the same input in one run, as medians and a ratio, on a cluster of its own, and
writes results/DATE-NAME.json. Not tests: machines are noisy, nothing here passes or fails.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "support")]

import cases
import clone_cases
import consume_cases
import daily_cases
import produce_cases
import reassign_cases
import segment_cases
import spark_cases
from kctl_testing import Kctl
from measure import Figures, machine

RESULTS = Path(__file__).with_name("results")
CASES: dict[str, Callable[[cases.Setting], dict[str, Figures]]] = {
    "startup": cases.startup,
    **daily_cases.CASES,
    "lag": cases.lag,
    "scale": cases.lag_scale,
    "cluster": cases.cluster_start,
    "consume-100": consume_cases.consume_small,
    "consume-1k": consume_cases.consume_large,
    "produce": produce_cases.produce,
    "clone": clone_cases.clone,
    "segment-batches": segment_cases.segment_batches,
    "segment-records": segment_cases.segment_records,
    "segment-jobs": segment_cases.segment_jobs,
    "segment-json": segment_cases.segment_json,
    "segment-find": segment_cases.segment_find,
    "segment-stats": segment_cases.segment_stats,
    "reassign": reassign_cases.reassign,
    "reassign-million": reassign_cases.reassign_million,
    "reassign-read": reassign_cases.reassign_read,
    "spark": spark_cases.first_answer,
    "spark-window": spark_cases.window_status,
    "spark-rows": spark_cases.rows_and_tasks,
    "spark-day": spark_cases.a_day,
    "history": spark_cases.engines,
}


PEERS = (  # the tools of Kafka itself, and what is measured beside them
    "DumpLogSegments", "ReassignPartitionsCommand", "ConsoleProducer", "ConsoleConsumer", "kafka-topics",
    "kafka-get-offsets", "kafka-configs", "kafka-consumer-groups", "kafka-log-dirs", "kafka-broker-api-versions",
    "kafka-transactions", clone_cases.BEFORE,
)  # fmt: skip


def _report(name: str, figures: dict[str, Figures]) -> dict[str, Any]:
    base = next(iter(figures.values()))
    rows: dict[str, Any] = {}
    for command, f in figures.items():
        if command.startswith(PEERS) or (name == "history" and command.startswith("kctl spark")):
            base = f  # several peers in one table: each is the base of what follows it
        rows[command] = {
            "cpu_ms": round(f.cpu_s * 1000), "wall_ms": round(f.wall_s * 1000), "max_rss_mb": f.max_rss_bytes // 10**6,
            "runs": f.runs, "cpu_ratio": round(f.cpu_s / base.cpu_s, 3), "wall_ratio": round(f.wall_s / base.wall_s, 3),
        }  # fmt: skip
        if f.moves is not None:
            rows[command]["moves"] = f.moves
        if f.rows is not None:
            rows[command] |= {"rows": f.rows, "rows_per_cpu_s": round(f.rows / f.cpu_s)}
    sys.stdout.write(f"\n{name} (ratios to the peer above, or to the first line)\n")
    for command, row in rows.items():
        sys.stdout.write(
            f"  {command:32} {row['cpu_ms']:>7} ms CPU {row['wall_ms']:>7} ms wall {row['max_rss_mb']:>5} MB"
            f"   CPU × {row['cpu_ratio']:<6} wall × {row['wall_ratio']}{_more(row)}\n"
        )
    return rows


def _more(row: dict[str, Any]) -> str:
    if "rows" in row:
        return f"   {row['rows']:,} rows, {row['rows_per_cpu_s']:,} each CPU second"
    return f"   {row['moves']:,} moves" if "moves" in row else ""


def main() -> None:
    """Run the chosen cases and keep their figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(CASES)}; all without")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--before", type=Path, metavar="CHECKOUT", help="of an older kctl, measured beside by clone")
    chosen = parser.parse_args()
    names = chosen.names or list(CASES)
    with tempfile.TemporaryDirectory(prefix="kctl-bench-") as home:
        from kctl.deploy.runtime.runtime import ensure_runtime

        libs = ensure_runtime().libs
        setting = cases.Setting(Kctl(Path(home), {"KAFKA_HOME": str(libs.parent)}), libs, chosen.runs, chosen.before)
        try:
            for name in names:
                rows = _report(name, CASES[name](setting))
                now = datetime.now(timezone.utc)
                body = {"case": name, "at": now.isoformat(timespec="seconds"), "machine": machine(), "figures": rows}
                RESULTS.mkdir(exist_ok=True)
                (RESULTS / f"{now:%Y-%m-%d}-{name}.json").write_text(json.dumps(body, indent=2) + "\n")
        finally:
            setting.close()


if __name__ == "__main__":
    main()
