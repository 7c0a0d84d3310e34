"""Listeners as brokers' settings write them (kafka.server.KafkaConfig, EndPoint)."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from typing import NamedTuple

from kctl.doctor.rule_facts import Settings

_LISTENER = re.compile(r"([^:]+)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")  # org.apache.kafka.common.utils.Utils
PROTOCOL_MAP = "listener.security.protocol.map"
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class Listener(NamedTuple):
    """One of «listeners» or «advertised.listeners». host: empty for every address."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.name}://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


def parse_listener(text: str) -> Listener | None:
    """«PLAINTEXT://host:9092»; None for what a broker would refuse. Pure."""
    match = _LISTENER.fullmatch(text)
    if match is None or len(match[3]) > 6 or int(match[3]) > 65535:
        return None
    return Listener(match[1].upper(), match[2], int(match[3]))


def listeners_of(settings: Settings, name: str = "listeners") -> list[Listener]:
    """Those that can be understood."""
    return [found for text in settings.items(name) if (found := parse_listener(text))]


def client_listeners(settings: Settings) -> list[Listener]:
    """Where clients and other brokers are to connect: what is advertised, else the listeners, without controllers'."""
    controllers = {name.upper() for name in settings.items("controller.listener.names")}
    found = listeners_of(settings, "advertised.listeners") or listeners_of(settings)
    return [each for each in found if each.name not in controllers]


def protocol_of(settings: Settings, listener: str) -> str | None:
    """The security protocol of a listener; None when the map has none, or nobody tells what it has."""
    pairs = (item.partition(":") for item in settings.items(PROTOCOL_MAP))
    known = {name.strip().upper(): protocol.strip().upper() for name, _, protocol in pairs}
    if listener not in known and listener in _open_controllers(settings):
        return "PLAINTEXT"
    return known.get(listener, listener if listener in PROTOCOLS and not known else None)


def _open_controllers(settings: Settings) -> set[str]:
    """Controllers' listeners that are PLAINTEXT without being in the map: with KRaft and no map, unless a listener is
    named after a protocol that is not (kafka.server.KafkaConfig.effectiveListenerSecurityProtocolMap)."""
    if PROTOCOL_MAP in settings.given or not settings.items("process.roles"):
        return set()
    controllers = {name.upper() for name in settings.items("controller.listener.names")}
    names = controllers | {each.name for each in listeners_of(settings)}
    return set() if names & (set(PROTOCOLS) - {"PLAINTEXT"}) else controllers


def is_wildcard(host: str) -> bool:
    """«0.0.0.0», «::»: every address, and none that a client could go to."""
    return host in {"0.0.0.0", "::"} or bool(re.fullmatch(r"0*(:0*){2,7}", host))  # noqa: S104 - nothing is bound


def is_loopback(host: str) -> bool:
    """Whether only this machine itself reaches it."""
    if host.lower() in {"localhost", "localhost.localdomain"}:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def shared_ports(listeners: Sequence[Listener], *, one_of_each_family: bool) -> list[str]:
    """Return a line for each port that two listeners share, so that the broker does not start. Pure.

    one_of_each_family: since KIP-797 two listeners may have one port where one has an IPv4 and the other an IPv6
    address (SocketServerConfigs.listenerListToEndPoints). A wildcard then still takes the port of both families.
    """
    by_port: dict[int, list[Listener]] = {}
    for each in listeners:
        if each.port > 0:
            by_port.setdefault(each.port, []).append(each)
    found = []
    for own in by_port.values():
        if len(own) < 2:
            continue
        names = ", ".join(map(str, own))
        families = [_family(each.host) for each in own]
        if not one_of_each_family or sorted(map(str, families)) != ["4", "6"]:
            allowed = "; only one IPv4 and one IPv6 address may share a port" if one_of_each_family else ""
            found.append(f"listeners: {names} are on the same port{allowed}")
        elif any(is_wildcard(each.host) for each in own):
            found.append(f"listeners: {names} are on the same port, and a wildcard address uses it for IPv4 and IPv6")
    return found


def _family(host: str) -> int | None:
    """4 or 6; None for a name, and for no host."""
    try:
        return ipaddress.ip_address(host).version
    except ValueError:
        return None


def open_listeners(settings: Settings, *protocols: str) -> list[Listener]:
    """Listeners of these protocols that are bound to addresses other than this machine's own. What is advertised is no
    filter."""
    controllers = {name.upper() for name in settings.items("controller.listener.names")}
    return [
        each
        for each in listeners_of(settings)
        if each.name not in controllers and protocol_of(settings, each.name) in protocols and not is_loopback(each.host)
    ]
