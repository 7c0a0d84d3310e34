"""hooks.yaml: the commands that stop and start brokers and ZooKeeper servers that kctl did not set up.

    stop: [ssh, "{host}", sudo, systemctl, stop, kafka]     # argv lists; no shell
    start: [ssh, "{host}", sudo, systemctl, start, kafka]
    kill: […]  pause: […]  unpause: […]                     # for kctl validate
    timeout: 2m                                             # limit for each command
    brokers:                                                # commands for single brokers
      3: {stop: […], start: […]}
    zookeeper:                                              # for kctl validate zookeeper-loss
      kill: [ssh, "{host}", sudo, systemctl, kill, -s, KILL, zookeeper]
      start: [ssh, "{host}", sudo, systemctl, start, zookeeper]
      servers:                                              # commands for single servers
        "zk3:2181": {kill: […], start: […]}

{id}, {host}, {port} and {rack} are the broker's, as clients see them; under zookeeper:, {host} and {port} are the
server's. Other braces are literal.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from kctl.base.address import DEFAULT_ZOOKEEPER_PORT, Address, parse_address
from kctl.base.strict_yaml import YamlList, YamlMap, load
from kctl.base.suggestions import did_you_mean
from kctl.base.text import printable
from kctl.base.units import parse_duration_ms
from kctl.errors import InvalidFile, NotFound, Reason, Refused, UsageError
from kctl.model import Broker
from kctl.restart.control import Act

ACTS: tuple[Act, ...] = get_args(Act)
DEFAULT_TIMEOUT_S = 120.0
MAX_BYTES = 256 << 10
_PLACEHOLDER = re.compile(r"\{([A-Za-z_]+)\}")
_NAMES = ("id", "host", "port", "rack")
ZOOKEEPER_ACTS: tuple[Act, ...] = ("kill", "start")
_SERVER_NAMES = ("host", "port")
# Values that brokers report are inserted into commands. They must not look like an option or a second word to ssh.
_SAFE = re.compile(r"[A-Za-z0-9_.:%/@+][A-Za-z0-9_.:%/@+-]*")

Commands = Mapping[Act, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class ZookeeperHooks:
    """Commands for ZooKeeper servers.

    source: the file. commands: for all servers; single: overrides for single servers by "host:port".
    """

    source: str
    commands: Commands
    single: Mapping[str, Commands]

    def argv(self, act: Act, server: Address) -> tuple[str, ...]:
        """Return the command for one server. Raises Refused if there is none."""
        template = self.single.get(str(server), {}).get(act) or self.commands.get(act)
        if template is None:
            raise Refused(
                f"{self.source} has no command to {act} ZooKeeper {server}",
                hint=f"add `{act}: [COMMAND, ARGUMENT, …]` under zookeeper:, or under zookeeper: servers: {server}:",
                reason=Reason.IMPOSSIBLE,
            )
        where = f"under zookeeper: servers: {server}:"
        return _fill(template, lambda name: _safe(getattr(server, name), name, f"ZooKeeper {server}", where))


@dataclass(frozen=True, slots=True)
class Hooks:
    """Commands for brokers.

    source: the file. commands: for all brokers; single: overrides for single brokers by id. zookeeper: None if the file
    has no commands for ZooKeeper.
    """

    source: str
    commands: Commands
    single: Mapping[int, Commands]
    timeout_s: float = DEFAULT_TIMEOUT_S
    zookeeper: ZookeeperHooks | None = None

    def template(self, act: Act, broker: int) -> tuple[str, ...] | None:
        """Return the command as written; None if there is none."""
        return self.single.get(broker, {}).get(act) or self.commands.get(act)

    def can_run(self, broker: Broker, acts: Collection[Act]) -> bool:
        """Return True if there is a command for each action, and the values that it needs are known."""
        try:
            return all(self.argv(act, broker) for act in acts)
        except Refused:
            return False

    def argv(self, act: Act, broker: Broker) -> tuple[str, ...]:
        """Return the command for a broker. Broker.host is "" if the broker is down and its address is unknown.

        Raises Refused if there is no command, or a value in the command is unknown.
        """
        template = self.template(act, broker.id)
        if template is None:
            raise Refused(
                f"{self.source} has no command to {act} broker {broker.id}",
                hint=f"add `{act}: [COMMAND, ARGUMENT, …]`, for all brokers or under brokers: {broker.id}:",
                reason=Reason.IMPOSSIBLE,
            )
        return _fill(template, lambda name: self._value(name, broker))

    def _value(self, name: str, broker: Broker) -> str:
        value = getattr(broker, name)
        if value is None or (not broker.host and name != "id"):
            why = f"has no {name}" if broker.host else "is down, so its address is unknown"
            raise Refused(
                f"{self.source} uses {{{name}}}, but broker {broker.id} {why}",
                hint=f"add commands for this broker under brokers: {broker.id}:"
                + (", or set broker.rack" if broker.host else ", or start it first"),
                reason=Reason.IMPOSSIBLE,
            )
        return _safe(value, name, f"broker {broker.id}", f"under brokers: {broker.id}:")


def _fill(template: tuple[str, ...], value: Callable[[str], str]) -> tuple[str, ...]:
    return tuple(_PLACEHOLDER.sub(lambda match: value(match[1]), word) for word in template)


def _safe(value: object, name: str, owner: str, where: str) -> str:
    text = str(value)
    if not _SAFE.fullmatch(text):
        raise Refused(
            f"{owner} reports {name} {printable(text)!r}, which is not safe in a command",
            hint=f"add commands without {{{name}}} {where}",
            reason=Reason.UNSAFE,
        )
    return text


def read_hooks(path: Path) -> Hooks:
    """Read a hooks file. Raises InvalidFile with file, line and column; NotFound."""
    from kctl.base.input_file import read_input

    data, source = read_input(path, max_bytes=MAX_BYTES)
    return parse_hooks(data, source=source)


def parse_hooks(data: bytes | str, *, source: str) -> Hooks:
    """Parse the text of a hooks file; see `read_hooks`."""
    document = load(data, source=source, max_bytes=MAX_BYTES)
    if not isinstance(document, YamlMap):
        raise InvalidFile(
            f"{source}: has no commands", hint="add for example: stop: [ssh, '{host}', systemctl, stop, kafka]"
        )
    _check_keys(document, (*ACTS, "timeout", "brokers", "zookeeper"))
    commands = _commands(document)
    timeout_s = _timeout(document) if "timeout" in document else DEFAULT_TIMEOUT_S
    brokers: dict[int, Commands] = {}
    for broker, overrides in _map(document, "brokers", "broker ids").items():
        where = document["brokers"].where(broker)
        if not isinstance(broker, int) or broker < 0:
            raise InvalidFile(f"{where}: {broker!r} is not a broker id")
        if not isinstance(overrides, YamlMap) or not overrides:
            raise InvalidFile(f"{where}: broker {broker} has no commands", hint="e.g. 3: {stop: [...]}")
        _check_keys(overrides, ACTS)
        brokers[broker] = _commands(overrides)
    zookeeper = _zookeeper(document, source) if "zookeeper" in document else None
    if not commands and not brokers and zookeeper is None:
        raise InvalidFile(f"{source}: has no commands", hint=f"supported: {', '.join(ACTS)}")
    return Hooks(source, commands, brokers, timeout_s, zookeeper)


def _zookeeper(document: YamlMap, source: str) -> ZookeeperHooks:
    section = document["zookeeper"]
    if not isinstance(section, YamlMap) or not section:
        raise InvalidFile(
            f"{document.where('zookeeper')}: zookeeper has no commands",
            hint=f"e.g. zookeeper: {{kill: [...], start: [...]}}; supported: {', '.join(ZOOKEEPER_ACTS)}",
        )
    _check_keys(section, (*ZOOKEEPER_ACTS, "servers"))
    single: dict[str, Commands] = {}
    for server, overrides in _map(section, "servers", 'servers, "host:port"').items():
        where = section["servers"].where(server)
        try:
            address = parse_address(str(server), default_port=DEFAULT_ZOOKEEPER_PORT)
        except UsageError as exc:
            raise InvalidFile(f"{where}: {exc.message}", hint="e.g. zk1.example:2181") from None
        if not isinstance(overrides, YamlMap) or not overrides:
            raise InvalidFile(f"{where}: ZooKeeper {address} has no commands", hint="write {kill: [...], start: [...]}")
        _check_keys(overrides, ZOOKEEPER_ACTS)
        single[str(address)] = _commands(overrides, _SERVER_NAMES)
    return ZookeeperHooks(source, _commands(section, _SERVER_NAMES), single)


def check_brokers(
    hooks: Hooks, brokers: Mapping[int, Broker], acts: tuple[Act, ...], *, existing: Collection[int] | None = None
) -> None:
    """Check, as far as possible on this machine, that each action has a command for each broker.

    existing: all broker ids of the cluster, if `brokers` has only some of them. Raises Refused for a missing command,
    and NotFound for a broker that only the file has or for a program that does not exist.
    """
    existing_ids = set(brokers).union(existing or ())
    unknown = sorted(hooks.single.keys() - existing_ids)
    if unknown:
        raise NotFound(
            f"{hooks.source} has commands for broker {', '.join(map(str, unknown))}, which is not in the cluster",
            hint=f"brokers of the cluster: {', '.join(map(str, sorted(existing_ids)))}",
        )
    for broker in brokers.values():
        for act in acts:
            _check_program(hooks.argv(act, broker), hooks.source)


def check_servers(hooks: ZookeeperHooks, servers: Collection[Address]) -> None:
    """Check the commands for the servers of the ensemble; see `check_brokers`."""
    unknown = sorted(hooks.single.keys() - {str(server) for server in servers})
    if unknown:
        raise NotFound(
            f"{hooks.source} has commands for ZooKeeper {', '.join(unknown)}, which is not in the ensemble",
            hint=f"servers of the ensemble: {', '.join(map(str, servers))}",
        )
    for server in servers:
        for act in ZOOKEEPER_ACTS:
            _check_program(hooks.argv(act, server), hooks.source)


def _check_program(argv: tuple[str, ...], source: str) -> None:
    if shutil.which(argv[0]) is None:
        raise NotFound(f"{source}: program {printable(argv[0])} does not exist on this machine")


def _check_keys(mapping: YamlMap, allowed: tuple[str, ...]) -> None:
    for key in mapping:
        if key not in allowed:
            hint = did_you_mean(str(key), allowed) or f"supported: {', '.join(allowed)}"
            raise InvalidFile(f"{mapping.where(key)}: unknown key {key!r}", hint=hint)


def _map(document: YamlMap, key: str, what: str) -> YamlMap | dict[Any, Any]:
    value = document.get(key)
    if key in document and not isinstance(value, YamlMap):
        raise InvalidFile(f"{document.where(key)}: {key} must be a mapping of {what}")
    return value if isinstance(value, YamlMap) else {}


def _timeout(document: YamlMap) -> float:
    value = document["timeout"]
    try:
        milliseconds = parse_duration_ms(str(value))
    except UsageError as exc:
        raise InvalidFile(f"{document.where('timeout')}: {exc.message}", hint="e.g. 90s or 2m") from None
    if milliseconds < 1000:
        raise InvalidFile(f"{document.where('timeout')}: timeout must be at least 1s")
    return milliseconds / 1000


def _commands(mapping: YamlMap, names: tuple[str, ...] = _NAMES) -> Commands:
    return {act: _argv(mapping, act, names) for act in ACTS if act in mapping}


def _argv(mapping: YamlMap, act: Act, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of a command. names: the placeholders that it may use."""
    value = mapping[act]
    if not isinstance(value, YamlList) or not value:
        raise InvalidFile(
            f"{mapping.where(act)}: {act} must be a list of words, the command first; it is not run by a shell",
            hint=f"write {act}: [COMMAND, ARGUMENT, …]",
        )
    words = []
    for index, word in enumerate(value):
        if isinstance(word, bool) or not isinstance(word, (str, int)):
            raise InvalidFile(f"{value.where(index)}: a word of a command must be text; put it in quotes")
        text = str(word)
        if "\0" in text or (index == 0 and not text):
            raise InvalidFile(f"{value.where(index)}: {printable(text)!r} is not valid in a command")
        for match in _PLACEHOLDER.finditer(text):
            if match[1] not in names:
                hint = did_you_mean(match[1], names) or f"supported: {', '.join(f'{{{name}}}' for name in names)}"
                raise InvalidFile(f"{value.where(index)}: unknown placeholder {match[0]}", hint=hint)
        words.append(text)
    if _PLACEHOLDER.search(words[0]):
        raise InvalidFile(f"{value.where(0)}: the name of the command cannot be a placeholder")
    return tuple(words)
