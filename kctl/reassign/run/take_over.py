"""Taking back moves of a plan whose journal is not here: begun on another machine, by Kafka's own tool, or lost.

What of the plan is in flight, and what throttles its partitions and brokers, is read from the cluster, and written
down as a run of this machine that is in work. From there everything is as with any run: `kctl.reassign.run.run.cancel`
takes it back, and can be killed anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kctl.base.journal import Journal
from kctl.errors import OperationFailed, Refused
from kctl.reassign.plan_file.read import PlanFile
from kctl.reassign.planner.assignment import Reassignment
from kctl.reassign.run import journals
from kctl.reassign.run.compare import Standing, View, log_dir_copies, named_brokers, places_of, standing
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
from kctl.reassign.run.steps import Step
from kctl.reassign.run.throttle import Throttle

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


@dataclass(frozen=True, slots=True)
class TakenOver:
    """What of a plan is in the cluster. in_flight: its partitions that move as it says.

    foreign: its partitions that another reassignment moves elsewhere; they are left alone. throttle: what is set, and
    what it is to be without the plan. settings: the same as it is set, for people. unread: brokers and topics whose
    settings could not be read, and why: they are left as they are.
    """

    plan: RunPlan
    in_flight: list[str]
    foreign: list[str]
    throttle: Throttle
    settings: list[ThrottleSetting]
    unread: dict[str, str]


def look(client: ClusterClient, file: PlanFile, *, source: str, cluster: str) -> TakenOver:
    """Find what of the plan is there. source: the plan's name, cluster: the context's, both for people.

    Raises Refused for another cluster's plan, and what reading raises.
    """
    rows = file.reassignments
    live = read_live(client, {r.topic for r in rows}, log_dirs_of=named_brokers(rows))
    if live.cluster_id is None:
        raise OperationFailed("the cluster does not tell its id")
    if file.cluster_id not in {None, live.cluster_id}:
        raise Refused(
            f"{source} was made for cluster {file.cluster_id}, and this is {live.cluster_id}",
            hint="name the context of the plan's cluster: --context",
        )
    view = View(live, places_of(live.log_dirs))
    known = tuple(with_before(r, live) for r in rows if live.partition(r.tp) is not None)
    stands = [standing(r, view) for r in known]
    moving = tuple(
        position
        for position, (r, found) in enumerate(zip(known, stands, strict=True))
        if found is Standing.MOVING or log_dir_copies(r, view.places)
    )
    current, unread = read_settings(client, affected_brokers(rows, live.brokers), {r.topic for r in known})
    throttle = throttle_of(known, current)
    plan = RunPlan(
        kind="apply",
        source=source,
        digest=file.digest,
        cluster_id=live.cluster_id,
        cluster=cluster,
        reassignments=known,
        batches=(moving,) if moving else (),
        remove_brokers=file.remove_brokers,
        throttle_bytes=rate_of(throttle),
        elect=False,
    )
    return TakenOver(
        plan=plan,
        in_flight=[str(known[position].tp) for position in moving],
        foreign=[str(r.tp) for r, found in zip(known, stands, strict=True) if found is Standing.FOREIGN],
        throttle=throttle,
        settings=active_settings(throttle.set),
        unread={str(resource): error.message for resource, error in sorted(unread.items())},
    )


def with_before(r: Reassignment, live: LiveState) -> Reassignment:
    """With the replicas of before where the file lacks them: those that there are, without what is being added."""
    if r.before is not None:
        return r
    partition, moving = live.partition(r.tp), live.moving.get(r.tp)
    replicas = () if partition is None else partition.replicas
    adding = () if moving is None else moving.adding
    return replace(r, before=tuple(node for node in replicas if node not in adding))


@contextmanager
def begin(found: TakenOver) -> Iterator[Journal]:
    """The journal of a run that has begun all of this, held. Raises Refused while another run has not ended."""
    with journals.begin(found.plan) as journal:
        if found.throttle:
            rate = found.plan.throttle_bytes or 0
            journal.append(Step.THROTTLE_SET.value, rate_bytes=rate, throttle=found.throttle.to_json())
            journal.append(Step.THROTTLE_DONE.value)
        if found.plan.batches:
            journal.append(Step.BATCH_START.value, batch=0)
        yield journal
