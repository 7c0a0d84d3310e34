"""Defaults that were others in earlier or later releases than 3.9: a file says little without them.

Sources: KIP-106 (0.11), Kafka's documentation for 1.0, KIP-186, KIP-266 and KIP-294 (2.0), KIP-91 (2.1), KIP-537 (2.5),
KIP-679 and KIP-735 (3.0), KIP-1030 (4.0).
"""

from __future__ import annotations

from collections.abc import Iterable

from kctl.doctor.releases import Release, Releases, same

# setting → its default before a release
_BEFORE: dict[str, tuple[Release, str]] = {
    "unclean.leader.election.enable": ((0, 11), "true"),
    "delete.topic.enable": ((1, 0), "false"),
    "offsets.retention.minutes": ((2, 0), "1440"),
    "ssl.endpoint.identification.algorithm": ((2, 0), ""),
    "replica.lag.time.max.ms": ((2, 5), "10000"),
    "zookeeper.session.timeout.ms": ((2, 5), "6000"),
    "acks": ((3, 0), "1"),
    "enable.idempotence": ((3, 0), "false"),
    "session.timeout.ms": ((3, 0), "10000"),
}
# setting → its default since a release
_SINCE: dict[str, tuple[Release, str]] = {
    "linger.ms": ((4, 0), "5"),
    "log.message.timestamp.after.max.ms": ((4, 0), "3600000"),
}
# The same of one kind of client only, where others had the same name with another default.
_BEFORE_OF: dict[str, dict[str, tuple[Release, str]]] = {
    "producer": {"retries": ((2, 1), "0")},
    "consumer": {"request.timeout.ms": ((2, 0), "305000")},
}


# setting → the very releases in which its default did not come into force, and what held (KAFKA-13598).
_NOT_IN: dict[str, tuple[tuple[Release, ...], str]] = {"enable.idempotence": (((3, 0, 0), (3, 1, 0)), "false")}


def default_of(name: str, known: str | None, releases: Releases | None, roles: Iterable[str] = ()) -> str | None:
    """The default of a setting, `known` being that of 3.9. roles: of a client, «producer», «consumer». Pure."""
    if releases is None:
        return known
    for before in (_BEFORE, *(_BEFORE_OF[role] for role in roles)):
        if name in before and releases.highest is not None and releases.highest < before[name][0]:
            return before[name][1]
    if name in _NOT_IN and same(releases) and releases.lowest in _NOT_IN[name][0]:
        return _NOT_IN[name][1]
    if name in _SINCE and releases.lowest >= _SINCE[name][0]:
        return _SINCE[name][1]
    return known
