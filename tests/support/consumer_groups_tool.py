"""Kafka's kafka-consumer-groups, with its output as tables."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

_RUNNER = Path(__file__).with_name("ConsumerGroups.java")
_MARK = "\x1e"


def run_each(bootstrap: str, kafka_home: Path, *commands: Sequence[str]) -> list[str]:
    """Return the output of each command, run in one JVM."""
    argv = ["java", "-Xmx256M", "-cp", f"{kafka_home}/libs/*", str(_RUNNER)]
    lines = "".join(
        "\t".join(["--bootstrap-server", bootstrap, "--timeout", "60000", *command]) + "\n" for command in commands
    )
    done = subprocess.run(argv, input=lines, capture_output=True, text=True, check=False, timeout=180)
    written = done.stdout.split(_MARK)[:-1]
    assert len(written) == len(commands), f"{done.stdout}\n{done.stderr}"
    return written


def described(bootstrap: str, kafka_home: Path, *groups: str) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Return (group, topic, partition) → (committed, end, lag, client, host) as printed. groups: empty for all."""
    chosen = [arg for group in groups for arg in ("--group", group)] or ["--all-groups"]
    (written,) = run_each(bootstrap, kafka_home, ["--describe", *chosen])
    return offsets_in(written)


def offsets_in(written: str) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Return the rows of --describe in the form of `described`."""
    rows: dict[tuple[str, ...], tuple[str, ...]] = {}
    for line in written.splitlines():
        cells = line.split()
        if len(cells) >= 9 and cells[2].isdigit():
            group, topic, partition, committed, end, lag, _consumer, host, client = cells[:9]
            rows[group, topic, partition] = (committed, end, lag, client, host)
    return rows


def resets_in(written: str) -> dict[tuple[str, int], int]:
    """Return topic and partition → new offset from --reset-offsets, whose columns only spaces separate."""
    cells = written.partition("NEW-OFFSET")[2].split()
    rows = zip(cells[1::4], cells[2::4], cells[3::4], strict=True)
    return {(topic, int(partition)): int(offset) for topic, partition, offset in rows}
