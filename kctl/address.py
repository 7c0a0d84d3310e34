"""Host names, ports and chroots as they are written on command lines and in files."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import NamedTuple

from kctl.errors import UsageError

DEFAULT_BROKER_PORT = 9092
DEFAULT_ZOOKEEPER_PORT = 2181
MAX_SERVERS = 1000

# RFC 1123 labels; underscores too, which container networks have.
_LABEL = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)")
_PORT = re.compile(r"[0-9]{1,5}")


class Address(NamedTuple):
    """A host (name or IP address, without brackets) and a port. `str()` puts IPv6 in brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class ZooKeeperPath(NamedTuple):
    """A ZooKeeper connect string taken apart. chroot is empty or begins with a slash."""

    servers: tuple[Address, ...]
    chroot: str

    def __str__(self) -> str:
        return ",".join(map(str, self.servers)) + self.chroot


def parse_address(text: str, *, default_port: int = DEFAULT_BROKER_PORT) -> Address:
    """«host», «host:port», «[::1]:port» or «listener://host:port». Raises UsageError."""
    rest = text.strip()
    if "://" in rest:  # advertised.listeners are often pasted
        rest = rest.split("://", 1)[1]
    host, port = _split(rest, text)
    _check_host(host, text)
    return Address(host, _port(port, text) if port is not None else default_port)


def _split(rest: str, text: str) -> tuple[str, str | None]:
    if rest.startswith("["):
        host, bracket, tail = rest[1:].partition("]")
        if not bracket or (tail and not tail.startswith(":")):
            raise UsageError(f"{text!r} is not a server", hint="write an IPv6 address as [::1]:9092")
        if ":" not in host:
            raise UsageError(f"{text!r} is not a server", hint="brackets are for IPv6 addresses")
        return host, tail[1:] if tail else None
    if rest.count(":") > 1:
        raise UsageError(f"{text!r} is not a server", hint="write an IPv6 address as [::1]:9092")
    host, colon, port = rest.partition(":")
    return host, port if colon else None


def _port(port: str, text: str) -> int:
    if not _PORT.fullmatch(port) or not 1 <= int(port) <= 65535:
        raise UsageError(f"{port!r} in {text!r} is not a port", hint="a port is a number from 1 to 65535")
    return int(port)


def _check_host(host: str, text: str) -> None:
    if ":" in host or re.fullmatch(r"[0-9.]+", host):
        try:
            ipaddress.ip_address(host.split("%", 1)[0])
        except ValueError:
            raise UsageError(f"{host!r} in {text!r} is not an IP address") from None
        return
    labels = host.removesuffix(".").split(".")
    if not host or len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise UsageError(f"{text!r} is not a server", hint="write host:port, for example kafka1.example.com:9092")


def parse_servers(text: str) -> tuple[str, ...]:
    """«host:port,host:port» as the servers' normal form, duplicates dropped. Raises UsageError."""
    parts = [part for part in text.split(",") if part.strip()]
    if not parts:
        raise UsageError("no bootstrap server was given", hint="write host:port, for example 127.0.0.1:9092")
    if len(parts) > MAX_SERVERS:
        raise UsageError(f"{len(parts)} bootstrap servers are more than {MAX_SERVERS}")
    return tuple(dict.fromkeys(str(parse_address(part)) for part in parts))


def parse_zookeeper(text: str) -> ZooKeeperPath:
    """«host:port,host:port/chroot». Raises UsageError."""
    servers, slash, path = text.strip().partition("/")
    parts = [part for part in servers.split(",") if part.strip()]
    if not parts:
        raise UsageError(f"{text!r} names no ZooKeeper server", hint="write host:port/chroot")
    chroot = "/" + path.strip("/") if slash and path.strip("/") else ""
    if any(part in {"", ".", ".."} for part in chroot.split("/")[1:]) or re.search(r"[\x00-\x20\x7f-\x9f,]", chroot):
        raise UsageError(f"the chroot {chroot!r} is not a ZooKeeper path", hint="write host:port/chroot")
    addresses = tuple(parse_address(part, default_port=DEFAULT_ZOOKEEPER_PORT) for part in parts[:MAX_SERVERS])
    return ZooKeeperPath(addresses, chroot)


def same_servers(left: Iterable[str], right: Iterable[str]) -> bool:
    """Whether two lists of servers name one cluster: the same servers in any order, or some of the other list's.

    Compared as they are written; only the names of loopback are one. A client needs but one server of a list.
    """
    some, others = ({spelled_alike(server) for server in servers} for servers in (left, right))
    return bool(some and others) and (some <= others or others <= some)


def spelled_alike(server: str) -> str:
    """«host:port» in one spelling: lower case, no trailing dot, and loopback as 127.0.0.1."""
    host, port = parse_address(server)
    host = host.lower().removesuffix(".")
    return str(Address("127.0.0.1" if host in {"localhost", "::1"} or host.startswith("127.") else host, port))
