"""Config types for cases without a type from a broker: files that are not applied yet, and brokers before 2.6.

topic_settings.json is taken from the jars (`LogConfig.configDefCopy()`, Kafka 3.9.2 and 4.4.0, the wider range of
both); broker settings are in kctl.deploy.config.broker_settings.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from kctl.base.config_values import fault_of, number_for
from kctl.cluster.config_resources import Kind

if TYPE_CHECKING:
    from kctl.deploy.config.broker_settings import Setting


@lru_cache(maxsize=1)
def _of_topics() -> Mapping[str, Setting]:
    from kctl.deploy.config.broker_settings import settings_in

    document = json.loads(Path(__file__).with_name("topic_settings.json").read_text(encoding="utf-8"))
    return settings_in(document["settings"])


def type_of(kind: Kind, name: str) -> str | None:
    """Return the type of a topic's or broker's config, in lower case; None if it is unknown."""
    from kctl.deploy.config.broker_settings import base_name, known_settings

    if kind == "topic":
        setting = _of_topics().get(name)
    elif kind in ("broker", "brokers"):
        setting = known_settings().get(base_name(name))
    else:
        return None
    return None if setting is None else setting.type


def type_fault(kind: Kind, name: str, value: str) -> tuple[str, str | None] | None:
    """Return why a text is not a value of the config's type, and a hint; None if it may be, or the config is unknown.

    Every broker that has the config reports the same.
    """
    type_ = type_of(kind, name)
    fault = None if type_ is None else fault_of(type_, value)
    if type_ is None or fault is None:
        return None
    if type_ == "password":
        return f"{name} {fault}", None
    return f"{name} {fault}, not {value.strip()!r}", meant_by(type_, name, value)


def fault_in(kind: Kind, name: str, value: str) -> tuple[str, str | None] | None:
    """Return why every broker up to Kafka 4.4 rejects a value, and a hint; None if one may accept it."""
    from kctl.deploy.config.broker_settings import problem_of

    fault = type_fault(kind, name, value)
    if fault is not None or kind != "topic" or name not in _of_topics():
        return fault
    problem = problem_of(_of_topics()[name], value)
    return None if problem is None else (f"{name} must be {problem}, not {value.strip()!r}", None)


def meant_by(type_: str, name: str, value: str) -> str | None:
    """Return a hint for values such as 7d or 1GB where a number is needed. Pure."""
    number = number_for(name, value)
    return f"that is {name}={number}" if number is not None and fault_of(type_, number) is None else None
