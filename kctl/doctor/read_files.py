"""Read server.properties and clients' .properties files for the rules. Secret values never leave this module."""

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
from kctl.deploy.config.broker_settings import Setting, base_name, known_settings, problem_of, settings_in
from kctl.deploy.runtime.runtime import KRAFT_VERSION
from kctl.doctor.defaults import default_of
from kctl.doctor.outdated import outdated_name, outdated_value
from kctl.doctor.releases import Releases, parse_releases
from kctl.doctor.rule_facts import EffectiveSettings, FileFacts, RuleFacts
from kctl.errors import UsageError

_VARIABLE = "${"  # a config provider's variable (KIP-297); kctl does not know its value
_BY_DURATION = "by_duration:"  # a value of auto.offset.reset since 4.0 (KIP-1106)
_CONFIG_PROVIDERS = "config.providers"  # every client accepts these settings, but no ConfigDef lists them
STDIN = "-"
# Keys that do not look like this may be part of a secret: a line of a PEM key or of sasl.jaas.config that follows a
# line without the trailing backslash.
_NAME = re.compile(r"[A-Za-z][\w-]*(?:\.[\w-]+)+|[a-z_-]+")
ROLES = ("producer", "consumer")
# Used without --kafka-version. Advice for releases before 1.0 is wrong for almost everyone.
ASSUMED_RELEASES = Releases((1, 0), None)


@dataclass(frozen=True, slots=True)
class PropertiesFile:
    """A .properties file. roles: of a client file, "producer", "consumer", or both; empty if unknown."""

    settings: EffectiveSettings
    facts: FileFacts
    roles: tuple[str, ...] = ()


def file_facts(brokers: Sequence[PropertiesFile], clients: Sequence[PropertiesFile]) -> RuleFacts:
    """Return the facts about these files. Pure."""
    every = (*brokers, *clients)
    return RuleFacts(
        brokers={each.settings.owner: each.settings for each in brokers} if brokers else None,
        broker_files=[each.settings for each in brokers] if brokers else None,
        files=[each.facts for each in every],
        clients=[each.settings for each in clients] if clients else None,
        producers=_with_role(clients, "producer"),
        consumers=_with_role(clients, "consumer"),
        releases={each.settings.owner: each.settings.releases for each in every},
        assumed_releases=ASSUMED_RELEASES,
    )


def _with_role(clients: Sequence[PropertiesFile], role: str) -> list[EffectiveSettings] | None:
    return [each.settings for each in clients if role in each.roles] or None


def parse_kafka_version(text: str | None) -> Releases | None:
    """Parse the value of --kafka-version. Raises UsageError."""
    if text is None:
        return None
    releases = parse_releases(text)
    if releases is None:
        raise UsageError(f"{text!r} is not a Kafka version", hint="write it as 3.9 or 3.9.2")
    return releases


@lru_cache(maxsize=1)
def _client_settings() -> dict[str, dict[str, Setting]]:
    """Return the settings of producers, consumers and admin clients, by client kind.

    Source: client_settings.json, made from the ConfigDef of each client of Kafka 3.9.2.
    """
    document = json.loads(Path(__file__).with_name("client_settings.json").read_text(encoding="utf-8"))
    settings = {kind: settings_in(document[kind]) for kind in (*ROLES, "admin")}
    reset = "auto.offset.reset"  # its validator does not list the allowed values
    settings["consumer"][reset] = replace(settings["consumer"][reset], values=("latest", "earliest", "none"))
    return settings


# Settings of 4.0 to 4.3 that are only dynamic in other releases.
_ONCE_STATIC = {
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
}


def read_broker_file(file: str, releases: Releases | None = None) -> PropertiesFile:
    """Read a server.properties. Raises UsageError, InvalidFile (not a .properties file, or a duplicate key)."""
    values = read_properties(file, await_writer=False)  # only displayed, never used for a connection
    definitions = known_settings()
    newer = known_settings(KRAFT_VERSION).keys() | _ONCE_STATIC
    unknown = [key for key in values if base_name(key) not in definitions and key not in newer]
    facts = _facts(file, values, unknown, definitions, releases, broker=True)
    return PropertiesFile(_settings(facts.path, values, definitions, releases), facts)


