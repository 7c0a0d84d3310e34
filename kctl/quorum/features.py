"""kraft.version, the feature that makes the voters dynamic (KIP-853)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from kctl.base.deadline import Deadline
from kctl.errors import KctlError, OperationFailed
from kctl.quorum.facts import KRAFT_VERSION, finalized_features

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

DYNAMIC_VOTERS = 1  # level of kraft.version
_UPGRADE = 1  # UpgradeType of UpdateFeatures
_POLL_S = 0.2


def raise_kraft_version(client: ClusterClient, *, validate_only: bool = False, timeout_s: float = 30.0) -> None:
    """Finalize kraft.version 1, and wait until brokers report it. It cannot be lowered again.

    validate_only: let the controller check the change, and change nothing. Raises the error of the controller, e.g. if
    a voter does not support the level; OperationFailed if it does not take effect in time.
    """
    from kafka.protocol.admin import UpdateFeaturesRequest

    from kctl.protocol.client import error_for

    update = UpdateFeaturesRequest.FeatureUpdateKey(
        feature=KRAFT_VERSION, max_version_level=DYNAMIC_VOTERS, upgrade_type=_UPGRADE
    )
    request = UpdateFeaturesRequest(
        timeout_ms=round(timeout_s * 1000), feature_updates=[update], validate_only=validate_only, min_version=1
    )
    answer = client.send_to_quorum(request)
    for row in (answer, *(getattr(answer, "results", None) or ())):
        if row.error_code:
            raise error_for(row.error_code, row.error_message, subject=KRAFT_VERSION)
    if not validate_only:
        _await_level(client, Deadline(timeout_s))


def _await_level(client: ClusterClient, deadline: Deadline) -> None:
    while True:
        try:
            levels = finalized_features(client) or {}
        except KctlError:
            levels = {}
        if levels.get(KRAFT_VERSION, 0) >= DYNAMIC_VOTERS:
            return
        if deadline.expired:
            raise OperationFailed(
                f"{KRAFT_VERSION} is not {DYNAMIC_VOTERS} yet", hint="look at `kctl quorum status`, then run it again"
            )
        time.sleep(_POLL_S)
