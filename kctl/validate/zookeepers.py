"""By what zookeeper-loss kills and starts the ensemble: signals to kctl's own, or the commands of hooks.yaml."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from kctl.base.address import Address, parse_address, parse_zookeeper
from kctl.base.deadline import Deadline
from kctl.base.parallel import run_all
from kctl.deploy import faults, lifecycle
from kctl.deploy.host import LocalHost
from kctl.deploy.layout import ClusterSpec
from kctl.errors import ConnectionFailed, KctlError, Refused, TimedOut
from kctl.protocol.security import Security
from kctl.protocol.target import Target
from kctl.restart.control import Act
from kctl.restart.control_hooks import run_command
from kctl.restart.hooks import Hooks, ZookeeperHooks, check_servers
from kctl.zookeeper.ensemble import read_ensemble
from kctl.zookeeper.servers import read_each

_ASK_S = 3.0
_AGAIN_S = 0.5
_ENDED_S = 15.0  # a command that hangs is asked to end, then killed


class ZookeeperControl(Protocol):
    """names: of the servers. Its acts raise Refused for what they cannot do, TimedOut and OperationFailed when it was
    begun and did not succeed."""

    names: tuple[str, ...]

    def kill(self) -> None:
        """kill -9 of all."""

    def start(self, names: Sequence[str], *, timeout_s: float) -> None:
        """These together, as one alone of several cannot serve; until they do. Harmless when they run."""

    def serving(self) -> list[str]:
        """Those that do now."""


@dataclass
class LocalZookeepers:
    """Those of a cluster that kctl set up."""

    spec: ClusterSpec

    def __post_init__(self) -> None:
        self.names = tuple(node.name for node in self.spec.zookeepers)

    def kill(self) -> None:
        host = LocalHost()
        for name in self.names:
            lifecycle.inflict_fault(self.spec.name, faults.choose(host, self.spec, name), "kill", host=host)

    def start(self, names: Sequence[str], *, timeout_s: float) -> None:
        if others := sorted(set(names) - set(self.names)):
            raise Refused(f"ZooKeeper {', '.join(others)} was killed by hooks: give the same --hooks to start it")
        lifecycle.start_cluster(self.spec.name, nodes=names, timeout_s=timeout_s)

    def serving(self) -> list[str]:
        running = lifecycle.running_nodes(self.spec)
        return [name for name in self.names if name in running]


@dataclass
class HookZookeepers:
    """names: «host:port», as clients reach them; none when it is only to start what a journal names."""

    hooks: Hooks
    security: Security
    names: tuple[str, ...] = ()
    run: Callable[..., None] = run_command

    def kill(self) -> None:
        self._act("kill", self.names)

    def start(self, names: Sequence[str], *, timeout_s: float) -> None:
        if others := sorted(name for name in names if ":" not in name):
            raise Refused(f"{', '.join(others)} was killed by a signal of kctl's: leave out --hooks to start it")
        deadline = Deadline(timeout_s)
        self._act("start", names, timeout_s)
        while silent := sorted(set(names) - set(self._serving(names))):
            if deadline.expired:
                raise TimedOut(
                    f"ZooKeeper {', '.join(silent)} did not serve within {timeout_s:g} s of its start",
                    hint="kctl zk stat tells what each server says",
                )
            time.sleep(_AGAIN_S)

    def serving(self) -> list[str]:
        return self._serving(self.names)

    def _serving(self, names: Collection[str]) -> list[str]:
        found = read_each([parse_address(name) for name in names], Deadline(_ASK_S), self.security)
        return [each.server for each in found if each.healthy]

    def _act(self, act: Act, names: Sequence[str], timeout_s: float | None = None) -> None:
        """All commands at once: one that starts a server may wait until the ensemble serves. Raises the first error."""
        if self.hooks.zookeeper is None:
            raise Refused(_lacking(self.hooks), hint="add zookeeper: {kill: [...], start: [...]}")
        limit_s = min(self.hooks.timeout_s, timeout_s or self.hooks.timeout_s)
        tasks = {name: partial(self._command, self.hooks.zookeeper, act, name, limit_s) for name in names}
        done = run_all(tasks, Deadline(limit_s + _ENDED_S))
        for name in names:
            if isinstance(failure := done.get(name, TimedOut(f"the command to {act} {name} did not end")), KctlError):
                raise failure

    def _command(self, commands: ZookeeperHooks, act: Act, name: str, limit_s: float) -> None:
        argv, longer = commands.argv(act, parse_address(name)), f"`timeout` in {self.hooks.source}"
        self.run(argv, f"{act} ZooKeeper {name}", limit_s, longer=longer, details={"zookeeper": name, "act": act})


def by_hooks(hooks: Hooks, target: Target) -> HookZookeepers | str:
    """For all servers of the ensemble that the target names, or why there is no way.

    Raises NotFound for a command that is not here and a server that is none, and Refused for one without a command.
    """
    if hooks.zookeeper is None:
        return _lacking(hooks)
    if target.zookeeper is None:
        return "the cluster has no ZooKeeper, or its address is not told: --zookeeper or the context's"
    servers: Sequence[Address] = parse_zookeeper(target.zookeeper).servers
    try:
        found = read_ensemble(servers, _ASK_S, target.zookeeper_security)
    except ConnectionFailed:
        pass  # the plan refuses it, and tells why
    else:
        if found.warning is not None:  # those would go on
            return found.warning
        servers = found.addresses
    check_servers(hooks.zookeeper, servers)
    return HookZookeepers(hooks, target.zookeeper_security, tuple(map(str, servers)))


def _lacking(hooks: Hooks) -> str:
    return f"{hooks.source} has no commands for ZooKeeper (zookeeper: with kill and start)"
