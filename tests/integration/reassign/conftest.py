"""The tests of reassignments share one cluster of four brokers; each has journals of its own, and leaves nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kctl_testing import Kctl, TestCluster
from reassign_testing import Arena, reassign_cluster
from zookeeper_writer import zookeeper_writer

NAME = "reassign"


@pytest.fixture(scope="package")
def four_brokers(
    tmp_path_factory: pytest.TempPathFactory, shared: dict[str, str]
) -> Iterator[tuple[Kctl, str, Any, Path]]:
    """The cluster, and a kctl whose current context it is."""
    kctl = Kctl(tmp_path_factory.mktemp("reassign-home"), shared)
    with reassign_cluster(kctl, NAME) as (bootstrap, zk, folder):
        yield kctl, bootstrap, zk, folder


@pytest.fixture
def arena(four_brokers: tuple[Kctl, str, Any, Path], tmp_path: Path) -> Iterator[Arena]:
    """The cluster as it was made: four live brokers, no topic, no dynamic config, nothing moves."""
    kctl, bootstrap, zk, folder = four_brokers
    found = Arena(kctl.with_environment(XDG_STATE_HOME=str(tmp_path / "state")), NAME, bootstrap, zk, folder, tmp_path)
    yield found
    if found.registered() != {1, 2, 3, 4}:
        found.start()
    found.clean()
    assert (found.topics(), found.configs(), found.moving()) == ([], {}, {})


@pytest.fixture
def small_arena(kctl: Kctl, cluster: TestCluster, tmp_path: Path) -> Iterator[Arena]:
    """The session's cluster: three brokers that other tests use as well."""
    with zookeeper_writer(cluster.zookeeper) as zk:
        own = kctl.with_environment(XDG_STATE_HOME=str(tmp_path / "state"))
        found = Arena(own, cluster.name, cluster.bootstrap, zk, None, tmp_path)
        yield found
        found.clean()
