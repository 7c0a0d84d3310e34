"""server.properties and clients' .properties for the rules. No value of a secret leaves this module."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from kctl.base.suggestions import closest
from kctl.contexts.client_properties.names import IN_KAFKA
from kctl.contexts.command_config import read_properties
from kctl.deploy.broker_settings import Setting, base_name, known_settings, problem_of, settings_in
from kctl.doctor.defaults import default_of
from kctl.doctor.outdated import outdated_name, outdated_value
from kctl.doctor.releases import Releases, parse_releases
from kctl.doctor.rule_facts import FileFacts, RuleFacts, Settings
from kctl.errors import UsageError

_OF_NO_SETTING = "${"  # a config provider's variable (KIP-297): what it stands for is not known here
_BY_DURATION = "by_duration:"  # of auto.offset.reset since 4.0 (KIP-1106)
_CONFIG_PROVIDERS = "config.providers"  # every client knows them, and no ConfigDef names them
STDIN = "-"
# What nobody meant as a name may be a part of a secret: a line of a key in PEM, or of sasl.jaas.config, behind one that
# lacks the backslash with which a value goes on.
_NAME = re.compile(r"[A-Za-z][\w-]*(?:\.[\w-]+)+|[a-z_-]+")
ROLES = ("producer", "consumer")
# What a file is taken to be for when nobody says: advice for releases before is right for hardly anybody.
ASSUMED = Releases((1, 0), None)


@dataclass(frozen=True, slots=True)
class PropertiesFile:
    """A file as the rules see it. roles: what a client's file is for; nothing when it says nothing of that."""

    settings: Settings
    facts: FileFacts
    roles: tuple[str, ...] = ()


def file_facts(brokers: Sequence[PropertiesFile], clients: Sequence[PropertiesFile]) -> RuleFacts:
    """The facts of files. Pure."""
    every = (*brokers, *clients)
    return RuleFacts(
        brokers={each.settings.where: each.settings for each in brokers} if brokers else None,
        broker_files=[each.settings for each in brokers] if brokers else None,
        files=[each.facts for each in every],
        clients=[each.settings for each in clients] if clients else None,
        producers=_for(clients, "producer"),
        consumers=_for(clients, "consumer"),
        releases={each.settings.where: each.settings.releases for each in every},
        assumed=ASSUMED,
    )


def _for(clients: Sequence[PropertiesFile], role: str) -> list[Settings] | None:
    return [each.settings for each in clients if role in each.roles] or None


def releases_named(text: str | None) -> Releases | None:
    """What --kafka-version says. Raises UsageError."""
    if text is None:
        return None
    found = parse_releases(text)
    if found is None:
        raise UsageError(f"{text!r} is not a version of Kafka", hint="write it as 3.9 or 3.9.2")
    return found


@lru_cache(maxsize=1)
def _clients() -> dict[str, dict[str, Setting]]:
    """client_settings.json: what producers, consumers and admin clients of 3.9.2 know, from their ConfigDef."""
    document = json.loads(Path(__file__).with_name("client_settings.json").read_text(encoding="utf-8"))
    found = {kind: settings_in(document[kind]) for kind in (*ROLES, "admin")}
    reset = "auto.offset.reset"  # its validator has no list of values
    found["consumer"][reset] = replace(found["consumer"][reset], values=("latest", "earliest", "none"))
    return found


@lru_cache(maxsize=1)
def _newer() -> frozenset[str]:
    """newer_broker_settings.json: names that brokers of 4.3.1 describe and 3.9.2 does not know."""
    document = json.loads(Path(__file__).with_name("newer_broker_settings.json").read_text(encoding="utf-8"))
    return frozenset(document["names"])


def read_broker_file(file: str, releases: Releases | None = None) -> PropertiesFile:
    """A server.properties. Raises UsageError, InvalidFile (not a .properties file, a key twice)."""
    values = read_properties(file, await_writer=False)  # nothing is sent by what it says
    known = known_settings()
    unknown = [key for key in values if base_name(key) not in known and key not in _newer()]
    facts = _facts(file, values, unknown, known, releases, broker=True)
    return PropertiesFile(_settings(facts.path, values, known, releases), facts)


