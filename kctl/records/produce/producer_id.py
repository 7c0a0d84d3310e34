"""Producer ids, by which brokers recognize a retried batch (KIP-98)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from kctl.base.deadline import Deadline
from kctl.errors import ConnectionFailed, KctlError, NotAuthorized, OperationFailed, OutcomeUnknown
from kctl.protocol.codes import ErrorCode
from kctl.protocol.error_meanings import LOOK_UP_AGAIN, error_for

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_COORDINATOR_POLL_S = 0.1


def producer_id(client: ClusterClient, timeout_s: float) -> tuple[int, int]:
    """Return a new producer id and its epoch, for idempotence.

    Raises OperationFailed if no broker returns one in time, NotAuthorized.
    """
    from kafka.protocol.producer import InitProducerIdRequest

    deadline = Deadline(timeout_s)
    while True:
        failure: KctlError
        request = InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1
        )
        try:
            answer = client.send(request, timeout_s=max(0.1, deadline.left_s))
        except (ConnectionFailed, OutcomeUnknown) as exc:  # an unused id does no harm
            failure = exc
        else:
            if not answer.error_code:
                return answer.producer_id, answer.producer_epoch
            failure = error_for(answer.error_code, None, subject="producer id")
            if answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
                raise NotAuthorized(
                    "not authorized to write with idempotence (CLUSTER_AUTHORIZATION_FAILED)",
                    hint="ask for the ACL operation Write on the topic (before 2.8: IdempotentWrite on the cluster);"
                    " or add --no-idempotence",
                )
            if answer.error_code not in LOOK_UP_AGAIN:
                raise failure
        if deadline.expired:
            raise OperationFailed(
                f"no broker returned a producer id within {timeout_s:g} s: nothing was sent ({failure.message})",
                hint="check the controller and ZooKeeper, which assign the ids;"
                " or add --no-idempotence, which stops at the first lost response",
            )
        time.sleep(min(_COORDINATOR_POLL_S, deadline.left_s))
