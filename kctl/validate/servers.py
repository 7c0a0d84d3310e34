"""Kill and start the servers that hold a cluster's metadata: ZooKeeper servers, or dedicated KRaft controllers.

By signals if kctl set the cluster up; ZooKeeper servers also by the commands in hooks.yaml.
"""

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
from kctl.errors import ConnectionFailed, KctlError, Reason, Refused, TimedOut
from kctl.protocol.security import Security
from kctl.protocol.target import Target
from kctl.restart.control import Act
from kctl.restart.control_hooks import run_command
from kctl.restart.hooks import Hooks, ZookeeperHooks, check_servers
from kctl.zookeeper.ensemble import read_ensemble
from kctl.zookeeper.servers import read_each

_READ_S = 3.0
_RETRY_S = 0.5
_GRACE_S = 15.0  # a command that hangs is terminated, then killed


class ServerControl(Protocol):
    """The control of the servers that hold the metadata.

    Methods raise Refused before any change, and TimedOut or OperationFailed after a change.
    """

    names: tuple[str, ...]

    def kill(self, names: Sequence[str]) -> None:
        """Kill these servers with SIGKILL."""

    def start(self, names: Sequence[str], *, timeout_s: float) -> None:
        """Start these servers together and wait until they serve. Do nothing for running servers."""

    def serving(self) -> list[str]:
        """Return the servers that serve requests now."""


@dataclass
class LocalServers:
    """The ZooKeeper servers or dedicated controllers of a cluster that kctl set up. names: of the nodes."""

    spec: ClusterSpec
    names: tuple[str, ...]

    def kill(self, names: Sequence[str]) -> None:
        host = LocalHost()
        for name in names:
            lifecycle.inflict_fault(self.spec.name, faults.choose(host, self.spec, name), "kill", host=host)

    def start(self, names: Sequence[str], *, timeout_s: float) -> None:
        if others := sorted(set(names) - set(self.names)):
            raise Refused(
                f"{', '.join(others)} was killed by hooks; use the same --hooks to start it",
                reason=Reason.NOT_READY,
            )
        lifecycle.start_cluster(self.spec.name, nodes=names, timeout_s=timeout_s)

    def serving(self) -> list[str]:
        running = lifecycle.running_nodes(self.spec)
        return [name for name in self.names if name in running]


@dataclass
class HookZookeepers:
    """ZooKeeper servers controlled by hooks. names: host:port; empty if used only to start servers from a journal."""

    hooks: Hooks
    security: Security
    names: tuple[str, ...] = ()
    run: Callable[..., None] = run_command

    def kill(self, names: Sequence[str]) -> None:
        self._act("kill", names)

    def start(self, names: Sequence[str], *, timeout_s: float) -> None:
        if others := sorted(name for name in names if ":" not in name):
            raise Refused(
                f"{', '.join(others)} was killed by a signal; omit --hooks to start it", reason=Reason.NOT_READY
            )
        deadline = Deadline(timeout_s)
        self._act("start", names, timeout_s)
        while silent := sorted(set(names) - set(self._serving(names))):
            if deadline.expired:
                raise TimedOut(
                    f"ZooKeeper {', '.join(silent)} did not serve within {timeout_s:g} s of its start",
                    hint="check each server with `kctl zk stat`",
                )
            time.sleep(_RETRY_S)

    def serving(self) -> list[str]:
        return self._serving(self.names)

    def _serving(self, names: Collection[str]) -> list[str]:
        servers = read_each([parse_address(name) for name in names], Deadline(_READ_S), self.security)
        return [each.server for each in servers if each.healthy]

    def _act(self, act: Act, names: Sequence[str], timeout_s: float | None = None) -> None:
        """Run all commands in parallel, because a start may wait until the ensemble serves. Raises the first error."""
        if self.hooks.zookeeper is None:
            raise Refused(
                _no_commands(self.hooks), hint="add `zookeeper: {kill: [...], start: [...]}`", reason=Reason.IMPOSSIBLE
            )
        limit_s = min(self.hooks.timeout_s, timeout_s or self.hooks.timeout_s)
        tasks = {name: partial(self._command, self.hooks.zookeeper, act, name, limit_s) for name in names}
        outcomes = run_all(tasks, Deadline(limit_s + _GRACE_S))
        for name in names:
            if isinstance(
                failure := outcomes.get(name, TimedOut(f"the command to {act} {name} did not return")), KctlError
            ):
                raise failure

    def _command(self, commands: ZookeeperHooks, act: Act, name: str, limit_s: float) -> None:
        argv, limit_setting = commands.argv(act, parse_address(name)), f"`timeout` in {self.hooks.source}"
        self.run(
            argv,
            f"{act} ZooKeeper {name}",
            limit_s,
            limit_setting=limit_setting,
            details={"zookeeper": name, "act": act},
        )


def by_hooks(hooks: Hooks, target: Target) -> HookZookeepers | str:
    """Return the control of all servers of the target's ensemble, or the reason why there is none.

    Raises NotFound for an unknown command or server, and Refused for a server without a command.
    """
    if hooks.zookeeper is None:
        return _no_commands(hooks)
    if target.zookeeper is None:
        return "the cluster has no ZooKeeper, or its address is unknown (set --zookeeper, or zookeeper in the context)"
    servers: Sequence[Address] = parse_zookeeper(target.zookeeper).servers
    try:
        ensemble = read_ensemble(servers, _READ_S, target.zookeeper_security)
    except ConnectionFailed:
        pass  # the plan reports it
    else:
        if ensemble.warning is not None:  # other servers would keep running
            return ensemble.warning
        servers = ensemble.addresses
    check_servers(hooks.zookeeper, servers)
    return HookZookeepers(hooks, target.zookeeper_security, tuple(map(str, servers)))


def _no_commands(hooks: Hooks) -> str:
    return f"{hooks.source} has no ZooKeeper commands (zookeeper: with kill and start)"
