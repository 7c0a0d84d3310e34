"""Finding the config that somebody names, and what to say of one that is not known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from kctl.base.suggestions import closest
from kctl.cluster.config_resources import Resource
from kctl.configs.model import Config
from kctl.errors import NotFound

_LISTENER = "listener.name."


def find_key(known: Mapping[str, Config], name: str) -> Config | None:
    """The config of a name; for «listener.name.LISTENER.[MECHANISM.]KEY» with the type of KEY. Pure."""
    own = known.get(name)
    if not name.startswith(_LISTENER):
        return own
    _, _, rest = name.removeprefix(_LISTENER).partition(".")
    for key in (rest, rest.partition(".")[2]):
        base = known.get(key)
        if base is not None:
            # With the prefix even those can be set that a broker otherwise reads only once (KIP-226).
            unset = replace(base, name=name, value=None, source=None, synonyms=())
            return replace(own or unset, type=base.type, sensitive=base.sensitive, read_only=False)
    return own


def unknown(resource: Resource, names: Iterable[str], known: Mapping[str, Config]) -> NotFound:
    """The error for names that a resource has no configs of, with the ones that were probably meant."""
    wrong = list(names)
    meant = list(dict.fromkeys(each for name in wrong for each in _alike(name, known)))
    text = ", ".join(wrong)
    return NotFound(
        f"{resource} has no config {text}" if len(wrong) == 1 else f"{resource} has no configs {text}",
        hint=f"did you mean {' or '.join(meant)}?"
        if meant
        else f"kctl config get {resource.path} --all shows what there is",
        details={"unknown": wrong, "did_you_mean": meant},
    )


def _alike(name: str, known: Mapping[str, Config]) -> list[str]:
    # A topic's config has the prefix «log.» on a broker, and the other way round.
    for other in (f"log.{name}", name.removeprefix("log.")):
        if other != name and other in known:
            return [other]
    return closest(name, known)
