"""hooks.yaml: the commands that stop and start brokers which kctl did not set up.

    stop: [ssh, "{host}", sudo, systemctl, stop, kafka]     # argv lists; no shell
    start: [ssh, "{host}", sudo, systemctl, start, kafka]
    kill: […]  pause: […]  unpause: […]                     # for kctl validate
    timeout: 2m                                             # of one command
    brokers:                                                # other commands for single brokers
      3: {stop: […], start: […]}

{id}, {host}, {port} and {rack} are the broker's, as it tells them to clients; other braces are text.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from kctl.errors import InvalidFile, NotFound, Refused, UsageError
from kctl.model import Broker
from kctl.restart.control import Act
from kctl.strict_yaml import YamlList, YamlMap, load
from kctl.suggestions import did_you_mean
from kctl.text import printable
from kctl.units import parse_duration_ms

ACTS: tuple[Act, ...] = get_args(Act)
DEFAULT_TIMEOUT_S = 120.0
MAX_BYTES = 256 << 10
_PLACEHOLDER = re.compile(r"\{([A-Za-z_]+)\}")
_NAMES = ("id", "host", "port", "rack")
# What a broker tells of itself goes into commands: nothing that ssh, say, takes for an option or a second word.
_SAFE = re.compile(r"[A-Za-z0-9_.:%/@+][A-Za-z0-9_.:%/@+-]*")

Commands = Mapping[Act, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Hooks:
    """source: the file. commands: for brokers that are not in `single`, and for what those do not say themselves."""

    source: str
    commands: Commands
    single: Mapping[int, Commands]
    timeout_s: float = DEFAULT_TIMEOUT_S

    def template(self, act: Act, broker: int) -> tuple[str, ...] | None:
        """The command as it is written; None when there is none."""
        return self.single.get(broker, {}).get(act) or self.commands.get(act)

    def reaches(self, broker: Broker, acts: Collection[Act]) -> bool:
        """Is there a command for each of these, with what is known of the broker?"""
        try:
            return all(self.argv(act, broker) for act in acts)
        except Refused:
            return False

    def argv(self, act: Act, broker: Broker) -> tuple[str, ...]:
        """The command for one broker, whose host is "" while it is down and does not tell it.

        Raises Refused when there is none, or the broker does not tell what it needs.
        """
        template = self.template(act, broker.id)
        if template is None:
            raise Refused(
                f"{self.source} has no command to {act} broker {broker.id}",
                hint=f"add `{act}: [COMMAND, ARGUMENT, …]`, for all brokers or under brokers: {broker.id}:",
            )
        return tuple(_PLACEHOLDER.sub(lambda match: self._value(match[1], broker), word) for word in template)

    def _value(self, name: str, broker: Broker) -> str:
        value = getattr(broker, name)
        if value is None or (not broker.host and name != "id"):
            why = f"has no {name}" if broker.host else "is down and does not tell it"
            raise Refused(
                f"{self.source} uses {{{name}}}, and broker {broker.id} {why}",
                hint=f"give it commands of its own under brokers: {broker.id}:"
                + (", or set broker.rack" if broker.host else ", or start it first"),
            )
        text = str(value)
        if not _SAFE.fullmatch(text):
            raise Refused(
                f"broker {broker.id} tells {printable(text)!r} as its {name}: that does not go into a command",
                hint=f"give it commands of its own under brokers: {broker.id}:",
            )
        return text


def read_hooks(path: Path) -> Hooks:
    """Raises InvalidFile with file, line and column; NotFound."""
    from kctl.input_file import read_input

    data, source = read_input(path, max_bytes=MAX_BYTES)
    return parse_hooks(data, source=source)


def parse_hooks(data: bytes | str, *, source: str) -> Hooks:
    """`read_hooks` for text at hand."""
    document = load(data, source=source, max_bytes=MAX_BYTES)
    if not isinstance(document, YamlMap):
        raise InvalidFile(
            f"{source}: has no commands", hint="write for example: stop: [ssh, '{host}', systemctl, stop, kafka]"
        )
    _check_keys(document, (*ACTS, "timeout", "brokers"))
    commands = _commands(document)
    timeout_s = _timeout(document) if "timeout" in document else DEFAULT_TIMEOUT_S
    brokers: dict[int, Commands] = {}
    for broker, own in _map(document, "brokers").items():
        where = document["brokers"].where(broker)
        if not isinstance(broker, int) or broker < 0:
            raise InvalidFile(f"{where}: {broker!r} is not a broker id")
        if not isinstance(own, YamlMap) or not own:
            raise InvalidFile(f"{where}: broker {broker} has no commands", hint="write for example 3: {stop: [...]}")
        _check_keys(own, ACTS)
        brokers[broker] = _commands(own)
    if not commands and not brokers:
        raise InvalidFile(f"{source}: has no commands", hint=f"known: {', '.join(ACTS)}")
    return Hooks(source, commands, brokers, timeout_s)


def check_brokers(
    hooks: Hooks, brokers: Mapping[int, Broker], acts: tuple[Act, ...], *, known: Collection[int] | None = None
) -> None:
    """Can each of `acts` be done to each broker, as far as this machine can tell? known: all ids that the cluster has,
    where `brokers` are some of it. Raises Refused, and NotFound for brokers that only the file has and commands that
    are not here."""
    there = set(brokers).union(known or ())
    unknown = sorted(hooks.single.keys() - there)
    if unknown:
        raise NotFound(
            f"{hooks.source} has commands for broker {', '.join(map(str, unknown))}, which the cluster has not got",
            hint=f"the brokers now: {', '.join(map(str, sorted(there)))}",
        )
    for broker in brokers.values():
        for act in acts:
            command = hooks.argv(act, broker)[0]
            if shutil.which(command) is None:
                raise NotFound(f"cannot run {printable(command)}: it is not there", hint=f"{hooks.source} names it")


def _check_keys(found: YamlMap, known: tuple[str, ...]) -> None:
    for key in found:
        if key not in known:
            hint = did_you_mean(str(key), known) or f"known: {', '.join(known)}"
            raise InvalidFile(f"{found.where(key)}: {key!r} is not known", hint=hint)


def _map(document: YamlMap, key: str) -> YamlMap | dict[Any, Any]:
    value = document.get(key)
    if key in document and not isinstance(value, YamlMap):
        raise InvalidFile(f"{document.where(key)}: {key} is a mapping of broker ids")
    return value if isinstance(value, YamlMap) else {}


def _timeout(document: YamlMap) -> float:
    value = document["timeout"]
    try:
        milliseconds = parse_duration_ms(str(value))
    except UsageError as exc:
        raise InvalidFile(f"{document.where('timeout')}: {exc.message}", hint="write for example 90s or 2m") from None
    if milliseconds < 1000:
        raise InvalidFile(f"{document.where('timeout')}: a command gets a second at least")
    return milliseconds / 1000


def _commands(found: YamlMap) -> Commands:
    return {act: _argv(found, act) for act in ACTS if act in found}


def _argv(found: YamlMap, act: Act) -> tuple[str, ...]:
    value = found[act]
    if not isinstance(value, YamlList) or not value:
        raise InvalidFile(
            f"{found.where(act)}: {act} is a list of words, the command first; no shell reads it",
            hint=f"write {act}: [COMMAND, ARGUMENT, …]",
        )
    words = []
    for index, word in enumerate(value):
        if isinstance(word, bool) or not isinstance(word, (str, int)):
            raise InvalidFile(f"{value.where(index)}: a word of a command is text; put it in quotes")
        text = str(word)
        if "\0" in text or (index == 0 and not text):
            raise InvalidFile(f"{value.where(index)}: {printable(text)!r} cannot be in a command")
        for match in _PLACEHOLDER.finditer(text):
            if match[1] not in _NAMES:
                hint = did_you_mean(match[1], _NAMES) or f"known: {', '.join(f'{{{name}}}' for name in _NAMES)}"
                raise InvalidFile(f"{value.where(index)}: {match[0]} is not known", hint=hint)
        words.append(text)
    if _PLACEHOLDER.search(words[0]):
        raise InvalidFile(f"{value.where(0)}: the command itself is not taken from what brokers tell")
    return tuple(words)
