"""The settings of a broker and their valid values, checked before a broker would refuse to start.

broker_settings.json (Kafka 3.9.2) and broker_settings_4.4.json (4.4.0) are generated from
`kafka.server.KafkaConfig.configDef()` by tests/support/BrokerSettings.java: type, default, range and allowed values of
each setting. Authorizers have additional settings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from kctl.base.config_values import comparable, fault_of
from kctl.base.input_file import read_path
from kctl.base.properties import load_properties
from kctl.base.suggestions import did_you_mean
from kctl.deploy.layout import is_kafka_4
from kctl.deploy.runtime.runtime import DEFAULT_VERSION, KRAFT_VERSION
from kctl.errors import InvalidFile, NotFound, UsageError

MAX_CONFIG_BYTES = 1 << 20
# A listener's own settings: listener.name.<listener>[.<mechanism>].<setting>
_LISTENER = re.compile(r"listener\.name\.[a-z0-9_-]+\.(?:(?:plain|gssapi|oauthbearer|scram-sha-(?:256|512))\.)?(.+)")

# Settings that kctl sets itself, and what to use instead.
OWNED = {
    "broker.id": "brokers are numbered from 1; see --brokers",
    "broker.id.generation.enable": "brokers are numbered from 1; see --brokers",
    "reserved.broker.max.id": "brokers are numbered from 1; see --brokers",
    "broker.rack": "use --rack",
    "listeners": "use --base-port; brokers listen on 127.0.0.1 only",
    "advertised.listeners": "use --base-port; brokers listen on 127.0.0.1 only",
    "listener.security.protocol.map": "brokers have one PLAINTEXT listener on 127.0.0.1",
    "inter.broker.listener.name": "brokers have one PLAINTEXT listener on 127.0.0.1",
    "security.inter.broker.protocol": "brokers have one PLAINTEXT listener on 127.0.0.1",
    "control.plane.listener.name": "brokers have one PLAINTEXT listener on 127.0.0.1",
    "log.dir": "use --log-dirs for their number, --dir for where they are",
    "log.dirs": "use --log-dirs for their number, --dir for where they are",
    "zookeeper.connect": "use --chroot; ZooKeeper is the cluster's own",
    "process.roles": "see --layout",
    "node.id": "nodes are numbered; see --brokers and --controllers",
    "controller.quorum.voters": "the quorum follows from --layout and --controllers",
    "controller.quorum.bootstrap.servers": "the quorum follows from --layout and --controllers",
    "controller.listener.names": "controllers have one PLAINTEXT listener on 127.0.0.1",
    "metadata.log.dir": "the metadata log is in the first log dir",
}


@dataclass(frozen=True, slots=True)
class Setting:
    """A broker setting. type: Kafka's ConfigDef.Type in lower case."""

    name: str
    type: str
    default: str | None = None
    min: float | None = None
    max: float | None = None
    values: tuple[str, ...] = ()
    ignore_case: bool = False


# Settings of AclAuthorizer and StandardAuthorizer, which KafkaConfig does not define (AclAuthorizer.configure, 3.9).
OF_AUTHORIZERS = (
    Setting("super.users", "string"),
    Setting("allow.everyone.if.no.acl.found", "boolean", "false"),
    Setting("authorizer.zookeeper.url", "string"),
    Setting("authorizer.zookeeper.connection.timeout.ms", "int"),
    Setting("authorizer.zookeeper.session.timeout.ms", "int"),
    Setting("authorizer.zookeeper.max.in.flight.requests", "int", min=1),
)


def known_settings(kafka_version: str = DEFAULT_VERSION) -> Mapping[str, Setting]:
    """Return the settings of a release by name: the list of 3.9.2 before 4.0, the list of 4.4.0 since then."""
    return _settings_of("broker_settings_4.4.json" if is_kafka_4(kafka_version) else "broker_settings.json")


@lru_cache(maxsize=2)
def _settings_of(file: str) -> Mapping[str, Setting]:
    document = json.loads(Path(__file__).with_name(file).read_text(encoding="utf-8"))
    return {setting.name: setting for setting in OF_AUTHORIZERS} | settings_in(document["settings"])


def settings_in(entries: Mapping[str, Mapping[str, Any]]) -> dict[str, Setting]:
    """Return the settings of a generated file by name. Pure."""
    return {
        name: Setting(
            name, entry["type"], entry.get("default"), entry.get("min"), entry.get("max"),
            tuple(entry.get("values", ())), entry.get("ignore_case", False),
        )
        for name, entry in entries.items()
    }  # fmt: skip


