"""Rolling restarts of kctl's own clusters: what is looked at on this machine before anything is stopped."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import cast

import pytest

from kctl.commands.cluster import rolling as cluster_rolling
from kctl.deploy import lifecycle
from kctl.deploy.create import create
from kctl.deploy.host import LocalHost
from kctl.deploy.layout import ClusterSpec
from kctl.deploy.layout_request import LayoutRequest
from kctl.deploy.runtime.runtime import KafkaRuntime
from kctl.errors import ConnectionFailed, NotFound, NotSupported, Refused
from kctl.model import Broker
from kctl.restart import journals
from kctl.restart.control_local import LocalControl
from kctl.restart.live_cluster import LiveCluster
from kctl.restart.plan import unfinished_run
from kctl.restart.restart_run import RestartOptions
from rolling_testing import Simulated

WANTED = cluster_rolling.RollingRequest("dev", None, None, RestartOptions())
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
    with pytest.raises(NotFound, match=r"Kafka 3\.9\.2 of cluster dev is missing"):
        cluster_rolling._control(WANTED, None, {}, NOBODY)


def test_without_a_java_nothing_is_stopped(spec: ClusterSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    def find_java() -> None:
        raise NotSupported("Java 17 or newer is needed; none was found")

    monkeypatch.setattr(lifecycle, "find_java", find_java)
    with pytest.raises(Refused, match="Java 17 or newer is needed"):
        cluster_rolling._control(WANTED, None, {}, NOBODY)


# --- a cluster that was made anew under its name ----------------------------------------------------------------------


def _begun(cluster_id: str) -> Path:
    """The journal of a run that has not ended."""
    with journals.begin("dev", cluster_id, [Broker(1, "127.0.0.1", 1)]) as held:
        return held.path


def _has_id(spec: ClusterSpec, cluster_id: str) -> None:
    for node in spec.brokers:
        for folder in spec.data_paths(node):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "meta.properties").write_text(f"broker.id={node.id}\ncluster.id={cluster_id}\n")


def test_the_disks_tell_whose_run_it_is(spec: ClusterSpec) -> None:
    """All are down: the run of an earlier cluster of the name does not start this one."""
    assert lifecycle.own_cluster_id("dev") is None
    down, older = Simulated(up=set()), _begun("older-id")
    assert unfinished_run(down, "dev", lifecycle.own_cluster_id("dev")) == (None, older)
    _has_id(spec, "newer-id")
    assert lifecycle.own_cluster_id("dev") == "newer-id"
    with pytest.raises(ConnectionFailed):
        unfinished_run(down, "dev", "newer-id")
    newer = _begun("newer-id")
    assert unfinished_run(down, "dev", "newer-id") == (None, newer)


@pytest.mark.parametrize("up", [set(), {1, 2, 3}])
def test_the_run_of_an_earlier_cluster_can_be_abandoned(spec: ClusterSpec, up: set[int]) -> None:
    cluster = cast(LiveCluster, Simulated(up=up))
    if up:
        assert cluster_rolling._to_abandon(cluster, "dev", "cluster-id") is None
    else:
        with pytest.raises(ConnectionFailed):
            cluster_rolling._to_abandon(cluster, "dev", "cluster-id")
    older = _begun("older-id")
    assert cluster_rolling._to_abandon(cluster, "dev", "cluster-id") == older
    own = _begun("cluster-id")
    assert cluster_rolling._to_abandon(cluster, "dev", "cluster-id") == own
    journals.abandon(own)
    assert cluster_rolling._to_abandon(cluster, "dev", "cluster-id") == older
