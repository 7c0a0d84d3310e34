"""Rolling restarts of kctl's own clusters: what is looked at on this machine before anything is stopped."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import cast

import pytest

from kctl.commands import cluster_rolling
from kctl.deploy import lifecycle
from kctl.deploy.create import create
from kctl.deploy.host import LocalHost
from kctl.deploy.layout import ClusterSpec, LayoutRequest
from kctl.deploy.runtime import KafkaRuntime
from kctl.errors import NotFound, NotSupported, Refused
from kctl.restart.control_local import LocalControl
from kctl.restart.look import LiveCluster
from kctl.restart.running import Options

WANTED = cluster_rolling.Wanted("dev", None, None, Options())
NOBODY = cast(LiveCluster, None)


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClusterSpec:
    """A cluster of files only."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for variable in ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "KCTL_CONFIG", "KCTL_CONTEXT"):
        monkeypatch.delenv(variable, raising=False)
    libs = tmp_path / "kafka" / "libs"
    libs.mkdir(parents=True)
    request = LayoutRequest(name="dev", layout="single")
    create(LocalHost(), request, runtime=KafkaRuntime("3.9.2", libs, "test"), start_it=False)
    return lifecycle.load_cluster("dev")


def test_what_can_be_started_again_may_be_stopped(spec: ClusterSpec) -> None:
    assert isinstance(cluster_rolling._control(WANTED, None, {}, NOBODY), LocalControl)


def test_without_its_kafka_nothing_is_stopped(spec: ClusterSpec) -> None:
    shutil.rmtree(spec.kafka_libs)
    with pytest.raises(NotFound, match=r"Kafka 3\.9\.2 of cluster dev is gone"):
        cluster_rolling._control(WANTED, None, {}, NOBODY)


def test_without_a_java_nothing_is_stopped(spec: ClusterSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    def find_java() -> None:
        raise NotSupported("Java 17 or newer is needed; none was found")

    monkeypatch.setattr(lifecycle, "find_java", find_java)
    with pytest.raises(Refused, match="Java 17 or newer is needed"):
        cluster_rolling._control(WANTED, None, {}, NOBODY)
