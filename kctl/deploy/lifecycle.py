"""What happens to a cluster that exists, by its name: under its lock, and on this machine.

The parts: `start` and `stop` (whole clusters), `faults` (kill, pause), `status`, `logs`; `create` makes and destroys.
"""

from __future__ import annotations

from kctl.deploy import store
from kctl.deploy.create import put_cluster_context
from kctl.deploy.host import Host, LocalHost
from kctl.deploy.java import find_java
from kctl.deploy.start import DEFAULT_TIMEOUT_S as START_TIMEOUT_S
from kctl.deploy.start import StartResult, start
from kctl.deploy.stop import DEFAULT_TIMEOUT_S as STOP_TIMEOUT_S
from kctl.deploy.stop import StopResult, stop
from kctl.deploy.waiting import Progress


def start_cluster(
    name: str,
    *,
    timeout_s: float = START_TIMEOUT_S,
    progress: Progress | None = None,
    host: Host | None = None,
) -> StartResult:
    """`start`, by name; also completes what an interrupted create left, and brings its context back."""
    host = host or LocalHost()
    store.load(host, name)
    java = find_java().executable
    with store.lock_cluster(name):
        spec = store.load(host, name)
        result = start(host, spec, java=java, timeout_s=timeout_s, progress=progress)
        put_cluster_context(spec, make_current=False)
    return result


def stop_cluster(
    name: str,
    *,
    timeout_s: float = STOP_TIMEOUT_S,
    force: bool = False,
    progress: Progress | None = None,
    host: Host | None = None,
) -> StopResult:
    """`stop`, by name."""
    host = host or LocalHost()
    store.load(host, name)
    with store.lock_cluster(name):
        return stop(host, store.load(host, name), timeout_s=timeout_s, force=force, progress=progress)
