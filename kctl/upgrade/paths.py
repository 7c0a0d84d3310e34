"""Which releases a cluster can be upgraded to in one step. Pure.

Sources: the upgrade notes of Kafka 3.9 and 4.0, KIP-500 (no ZooKeeper in 4.0), KIP-896 (old clients), KIP-1013 (Java).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kctl.deploy.layout import ClusterSpec, is_kafka_4
from kctl.deploy.runtime.jars import version_numbers
from kctl.deploy.runtime.runtime import DEFAULT_VERSION, KRAFT_VERSION
from kctl.errors import NotSupported, Reason, Refused

_FIRST_ZOOKEEPER_3_5 = (2, 4)  # earlier releases have ZooKeeper 3.4, whose data 3.5 and later may reject


def line_of(version: str) -> str:
    """Return the major and minor number, e.g. "3.9" for 3.9.2: the form of inter.broker.protocol.version."""
    return ".".join(map(str, version_numbers(version)[:2]))


def is_later(version: str, than: str) -> bool:
    """Return True if `version` is the newer release. Release candidates come before their release."""
    return _order(version) > _order(than)


def _order(version: str) -> tuple[tuple[int, ...], float]:
    candidate = re.search(r"-rc(\d+)$", version, re.IGNORECASE)
    return version_numbers(version), int(candidate[1]) if candidate else float("inf")


def check_path(spec: ClusterSpec, target: str) -> None:
    """Raise Refused for a downgrade, NotSupported if there is no direct way from the cluster's release to `target`."""
    source = spec.kafka_version
    if not is_later(target, source):
        raise Refused(
            f"cluster {spec.name} runs Kafka {source}, and cannot be downgraded to {target}",
            hint=f"an upgrade that is not finalized is undone by `kctl cluster rollback {spec.name}`",
            reason=Reason.VERSION_UNSUPPORTED,
        )
    if spec.uses_kraft:
        return  # Kafka 4 accepts metadata of 3.3 and later, and kctl's KRaft clusters begin with 3.9
    if is_kafka_4(target):
        first = "" if line_of(source) == "3.9" else f"upgrade to {DEFAULT_VERSION} and finalize; then "
        raise NotSupported(
            f"Kafka {target} does not support ZooKeeper, which cluster {spec.name} uses (Kafka {source})",
            hint=f"{first}migrate the metadata to KRaft as Kafka's documentation describes, which kctl does not do, "
            "or create a KRaft cluster and copy the topics with `kctl topic clone --data`",
        )
    if version_numbers(source) < _FIRST_ZOOKEEPER_3_5:
        raise NotSupported(
            f"cluster {spec.name} runs Kafka {source} with ZooKeeper 3.4, whose data later releases may reject",
            hint="upgrade it to 2.8 by hand first, or copy the topics to a new cluster with `kctl topic clone --data`",
        )


def path_warnings(source: str, target: str) -> Iterator[str]:
    """Yield warnings about what kctl cannot check, or does not know, for an upgrade from `source` to `target`."""
    if is_kafka_4(target) and not is_kafka_4(source):
        yield (
            "clients older than 2.1 cannot connect to Kafka 4 (KIP-896); brokers do not report their clients in the "
            "Kafka protocol, so check the metric DeprecatedRequestsPerSec first"
        )
    if is_later(target, KRAFT_VERSION) and line_of(target) != line_of(KRAFT_VERSION):
        yield f"kctl knows the settings of Kafka {KRAFT_VERSION}, but not those of {target}"
