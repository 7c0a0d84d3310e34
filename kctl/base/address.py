"""Host names, ports and chroots on command lines and in files."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import NamedTuple

from kctl.errors import UsageError

DEFAULT_BROKER_PORT = 9092
DEFAULT_ZOOKEEPER_PORT = 2181
MAX_SERVERS = 1000

# RFC 1123 labels, plus underscores, which container networks use.
_LABEL = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)")
_PORT = re.compile(r"[0-9]{1,5}")
_OTHER_SEPARATORS = re.compile(r"[;|\s]+")


class Address(NamedTuple):
    """A host (name or IP address, without brackets) and a port. `str()` puts IPv6 in brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class ZooKeeperPath(NamedTuple):
    """A parsed ZooKeeper connect string. chroot: empty, or begins with a slash."""

    servers: tuple[Address, ...]
    chroot: str

    def __str__(self) -> str:
        return ",".join(map(str, self.servers)) + self.chroot


def parse_address(text: str, *, default_port: int = DEFAULT_BROKER_PORT) -> Address:
    """Parse "host", "host:port", "[::1]:port" or "listener://host:port". Raises UsageError."""
    rest = text.strip()
    if "://" in rest:  # users often paste advertised.listeners
        rest = rest.split("://", 1)[1]
    if len(parts := _OTHER_SEPARATORS.split(rest)) > 1:
        raise UsageError(f"{text!r} is not a server", hint=f"separate servers by commas: {','.join(parts)}")
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
    """Parse "host:port,host:port" into normalized servers without duplicates. Raises UsageError."""
    parts = [part for part in text.split(",") if part.strip()]
    if not parts:
        raise UsageError("the list of bootstrap servers is empty", hint="use host:port, e.g. 127.0.0.1:9092")
    if len(parts) > MAX_SERVERS:
        raise UsageError(f"{len(parts)} bootstrap servers exceed the maximum of {MAX_SERVERS}")
    return tuple(dict.fromkeys(str(parse_address(part)) for part in parts))


def parse_zookeeper(text: str) -> ZooKeeperPath:
    """Parse "host:port,host:port/chroot". Raises UsageError, with the right form as a hint if it is known."""
    problem = zookeeper_problem(text)
    if problem is not None:
        raise UsageError(f"{text!r} is not a ZooKeeper address: {problem.what}", hint=problem.hint)
    servers, slash, path = text.strip().partition("/")
    parts = [part for part in servers.split(",") if part.strip()]
    chroot = "/" + path.strip("/") if slash and path.strip("/") else ""
    addresses = tuple(_zookeeper_server(part) for part in parts[:MAX_SERVERS])
    return ZooKeeperPath(addresses, chroot)


def same_servers(first: Iterable[str], second: Iterable[str]) -> bool:
    """Return True if two lists name the same cluster: one is a subset of the other, in any order.

    Names are compared as text, except that loopback names are equal. A client needs only one server of a list.
    """
    some, others = ({spelled_alike(server) for server in servers} for servers in (first, second))
    return bool(some and others) and (some <= others or others <= some)


def spelled_alike(server: str) -> str:
    """Return "host:port" in one spelling: lower case, no trailing dot, and loopback as 127.0.0.1."""
    host, port = parse_address(server)
    host = host.lower().removesuffix(".")
    return str(Address("127.0.0.1" if host in {"localhost", "::1"} or host.startswith("127.") else host, port))


class AddressProblem(NamedTuple):
    """A problem with an address, and a hint with the right form."""

    what: str
    hint: str


_ZOOKEEPER_FORM = "write HOST:PORT,HOST:PORT/CHROOT, for example zk1:2181,zk2:2181/kafka"
_NOT_IN_CHROOTS = re.compile(r"[\x00-\x20\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff]")


def zookeeper_problem(text: str) -> AddressProblem | None:
    """Return the problem with a ZooKeeper connect string; None if it is valid. Pure.

    Stricter than ZooKeeper's ConnectStringParser, which accepts anything after the first slash as the chroot, and
    blanks and semicolons in host names.
    """
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return AddressProblem("it is in quotes", f"remove the quotes: {text[1:-1]}")
    scheme, separator, rest = text.partition("://")
    if separator and re.fullmatch(r"[A-Za-z+.-]+", scheme):
        return AddressProblem(f"it begins with {scheme}://", f"remove the scheme: {rest}")
    if re.search(r"/[^,;|:]*\s[^,;|:]*$", text):
        return AddressProblem("the chroot contains a blank", _ZOOKEEPER_FORM)
    parts = [part for part in re.split(r"\s*[,;|\s]\s*", text) if part]
    servers = [server for server, _, _ in (part.partition("/") for part in parts) if server]
    chroots = list(dict.fromkeys(path.strip("/") for part in parts if (path := part.partition("/")[2]).strip("/")))
    if not servers:
        return AddressProblem("it names no server", _ZOOKEEPER_FORM)
    whole = ",".join(servers) + (f"/{chroots[0]}" if len(chroots) == 1 else "")
    before_last = [part for part in parts[:-1] if "/" in part]
    if len(chroots) > 1:
        return AddressProblem(
            f"it has several chroots ({', '.join('/' + each for each in chroots)})",
            f"write one chroot, after the last server: {','.join(servers)}/CHROOT",
        )
    if before_last:
        return AddressProblem("the chroot must come once, after the last server", f"write {whole}")
    if re.search(r"[;|]|[^,\s]\s+[^,\s/]", text):
        return AddressProblem("servers must be separated by commas", f"write {whole}")
    return _server_problem(servers) or _chroot_problem(chroots[0] if chroots else "", whole)


def _server_problem(servers: list[str]) -> AddressProblem | None:
    for server in servers:
        try:
            _zookeeper_server(server)
        except UsageError as exc:
            return AddressProblem(exc.message, (exc.hint or _ZOOKEEPER_FORM).replace("9092", "2181"))
    return None


def _chroot_problem(chroot: str, whole: str) -> AddressProblem | None:
    parts = chroot.split("/") if chroot else []
    if "" in parts:
        return AddressProblem("the chroot has an empty part", f"write {re.sub('/+', '/', whole)}")
    if {".", ".."} & set(parts) or _NOT_IN_CHROOTS.search(chroot):
        return AddressProblem(f"the chroot {'/' + chroot!r} is not a path in ZooKeeper", _ZOOKEEPER_FORM)
    return None


def _zookeeper_server(text: str) -> Address:
    return parse_address(text, default_port=DEFAULT_ZOOKEEPER_PORT)
