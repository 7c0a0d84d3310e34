"""Look up configs by name, and report unknown names with suggestions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from kctl.base.suggestions import closest
from kctl.cluster.config_resources import Resource
from kctl.configs.model import Config
from kctl.errors import NotFound

_LISTENER = "listener.name."


def find_key(configs_by_name: Mapping[str, Config], name: str) -> Config | None:
    """Return the config of a name; for "listener.name.LISTENER.[MECHANISM.]KEY" with the type of KEY. Pure."""
    exact = configs_by_name.get(name)
    if not name.startswith(_LISTENER):
        return exact
    _, _, rest = name.removeprefix(_LISTENER).partition(".")
    for key in (rest, rest.partition(".")[2]):
        base = configs_by_name.get(key)
        if base is not None:
            # With the prefix, even configs that are otherwise read-only can be set (KIP-226).
            unset = replace(base, name=name, value=None, source=None, synonyms=())
            return replace(exact or unset, type=base.type, sensitive=base.sensitive, read_only=False)
    return exact


def unknown(resource: Resource, names: Iterable[str], configs_by_name: Mapping[str, Config]) -> NotFound:
    """Return the error for names that are not configs of a resource, with suggestions."""
    missing = list(names)
    suggestions = list(dict.fromkeys(each for name in missing for each in _alike(name, configs_by_name)))
    text = ", ".join(missing)
    return NotFound(
        f"{resource} has no config {text}" if len(missing) == 1 else f"{resource} has no configs {text}",
        hint=f"did you mean {' or '.join(suggestions)}?"
        if suggestions
        else f"run `kctl config get {resource.path} --all` to see all configs",
        details={"unknown": missing, "did_you_mean": suggestions},
    )


def _alike(name: str, configs_by_name: Mapping[str, Config]) -> list[str]:
    # A topic config has the prefix "log." on a broker, and vice versa.
    for other in (f"log.{name}", name.removeprefix("log.")):
        if other != name and other in configs_by_name:
            return [other]
    return closest(name, configs_by_name)
