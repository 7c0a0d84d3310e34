"""Every test runs against the installed kctl, and the integration tests on one real cluster for the whole session:
one ZooKeeper and three brokers, started and destroyed by kctl itself.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

import hypothesis
import pytest
from xdist.scheduler import LoadScopeScheduling

import kctl as package
from failed_tests import register as register_failure_recorder
from kctl_testing import Kctl, TestCluster
from kraft_broker import kraft_broker
from secure_cluster import SecureCluster, secure_cluster

NAME = "tests"
# The tests of such a folder share a cluster beside the session's. In several processes, each would start that cluster.
ONE_CLUSTER_FOLDERS = {f"tests/integration/{name}" for name in ("kraft", "playbook/shipped", "reassign", "rights")}
# Files and folders of integration tests that take more than two minutes, as `--durations` of the last stage showed.
LONGEST = [
    f"tests/integration/{name}"
    for name in (
        "reassign", "playbook/shipped", "validate/test_scenarios.py", "validate/test_hooks.py", "spark/test_jobs.py",
        "rights", "kraft", "topics/test_eligible_and_cordoned.py", "upgrade", "quorum/test_quorum.py",
    )
]  # fmt: skip
_numbers = itertools.count(1)


def pytest_configure(config: pytest.Config) -> None:
    """Stop at once when the wheel under test is not what is imported."""
    # A runner in the background ignores SIGINT, one under nohup SIGHUP, and the processes that it starts inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    checkout = Path(__file__).resolve().parent.parent
    imported = Path(package.__file__).resolve()
    if imported.parent == checkout / "kctl" and os.environ.get("KCTL_TEST_EDITABLE") != "1":
        pytest.exit(
            f"kctl is imported from the checkout ({imported}): run ./install.sh test, or set KCTL_TEST_EDITABLE=1",
            returncode=4,
        )
    register_failure_recorder(config)
    # Nothing is said of code by how long an example takes on a machine that does other things, or imports on first use.
    hypothesis.settings.register_profile("kctl", deadline=None)
    hypothesis.settings.load_profile("kctl")
    if "not long" in config.option.markexpr:
        os.environ.setdefault("KCTL_FUZZ_SHARE", "8")  # of the fuzz tests' inputs, where time is short


class FolderScheduling(LoadScopeScheduling):
    """Give a process whole files, and the folders that share one more cluster as a whole."""

    def _split_scope(self, nodeid: str) -> str:
        path = PurePosixPath(nodeid.partition("::")[0])
        return str(path.parent if str(path.parent) in ONE_CLUSTER_FOLDERS else path)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start the longest first: at the end of a run, no process waits minutes for another one."""
    order = {path: place for place, path in enumerate(LONGEST)}

    def place(item: pytest.Item) -> int:
        path = PurePosixPath(item.nodeid.partition("::")[0])
        return min(order.get(str(path), len(order)), order.get(str(path.parent), len(order)))

    items.sort(key=place)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FolderScheduling | None:
    """Schedule `--dist loadfile` by these folders and files."""
    return FolderScheduling(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.fixture(scope="session")
def kafka_home() -> Path:
    """A folder with Kafka's jars under libs/, provisioned once."""
    from kctl.deploy.runtime.runtime import ensure_runtime  # not at the top: pytest_configure checks the import first

    return ensure_runtime().libs.parent


@pytest.fixture(scope="session")
def kafka_4_home() -> Path:
    """A folder with the jars of the Kafka 4 that KRaft layouts use by default."""
    from kctl.deploy.runtime.runtime import KRAFT_VERSION, ensure_runtime

    return ensure_runtime(KRAFT_VERSION).libs.parent


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory, kafka_home: Path, worker_id: str) -> dict[str, str]:
    """The environment that all homes share: Kafka's jars, and a cache with the class archives that starts use, which
    is the same one for all processes of this run."""
    mine = tmp_path_factory.getbasetemp()
    cache = (mine if worker_id == "master" else mine.parent) / "cache"
    cache.mkdir(exist_ok=True)
    shared = {"KAFKA_HOME": str(kafka_home), "XDG_CACHE_HOME": str(cache)}
    if "KCTL_TEST_BOOTSTRAP" not in os.environ:  # a quick round on a running cluster starts none
        with _one_at_a_time(cache / "kafka.lock"):
            Kctl(tmp_path_factory.mktemp("warm"), shared).ok("cluster", "warm", timeout=180)
    return shared


