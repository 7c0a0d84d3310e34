"""The keys of what `kctl cluster … -o json` gives: a change is a breaking change."""

from __future__ import annotations

import dataclasses

import pytest

from kctl.deploy.config.files import GeneratedFile
from kctl.deploy.create import CreateResult
from kctl.deploy.destroy import DestroyResult
from kctl.deploy.faults import FaultResult
from kctl.deploy.lifecycle import RestartResult
from kctl.deploy.logs import LogEntry
from kctl.deploy.start import StartResult
from kctl.deploy.stop import StopResult

KEYS = {
    CreateResult: "name layout directory kafka_version bootstrap_servers zookeeper cluster_id controllers brokers "
    "started duration_ms",
    StartResult: "name bootstrap_servers zookeeper started already_running resumed duration_ms",
    StopResult: "name stopped killed already_stopped duration_ms",
    RestartResult: "name stopped started",
    DestroyResult: "name directory killed kept current_context",
    FaultResult: "cluster node node_id pid state",
    GeneratedFile: "path text",
    LogEntry: "time node level text",
}


@pytest.mark.parametrize("result", KEYS, ids=lambda r: r.__name__)
def test_keys(result: type) -> None:
    assert [field.name for field in dataclasses.fields(result)] == KEYS[result].split()
