"""Copying a topic with its records: this kctl, and an older one over the same input."""

from __future__ import annotations

import itertools
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from cases import Setting
from kctl_testing import SCRIPT
from measure import Figures, Sample, median, run_once

_PARTITIONS = 4
_INPUTS = {100: 500_000, 1000: 100_000}  # bytes of a record → records
BEFORE, _NOW, _RECOMPRESSED = "before", "kctl topic clone", "kctl topic clone --compression zstd"
_CLUSTER = "bench-clone"


def clone(setting: Setting) -> dict[str, Figures]:
    """Records of 100 B and 1 kB on a single broker; the older kctl of --before comes first."""
    kctl = setting.kctl
    kctl.ok("cluster", "create", _CLUSTER, "--layout", "single", timeout=180)
    try:
        servers = ",".join(kctl.json("context", "show", _CLUSTER)["bootstrap_servers"])
        figures: dict[str, Figures] = {}
        for size, count in _INPUTS.items():
            _fill(setting, servers, f"records-{size}", count, size)
            figures |= _measured(setting, servers, size, count)
        return figures
    finally:
        kctl("cluster", "destroy", _CLUSTER, "--yes", "--confirm-cluster", _CLUSTER, timeout=180)


def _measured(setting: Setting, servers: str, size: int, count: int) -> dict[str, Figures]:
    """The commands in turn, each into a topic of its own, which is deleted behind it."""
    samples: dict[str, list[Sample]] = {}
    at = ("--bootstrap-server", servers)
    rounds = itertools.product(range(setting.runs), _programs(setting.before).items())
    for number, (_, (label, program)) in enumerate(rounds):
        target = f"copy-{size}-{number}"
        command = [*program, "topic", "clone", f"records-{size}", target, "--data", *at]
        if label == _RECOMPRESSED:
            command += ["--compression", "zstd"]
        samples.setdefault(label, []).append(run_once(command, setting.kctl.environment))
        setting.kctl.ok("topic", "delete", target, "--yes", *at)
    return {f"{label}, {size} B": replace(median(taken), rows=count) for label, taken in samples.items()}


def _programs(before: Path | None) -> dict[str, list[str]]:
    older = {BEFORE: ["env", "-C", str(before), sys.executable, "-m", "kctl"]} if before else {}
    return {**older, _NOW: [str(SCRIPT)], _RECOMPRESSED: [str(SCRIPT)]}


def _fill(setting: Setting, servers: str, topic: str, count: int, size: int) -> None:
    setting.kctl.ok("topic", "create", topic, "--partitions", str(_PARTITIONS), "--bootstrap-server", servers)
    subprocess.run(
        setting.java_tool(
            "ProducerPerformance", "--topic", topic, "--num-records", str(count), "--record-size", str(size),
            "--throughput", "-1", "--producer-props", f"bootstrap.servers={servers}",
        ),
        env=setting.kctl.environment, stdout=subprocess.DEVNULL, check=True,
    )  # fmt: skip
