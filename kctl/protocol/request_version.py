"""The version of a request that kctl and the server both support."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kctl.errors import NotSupported, Reason

if TYPE_CHECKING:
    from kctl.protocol.connection import Connection


def negotiate(request: Any, pinned: int | None, connection: Connection) -> int:
    """Return the version for `request`: the pinned one if set, else the newest that both sides support.

    Raises NotSupported with the required Kafka release.
    """
    low, high = connection.api_versions.get(request.API_KEY, (0, -1))
    if pinned is not None:
        needed_low = needed_high = pinned
    else:
        requested_low, requested_high = _requested_range(request)
        needed_low, needed_high = max(requested_low, request.min_version), min(requested_high, request.max_version)
    version = min(high, needed_high)
    if version >= max(low, needed_low):
        return version
    name = request.name.removesuffix("Request")
    release = version_needed(request.API_KEY, needed_low) if high < needed_low else None
    if high < 0:
        since = f" (requires Kafka {release} or later)" if release else ""  # hints are not always shown
        what = f"{connection.address} does not have the API {name}{since}"
    else:
        limit = f"kctl requires {needed_low} or later" if high < needed_low else f"kctl supports up to {needed_high}"
        what = f"{connection.address} supports {name} versions {low} to {high}; {limit}"
    raise NotSupported(
        what, hint=f"upgrade to Kafka {release} or later" if release else None, reason=Reason.VERSION_UNSUPPORTED
    )


def _requested_range(request: Any) -> tuple[int, int]:
    """Return min_version and max_version that the caller set. kafka-python stores them in private slots."""
    low, high = getattr(request, "_min_version", None), getattr(request, "_max_version", None)
    return low if low is not None else 0, high if high is not None else 10**6


def version_needed(api_key: int, version: int) -> str | None:
    """Return the first Kafka release with this version of an API, e.g. "2.4"; None if unknown."""
    from kafka.protocol.broker_version_data import BROKER_API_VERSIONS

    for release in sorted(BROKER_API_VERSIONS):
        low, high = BROKER_API_VERSIONS[release].get(api_key, (0, -1))
        if low <= version <= high:
            return ".".join(map(str, release))
    return None