def read_client_file(file: str, releases: Releases | None = None) -> PropertiesFile:
    """Read the .properties file of a producer or consumer. Raises UsageError, InvalidFile."""
    values = read_properties(file, await_writer=False)  # only displayed, never used for a connection
    kinds = _client_settings()
    definitions: dict[str, Setting] = {}
    for settings in kinds.values():
        definitions |= settings
    roles = roles_of(file, values)
    for role in roles:
        definitions |= kinds[role]
    unknown = [key for key in values if key not in definitions and not key.startswith(_CONFIG_PROVIDERS)]
    defaults = {name: setting for role in roles for name, setting in kinds[role].items()} or kinds["admin"]
    facts = _facts(file, values, unknown, definitions, releases, broker=False)
    return PropertiesFile(_settings(facts.path, values, defaults, releases, roles), facts, roles)


def roles_of(file: str, keys: Iterable[str]) -> tuple[str, ...]:
    """Return the roles of a client file: "producer", "consumer", both or none. Pure.

    Settings that only one role has decide. Without any, the file name decides.
    """
    kinds = _client_settings()
    keys = set(keys)
    role_specific = {
        role: kinds[role].keys() - {name for kind, settings in kinds.items() if kind != role for name in settings}
        for role in ROLES
    }
    roles = tuple(role for role in ROLES if keys & role_specific[role])
    return roles or tuple(role for role in ROLES if role in Path(file).name)


def _settings(
    owner: str,
    values: Mapping[str, str],
    definitions: Mapping[str, Setting],
    releases: Releases | None,
    roles: Sequence[str] = (),
) -> EffectiveSettings:
    """Return the effective settings, defaults included. Secrets and variables have no value."""
    merged: dict[str, str | None] = {
        name: default_of(name, setting.default, releases, roles) for name, setting in definitions.items()
    }
    for name, value in values.items():
        hidden = _is_secret(name, definitions) or _VARIABLE in value
        merged[name] = None if hidden else value.strip()
    return EffectiveSettings(owner, merged, frozenset(values), releases)


def _is_secret(name: str, definitions: Mapping[str, Setting]) -> bool:
    setting = definitions.get(base_name(name))
    return (setting is not None and setting.type == "password") or "password" in name.lower()


def _facts(
    file: str,
    values: Mapping[str, str],
    unknown: Sequence[str],
    definitions: Mapping[str, Setting],
    releases: Releases | None,
    *,
    broker: bool,
) -> FileFacts:
    names = [name for name in unknown if name.lower() in definitions or _is_name(name, values[name])]
    outdated = {name: message for name in names if (message := outdated_name(name, releases, broker=broker))}
    invalid = {}
    for name, value in values.items():
        setting = definitions.get(base_name(name) if broker else name)
        if setting is None or _VARIABLE in value:
            continue
        removed_value = None if broker else outdated_value(name, value, releases)
        if removed_value:
            outdated[name] = removed_value
            continue
        problem = problem_of(setting, value.strip())
        if problem and not value.strip().startswith(_BY_DURATION):
            text = "its value" if _is_secret(name, definitions) else repr(value.strip())
            invalid[name] = f"{name}: {text} is not {problem}"
    return FileFacts(
        path="stdin" if file == STDIN else file,
        unknown_keys={
            name: [IN_KAFKA[name]] if name in IN_KAFKA else closest(name, definitions)
            for name in names
            if name not in outdated
        },
        stray_lines=len(unknown) - len(names),
        invalid_values=invalid,
        outdated=tuple(outdated.values()),
        mode=0o600 if file == STDIN else Path(file).expanduser().stat().st_mode & 0o777,
        secret_keys=tuple(name for name, value in values.items() if _holds_secret(name, value, definitions)),
        variable_keys=tuple(name for name, value in values.items() if _VARIABLE in value),
    )


def _is_name(text: str, value: str) -> bool:
    """Return True if the key looks like a setting name and may be printed."""
    plain = "." in text and text == text.lower()
    return bool(_NAME.fullmatch(text)) and (plain or bool(value.strip(" =")))


def _holds_secret(name: str, value: str, definitions: Mapping[str, Setting]) -> bool:
    if not value.strip() or _VARIABLE in value or not _is_secret(name, definitions):
        return False
    return not name.endswith("sasl.jaas.config") or "password" in value
