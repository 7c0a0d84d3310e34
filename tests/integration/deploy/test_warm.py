"""Class archives: made once, used by the next start, and nothing but them is left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster_testing import clusters_dir, nothing_left_running, processes_of
from kctl.deploy import process
from kctl.deploy.nodes import is_node_command
from kctl_testing import Kctl


@pytest.fixture(autouse=True)
def _nothing_left(own_kctl: Kctl) -> Iterator[None]:
    with nothing_left_running(own_kctl):
        yield


@pytest.fixture
def own_kctl(tmp_path: Path, kafka_home: Path) -> Kctl:
    """A home with a cache of its own: the other tests share one that is warm."""
    return Kctl(tmp_path, {"KAFKA_HOME": str(kafka_home)})


@pytest.mark.long
def test_warm(own_kctl: Kctl) -> None:
    made = own_kctl.json("cluster", "warm", timeout=120)
    assert {row["process"] for row in made} == {"zookeeper", "broker"}
    assert processes_of(own_kctl.home) == {}
    there = {path for row in made for path in (row["archive"], str(Path(row["archive"]).with_suffix(".seal")))}
    assert {str(path) for path in (own_kctl.home / ".cache/kctl/kafka").iterdir()} == there
    assert own_kctl.json("cluster", "list") == []

    own_kctl.ok("cluster", "create", "c", "--use", "--layout", "single", timeout=120)
    commands = process.find_processes(lambda argv: is_node_command(argv) and argv[-1].startswith(f"{own_kctl.home}/"))
    for _, argv in commands:
        (archive,) = [word for word in argv if word.startswith("-XX:SharedArchiveFile=")]
        assert archive.removeprefix("-XX:SharedArchiveFile=") in {row["archive"] for row in made}
    # Java says so here when it passes over an archive.
    for console in (clusters_dir(own_kctl) / "c").glob("*/logs/console.log"):
        assert "cds" not in console.read_text()
    assert own_kctl.json("cluster", "warm") == made
