"""The record of an upgrade in cluster.json, and the files of the nodes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kctl.deploy import store
from kctl.deploy.create import create
from kctl.deploy.host import LocalHost
from kctl.deploy.layout import ClusterSpec, Release
from kctl.deploy.layout_request import LayoutRequest
from kctl.deploy.nodes import java_command
from kctl.deploy.runtime.runtime import KafkaRuntime
from kctl.errors import InvalidFile, Refused
from kctl.upgrade import record
from kctl.upgrade.levels import raised_features
from kctl.upgrade.rolling import stages

HOST = LocalHost()
TO = Release("4.4.0", Path("/new/libs"))


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClusterSpec:
    """A cluster of files only, with Kafka 3.9.2 and dedicated controllers."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for variable in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "KCTL_CONFIG", "KCTL_CONTEXT"):
        monkeypatch.delenv(variable, raising=False)
    request = LayoutRequest("dev", "kraft-separate", brokers=2, controllers=1)
    create(HOST, request, runtime=KafkaRuntime("3.9.2", Path("/old/libs"), "test"), start_it=False)
    return store.load(HOST, "dev")


def switched(name: str, switch: record.Switch) -> ClusterSpec:
    record.switch_node(HOST, "dev", name, switch)
    return store.load(HOST, "dev")


def test_a_node_is_switched_there_and_back(spec: ClusterSpec) -> None:
    before = {node.name: spec.config_path(node).read_text() for node in spec.nodes}
    record.begin(HOST, "dev", TO, {"metadata.version": 21})
    first = switched("broker-1", record.to_target)
    broker, other = first.brokers
    assert (first.release_of(broker), first.release_of(other)) == (TO, spec.release)
    assert first.log4j_path(broker).name == "log4j2.properties"
    assert first.log4j_path(other).name == "log4j.properties"
    command = java_command(first, broker, Path("java"))
    assert "/new/libs/*" in command
    assert any(word.startswith("-Dlog4j2.configurationFile=") for word in command)
    assert "share.coordinator" in first.config_path(broker).read_text()
    assert switched("broker-1", record.to_target) == first  # as after kill -9

    back = switched("broker-1", record.to_former)
    assert back.release_of(broker) == spec.release
    assert back.upgrade is not None
    ended = record.end_rollback(HOST, "dev")
    assert replace(ended, upgrade=None) == spec
    assert {node.name: spec.config_path(node).read_text() for node in spec.nodes} == before
    assert not list(spec.directory.glob("*/*before-upgrade"))
    assert '"format": 2' in store.spec_path(spec.directory).read_text()


def test_files_that_were_changed_before_the_record_are_restored(spec: ClusterSpec) -> None:
    """kctl was killed between the two."""
    record.begin(HOST, "dev", TO, {})
    node = spec.brokers[0]
    text = spec.config_path(node).read_text()
    record.to_target(HOST, store.load(HOST, "dev"), node)  # the caller did not save
    assert spec.config_path(node).read_text() != text
    record.end_rollback(HOST, "dev")
    assert spec.config_path(node).read_text() == text


def test_the_end_makes_the_target_the_clusters_own(spec: ClusterSpec) -> None:
    record.begin(HOST, "dev", TO, {})
    for node in spec.nodes:
        switched(node.name, record.to_target)
    ended = record.end_upgrade(HOST, "dev")
    assert (ended.release, ended.upgrade) == (TO, None)
    for node in ended.nodes:
        assert ended.config_path(node).read_text().partition("\n")[0].endswith("Kafka 4.4.0.")
    assert not list(spec.directory.glob("*/*before-upgrade"))


def test_an_upgrade_resumes_with_other_jars_but_not_another_target(spec: ClusterSpec) -> None:
    record.begin(HOST, "dev", TO, {"metadata.version": 21})
    switched("controller-101", record.to_target)
    repaired = record.begin(HOST, "dev", Release("4.4.0", Path("/repaired/libs")), {}).upgrade
    assert repaired is not None
    assert (repaired.nodes, repaired.max_levels) == (("controller-101",), {"metadata.version": 21})
    with pytest.raises(Refused, match=r"is being upgraded to 4\.4\.0"):
        record.begin(HOST, "dev", Release("4.3.1", Path("/x")), {})
    record.set_phase(HOST, "dev", "rolling back")
    with pytest.raises(Refused, match=r"is being rolled back to 3\.9\.2") as caught:
        record.begin(HOST, "dev", TO, {})
    assert "kctl cluster rollback dev" in (caught.value.hint or "")
    record.set_phase(HOST, "dev", "finalizing")
    with pytest.raises(Refused, match="which is being finalized"):
        record.begin(HOST, "dev", TO, {})


def test_without_an_upgrade_there_is_nothing_to_end(spec: ClusterSpec) -> None:
    for act in (record.end_rollback, record.end_upgrade):
        with pytest.raises(Refused, match=r"has no unfinished upgrade: it runs Kafka 3\.9\.2"):
            act(HOST, "dev")


@pytest.mark.parametrize("damage", [('"phase": "upgrading"', '"phase": "done"'), ('"version": "4.4.0",', "")])
def test_a_damaged_record_is_an_invalid_file(spec: ClusterSpec, damage: tuple[str, str]) -> None:
    record.begin(HOST, "dev", TO, {})
    path = store.spec_path(spec.directory)
    assert damage[0] in path.read_text()
    path.write_text(path.read_text().replace(*damage))
    with pytest.raises(InvalidFile, match="damaged"):
        store.load(HOST, "dev")


def test_edited_logging_is_named_only_where_it_is_lost(spec: ClusterSpec) -> None:
    assert record.edited_logging(HOST, spec, "4.4.0") == []
    path = spec.log4j_path(spec.brokers[1])
    path.write_text(path.read_text() + "log4j.logger.kafka=DEBUG\n")
    assert record.edited_logging(HOST, spec, "4.4.0") == [path]
    assert record.edited_logging(HOST, spec, "3.9.3") == []


def test_controllers_come_before_brokers_and_back_after_them(spec: ClusterSpec) -> None:
    names = [[node.name for node in group] for group in stages(spec.nodes)]
    assert names == [["controller-101"], ["broker-1", "broker-2"]]
    names = [[node.name for node in group] for group in stages(spec.nodes, backwards=True)]
    assert names == [["broker-1", "broker-2"], ["controller-101"]]


@pytest.mark.parametrize(
    ("finalized", "max_levels", "expected"),
    [
        ({"metadata.version": 21}, {"metadata.version": 21, "kraft.version": 1}, []),
        ({"metadata.version": 33, "kraft.version": 1}, {"metadata.version": 21, "kraft.version": 1},
         ["metadata.version is 33, but the previous release supports at most 21"]),
        ({"share.version": 1}, {"metadata.version": 21},
         ["share.version is 1, but the previous release supports at most 0"]),
    ],
)  # fmt: skip
def test_raised_features_end_the_way_back(
    finalized: dict[str, int], max_levels: dict[str, int], expected: list[str]
) -> None:
    assert raised_features(finalized, max_levels) == expected


def test_an_upgrade_that_was_finalized_during_the_question_is_not_undone(spec: ClusterSpec) -> None:
    record.begin(HOST, "dev", TO, {})
    record.end_upgrade(HOST, "dev")
    with pytest.raises(Refused, match=r"runs Kafka 4.4.0, and cannot be downgraded to 4.3.1"):
        record.begin(HOST, spec.name, Release("4.3.1", Path("/other/libs")), {})
    assert store.load(HOST, "dev").upgrade is None
