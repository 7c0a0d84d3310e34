"""Cancel a plan's moves without its journal: it is on another machine, lost, or Kafka's own tool started the moves.

The plan's moves in flight and their throttles are read from the cluster and recorded as an unfinished run of this
machine. `kctl.reassign.run.run.cancel` then cancels it like any run, and can be killed at any moment.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kctl.base.journal import Journal
from kctl.errors import OperationFailed, Reason, Refused
from kctl.reassign.plan_file.read import PlanFile
from kctl.reassign.planner.assignment import Reassignment
from kctl.reassign.run import journals
from kctl.reassign.run.compare import PlanPosition, PlanView, log_dir_copies, named_brokers, places_of, position_of
from kctl.reassign.run.live_state import LiveState, read_live
from kctl.reassign.run.run_plan import RunPlan
from kctl.reassign.run.settings import (
    ThrottleSetting,
    active_settings,
    affected_brokers,
    rate_of,
    read_settings,
    throttle_of,
)
from kctl.reassign.run.steps import RunStep
from kctl.reassign.run.throttle import Throttle

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


@dataclass(frozen=True, slots=True)
class PlanInFlight:
    """The part of a plan that is in progress. in_flight: partitions that move to the planned target.

    foreign: partitions that another reassignment moves; these are not touched. throttle: the active throttle, and the
    values without the plan. settings: the throttle, for messages. unread: brokers and topics with unreadable settings →
    reason; these are not touched.
    """

    plan: RunPlan
    in_flight: list[str]
    foreign: list[str]
    throttle: Throttle
    settings: list[ThrottleSetting]
    unread: dict[str, str]


def read_in_flight(client: ClusterClient, file: PlanFile, *, source: str, cluster: str) -> PlanInFlight:
    """Return the part of the plan that is in flight. source: the plan's name, cluster: the context's, for messages.

    Raises Refused for another cluster's plan, and the errors of reading.
    """
    rows = file.reassignments
    live = read_live(client, {r.topic for r in rows}, log_dirs_of=named_brokers(rows))
    if live.cluster_id is None:
        raise OperationFailed("the cluster does not report its id")
    if file.cluster_id not in {None, live.cluster_id}:
        raise Refused(
            f"{source} was made for cluster {file.cluster_id}, but this is {live.cluster_id}",
            hint="choose the plan's cluster with --context NAME",
            reason=Reason.WRONG_CLUSTER,
        )
    view = PlanView(live, places_of(live.log_dirs))
    rows_here = tuple(with_before(r, live) for r in rows if live.partition(r.tp) is not None)
    positions = [position_of(r, view) for r in rows_here]
    moving = tuple(
        number
        for number, (r, position) in enumerate(zip(rows_here, positions, strict=True))
        if position is PlanPosition.MOVING or log_dir_copies(r, view.places)
    )
    current, unread = read_settings(client, affected_brokers(rows, live.brokers), {r.topic for r in rows_here})
    throttle = throttle_of(rows_here, current)
    plan = RunPlan(
        kind="apply",
        source=source,
        digest=file.digest,
        cluster_id=live.cluster_id,
        cluster=cluster,
        reassignments=rows_here,
        batches=(moving,) if moving else (),
        remove_brokers=file.remove_brokers,
        throttle_bytes=rate_of(throttle),
        elect=False,
    )
    return PlanInFlight(
        plan=plan,
        in_flight=[str(rows_here[number].tp) for number in moving],
        foreign=[
            str(r.tp) for r, position in zip(rows_here, positions, strict=True) if position is PlanPosition.FOREIGN
        ],
        throttle=throttle,
        settings=active_settings(throttle.set),
        unread={str(resource): error.message for resource, error in sorted(unread.items())},
    )


def with_before(r: Reassignment, live: LiveState) -> Reassignment:
    """Fill in the original replicas that the file lacks: the current ones without those being added."""
    if r.before is not None:
        return r
    partition, moving = live.partition(r.tp), live.moving.get(r.tp)
    replicas = () if partition is None else partition.replicas
    adding = () if moving is None else moving.adding
    return replace(r, before=tuple(node for node in replicas if node not in adding))


@contextmanager
def begin(in_flight: PlanInFlight) -> Iterator[Journal]:
    """Lock a new journal that records these moves as started. Raises Refused while another run has not ended."""
    with journals.begin(in_flight.plan) as journal:
        if in_flight.throttle:
            rate = in_flight.plan.throttle_bytes or 0
            journal.append(RunStep.THROTTLE_SET.value, rate_bytes=rate, throttle=in_flight.throttle.to_json())
            journal.append(RunStep.THROTTLE_DONE.value)
        if in_flight.plan.batches:
            journal.append(RunStep.BATCH_START.value, batch=0)
        yield journal
