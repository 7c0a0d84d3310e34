"""Parse listeners in broker settings, as kafka.server.KafkaConfig and EndPoint do."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from typing import NamedTuple

from kctl.doctor.rule_facts import EffectiveSettings

_LISTENER = re.compile(r"([^:]+)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")  # org.apache.kafka.common.utils.Utils
PROTOCOL_MAP = "listener.security.protocol.map"
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class Listener(NamedTuple):
    """An entry of listeners or advertised.listeners. host: empty for all addresses."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.name}://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


def parse_listener(text: str) -> Listener | None:
    """Parse "PLAINTEXT://host:9092". Return None for text that a broker refuses. Pure."""
    match = _LISTENER.fullmatch(text)
    if match is None or len(match[3]) > 6 or int(match[3]) > 65535:
        return None
    return Listener(match[1].upper(), match[2], int(match[3]))


def listeners_of(settings: EffectiveSettings, name: str = "listeners") -> list[Listener]:
    """Return the listeners of a setting. Invalid entries are skipped."""
    return [listener for text in settings.items(name) if (listener := parse_listener(text))]


def client_listeners(settings: EffectiveSettings) -> list[Listener]:
    """Return the addresses that clients and other brokers connect to.

    These are the advertised listeners, or else the listeners, without controller listeners.
    """
    controllers = {name.upper() for name in settings.items("controller.listener.names")}
    listeners = listeners_of(settings, "advertised.listeners") or listeners_of(settings)
    return [each for each in listeners if each.name not in controllers]


def protocol_of(settings: EffectiveSettings, listener: str) -> str | None:
    """Return the security protocol of a listener; None if the map lacks the listener or is not disclosed."""
    pairs = (item.partition(":") for item in settings.items(PROTOCOL_MAP))
    protocols = {name.strip().upper(): protocol.strip().upper() for name, _, protocol in pairs}
    if listener not in protocols and listener in _implicit_plaintext_controllers(settings):
        return "PLAINTEXT"
    return protocols.get(listener, listener if listener in PROTOCOLS and not protocols else None)


def _implicit_plaintext_controllers(settings: EffectiveSettings) -> set[str]:
    """Return the controller listeners that are PLAINTEXT although they are not in the protocol map.

    This applies to KRaft without a map, unless a listener is named after a protocol other than PLAINTEXT
    (kafka.server.KafkaConfig.effectiveListenerSecurityProtocolMap).
    """
    if PROTOCOL_MAP in settings.explicit or not settings.items("process.roles"):
        return set()
    controllers = {name.upper() for name in settings.items("controller.listener.names")}
    names = controllers | {each.name for each in listeners_of(settings)}
    return set() if names & (set(PROTOCOLS) - {"PLAINTEXT"}) else controllers


def is_wildcard(host: str) -> bool:
    """Return True for "0.0.0.0" and "::": they bind to all addresses, and no client can connect to them."""
    return host in {"0.0.0.0", "::"} or bool(re.fullmatch(r"0*(:0*){2,7}", host))  # noqa: S104 - nothing is bound


def is_loopback(host: str) -> bool:
    """Return True if the host is reachable only from the machine itself."""
    if host.lower() in {"localhost", "localhost.localdomain"}:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def shared_ports(listeners: Sequence[Listener], *, one_of_each_family: bool) -> list[str]:
    """Return a line for each port that two listeners share; the broker does not start with it. Pure.

    one_of_each_family: since KIP-797 two listeners may share a port if one has an IPv4 and the other an IPv6 address
    (SocketServerConfigs.listenerListToEndPoints). A wildcard address still takes the port for both families.
    """
    by_port: dict[int, list[Listener]] = {}
    for each in listeners:
        if each.port > 0:
            by_port.setdefault(each.port, []).append(each)
    lines = []
    for same_port in by_port.values():
        if len(same_port) < 2:
            continue
        names = ", ".join(map(str, same_port))
        families = [_family(each.host) for each in same_port]
        if not one_of_each_family or sorted(map(str, families)) != ["4", "6"]:
            allowed = "; only one IPv4 and one IPv6 address may share a port" if one_of_each_family else ""
            lines.append(f"listeners: {names} are on the same port{allowed}")
        elif any(is_wildcard(each.host) for each in same_port):
            lines.append(f"listeners: {names} are on the same port, and a wildcard address uses it for IPv4 and IPv6")
    return lines


def _family(host: str) -> int | None:
    """Return 4 or 6; None for a host name or an empty host."""
    try:
        return ipaddress.ip_address(host).version
    except ValueError:
        return None


def open_listeners(settings: EffectiveSettings, *protocols: str) -> list[Listener]:
    """Return the client listeners of these protocols that are not bound to loopback.

    advertised.listeners does not matter here: it does not restrict the addresses that a broker accepts connections on.
    """
    controllers = {name.upper() for name in settings.items("controller.listener.names")}
    return [
        each
        for each in listeners_of(settings)
        if each.name not in controllers and protocol_of(settings, each.name) in protocols and not is_loopback(each.host)
    ]
