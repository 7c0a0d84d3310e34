"""Kafka's own command line tools, run from its jars."""

from __future__ import annotations

import subprocess
from pathlib import Path


def run_tool(kafka_home: Path, main_class: str, *arguments: str) -> str:
    """What a tool writes to stdout. Raises CalledProcessError when it fails."""
    argv = ["java", "-Xmx128M", "-cp", f"{kafka_home}/libs/*", main_class, *arguments]
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=120).stdout
