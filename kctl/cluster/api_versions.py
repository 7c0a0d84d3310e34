"""Broker capabilities: supported requests and their versions, features, and the release that these imply.

One ApiVersions request to each broker (KIP-35, features: KIP-584), as kafka-broker-api-versions and kafka-features
send.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from kctl.errors import KctlError
from kctl.protocol.codes import api_name

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


class VersionRange(NamedTuple):
    """The lowest and highest supported version of a request."""

    lowest: int
    highest: int


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature.

    min_version, max_version: what the broker supports; None if the feature is finalized but unknown to the broker.
    finalized_version: the level finalized for the whole cluster; None if the feature is not in use.
    """

    feature: str
    min_version: int | None
    max_version: int | None
    finalized_version: int | None


@dataclass(frozen=True, slots=True)
class BrokerApis:
    """The requests and features that a broker supports.

    versions: by API key. finalized_epoch: epoch of the finalized features; None if the broker knows none.
    """

    versions: Mapping[int, VersionRange]
    features: tuple[Feature, ...]
    finalized_epoch: int | None


@dataclass(frozen=True, slots=True)
class ApiOfBrokers:
    """A request and its versions by broker. same: all brokers that responded support the same versions."""

    api_key: int
    api: str
    same: bool
    versions: tuple[BrokersVersions, ...]


@dataclass(frozen=True, slots=True)
class BrokersVersions:
    """Brokers that support the same versions. min_version, max_version: None if the brokers lack the request."""

    brokers: tuple[int, ...]
    min_version: int | None
    max_version: int | None


@dataclass(frozen=True, slots=True)
class FeatureOfBrokers:
    """A feature, and brokers that support it identically; see Feature. finalized_epoch: the newest of these brokers."""

    feature: str
    brokers: tuple[int, ...]
    min_version: int | None
    max_version: int | None
    finalized_version: int | None
    finalized_epoch: int | None


def fetch_api_versions(client: ClusterClient, brokers: Collection[int]) -> dict[int, BrokerApis | KctlError]:
    """Return what each broker supports; a KctlError for a broker that does not respond."""
    answers = client.send_each({node: api_versions_request() for node in sorted(brokers)})
    return {node: parse_api_versions(f"broker {node}", answer) for node, answer in answers.items()}


def api_versions_request() -> Any:
    """Return the request that brokers and controllers answer with what they support."""
    from kafka.protocol.metadata import ApiVersionsRequest

    from kctl import __version__
    from kctl.protocol.wire import CLIENT_ID

    return ApiVersionsRequest(client_software_name=CLIENT_ID, client_software_version=__version__)


def parse_api_versions(node: str, answer: Any) -> BrokerApis | KctlError:
    """Return what a node supports, from its response; a KctlError if it is or reports an error. node: for the error."""
    from kctl.protocol.client import error_for

    if isinstance(answer, KctlError):
        return answer
    if answer.error_code:
        return error_for(answer.error_code, None, subject=f"the API versions of {node}")
    epoch = getattr(answer, "finalized_features_epoch", None)
    return BrokerApis(
        versions={row.api_key: VersionRange(row.min_version, row.max_version) for row in answer.api_keys},
        features=_features(answer),
        finalized_epoch=None if epoch is None or epoch < 0 or not answer.finalized_features else epoch,
    )


def _features(answer: Any) -> tuple[Feature, ...]:
    supported = {row.name: row for row in getattr(answer, "supported_features", None) or ()}
    finalized = {row.name: row.max_version_level for row in getattr(answer, "finalized_features", None) or ()}
    return tuple(
        Feature(
            name,
            supported[name].min_version if name in supported else None,
            supported[name].max_version if name in supported else None,
            finalized.get(name),
        )
        for name in sorted(supported.keys() | finalized.keys())
    )


def compare_apis(apis: Mapping[int, BrokerApis]) -> list[ApiOfBrokers]:
    """Return every request that any broker supports, by API key."""
    keys = sorted({key for broker in apis.values() for key in broker.versions})
    return [_compared(key, apis) for key in keys]


def _compared(key: int, apis: Mapping[int, BrokerApis]) -> ApiOfBrokers:
    holders: dict[VersionRange | None, list[int]] = {}
    for node in sorted(apis):
        holders.setdefault(apis[node].versions.get(key), []).append(node)
    rows = tuple(
        BrokersVersions(tuple(nodes), supported.lowest if supported else None, supported.highest if supported else None)
        for supported, nodes in holders.items()
    )
    return ApiOfBrokers(key, api_name(key), len(rows) == 1, rows)


def features_of(apis: Mapping[int, BrokerApis]) -> list[FeatureOfBrokers]:
    """Return every feature, by name; several rows if brokers differ."""
    holders: dict[Feature, list[int]] = {}
    for node in sorted(apis):
        for each in apis[node].features:
            holders.setdefault(each, []).append(node)
    return [
        FeatureOfBrokers(
            feature.feature,
            tuple(nodes),
            feature.min_version,
            feature.max_version,
            feature.finalized_version,
            max((epoch for node in nodes if (epoch := apis[node].finalized_epoch) is not None), default=None),
        )
        for feature, nodes in sorted(holders.items(), key=lambda item: (item[0].feature, item[1]))
    ]


def release_of(versions: Mapping[int, VersionRange]) -> str | None:
    """Return the release that a broker appears to run, e.g. "3.9", "4.2+" for the newest; None: too old to determine.

    Brokers do not report their release. It is the newest release whose requests are all supported in at least its
    versions; releases that cannot be distinguished are returned as a range.
    """
    from kafka.protocol.broker_version_data import BROKER_API_VERSIONS

    candidates = [
        release
        for release, ranges in BROKER_API_VERSIONS.items()
        if all(versions[key].highest >= highest for key, (_, highest) in ranges.items() if key in versions)
        and ranges.keys() & versions.keys()
    ]
    if not candidates:
        return None
    newest = max(candidates)
    indistinguishable = [
        release
        for release in candidates
        if all(
            BROKER_API_VERSIONS[release].get(key) == BROKER_API_VERSIONS[newest].get(key)
            for key in BROKER_API_VERSIONS[newest]
            if key in versions
        )
    ]
    first, last = (".".join(map(str, release)) for release in (min(indistinguishable), newest))
    if newest == max(BROKER_API_VERSIONS):
        return f"{first}+"
    return first if first == last else f"{first} to {last}"