def read_settings(
    overrides: Iterable[str], config_file: Path | None, kafka_version: str = DEFAULT_VERSION
) -> dict[str, str]:
    """Return the settings of --config-file, overridden by --config key=value. Raises UsageError for invalid ones."""
    settings = _read_file(config_file) if config_file is not None else {}
    keys_so_far: set[str] = set()
    for text in overrides:
        key, equals, value = text.partition("=")
        key = key.strip()
        if not equals or not key:
            raise UsageError(f"--config {text!r} is not key=value")
        if key in keys_so_far:
            raise UsageError(f"--config {key} is set twice", hint="remove one of them")
        if is_secret(key):
            raise UsageError(
                f"--config {key} would expose a password in the process list",
                hint="write it to a file that only you can read and use --config-file FILE",
            )
        keys_so_far.add(key)
        settings[key] = value.strip()
    for key, value in settings.items():
        check_setting(key, value, kafka_version)
    return settings


def _read_file(path: Path) -> dict[str, str]:
    try:
        data = read_path(path, max_bytes=MAX_CONFIG_BYTES + 1)
    except FileNotFoundError:
        raise NotFound(f"--config-file {path} does not exist") from None
    except OSError as exc:
        raise UsageError(f"cannot read --config-file {path}: {exc.strerror}") from None
    if len(data) > MAX_CONFIG_BYTES:
        raise InvalidFile(f"--config-file {path} is larger than {MAX_CONFIG_BYTES} bytes")
    return load_properties(data, source=str(path))


def base_name(key: str) -> str:
    """Return the setting behind a listener setting: ssl.key.password for listener.name.x.ssl.key.password."""
    match = _LISTENER.fullmatch(key)
    return match.group(1) if match else key


def is_secret(key: str) -> bool:
    """Return True if the value is secret (type PASSWORD, or a JAAS line)."""
    name = base_name(key)
    definitions = (known_settings(release).get(name) for release in (DEFAULT_VERSION, KRAFT_VERSION))
    return any(setting is not None and setting.type == "password" for setting in definitions)


def check_setting(key: str, value: str, kafka_version: str = DEFAULT_VERSION) -> None:
    """Raise UsageError if brokers have no setting `key`, `value` is invalid, or kctl sets it itself."""
    if key in OWNED:
        raise UsageError(f"{key} is set by kctl itself", hint=OWNED[key])
    definitions = known_settings(kafka_version)
    setting = definitions.get(base_name(key))
    if setting is None:
        hint = did_you_mean(key, definitions) or "see https://kafka.apache.org/documentation/#brokerconfigs"
        raise UsageError(f"a broker of Kafka {kafka_version} has no setting {key!r}", hint=hint)
    problem = problem_of(setting, value)
    if problem:
        value_text = "its value" if is_secret(key) else repr(value)
        raise UsageError(f"{key}: {value_text} is not {problem}", hint=_default_hint(setting))


def problem_of(setting: Setting, value: str) -> str | None:
    """Return what a valid value would be; None if `value` is valid."""
    if setting.type == "class":
        return None if not value or re.fullmatch(r"[\w$]+(\.[\w$]+)*", value) else "the name of a class"
    fault = fault_of(setting.type, value)
    if fault is not None:
        return fault.removeprefix("must be ")
    parsed = comparable(setting.type, value)
    if isinstance(parsed, tuple) and setting.values:
        wrong = [item for item in parsed if item and item not in setting.values]
        return f"a list of {', '.join(setting.values)}" if wrong else None
    if isinstance(parsed, str) and setting.values:
        candidate = parsed.upper() if setting.ignore_case else parsed
        return None if candidate in setting.values else f"one of {', '.join(setting.values)}"
    if isinstance(parsed, (int, float)) and not isinstance(parsed, bool):
        return _range_problem(setting, parsed)
    return None


def _range_problem(setting: Setting, number: float) -> str | None:
    if setting.min is not None and number < setting.min:
        least = _plain(setting.min)
        return f"at least {least}" if setting.max is None else f"between {least} and {_plain(setting.max)}"
    if setting.max is not None and number > setting.max:
        return f"between {_plain(setting.min)} and {_plain(setting.max)}"
    return None


def _plain(number: float | None) -> str:
    """Return a number without an exponent: 1048576, 0.5."""
    return str(int(number)) if number is not None and number == int(number) else str(number)


def _default_hint(setting: Setting) -> str | None:
    return f"the default is {setting.default}" if setting.default else None
