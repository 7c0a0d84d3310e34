"""Defaults that differ between Kafka releases. The effective value of an unset setting depends on them.

Sources: KIP-106 (0.11), Kafka's documentation for 1.0, KIP-186, KIP-266 and KIP-294 (2.0), KIP-91 (2.1), KIP-537 (2.5),
KIP-679 and KIP-735 (3.0), KIP-1030 (4.0).
"""

from __future__ import annotations

from collections.abc import Iterable

from kctl.doctor.releases import Release, Releases, is_single_release

# setting → (release, its default before that release)
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
# setting → (release, its default since that release)
_SINCE: dict[str, tuple[Release, str]] = {
    "linger.ms": ((4, 0), "5"),
    "log.message.timestamp.after.max.ms": ((4, 0), "3600000"),
}
# Like _BEFORE, for settings whose default depends on the client role.
_BEFORE_OF: dict[str, dict[str, tuple[Release, str]]] = {
    "producer": {"retries": ((2, 1), "0")},
    "consumer": {"request.timeout.ms": ((2, 0), "305000")},
}
# setting → (patch releases with a bug that disabled the new default, the default they used). KAFKA-13598.
_BUGGY_RELEASES: dict[str, tuple[tuple[Release, ...], str]] = {"enable.idempotence": (((3, 0, 0), (3, 1, 0)), "false")}


def default_of(
    name: str, default_in_3_9: str | None, releases: Releases | None, roles: Iterable[str] = ()
) -> str | None:
    """Return the default of a setting in the given releases. Pure.

    The default of Kafka 3.9 is used if `releases` is None, or covers both the old and the new default.

    roles: of a client file: "producer", "consumer".
    """
    if releases is None:
        return default_in_3_9
    for before in (_BEFORE, *(_BEFORE_OF[role] for role in roles)):
        if name in before and releases.highest is not None and releases.highest < before[name][0]:
            return before[name][1]
    if name in _BUGGY_RELEASES and is_single_release(releases) and releases.lowest in _BUGGY_RELEASES[name][0]:
        return _BUGGY_RELEASES[name][1]
    if name in _SINCE and releases.lowest >= _SINCE[name][0]:
        return _SINCE[name][1]
    return default_in_3_9
