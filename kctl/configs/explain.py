"""What a config means, as the cluster's own version documents it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.cluster.config_resources import Kind, Resource
from kctl.cluster.topic_configs import ConfigSource
from kctl.configs.describe import by_name, describe_each
from kctl.configs.keys import find_key, unknown
from kctl.configs.model import Config
from kctl.configs.quota_configs import quota_configs
from kctl.errors import ConnectionFailed, KctlError, NotAuthorized, NotFound, OperationFailed, Refused

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a config of a kind of resource («topic», «broker», «user» and «ip» for quotas) means.

    server_config: for a topic's config the name that its default has in server.properties.
    """

    name: str
    of: Kind
    type: str
    default: str | None
    sensitive: bool
    read_only: bool
    server_config: str | None
    documentation: str | None


def explain(client: ClusterClient, names: Sequence[str]) -> tuple[list[Explanation], list[str]]:
    """What each name means, for brokers, topics and quotas; and what could not be asked, as warnings.

    Raises NotFound for a name that neither has; Refused, NotAuthorized or OperationFailed for one that those may have
    who could not be asked; what a broker refused when nothing could be asked.
    """
    quotas: dict[Kind, Mapping[str, Config]] = {
        all_.kind: by_name(quota_configs(all_, {})) for all_ in (Resource("user", ""), Resource("ip", ""))
    }
    if all(any(name in each for each in quotas.values()) for name in names):  # of these kctl knows all itself
        return explanations(names, quotas, Resource("users", "")), []
    answers, warnings = _ask(client)
    known: dict[Kind, Mapping[str, Config]] = {}
    for resource, answer in answers.items():
        if isinstance(answer, KctlError):
            warnings.append(f"what a {resource.kind} can have is not told: {answer.message}")
        else:
            known[resource.kind] = by_name(answer)
    if not known:
        for answer in answers.values():
            if isinstance(answer, KctlError):
                raise answer
        raise OperationFailed("no broker is there to be asked")
    try:
        return explanations(names, known | quotas, next(each for each in answers if each.kind in known)), warnings
    except NotFound as exc:
        if not warnings:
            raise
        raise _not_told(exc, warnings, answers.values()) from None


def _ask(client: ClusterClient) -> tuple[dict[Resource, list[Config] | KctlError], list[str]]:
    """All configs of a broker and of a topic, or why they are not told; and a warning when there is no topic."""
    state = client.metadata()
    answers: dict[Resource, list[Config] | KctlError] = {}
    for node in sorted(state.brokers):  # any will do that can be reached
        asked = Resource.broker(node)
        answers = describe_each(client, [asked], documentation=True)
        if not isinstance(answers[asked], ConnectionFailed):
            break
    if not state.topics:  # a topic has to be there to be asked about; any will do
        return answers, ["the cluster has no topic: what topics can have is not told"]
    return answers | describe_each(client, [Resource.topic(min(state.topics))], documentation=True), []


def _not_told(absent: NotFound, warnings: Sequence[str], answers: Iterable[object]) -> KctlError:
    """The error for names that those who told do not have, when others did not tell. Pure."""
    text = "; ".join((absent.message, *warnings))
    errors = [answer for answer in answers if isinstance(answer, KctlError)]
    if not errors:
        return Refused(text, hint="`kctl topic create` makes a topic that can be asked about")
    if all(isinstance(error, NotAuthorized) for error in errors):
        return NotAuthorized(text, hint=errors[0].hint, details=errors[0].details)
    return OperationFailed(text, hint=errors[0].hint)


def explanations(
    names: Iterable[str], known: Mapping[Kind, Mapping[str, Config]], asked: Resource
) -> list[Explanation]:
    """For each name, topics first, what is known of it. Raises NotFound. Pure."""
    found: list[Explanation] = []
    missing = []
    for name in dict.fromkeys(names):
        configs = [(kind, config) for kind in sorted(known, reverse=True) if (config := find_key(known[kind], name))]
        found += [_explained(kind, config) for kind, config in configs]
        if not configs:
            missing.append(name)
    if missing:
        raise unknown(asked, missing, {name: c for each in known.values() for name, c in each.items()})
    return found


def _explained(kind: Kind, config: Config) -> Explanation:
    default = next((s for s in config.synonyms if s.source is ConfigSource.DEFAULT), None)
    other = next((s.name for s in reversed(config.synonyms) if s.name != config.name), None)
    return Explanation(
        config.name,
        kind,
        config.type,
        config.default if default is None else default.value,
        config.sensitive,
        config.read_only,
        other if kind == "topic" else None,
        config.documentation,
    )
