"""Compare configs of resources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kctl.base.config_values import comparable
from kctl.base.grouping import grouped
from kctl.configs.model import Config

# Configs that are specific to a broker.
OF_ONE_BROKER = frozenset(
    {
        *("advertised.listeners", "listeners", "controller.listener.names"),
        *("broker.id", "node.id", "broker.rack", "process.roles"),
        *("log.dir", "log.dirs", "metadata.log.dir", "cordoned.log.dirs"),
    }
)


@dataclass(frozen=True, slots=True)
class Value:
    """A value, its source, and the resources (`topic/orders`, `broker/1`) that have it. Both None: not set."""

    value: str | None
    source: str | None
    resources: list[str]


@dataclass(frozen=True, slots=True)
class Difference:
    """A config and its different values. sensitive: values are not disclosed; all that are set count as one."""

    name: str
    sensitive: bool
    values: list[Value]


def differences(
    configs: Mapping[str, Sequence[Config]], *, leave_out: frozenset[str] = frozenset()
) -> list[Difference]:
    """Return the configs that differ between resources, by name. Pure.

    configs: resource → its configs. A config that a resource does not know counts as not set.
    """
    by_resource = {resource: {config.name: config for config in each} for resource, each in configs.items()}
    names = sorted({name for each in by_resource.values() for name in each} - leave_out)
    results = []
    for name in names:
        rows = [(resource, each.get(name)) for resource, each in by_resource.items()]
        values = [_value(group) for group in grouped(rows, lambda row: _key(row[1])).values()]
        if len(values) > 1:
            results.append(Difference(name, any(c is not None and c.sensitive for _, c in rows), values))
    return results


def _key(config: Config | None) -> tuple[bool, object]:
    """Return the value to compare; for a sensitive config, only whether it is set."""
    if config is None:
        return False, None
    if config.sensitive:
        return not config.is_default, None
    return True, None if config.value is None else comparable(config.type, config.value)


def _value(rows: Sequence[tuple[str, Config | None]]) -> Value:
    config = rows[0][1]
    sources = {c.source.value for _, c in rows if c is not None and c.source is not None}
    return Value(
        None if config is None else config.value,
        ", ".join(sorted(sources)) or None,
        [resource for resource, _ in rows],
    )


def not_compared(configs: Mapping[str, Sequence[Config]]) -> list[str]:
    """Return sensitive configs that several resources have set: whether their values are equal is unknown. Pure."""
    counts: dict[str, int] = {}
    for each in configs.values():
        for config in each:
            if config.sensitive and not config.is_default:
                counts[config.name] = counts.get(config.name, 0) + 1
    return sorted(name for name, count in counts.items() if count > 1)
