"""The meaning of configs, as documented by the cluster's version of Kafka."""

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


_OTHERS: tuple[Kind, ...] = ("group", "client-metrics")
_ANY_NAME = "kctl"


@dataclass(frozen=True, slots=True)
class Explanation:
    """The meaning of a config of a kind of resource ("topic", "broker", "group"; "user" and "ip" for quotas).

    server_config: for a topic config, the name of its default in server.properties.
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
    """Return the meaning of each name for brokers, topics, groups, client metrics subscriptions and quotas, and
    warnings about what could not be read.

    Raises NotFound for an unknown name; Refused, NotAuthorized or OperationFailed if the name may belong to a resource
    that could not be read; the broker's error if nothing could be read.
    """
    quotas: dict[Kind, Mapping[str, Config]] = {
        all_.kind: by_name(quota_configs(all_, {})) for all_ in (Resource("user", ""), Resource("ip", ""))
    }
    if all(any(name in each for each in quotas.values()) for name in names):  # kctl knows the quotas itself
        return explanations(names, quotas, Resource("users", "")), []
    answers, warnings = _ask(client)
    configs_by_kind: dict[Kind, Mapping[str, Config]] = {}
    for resource, answer in answers.items():
        if isinstance(answer, KctlError):
            warnings.append(f"the configs of a {resource.kind} are unknown: {answer.message}")
        else:
            configs_by_kind[resource.kind] = by_name(answer)
    if not configs_by_kind:
        for answer in answers.values():
            if isinstance(answer, KctlError):
                raise answer
        raise OperationFailed("no broker is available")
    described = next(each for each in answers if each.kind in configs_by_kind)
    others = _ask_others(client, names, configs_by_kind | quotas)
    configs_by_kind |= {
        resource.kind: by_name(answer) for resource, answer in others.items() if not isinstance(answer, KctlError)
    }
    try:
        return explanations(names, configs_by_kind | quotas, described), warnings
    except NotFound as exc:
        if warnings:
            raise _incomplete(exc, warnings, answers.values()) from None
        hidden = [answer for answer in others.values() if isinstance(answer, NotAuthorized)]
        if hidden:
            raise _incomplete(exc, [error.message for error in hidden], hidden) from None
        raise


def _ask(client: ClusterClient) -> tuple[dict[Resource, list[Config] | KctlError], list[str]]:
    """Return all configs of a broker and of a topic, or the errors; and a warning if there is no topic."""
    state = client.metadata()
    answers: dict[Resource, list[Config] | KctlError] = {}
    for node in sorted(state.brokers):  # any reachable broker
        broker = Resource.broker(node)
        answers = describe_each(client, [broker], documentation=True)
        if not isinstance(answers[broker], ConnectionFailed):
            break
    if not state.topics:  # configs of topics can only be described for an existing topic
        return answers, ["the cluster has no topic: the configs of topics are unknown"]
    return answers | describe_each(client, [Resource.topic(min(state.topics))], documentation=True), []


def _ask_others(
    client: ClusterClient, names: Sequence[str], known: Mapping[Kind, Mapping[str, Config]]
) -> dict[Resource, list[Config] | KctlError]:
    """Return all configs of a group and of a client metrics subscription, or the errors, if a name is still unknown.

    Both need not exist to be described (Kafka 4.0; ConfigHelper.describeConfigs).
    """
    if all(any(find_key(configs, name) for configs in known.values()) for name in names):
        return {}
    return describe_each(client, [Resource(kind, _ANY_NAME) for kind in _OTHERS], documentation=True)


def _incomplete(absent: NotFound, warnings: Sequence[str], answers: Iterable[object]) -> KctlError:
    """Return the error for unknown names if not all kinds of resources could be read. Pure."""
    text = "; ".join((absent.message, *warnings))
    errors = [answer for answer in answers if isinstance(answer, KctlError)]
    if not errors:
        return Refused(text, hint="create a topic with `kctl topic create`, and try again")
    if all(isinstance(error, NotAuthorized) for error in errors):
        return NotAuthorized(text, hint=errors[0].hint, details=errors[0].details)
    return OperationFailed(text, hint=errors[0].hint)


def explanations(
    names: Iterable[str], configs_by_kind: Mapping[Kind, Mapping[str, Config]], resource: Resource
) -> list[Explanation]:
    """Return what is known about each name, topics first. Raises NotFound. Pure."""
    results: list[Explanation] = []
    missing = []
    for name in dict.fromkeys(names):
        configs = [
            (kind, config)
            for kind in sorted(configs_by_kind, reverse=True)
            if (config := find_key(configs_by_kind[kind], name))
        ]
        results += [_explained(kind, config) for kind, config in configs]
        if not configs:
            missing.append(name)
    if missing:
        raise unknown(resource, missing, {name: c for each in configs_by_kind.values() for name, c in each.items()})
    return results


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