@contextmanager
def _one_at_a_time(path: Path) -> Iterator[None]:
    """Until the other processes of this run have left it."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def spark_archive(tmp_path_factory: pytest.TempPathFactory, shared: dict[str, str]) -> dict[str, Any]:
    """Spark's class archive in the cache that all share: what `kctl spark warm` says of it. It takes a minute, and
    saves each start of Spark six seconds of CPU time."""
    with _one_at_a_time(Path(shared["XDG_CACHE_HOME"]) / "spark.lock"):
        made: dict[str, Any] = Kctl(tmp_path_factory.mktemp("warm-spark"), shared).json("spark", "warm", timeout=600)
    return made


@pytest.fixture(scope="session")
def kctl(tmp_path_factory: pytest.TempPathFactory, shared: dict[str, str]) -> Kctl:
    """The console script with the session's own HOME; the session's cluster is its current context."""
    return Kctl(tmp_path_factory.mktemp("home"), shared)


@pytest.fixture
def own_kctl(tmp_path: Path, shared: dict[str, str]) -> Iterator[Kctl]:
    """The console script with a HOME of this test alone: no context, no cluster; what it made there is stopped."""
    home = tmp_path / "home"
    home.mkdir()
    own = Kctl(home, shared)
    yield own
    for left in sorted(home.glob(".local/share/kctl/clusters/*/cluster.json")):
        own("cluster", "destroy", left.parent.name, "--yes", "--confirm-cluster", left.parent.name, timeout=120)


@pytest.fixture
def kraft_kctl(own_kctl: Kctl, kafka_4_home: Path) -> Kctl:
    """The console script with a HOME of this test alone, and Kafka 4 with its class archive."""
    kctl = own_kctl.with_environment(KAFKA_HOME=str(kafka_4_home))
    with _one_at_a_time(Path(kctl.environment["XDG_CACHE_HOME"]) / "kafka-4.lock"):
        kctl.ok("cluster", "warm", "--kafka-home", str(kafka_4_home), timeout=240)
    return kctl


@pytest.fixture(scope="session")
def cluster(kctl: Kctl) -> Iterator[TestCluster]:
    """The session's cluster. KCTL_TEST_BOOTSTRAP and KCTL_TEST_ZOOKEEPER name a running one instead (development)."""
    bootstrap = os.environ.get("KCTL_TEST_BOOTSTRAP")
    if bootstrap:
        zookeeper = os.environ["KCTL_TEST_ZOOKEEPER"]
        kctl.ok("context", "add", NAME, "--bootstrap-server", bootstrap, "--zookeeper", zookeeper)
        kctl.ok("context", "use", NAME)
        yield TestCluster(NAME, bootstrap, zookeeper, (1, 2, 3))
        return
    created = kctl(
        "cluster", "create", NAME, "--use", "--layout", "pseudo-distributed", "--log-dirs", "2",
        # A leader stays where a test puts it: Kafka's own limit of 10 % has the controller elect 5 s after it began.
        "--config", "leader.imbalance.per.broker.percentage=100", timeout=180,
    )  # fmt: skip
    assert created.code == 0, f"{created}\n{kctl('cluster', 'logs', NAME, '--tail', '30').out}"
    context = kctl.json("context", "show", NAME)
    try:
        yield TestCluster(NAME, ",".join(context["bootstrap_servers"]), context["zookeeper"], (1, 2, 3))
    finally:
        destroyed = kctl("cluster", "destroy", NAME, "--yes", "--confirm-cluster", NAME, timeout=180)
        assert destroyed.code == 0, str(destroyed)


@pytest.fixture(scope="session")
def secure(tmp_path_factory: pytest.TempPathFactory, kafka_home: Path) -> Iterator[SecureCluster]:
    """A cluster with an authorizer, its super user and a user without rights: one KRaft broker."""
    from kctl.deploy.runtime.java import find_java

    with secure_cluster(tmp_path_factory.mktemp("secure"), find_java().executable, kafka_home / "libs") as started:
        yield started


@pytest.fixture(scope="session")
def kraft(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The bootstrap server of a broker of Kafka 4.x without ZooKeeper, with every kind of group; started when a test
    asks for it. KCTL_TEST_KRAFT names a running one instead (development)."""
    running = os.environ.get("KCTL_TEST_KRAFT")
    if running:
        yield running
        return
    with kraft_broker(tmp_path_factory.mktemp("kraft")) as broker:
        yield broker.bootstrap


@pytest.fixture(scope="module")
def one_command_tree() -> Iterator[None]:
    """The options of a group are built once for all command lines that a module runs: that is most of their time."""
    from kctl.commands import app

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app, "load", lru_cache(app.load))
        yield


@pytest.fixture
def topic(kctl: Kctl, cluster: TestCluster, request: pytest.FixtureRequest) -> Callable[..., str]:
    """Make a topic named after the test: topic(partitions=1, replication_factor=1, **config) → its name."""

    def make(partitions: int = 1, replication_factor: int = 1, **config: str) -> str:
        stem = re.sub(r"[^A-Za-z0-9]+", "-", request.node.name)[:30].strip(
            "-"
        )  # short: tables are looked at in 80 columns
        name = f"{stem}.{os.getpid()}.{next(_numbers)}"
        settings = [arg for key, value in config.items() for arg in ("--config", f"{key.replace('_', '.')}={value}")]
        kctl.ok(
            "topic", "create", name, "--partitions", str(partitions),
            "--replication-factor", str(replication_factor), *settings,
        )  # fmt: skip
        return name

    return make
