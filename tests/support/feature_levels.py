"""The table of feature levels, from Kafka's own classes. Makes kctl/features/feature_levels.json:

python tests/support/feature_levels.py kafka-3.9.2 kafka-4.4.0 > kctl/features/feature_levels.json

Name the folders of the releases, oldest first: where they differ, the newest one is right. Levels that only an older
release has (before 3.3-IV3) are kept.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

_SOURCE = Path(__file__).with_name("FeatureLevels.java")


def levels_of(home: Path) -> dict[str, Any]:
    """Return the table of one release. home: the folder with its jars under libs/."""
    argv = ["java", "-cp", f"{home / 'libs'}/*", str(_SOURCE)]
    answer = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=120)
    table: dict[str, Any] = json.loads(answer.stdout)
    return table


def merged(tables: list[dict[str, Any]]) -> dict[str, Any]:
    """Return one table from those of several releases, oldest first."""
    newest = tables[-1]
    versions = {row["level"]: row for table in tables for row in table["metadata_versions"]}
    features = {name: entry for table in tables for name, entry in table["features"].items()}
    return {
        "latest_production": newest["latest_production"],
        "metadata_versions": [versions[level] for level in sorted(versions)],
        "features": features,
    }


def as_text(table: dict[str, Any]) -> str:
    """Return the table as JSON with one level per line."""
    rows = ",\n".join(f"  {json.dumps(row)}" for row in table["metadata_versions"])
    features = ",\n".join(
        f'  {json.dumps(name)}: {{"latest_production": {entry["latest_production"]}, "levels": [\n'
        + ",\n".join(f"   {json.dumps(level)}" for level in entry["levels"])
        + "\n  ]}"
        for name, entry in table["features"].items()
    )
    return (
        f'{{\n "latest_production": {table["latest_production"]},\n "metadata_versions": [\n{rows}\n ],\n'
        f' "features": {{\n{features}\n }}\n}}\n'
    )


if __name__ == "__main__":
    sys.stdout.write(as_text(merged([levels_of(Path(home)) for home in sys.argv[1:]])))
