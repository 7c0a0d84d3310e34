"""Defaults that were others in earlier or later releases than 3.9: a file says little without them.

Sources: KIP-106 (0.11), Kafka's documentation for 1.0, KIP-186 (2.0), KIP-537 (2.5), KIP-679 and KIP-735 (3.0),
KIP-1030 (4.0).
"""

from __future__ import annotations

from kctl.health.rule import Release, Releases

# setting → its default before a release
_BEFORE: dict[str, tuple[Release, str]] = {
    "unclean.leader.election.enable": ((0, 11), "true"),
    "delete.topic.enable": ((1, 0), "false"),
    "offsets.retention.minutes": ((2, 0), "1440"),
    "replica.lag.time.max.ms": ((2, 5), "10000"),
    "zookeeper.session.timeout.ms": ((2, 5), "6000"),
    "acks": ((3, 0), "1"),
    "enable.idempotence": ((3, 0), "false"),
    "session.timeout.ms": ((3, 0), "10000"),
}
# setting → its default since a release
_SINCE: dict[str, tuple[Release, str]] = {"linger.ms": ((4, 0), "5")}


def default_of(name: str, known: str | None, releases: Releases | None) -> str | None:
    """The default of a setting, `known` being that of 3.9. Pure."""
    if releases is None:
        return known
    if name in _BEFORE and releases.highest is not None and releases.highest < _BEFORE[name][0]:
        return _BEFORE[name][1]
    if name in _SINCE and releases.lowest >= _SINCE[name][0]:
        return _SINCE[name][1]
    return known
