"""Kafka's own tools, for comparisons."""

from __future__ import annotations

import subprocess
from pathlib import Path


def java_tool(kafka_home: Path, main_class: str, *arguments: str) -> str:
    """Return the stdout of a tool. Fails if its exit code is not 0."""
    argv = ["java", "-Xmx128M", "-XX:TieredStopAtLevel=1", "-cp", f"{kafka_home}/libs/*", main_class, *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{main_class} {' '.join(arguments)}\n{done.stdout}\n{done.stderr}"
    return done.stdout
