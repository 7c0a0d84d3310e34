"""The servers of an ensemble, each asked by itself what it is and does (`srvr`, and `mntr` where it is allowed)."""

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
from kctl.zookeeper.reach import Words

_LATENCY = re.compile(r"Latency min/avg/max: ([\d.]+)/([\d.]+)/([\d.]+)")
_LINE = re.compile(r"^([A-Z][A-Za-z ]+): (\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Server:
    """One server. mode: leader, follower, observer, standalone; None when it does not tell. problem: why not.

    healthy: it serves. The last five are of `mntr` and None where that is not on 4lw.commands.whitelist.
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
    """Each server's state, all asked at once. Raises the first one's error when none answers."""
    outcomes = _outcomes(servers, deadline, security)
    first = outcomes[0] if outcomes else None
    if isinstance(first, KctlError) and all(isinstance(each, KctlError) for each in outcomes):
        raise first
    return _states(servers, outcomes)


def ask_each(servers: Sequence[Address], deadline: Deadline, security: Security) -> list[Server]:
    """The same, and none of them has to answer."""
    return _states(servers, _outcomes(servers, deadline, security))


def _outcomes(servers: Sequence[Address], deadline: Deadline, security: Security) -> list[Server | KctlError]:
    words = Words(security)
    found = run_all({server: partial(_ask, words, server, deadline) for server in servers}, deadline)
    return [found.get(server, ConnectionTimedOut(f"{server} did not answer in time")) for server in servers]


def _states(servers: Sequence[Address], outcomes: Sequence[Server | KctlError]) -> list[Server]:
    return [
        Server(str(server), healthy=False, problem=outcome.message) if isinstance(outcome, KctlError) else outcome
        for server, outcome in zip(servers, outcomes, strict=True)
    ]


def _ask(words: Words, server: Address, deadline: Deadline) -> Server:
    found = server_of(str(server), words.say_srvr(server, deadline))
    if not found.healthy:
        return found
    try:
        more = words.say(server, b"mntr", deadline)
    except OSError:  # it has told what matters
        return found
    return with_monitor(found, monitor_of(more.decode("utf-8", "replace")))


def server_of(name: str, srvr: str) -> Server:
    """A server by its answer to `srvr`. Pure."""
    if "not in the whitelist" in srvr or srvr.startswith("srvr is not executed"):
        problem = "it does not tell: srvr is not on its 4lw.commands.whitelist"
        return Server(name, healthy=False, problem=problem)
    if srvr.startswith("This ZooKeeper instance"):
        return Server(name, healthy=False, problem="it serves nobody: it has no quorum")
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
        problem=None if mode else "its answer to srvr has no mode",
    )


def monitor_of(mntr: str) -> dict[str, str]:
    """The names and values of an answer to `mntr`; none when it is not allowed. Pure."""
    rows = (line.split("\t", 1) for line in mntr.splitlines() if line.startswith("zk_"))
    return {row[0]: row[1].strip() for row in rows if len(row) == 2}


def with_monitor(server: Server, values: Mapping[str, str]) -> Server:
    """The server with what only `mntr` tells. Pure."""
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
    """What is not as it should be in an ensemble, a line each. Pure."""
    told = [(each.server, each.problem) for each in servers if each.problem]
    found = [problem if server in problem else f"{server}: {problem}" for server, problem in told]
    leaders = [each.server for each in servers if each.mode == "leader"]
    followers = [each for each in servers if each.mode in ("follower", "observer")]
    if len(leaders) > 1:
        found.append(f"{' and '.join(leaders)} are leaders: these are several ensembles")
    if followers and not leaders and all(each.mode for each in servers):
        found.append("none of them is the leader: the ensemble has more servers than were given")
    if len(servers) > 1 and any(each.mode == "standalone" for each in servers):
        found.append("a standalone server is among several: these are several ensembles")
    return found
