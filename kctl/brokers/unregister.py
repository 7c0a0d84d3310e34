"""Remove the registration of a lost broker from a KRaft cluster (KIP-185, KIP-500)."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.base.deadline import Deadline
from kctl.base.text import counted
from kctl.cluster.membership import fenced_brokers
from kctl.errors import KctlError, NotFound, NotSupported, OperationFailed, Reason, Refused
from kctl.health.partitions import partitions_of
from kctl.protocol.codes import ApiKey
from kctl.protocol.message_classes import request_class

if TYPE_CHECKING:
    from kctl.model import Broker, ClusterState
    from kctl.protocol.client import ClusterClient

_POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class Unregistration:
    """A planned removal of a registration. host, port: the address that the broker had."""

    broker: int
    host: str
    port: int


def plan_unregister(client: ClusterClient, broker: int) -> Unregistration:
    """Plan the removal. The broker must be down and host no replicas.

    Raises NotSupported (ZooKeeper, or Kafka before 4.0, where registrations cannot be read), NotFound, Refused.
    """
    if client.api_version(ApiKey.UNREGISTER_BROKER) is None:
        raise NotSupported("the cluster uses ZooKeeper: the registration of a broker ends with its session")
    registered = fenced_brokers(client)
    if isinstance(registered, KctlError):
        raise registered
    return check_unregister(client.metadata(), registered, broker)


def check_unregister(state: ClusterState, fenced: dict[int, Broker], broker: int) -> Unregistration:
    """Return the plan for a broker that is registered, down, and without replicas. Pure. Raises NotFound, Refused."""
    if broker in state.brokers:
        raise Refused(f"broker {broker} is up", hint="stop it for good first", reason=Reason.NOT_READY)
    hosted = [p.tp for p in partitions_of(state) if broker in p.replicas]
    if hosted:
        raise Refused(
            f"broker {broker} hosts replicas of {counted(len(hosted), 'partition')}, e.g. {hosted[0]}",
            hint=f"move them first: `kctl topic reassign plan --drain {broker}`",
            reason=Reason.NOT_READY,
        )
    if broker not in fenced:
        registered = ", ".join(map(str, sorted({*state.brokers, *fenced})))
        raise NotFound(f"broker {broker} is not registered", hint=f"registered brokers: {registered}")
    return Unregistration(broker, fenced[broker].host, fenced[broker].port)


def unregister(client: ClusterClient, plan: Unregistration, *, timeout_s: float) -> None:
    """Remove the registration, and wait until the broker is no longer registered. Raises OperationFailed."""
    from kctl.protocol.client import error_for

    answer = client.send(request_class(__package__, "UnregisterBroker")(broker_id=plan.broker))
    if answer.error_code:
        raise error_for(answer.error_code, answer.error_message, subject=f"broker {plan.broker}")
    deadline = Deadline(timeout_s)
    while True:
        registered = fenced_brokers(client)
        if not isinstance(registered, KctlError) and plan.broker not in registered:
            return
        if deadline.expired:
            raise OperationFailed(
                f"broker {plan.broker} is still registered", hint="run the command again; see `kctl broker list`"
            )
        time.sleep(_POLL_S)
