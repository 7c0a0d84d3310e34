"""A rolling restart of a cluster that kctl set up, as one step of another operation.

`kctl cluster restart --rolling` does the same with its own plan and question.
"""

from __future__ import annotations

from collections.abc import Collection

from kctl.deploy import lifecycle
from kctl.restart.control_local import LocalControl
from kctl.restart.journals import begin_or_resume
from kctl.restart.own_members import controllers_of, live_cluster, members_of
from kctl.restart.plan import (
    RollingRestart,
    choose,
    make_plan,
    read_unfinished,
    refuse_blocked,
    refuse_without_election,
    result_of,
    unfinished_run,
)
from kctl.restart.restart_run import RestartOptions, RestartReporter, RestartRun, SystemClock
from kctl.restart.run import carry_out


def restart_own(
    name: str, nodes: Collection[int], options: RestartOptions, reporter: RestartReporter
) -> RollingRestart:
    """Restart these nodes one after another. An unfinished run of the cluster is resumed instead, whatever its nodes.

    Raises Refused before the first stop if a node cannot be stopped, NotFinished with the next steps afterwards.
    """
    spec = lifecycle.load_cluster(name)
    lifecycle.check_startable(name)
    controllers, clock = frozenset(controllers_of(spec)), SystemClock()
    with live_cluster(spec) as cluster:
        _, path = unfinished_run(cluster, spec.name, lifecycle.own_cluster_id(name))
        state = None if path is None else read_unfinished(path, None)
        if state is not None:
            brokers = {node: row.broker for node, row in state.brokers.items()}
        else:
            brokers = choose(members_of((*spec.brokers, *spec.controllers)), nodes)
        cluster.add_servers([broker for broker in brokers.values() if broker.id not in controllers])
        plan = make_plan(cluster, spec.name, brokers, options, clock=clock, resumes=path, state=state)
        refuse_without_election(cluster, options, state)
        refuse_blocked(plan)
        journal, state_at = begin_or_resume(plan.cluster, plan.cluster_id, list(brokers.values()), path)
        with journal:
            run = RestartRun(
                cluster, LocalControl(name), journal, state_at, options, reporter, clock,
                controllers=controllers,
            )  # fmt: skip
            began = clock.now()
            carry_out(run)
            return result_of(run, plan, began)
