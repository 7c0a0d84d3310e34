"""Every shell block in README.md and docs/ runs as printed, in order, in an empty HOME, on a real cluster."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kctl_testing import SCRIPT, Kctl
from shell_blocks import script, shell_blocks

ROOT = Path(__file__).resolve().parents[2]
# Each takes a minute or more: run with --all.
LONG = {
    "docs/brokers.md",
    "docs/quorum.md",
    "docs/reassign.md",
    "docs/retention.md",
    "docs/rolling-restart.md",
    "docs/runbooks/pseudo-distributed.md",
    "docs/runbooks/three-node.md",
    "docs/upgrade.md",
}
DOCUMENTS = [d for d in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if shell_blocks(d)]


def test_there_are_documents() -> None:
    assert ROOT / "README.md" in DOCUMENTS


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_no_page_leaves_a_cluster_in_the_environment(document: Path) -> None:
    """KCTL_CONTEXT comes before the current context: whoever reads on would be sent to a cluster that is gone."""
    assert "\neval " not in f"\n{script(document)}"


def _parameter(document: Path) -> Any:
    name = str(document.relative_to(ROOT))
    return pytest.param(document, id=name, marks=[pytest.mark.long] if name in LONG else [])


@pytest.mark.parametrize("document", map(_parameter, DOCUMENTS))
@pytest.mark.timeout(400)
def test_blocks_run_as_printed(document: Path, own_kctl: Kctl, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if "\nkctl spark" in script(document):
        request.getfixturevalue("spark_archive")
    environment = {**own_kctl.environment, "PATH": f"{SCRIPT.parent}{os.pathsep}{os.environ['PATH']}"}
    try:
        done = subprocess.run(
            ["bash", "-c", script(document)],
            env=environment, cwd=tmp_path, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=380, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout[-4000:]}\n--- stderr\n{done.stderr[-4000:]}"
    finally:
        clusters = own_kctl.json("cluster", "list")
        for row in clusters:
            own_kctl("cluster", "destroy", row["name"], "--yes", "--confirm-cluster", row["name"], timeout=120)
    assert not clusters, f"left behind: {clusters}"