def read_client_file(file: str, releases: Releases | None = None) -> PropertiesFile:
    """The .properties of a producer or consumer. Raises UsageError, InvalidFile."""
    values = read_properties(file, await_writer=False)  # nothing is sent by what it says
    kinds = _clients()
    known: dict[str, Setting] = {}
    for each in kinds.values():
        known |= each
    roles = roles_of(file, values)
    for role in roles:
        known |= kinds[role]
    unknown = [key for key in values if key not in known and not key.startswith(_CONFIG_PROVIDERS)]
    defaults = {name: setting for role in roles for name, setting in kinds[role].items()} or kinds["admin"]
    facts = _facts(file, values, unknown, known, releases, broker=False)
    return PropertiesFile(_settings(facts.path, values, defaults, releases, roles), facts, roles)


def roles_of(file: str, keys: Iterable[str]) -> tuple[str, ...]:
    """Producer or consumer, or both, by settings that only one of them has; else by the file's name. Pure."""
    kinds = _clients()
    given = set(keys)
    own = {
        role: kinds[role].keys() - {name for kind, each in kinds.items() if kind != role for name in each}
        for role in ROLES
    }
    found = tuple(role for role in ROLES if given & own[role])
    return found or tuple(role for role in ROLES if role in Path(file).name)


def _settings(
    where: str,
    values: Mapping[str, str],
    known: Mapping[str, Setting],
    releases: Releases | None,
    roles: Sequence[str] = (),
) -> Settings:
    """With defaults; without secrets, and without variables."""
    merged: dict[str, str | None] = {
        name: default_of(name, setting.default, releases, roles) for name, setting in known.items()
    }
    for name, value in values.items():
        hidden = _is_secret(name, known) or _OF_NO_SETTING in value
        merged[name] = None if hidden else value.strip()
    return Settings(where, merged, frozenset(values), releases)


def _is_secret(name: str, known: Mapping[str, Setting]) -> bool:
    setting = known.get(base_name(name))
    return (setting is not None and setting.type == "password") or "password" in name.lower()


def _facts(
    file: str,
    values: Mapping[str, str],
    unknown: Sequence[str],
    known: Mapping[str, Setting],
    releases: Releases | None,
    *,
    broker: bool,
) -> FileFacts:
    names = [name for name in unknown if name.lower() in known or _is_name(name, values[name])]
    gone = {name: said for name in names if (said := outdated_name(name, releases, broker=broker))}
    wrong = {}
    for name, value in values.items():
        setting = known.get(base_name(name) if broker else name)
        if setting is None or _OF_NO_SETTING in value:
            continue
        said = None if broker else outdated_value(name, value, releases)
        if said:
            gone[name] = said
            continue
        problem = problem_of(setting, value.strip())
        if problem and not value.strip().startswith(_BY_DURATION):
            shown = "its value" if _is_secret(name, known) else repr(value.strip())
            wrong[name] = f"{name}: {shown} is not {problem}"
    return FileFacts(
        path="stdin" if file == STDIN else file,
        unknown={
            name: [IN_KAFKA[name]] if name in IN_KAFKA else closest(name, known) for name in names if name not in gone
        },
        stray_lines=len(unknown) - len(names),
        wrong=wrong,
        outdated=tuple(gone.values()),
        mode=0o600 if file == STDIN else Path(file).expanduser().stat().st_mode & 0o777,
        secrets=tuple(name for name, value in values.items() if _holds_secret(name, value, known)),
        variables=tuple(name for name, value in values.items() if _OF_NO_SETTING in value),
    )


def _is_name(text: str, value: str) -> bool:
    """Whether it may be told as the name of a setting that nobody knows."""
    plain = "." in text and text == text.lower()
    return bool(_NAME.fullmatch(text)) and (plain or bool(value.strip(" =")))


def _holds_secret(name: str, value: str, known: Mapping[str, Setting]) -> bool:
    if not value.strip() or _OF_NO_SETTING in value or not _is_secret(name, known):
        return False
    return not name.endswith("sasl.jaas.config") or "password" in value
