"""Changes of server.properties when a node gets another release. Pure.

A setting that the previous release knows and the target does not is commented out. Settings that neither release knows
may belong to a plugin and stay. Settings that kctl writes for the target, but not for the previous release, are added.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from kctl.base.properties import parse_properties, property_line
from kctl.deploy.config.broker_config import render_server_properties
from kctl.deploy.config.broker_settings import base_name, is_secret, known_settings, problem_of
from kctl.deploy.config.files import HIDDEN
from kctl.deploy.layout import BrokerNode, ClusterSpec, ControllerNode
from kctl.upgrade.paths import line_of

PROTOCOL_VERSION = "inter.broker.protocol.version"
# Settings that Kafka 4.0 removed (upgrade notes), with those that replace them.
_REPLACEMENTS = {
    "delegation.token.master.key": ("delegation.token.secret.key",),
    "log.message.timestamp.difference.max.ms": (
        "log.message.timestamp.before.max.ms",
        "log.message.timestamp.after.max.ms",
    ),
}


class SettingAction(str, Enum):
    """The change of a setting; the value is displayed."""

    REMOVE = "removed"
    RENAME = "renamed"
    ADD = "added"
    HOLD = "held until finalized"


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A change of one setting. value: "[hidden]" for a secret. new_names: the settings that replace a renamed one."""

    setting: str
    action: SettingAction
    value: str
    new_names: tuple[str, ...] = ()


def changes_of(
    settings: Mapping[str, str], before: ClusterSpec, after: ClusterSpec, node: BrokerNode | ControllerNode
) -> list[SettingChange]:
    """Return the changes to a node's settings. before, after: the cluster with the previous and the target release."""
    changes = list(_obsolete(settings, before.kafka_version, after.kafka_version))
    new_names = {name for change in changes for name in change.new_names}
    rendered_before, rendered_after = (
        parse_properties(render_server_properties(spec, node), source=str(spec.config_path(node)))
        for spec in (before, after)
    )
    missing_names = rendered_after.keys() - rendered_before.keys() - settings.keys() - new_names
    changes += [SettingChange(name, SettingAction.ADD, rendered_after[name]) for name in missing_names]
    if holds_protocol(before, after.kafka_version) and PROTOCOL_VERSION not in settings:
        changes.append(SettingChange(PROTOCOL_VERSION, SettingAction.HOLD, line_of(before.kafka_version)))
    return sorted(changes, key=lambda change: (list(SettingAction).index(change.action), change.setting))


def holds_protocol(before: ClusterSpec, target: str) -> bool:
    """Return True if the brokers keep the protocol of the previous release until the upgrade is finalized."""
    return not before.uses_kraft and line_of(before.kafka_version) != line_of(target)


def _obsolete(settings: Mapping[str, str], before: str, after: str) -> Iterator[SettingChange]:
    known_before, known_after = known_settings(before), known_settings(after)
    for name, value in settings.items():
        if base_name(name) in known_after or base_name(name) not in known_before:
            continue
        new_names = tuple(new for new in _REPLACEMENTS.get(name, ()) if new not in settings)
        action = SettingAction.RENAME if new_names else SettingAction.REMOVE
        yield SettingChange(name, action, HIDDEN if is_secret(name) else value, new_names)


def current_settings(settings: Mapping[str, str], before: str, after: str) -> dict[str, str]:
    """Return the settings with which a cluster was created, without obsolete names."""
    changes = list(_obsolete(settings, before, after))
    obsolete = {change.setting for change in changes}
    new_settings = {name: settings[change.setting] for change in changes for name in change.new_names}
    return {name: value for name, value in settings.items() if name not in obsolete} | new_settings


def invalid_settings(settings: Mapping[str, str], before: str, after: str) -> list[str]:
    """Return the settings, as text, whose values only the previous release accepts: the target would not start."""
    problems = []
    for name, value in settings.items():
        problem = _problem(name, value, after)
        if problem is not None and _problem(name, value, before) is None:
            value_text = "its value" if is_secret(name) else value
            problems.append(f"{name}: Kafka {after} accepts only {problem}, not {value_text}")
    return problems


def _problem(name: str, value: str, version: str) -> str | None:
    definition = known_settings(version).get(base_name(name))
    return None if definition is None or "${" in value else problem_of(definition, value)  # ${…}: a config provider


def changed_text(text: str, changes: list[SettingChange], target: str) -> str:
    """Return server.properties with the changes: old lines commented out, new lines at the end."""
    obsolete = {change.setting for change in changes if change.action in {SettingAction.REMOVE, SettingAction.RENAME}}
    lines = list(_without(text, obsolete, f"# Kafka {target} does not know this setting:"))
    settings = parse_properties(text, source="server.properties")
    added = {name: settings[change.setting] for change in changes for name in change.new_names}
    added |= {change.setting: change.value for change in changes if change.setting not in settings}
    if added:
        lines += ["", f"# Added for Kafka {target}", *(property_line(*pair) for pair in added.items())]
    return "\n".join(lines) + "\n"


def without_protocol(text: str) -> str:
    """Return server.properties without inter.broker.protocol.version: its default is the release of the broker."""
    return "\n".join(_without(text, {PROTOCOL_VERSION}, "# Raised when the upgrade was finalized:")) + "\n"


def _without(text: str, names: set[str], comment: str) -> Iterator[str]:
    for block in _blocks(text):
        name = next(iter(parse_properties("\n".join(block), source="server.properties")), None)
        if name in names:
            yield comment
            yield from (f"#{line}" for line in block)
        else:
            yield from block


def _blocks(text: str) -> Iterator[list[str]]:
    """Yield the lines of the file. The lines of a setting that is continued with backslashes are one block."""
    block: list[str] = []
    for line in text.splitlines():
        block.append(line)
        continued = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        comment = len(block) == 1 and line.lstrip(" \t\f")[:1] in {"#", "!", ""}
        if not continued or comment:
            yield block
            block = []
    if block:
        yield block
