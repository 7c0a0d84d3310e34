"""The generated files, against golden ones. KCTL_UPDATE_GOLDEN=1 writes them anew: look at the diff."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from kctl.base.properties import parse_properties
from kctl.deploy.config.broker_settings import known_settings
from kctl.deploy.config.files import HIDDEN, config_files, without_secrets
from kctl.deploy.layout import ClusterSpec
from kctl.deploy.layout_request import LayoutRequest, build_spec

GOLDEN = Path(__file__).parents[2] / "data" / "cluster"
CASES: dict[str, dict[str, Any]] = {
    "single": {"layout": "single", "chroot": "/"},
    "pseudo-distributed": {
        "layout": "pseudo-distributed", "brokers": 2, "rack": "auto", "log_dirs": 2, "heap": "2g",
        "settings": {"min.insync.replicas": "1", "log.retention.hours": "1", "num.io.threads": "4"},
    },
    "three-node": {"layout": "three-node"},
    "kraft-single": {"layout": "kraft-single", "settings": {"share.coordinator.threads": "2"}},
    "kraft-combined": {"layout": "kraft-combined", "rack": "auto"},
    "kraft-separate": {"layout": "kraft-separate", "brokers": 2, "controllers": 1, "log_dirs": 2},
    "kraft-separate-3.9": {"layout": "kraft-separate", "brokers": 1, "controllers": 1},
}  # fmt: skip


def version_of(case: str) -> str:
    return "4.4.0" if case.startswith("kraft") and not case.endswith("3.9") else "3.9.2"


def spec_of(case: str) -> ClusterSpec:
    return build_spec(
        LayoutRequest(name="dev", **CASES[case]), directory=Path("/clusters/dev"), base_port=9092,
        kafka_version=version_of(case), kafka_libs=Path("/kafka/libs"), created_at="2026-01-31T12:00:00Z",
    )  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_files(case: str) -> None:
    text = "".join(f"==> {file.path} <==\n{file.text}\n" for file in config_files(spec_of(case)))
    golden = GOLDEN / f"{case}.txt"
    if os.environ.get("KCTL_UPDATE_GOLDEN") == "1":
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("case", CASES)
def test_every_broker_setting_is_one_that_brokers_know(case: str) -> None:
    for file in config_files(spec_of(case)):
        if file.path.name == "server.properties":
            settings = parse_properties(file.text, source=file.path.name)
            assert settings.keys() <= known_settings(version_of(case)).keys()


@pytest.mark.parametrize(
    ("case", "replicas", "in_sync"),
    [
        ("single", "1", "1"),
        ("pseudo-distributed", "2", "1"),
        ("three-node", "3", "2"),
        ("kraft-single", "1", "1"),
        ("kraft-combined", "3", "2"),
    ],
)
def test_defaults_suit_the_number_of_brokers(case: str, replicas: str, in_sync: str) -> None:
    file = next(f for f in config_files(spec_of(case)) if f.path.name == "server.properties")
    settings = parse_properties(file.text, source="server.properties")
    for key in ("default", "offsets.topic", "transaction.state.log"):
        assert settings[f"{key}.replication.factor"] == replicas
    assert settings["min.insync.replicas"] == settings["transaction.state.log.min.isr"] == in_sync
    assert settings["unclean.leader.election.enable"] == settings["auto.create.topics.enable"] == "false"
    metadata = "controller.quorum.bootstrap.servers" if case.startswith("kraft") else "zookeeper.connect"
    for key in ("listeners", "advertised.listeners", metadata):
        assert "127.0.0.1" in settings[key]


def test_passwords_are_hidden_when_shown() -> None:
    request = LayoutRequest(name="dev", layout="single", settings={"ssl.keystore.password": "s3cret"})
    spec = build_spec(
        request, directory=Path("/d"), base_port=9092, kafka_version="3.9.2", kafka_libs=Path("/k"), created_at="x"
    )
    assert "s3cret" not in repr(spec) + repr(request)
    shown = "".join(file.text for file in config_files(without_secrets(spec)))
    assert "s3cret" not in shown
    assert f"ssl.keystore.password={HIDDEN}" in shown
    assert "s3cret" in "".join(file.text for file in config_files(spec))
