"""Spark reports: how soon they answer, and what a row costs, beside other engines on the same files.

CPU and memory are of the process and all that it starts (process_tree.py). Wall time is until the answer is out.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from tempfile import TemporaryDirectory

from cases import Setting, make_groups
from kctl_testing import SCRIPT
from measure import Figures, median, run_tree
from snapshot_inputs import START_MS, Shape, add_rollups, make_store

_ENGINES = Path(__file__).with_name("window_engines.py")
DAY = Shape(groups=1_000, partitions=100, hours=24)


def first_answer(setting: Setting) -> dict[str, Figures]:
    """The lag of a live cluster's 200 groups × 60 partitions, from a cold start."""
    servers = setting.cluster()
    make_groups(setting, 200)
    _warm(setting)
    given = ["--bootstrap-server", servers]
    commands = {
        "kctl lag": ["lag", *given],
        "kctl spark lag": ["spark", "lag", *given],
        "kctl spark lag --by group": ["spark", "lag", "--by", "group", *given],
        "kctl spark retention": ["spark", "retention", *given],
    }
    figures = {name: _alone([str(SCRIPT), *words], setting) for name, words in commands.items()}
    with TemporaryDirectory(prefix="kctl-bench-cache-") as cache:  # no class archive in there
        cold = {**setting.kctl.environment, "XDG_CACHE_HOME": cache, "KAFKA_HOME": str(setting.libs.parent)}
        argv = [str(SCRIPT), "spark", "lag", *given]
        figures["kctl spark lag, no archive"] = median([run_tree(argv, cold)[0] for _ in range(setting.runs)])
    return figures


def window_status(setting: Setting) -> dict[str, Figures]:
    """A status for each of 3·10⁷ rows, of its last ten: all engines give the same."""
    engines = {
        "Spark SQL's window functions": "spark-sql",
        "kctl in Spark": "kctl-spark",
        "kctl without Spark, one process": "kctl-python",
        "DuckDB": "duckdb",
        "Polars": "polars",
    }
    shape = replace(DAY, hours=5)
    figures, answers = {}, set()
    with _store(shape) as root:
        for name, engine in engines.items():
            samples = []
            for _ in range(setting.runs):
                sample, answer = run_tree([sys.executable, str(_ENGINES), engine, str(root)])
                samples.append(sample)
                answers.add(answer)
            figures[name] = replace(median(samples), rows=shape.rows)
    assert len(answers) == 1, answers
    return figures


def rows_and_tasks(setting: Setting) -> dict[str, Figures]:
    """`kctl spark lag` over 10⁶ to 10⁸ rows by one task and by two."""
    _warm(setting)
    figures = {}
    for hours, groups in ((1, 167), (5, 333), (17, 980)):
        shape = Shape(groups=groups, partitions=100, hours=hours)
        with _store(shape) as root:
            for tasks in (1, 2):
                found = _over(root, setting, START_MS, shape.end_ms, master=f"local[{tasks}]")
                figures[f"{shape.rows:,} rows, {tasks} at once"] = replace(found, rows=shape.rows)
    return figures


def a_day(setting: Setting) -> dict[str, Figures]:
    """A day of 100,000 group-partitions each minute, the last quarter of an hour of it, and a month of roll-ups."""
    _warm(setting)
    with _store(DAY) as root:
        quarter = 15 * 60_000
        figures = {
            "kctl spark lag, a day": replace(_over(root, setting, START_MS, DAY.end_ms), rows=DAY.rows),
            "kctl spark lag, the last 15 minutes of it": _over(root, setting, DAY.end_ms - quarter, DAY.end_ms),
        }
    with _store(replace(DAY, hours=1), lambda store: add_rollups(store, DAY, 30)) as root:
        for name, every in (("by day", "day"), ("by hour", "hour")):
            words = ["spark", "trends", "--store", str(root), "--last", "30d", "--every", every, "--top", "20"]
            argv = [str(SCRIPT), *words]
            figures[f"kctl spark trends, a month {name}"] = _alone(argv, setting)
    return figures


def engines(setting: Setting) -> dict[str, Figures]:
    """`kctl history lag` and `kctl spark lag` over the same store: the last quarter of an hour of it, and all of it.

    KCTL_BENCH_HOURS: fewer hours than a day.
    """
    _warm(setting)
    shape = replace(DAY, hours=int(os.environ.get("KCTL_BENCH_HOURS", "24")))
    figures: dict[str, Figures] = {}
    with _store(shape) as root:
        for span, from_ms in (("the last 15 minutes", shape.end_ms - 15 * 60_000), (f"{shape.hours} hours", START_MS)):
            for engine in ("spark", "history"):
                found = _over(root, setting, from_ms, shape.end_ms, engine=engine)
                rows = shape.rows if from_ms == START_MS else None
                figures[f"kctl {engine} lag, {span}"] = replace(found, rows=rows)
    return figures


def _warm(setting: Setting) -> None:
    """Make the class archive, once for all cases of a run: they share a home."""
    setting.kctl.ok("spark", "warm", timeout=300)


def _over(
    root: Path, setting: Setting, from_ms: int, to_ms: int, *, master: str = "local", engine: str = "spark"
) -> Figures:
    times = [f"{datetime.fromtimestamp(ms / 1000, timezone.utc):%Y-%m-%dT%H:%M:%SZ}" for ms in (from_ms, to_ms)]
    span = ["--from", times[0], "--to", times[1]]
    argv = [str(SCRIPT), engine, "lag", "--store", str(root), *span, "--by", "group"]
    if engine == "spark":
        argv += ["--master", master]
    return _alone(argv, setting)


def _alone(argv: Sequence[str], setting: Setting) -> Figures:
    return median([run_tree(argv, setting.kctl.environment)[0] for _ in range(setting.runs)])


@contextmanager
def _store(shape: Shape, then: Callable[..., None] | None = None) -> Iterator[Path]:
    with TemporaryDirectory(prefix="kctl-bench-store-") as folder:
        store = make_store(Path(folder) / "store", shape)
        if then is not None:
            then(store)
        yield store.root
