"""Change levels of features (UpdateFeatures, KIP-584 and KIP-778), and read the levels back."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kctl.base.deadline import Deadline
from kctl.base.text import some_of
from kctl.cluster.unchanged import Basis, ObjectFacts
from kctl.errors import ConnectionTimedOut, KctlError, OperationFailed, OutcomeUnknown, Reason
from kctl.features.facts import read_levels, read_levels_of_each
from kctl.features.levels import ELR_VERSION, level_name
from kctl.features.min_insync_replicas import min_isr_warnings
from kctl.features.plan import FeaturePlan
from kctl.protocol.codes import ApiKey, ErrorCode

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_POLL_S = 0.2
_ALL_REFUSED = "The update failed for all features since the following feature had an error: "


def check(client: ClusterClient, plan: FeaturePlan) -> FeaturePlan:
    """Let the controller validate the plan, and return the plan with warnings about this cluster.

    Changes nothing. Raises Refused with the controller's reason, NotAuthorized, NotSupported (before Kafka 3.3),
    subclasses of ConnectionFailed.
    """
    if not plan.changed:
        return plan
    try:
        _send(client, plan, timeout_s=client.timeout_s, validate_only=True)
    except ConnectionTimedOut as exc:
        hint = "the metadata quorum may have no leader; see `kctl controller`"
        raise exc.reworded(f"{exc.message}; nothing was changed", hint=hint) from None
    if not plan.raises_to(ELR_VERSION, 1):
        return plan
    return replace(plan, warnings=(*plan.warnings, *min_isr_warnings(client)))


def unchanged(client: ClusterClient, plan: FeaturePlan) -> Basis:
    """Return the levels that the plan is based on, to compare them again after the confirmation."""
    names = [each.feature for each in plan.changes]

    def read_facts() -> ObjectFacts:
        levels = read_levels(client)
        return {"the cluster": {name: level_name(name, levels.get(name, 0)) for name in names}}

    return Basis({"the cluster": {each.feature: each.before_name for each in plan.changes}}, read_facts)


def apply(client: ClusterClient, plan: FeaturePlan, *, timeout_s: float) -> FeaturePlan:
    """Apply the plan, wait until every live broker reports the new levels, and return the plan with its results.

    Raises Refused if the controller rejects the change (nothing was changed), OperationFailed if the levels differ in
    the end.
    """
    if not plan.changed:
        return plan
    deadline = Deadline(timeout_s)
    unanswered: OutcomeUnknown | None = None
    try:
        _send(client, plan, timeout_s=timeout_s, validate_only=False)
    except OutcomeUnknown as exc:  # the levels show whether it was applied
        unanswered = exc
    while (missing := _not_yet(client, plan)) is not None:
        if deadline.expired:
            cause = f": {unanswered.message}" if unanswered is not None else ""
            raise OperationFailed(
                f"outcome unknown{cause}; {missing}",
                hint="check the levels with `kctl feature list`, then run the command again",
                reason=Reason.OUTCOME_UNKNOWN,
            )
        time.sleep(_POLL_S)
    return replace(
        plan,
        changes=tuple(replace(each, result=each.result.done) if each.result.planned else each for each in plan.changes),
    )


def _not_yet(client: ClusterClient, plan: FeaturePlan) -> str | None:
    """Return the levels that are not yet in force on a live broker, as text; None if all are."""
    try:
        finalized = read_levels_of_each(client)
    except KctlError as exc:
        return f"the levels cannot be read: {exc.message}"
    if not finalized:
        return "the levels cannot be read: no broker responds"
    late = [
        f"broker {node} has {feature} {level_name(feature, levels.get(feature, 0))}"
        for node, levels in sorted(finalized.items())
        for feature, level in plan.targets.items()
        if levels.get(feature, 0) != level
    ]
    return some_of(late) if late else None


def _send(client: ClusterClient, plan: FeaturePlan, *, timeout_s: float, validate_only: bool) -> None:
    from kafka.protocol.admin import UpdateFeaturesRequest

    client.require(ApiKey.UPDATE_FEATURES, 1, "changes of feature levels")
    update = UpdateFeaturesRequest.FeatureUpdateKey
    request = UpdateFeaturesRequest(
        timeout_ms=round(timeout_s * 1000),
        feature_updates=[
            update(feature=feature, max_version_level=level, upgrade_type=plan.type.value)
            for feature, level in plan.targets.items()
        ],
        validate_only=validate_only,
    )
    answer = client.send(request, timeout_s=timeout_s, changes=not validate_only)
    _check(answer)


def _check(answer: Any) -> None:
    """Raise the error of a response. Version 1 also has one error per feature; version 2 has only one for all."""
    from kctl.protocol.client import error_for

    if answer.error_code:
        message = (answer.error_message or "").removeprefix(_ALL_REFUSED)
        denied = answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        hint = "requires the ACL operation ALTER on the cluster" if denied else None
        raise error_for(answer.error_code, message, subject="the features", hint=hint)
    for row in getattr(answer, "results", None) or ():
        if row.error_code:
            raise error_for(row.error_code, row.error_message, subject=row.feature)
