"""Read the state of each ZooKeeper server with the four-letter words srvr and, if allowed, mntr."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from kctl.base.address import Address
from kctl.base.deadline import Deadline
from kctl.base.parallel import run_all
from kctl.errors import ConnectionTimedOut, KctlError
from kctl.protocol.security import Security
from kctl.zookeeper.reach import FourLetterWords

_LATENCY = re.compile(r"Latency min/avg/max: ([\d.]+)/([\d.]+)/([\d.]+)")
_LINE = re.compile(r"^([A-Z][A-Za-z ]+): (\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Server:
    """The state of a ZooKeeper server.

    healthy: the server is serving. mode: leader, follower, observer or standalone; None if unknown. problem: why the
    server is not healthy. uptime_ms to synced_followers come from mntr: None if 4lw.commands.whitelist lacks it.
    """

    server: str
    healthy: bool
    mode: str | None = None
    version: str | None = None
    latency_min_ms: float | None = None
    latency_avg_ms: float | None = None
    latency_max_ms: float | None = None
    connections: int | None = None
    outstanding: int | None = None
    zxid: str | None = None
    nodes: int | None = None
    uptime_ms: int | None = None
    watches: int | None = None
    data_bytes: int | None = None
    open_files: int | None = None
    synced_followers: int | None = None
    problem: str | None = None


def read_servers(servers: Sequence[Address], deadline: Deadline, security: Security) -> list[Server]:
    """Read the state of each server, concurrently. Raises the error of the first server if none responds."""
    outcomes = _outcomes(servers, deadline, security)
    first = outcomes[0] if outcomes else None
    if isinstance(first, KctlError) and all(isinstance(each, KctlError) for each in outcomes):
        raise first
    return _states(servers, outcomes)


def read_each(servers: Sequence[Address], deadline: Deadline, security: Security) -> list[Server]:
    """Read the state of each server like read_servers, but do not raise if none responds."""
    return _states(servers, _outcomes(servers, deadline, security))


def _outcomes(servers: Sequence[Address], deadline: Deadline, security: Security) -> list[Server | KctlError]:
    words = FourLetterWords(security)
    outcomes = run_all({server: partial(_read, words, server, deadline) for server in servers}, deadline)
    return [outcomes.get(server, ConnectionTimedOut(f"{server} did not respond in time")) for server in servers]


def _states(servers: Sequence[Address], outcomes: Sequence[Server | KctlError]) -> list[Server]:
    return [
        Server(str(server), healthy=False, problem=outcome.message) if isinstance(outcome, KctlError) else outcome
        for server, outcome in zip(servers, outcomes, strict=True)
    ]


def _read(words: FourLetterWords, server: Address, deadline: Deadline) -> Server:
    state = parse_srvr(str(server), words.query_srvr(server, deadline))
    if not state.healthy:
        return state
    try:
        monitor = words.send(server, b"mntr", deadline)
    except OSError:  # srvr has the essential state
        return state
    return with_monitor(state, parse_mntr(monitor.decode("utf-8", "replace")))


def parse_srvr(name: str, srvr: str) -> Server:
    """Parse the response to srvr. Pure."""
    if "not in the whitelist" in srvr or srvr.startswith("srvr is not executed"):
        problem = "its state is unknown: srvr is not on its 4lw.commands.whitelist"
        return Server(name, healthy=False, problem=problem)
    if srvr.startswith("This ZooKeeper instance"):
        return Server(name, healthy=False, problem="it is not serving clients: it has no quorum")
    lines = dict(_LINE.findall(srvr))
    latency = _LATENCY.search(srvr)
    low, mean, high = (float(each) for each in latency.groups()) if latency else (None, None, None)
    version = re.match(r"Zookeeper version: ([^-,\s]+)", srvr)
    mode = lines.get("Mode")
    return Server(
        name,
        healthy=mode is not None,
        mode=mode,
        version=version.group(1) if version else None,
        latency_min_ms=low,
        latency_avg_ms=mean,
        latency_max_ms=high,
        connections=_number(lines.get("Connections")),
        outstanding=_number(lines.get("Outstanding")),
        zxid=lines.get("Zxid"),
        nodes=_number(lines.get("Node count")),
        problem=None if mode else "its response to srvr has no mode",
    )


def parse_mntr(mntr: str) -> dict[str, str]:
    """Parse the response to mntr; empty if the command is not allowed. Pure."""
    rows = (line.split("\t", 1) for line in mntr.splitlines() if line.startswith("zk_"))
    return {row[0]: row[1].strip() for row in rows if len(row) == 2}


def with_monitor(server: Server, values: Mapping[str, str]) -> Server:
    """Return the server state with the values that only mntr reports. Pure."""
    if not values:
        return server
    return replace(
        server,
        uptime_ms=_number(values.get("zk_uptime")),
        watches=_number(values.get("zk_watch_count")),
        data_bytes=_number(values.get("zk_approximate_data_size")),
        open_files=_number(values.get("zk_open_file_descriptor_count")),
        synced_followers=_number(values.get("zk_synced_followers")),
    )


def _number(text: str | None) -> int | None:
    try:
        return None if text is None else int(float(text))
    except (ValueError, OverflowError):
        return None


def problems(servers: Sequence[Server]) -> list[str]:
    """Return a line for each problem of an ensemble. Pure."""
    unhealthy = [(each.server, each.problem) for each in servers if each.problem]
    lines = [problem if server in problem else f"{server}: {problem}" for server, problem in unhealthy]
    leaders = [each.server for each in servers if each.mode == "leader"]
    followers = [each for each in servers if each.mode in ("follower", "observer")]
    if len(leaders) > 1:
        lines.append(f"{' and '.join(leaders)} are leaders: the servers belong to several ensembles")
    if followers and not leaders and all(each.mode for each in servers):
        lines.append("none of the servers is the leader: the ensemble has more servers than listed")
    if len(servers) > 1 and any(each.mode == "standalone" for each in servers):
        lines.append("a standalone server is listed with others: the servers belong to several ensembles")
    return lines
