"""Detect contradictory listeners as a broker does at startup (kafka.server.KafkaConfig, CoreUtils)."""

from __future__ import annotations

from collections.abc import Iterator

from kctl.doctor.listeners import (
    PROTOCOL_MAP,
    PROTOCOLS,
    client_listeners,
    is_wildcard,
    listeners_of,
    parse_listener,
    protocol_of,
    shared_ports,
)
from kctl.doctor.releases import Release
from kctl.doctor.rule_facts import EffectiveSettings

_ONE_OF_EACH_FAMILY: Release = (3, 6)  # KIP-797, measured
_CONTROLLERS_ADVERTISED: Release = (3, 9)  # KIP-853
_NO_EMPTY_ITEMS: Release = (4, 2)  # measured
_LISTS = ("listeners", "advertised.listeners")


def listener_problems(settings: EffectiveSettings) -> Iterator[str]:
    """Yield a message for each problem with the listeners in a file. Pure."""
    yield from _protocol_map(settings)
    for name in _LISTS:
        yield from _one_list(settings, name)
    yield from shared_ports(listeners_of(settings), one_of_each_family=_may_be(settings, _ONE_OF_EACH_FAMILY))
    yield from _advertised(settings)
    yield from _between_brokers(settings)
    if settings.items("process.roles") and not settings.is_hidden("listeners"):
        yield from _of_controllers(settings)


def _may_be(settings: EffectiveSettings, release: Release) -> bool:
    """Return True if the broker may have this release or a later one."""
    releases = settings.releases
    return releases is None or releases.highest is None or releases.highest >= release


def _controllers(settings: EffectiveSettings) -> set[str]:
    return {name.upper() for name in settings.items("controller.listener.names")}


def _protocol_map(settings: EffectiveSettings) -> Iterator[str]:
    for item in settings.items(PROTOCOL_MAP):
        name, colon, protocol = item.partition(":")
        if not colon or not name.strip():
            yield f"{PROTOCOL_MAP}: {item!r} is not LISTENER:PROTOCOL"
        elif protocol.strip().upper() not in PROTOCOLS:
            yield f"{PROTOCOL_MAP}: {protocol.strip()!r} is not a security protocol ({', '.join(PROTOCOLS)})"


def _one_list(settings: EffectiveSettings, name: str) -> Iterator[str]:
    for text in settings.items(name):
        if parse_listener(text) is None:
            separator = " or ".join(repr(each) for each in "; " if each in text)
            hint = f" (listeners are separated by commas, not by {separator})" if "://" in text and separator else ""
            yield f"{name}: {text!r} is not a listener, NAME://HOST:PORT{hint}"
    value = settings.text(name)
    newer = settings.releases is not None and settings.releases.lowest >= _NO_EMPTY_ITEMS
    if value and newer and any(not item.strip() for item in value.split(",")):
        yield f"{name}: empty item; remove the extra comma"
    listeners = listeners_of(settings, name)
    names = [each.name for each in listeners]
    yield from (f"{name}: {each} is listed twice" for each in sorted({n for n in names if names.count(n) > 1}))
    if settings.is_hidden(PROTOCOL_MAP):
        return
    for each in listeners:
        if protocol_of(settings, each.name) is None:
            yield f"{name}: {PROTOCOL_MAP} has no protocol for {each.name}"


def _advertised(settings: EffectiveSettings) -> Iterator[str]:
    bound = {each.name: each for each in listeners_of(settings)}
    controllers = _controllers(settings)
    advertised = listeners_of(settings, "advertised.listeners")
    if not settings.is_hidden("listeners"):
        unbound = [each.name for each in advertised if each.name not in bound and each.name not in controllers]
        yield from (f"advertised.listeners: {name} is not in listeners" for name in unbound)
    if not _may_be(settings, _CONTROLLERS_ADVERTISED):
        of_controllers = [each.name for each in advertised if each.name in controllers]
        yield from (f"advertised.listeners: {name} is a controller listener" for name in of_controllers)
    wildcards = [each for each in advertised if is_wildcard(each.host)]
    yield from (f"advertised.listeners: clients cannot use the address {each}" for each in wildcards)
    if not advertised and not settings.is_hidden("advertised.listeners"):
        yield from (
            f"listeners: {each} is advertised unchanged, and clients cannot use this address"
            for each in bound.values()
            if is_wildcard(each.host) and each.name not in controllers
        )


def _between_brokers(settings: EffectiveSettings) -> Iterator[str]:
    name = settings.text("inter.broker.listener.name")
    names = {each.name for each in client_listeners(settings)}
    if name and "security.inter.broker.protocol" in settings.explicit:
        yield "inter.broker.listener.name and security.inter.broker.protocol: only one of them may be set"
    hidden = any(
        settings.is_hidden(each) for each in (*_LISTS, "inter.broker.listener.name", "security.inter.broker.protocol")
    )
    if settings.items("process.roles") == ["controller"] or (hidden and not names):
        return
    if name:
        if name.upper() not in names:
            yield f"inter.broker.listener.name={name} is not in listeners"
        return
    protocol = settings.text("security.inter.broker.protocol") or "PLAINTEXT"
    bound = {each.name for each in listeners_of(settings)}
    if not hidden and names and names <= bound and protocol.upper() not in names:
        yield (
            f"inter.broker.listener.name is not set, so brokers connect to each other with {protocol}, "
            "but no listener has that name"
        )


def _of_controllers(settings: EffectiveSettings) -> Iterator[str]:
    """Yield problems with controller and broker listeners in KRaft mode."""
    roles, controllers = settings.items("process.roles"), _controllers(settings)
    if settings.is_hidden("controller.listener.names"):
        return
    bound = {each.name for each in listeners_of(settings)}
    if "controller" in roles:
        for name in sorted(controllers - bound) if controllers & bound else ():
            yield f"controller.listener.names: {name} is not in listeners"
    others = sorted(bound - controllers)
    if roles == ["controller"] and controllers and others:
        names = ", ".join(others)
        yield f"listeners contains {names}, which controller.listener.names lacks; this node is not a broker"
    if "broker" in roles and "listeners" in settings.explicit and not client_listeners(settings):
        yield "listeners contains only controller listeners, none for clients and other brokers"
    if not settings.is_hidden(PROTOCOL_MAP):
        for name in sorted(controllers - bound):
            if protocol_of(settings, name) is None:
                yield f"controller.listener.names: {PROTOCOL_MAP} has no protocol for {name}"
