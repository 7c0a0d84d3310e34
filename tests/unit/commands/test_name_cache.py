"""Names kept for completion: how long, for whom, and what becomes of a file that is not what was written."""

from __future__ import annotations

import stat
import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kctl.base.deadline import Deadline
from kctl.commands.completion import name_cache
from kctl.errors import ConnectionFailed
from kctl.model import Broker, ClusterState
from kctl.protocol import client as client_module
from kctl.protocol.client import ClusterClient
from kctl.protocol.security import Security
from kctl.protocol.silence import Silence
from kctl.protocol.target import Target

DEV = Target("dev", ("127.0.0.1:9092",))


class Cluster:
    """What is asked instead of a cluster. asked: how often."""

    def __init__(self) -> None:
        self.names = ["orders"]
        self.asked = 0
        self.down = False

    def fetch(self, kind: str, target: Target) -> list[str]:
        self.asked += 1
        if self.down:
            raise ConnectionFailed(f"{target.name} has no {kind}")
        return list(self.names)


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(name_cache, "_fetch", made.fetch)
    return made


def test_kept_for_seconds(cluster: Cluster, tmp_path: Path) -> None:
    assert name_cache.cached_names("topics", DEV, now=100.0) == ["orders"]
    cluster.names.append("payments")
    assert name_cache.cached_names("topics", DEV, now=109.0) == ["orders"]
    assert name_cache.cached_names("topics", DEV, now=111.0) == ["orders", "payments"]
    assert cluster.asked == 2
    (file,) = (tmp_path / "kctl" / "names").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_older_names_while_the_cluster_does_not_answer(cluster: Cluster) -> None:
    name_cache.cached_names("topics", DEV, now=100.0)
    cluster.down = True
    assert name_cache.cached_names("topics", DEV, now=200.0) == ["orders"]
    assert name_cache.cached_names("topics", DEV, now=205.0) == ["orders"]
    assert cluster.asked == 2  # it is not waited for at every key
    assert name_cache.cached_names("topics", DEV, now=800.0) == []
    cluster.down = False
    assert name_cache.cached_names("topics", DEV, now=900.0) == ["orders"]


def test_a_clock_that_went_back(cluster: Cluster) -> None:
    name_cache.cached_names("topics", DEV, now=1000.0)
    name_cache.cached_names("topics", DEV, now=10.0)
    assert cluster.asked == 2


def test_each_cluster_login_and_kind_has_its_own(cluster: Cluster) -> None:
    others = (
        Target("prod", DEV.bootstrap_servers),
        Target("dev", ("127.0.0.1:9093",)),
        Target("dev", DEV.bootstrap_servers, security=Security("SASL_PLAINTEXT", "PLAIN", "ops", "secret")),
    )
    for target in (DEV, *others):
        name_cache.cached_names("topics", target, now=100.0)
    name_cache.cached_names("groups", DEV, now=100.0)
    assert cluster.asked == 5


@pytest.mark.parametrize(
    "content",
    [b"", b"[", b"[" * 100_000, b"null", b"{}", b'{"at": 100, "tried": 100}',
     b'{"at": 100, "tried": 100, "names": [1]}',
     b'{"at": "x", "tried": 100, "names": []}', b"\xff", b'"' + b"a" * (5 << 20)],
)  # fmt: skip
def test_a_file_with_something_else_is_written_anew(cluster: Cluster, tmp_path: Path, content: bytes) -> None:
    name_cache.cached_names("topics", DEV, now=100.0)
    (file,) = (tmp_path / "kctl" / "names").iterdir()
    file.write_bytes(content)
    assert name_cache.cached_names("topics", DEV, now=101.0) == ["orders"]
    assert cluster.asked == 2


def test_the_files_are_bounded(cluster: Cluster, tmp_path: Path) -> None:
    for number in range(name_cache.MAX_FILES + 5):
        name_cache.cached_names("topics", Target(f"c{number}", ("h:1",)), now=100.0)
    assert len(list((tmp_path / "kctl" / "names").iterdir())) == name_cache.MAX_FILES
    assert cluster.asked == name_cache.MAX_FILES + 5


def test_a_cache_that_cannot_be_written(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "kctl").write_text("a file where the folder would be")
    assert name_cache.cached_names("topics", DEV, now=100.0) == ["orders"]
    assert cluster.asked == 1


class Loading(ClusterClient):
    """A cluster whose broker 2 is still loading its groups (error 14)."""

    def __init__(self) -> None:
        self.timeout_s = 30.0
        self._last = None
        self._silence = Silence()
        self.limits: list[float] = []

    def close(self) -> None:
        pass

    def metadata(
        self, topics: Any = None, *, timeout_s: float | None = None, keep_errors: bool = False, operations: bool = False
    ) -> ClusterState:
        self.limits.append(self._deadline(timeout_s).left_s)
        return ClusterState("c", 1, {number: Broker(number, "h", number, None) for number in (1, 2)}, {})

    def send_each(
        self, requests: Mapping[int, Any], *, timeout_s: float | None = None, changes: bool | None = None
    ) -> dict[int, Any]:
        self.limits.append(self._deadline(timeout_s).left_s)
        group = SimpleNamespace(group_id="billing", group_state="Stable", protocol_type="consumer", group_type="")
        answers = {1: SimpleNamespace(error_code=0, groups=[group]), 2: SimpleNamespace(error_code=14, groups=[])}
        return {node: answers[node] for node in requests}


def test_a_broker_that_loads_its_groups_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = Loading()
    monkeypatch.setattr(client_module, "connect", lambda _target, timeout_s: made)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    assert name_cache.cached_names("groups", DEV) == ["billing"]
    assert pauses == []
    assert len(made.limits) == 2
    assert all(limit <= name_cache.BUDGET_S for limit in made.limits)


def test_calls_that_share_a_limit() -> None:
    client = Loading()
    with client.ending_by(Deadline(0.2)):
        assert client._deadline(10).left_s <= 0.2
        assert client._deadline(0.1).left_s <= 0.1
    assert client._deadline(None).left_s > 20
