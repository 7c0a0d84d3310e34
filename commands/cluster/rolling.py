"""The work of `kctl cluster restart --rolling`: plan → show → confirm → carry out → report the result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kctl.base.outcomes import ItemResult
from kctl.base.text import counted
from kctl.commands.cluster.interruption import confirm_interruption
from kctl.commands.cluster.rolling_tables import plan_notes, plan_tables, plan_warnings, question, result_tables
from kctl.commands.terminal import output
from kctl.commands.terminal.interrupts import interrupt_when_terminated
from kctl.commands.terminal.invocation import Invocation
from kctl.errors import ConnectionFailed, KctlError, NotFound, NotHealthy

if TYPE_CHECKING:
    from kctl.base.address import Address
    from kctl.model import Broker
    from kctl.protocol.target import Target
    from kctl.restart.control import BrokerControl
    from kctl.restart.hooks import Hooks
    from kctl.restart.live_cluster import LiveCluster
    from kctl.restart.plan import RestartPlan
    from kctl.restart.restart_run import RestartOptions, RestartRun

_LINES_EVERY_S = 15.0


@dataclass(frozen=True, slots=True)
class RollingRequest:
    """The parsed options.

    name: a cluster that kctl set up; hooks: the file for any other cluster. only: the selected brokers; None: all.
    """

    name: str | None
    hooks: Path | None
    only: frozenset[int] | None
    options: RestartOptions


def restart_rolling(inv: Invocation, request: RollingRequest, *, dry_run: bool) -> None:
    """Start a rolling restart, or resume the unfinished one."""
    from kctl.restart.journals import begin_or_resume
    from kctl.restart.plan import (
        choose,
        make_plan,
        read_unfinished,
        refuse_blocked,
        refuse_without_election,
        unfinished_run,
    )
    from kctl.restart.restart_run import NoReporter, RestartRun, SystemClock

    hooks, target = _hooks(request), _target(inv, request)
    controllers = _controllers(request)
    with _cluster(target, controllers) as cluster:
        _, path = unfinished_run(cluster, target.name, _own_id(request))
        state = None if path is None else read_unfinished(path, request.only)
        if state is not None:
            brokers: Mapping[int, Broker] = {node: row.broker for node, row in state.brokers.items()}
        else:
            brokers = choose(_candidates(request, hooks, cluster), request.only)
        cluster.add_servers([broker for broker in brokers.values() if broker.id not in controllers])
        control = _control(request, hooks, brokers, cluster)
        with output.progress("checking the cluster"):
            plan = make_plan(
                cluster, target.name, brokers, request.options, clock=SystemClock(), resumes=path, state=state
            )
        for line in plan_warnings(plan, request.options.max_unavailable):
            output.warn(line)
        if dry_run:
            inv.emit(plan, lambda: plan_tables(plan), changed=bool(plan.brokers))
            output.note("nothing was changed (--dry-run)")
        refuse_without_election(cluster, request.options, state)
        refuse_blocked(plan)
        if dry_run:
            return
        for line in plan_notes(plan):
            output.note(line)
        _confirm(inv, request, _identified(cluster, target), question(plan, request.options.max_unavailable))
        journal, at = begin_or_resume(plan.cluster, plan.cluster_id, list(brokers.values()), path)
        with journal:
            run = RestartRun(
                cluster, control, journal, at, request.options, NoReporter(), SystemClock(),
                controllers=frozenset(controllers),
            )  # fmt: skip
            _carry_out(inv, run, plan)


def abandon_run(inv: Invocation, request: RollingRequest, *, dry_run: bool) -> None:
    """Forget the unfinished run; stop and start nothing."""
    from kctl.restart import journals
    from kctl.restart.plan import read_unfinished
    from kctl.restart.steps import situation

    target = _target(inv, request)
    with _cluster(target, {}) as cluster:
        path = _to_abandon(cluster, target.name, _own_id(request))
    if path is None:
        raise NotFound(f"there is no unfinished rolling restart of {target.name} on this machine")
    state = read_unfinished(path, None) if dry_run else journals.abandon(path)
    result = ItemResult.WOULD_BE_FORGOTTEN if dry_run else ItemResult.FORGOTTEN
    row = {"cluster": state.cluster, "journal": path, "result": result}
    columns = [output.Column("cluster"), output.Column("result")]
    inv.emit(row, lambda: [output.Table(columns, [output.jsonable(row)])], changed=result.changed)
    if state.open:
        output.warn(f"{situation(state)}: no later run brings these brokers back")


def _to_abandon(cluster: LiveCluster, name: str, own_id: str | None) -> Path | None:
    """Return this cluster's unfinished run, or that of an earlier cluster of its name, which only --abandon can end."""
    from kctl.restart import journals
    from kctl.restart.live_cluster import may_be_down
    from kctl.restart.plan import unfinished_run

    try:
        return unfinished_run(cluster, name, own_id)[1] or journals.find_unfinished_by_name(name)
    except ConnectionFailed as exc:
        by_name = journals.find_unfinished_by_name(name) if may_be_down(exc) else None
        if by_name is None:
            raise
        return by_name


# --- which cluster ----------------------------------------------------------------------------------------------------


def _hooks(request: RollingRequest) -> Hooks | None:
    from kctl.restart.hooks import read_hooks

    return None if request.hooks is None else read_hooks(request.hooks)


def _target(inv: Invocation, request: RollingRequest) -> Target:
    if request.name is None:
        return inv.target()
    from kctl.deploy import health, lifecycle

    return health.target_of(lifecycle.load_cluster(request.name))


def _own_id(request: RollingRequest) -> str | None:
    """Return the id of a cluster that kctl set up, even while the cluster is down."""
    if request.name is None:
        return None
    from kctl.deploy import lifecycle

    return lifecycle.own_cluster_id(request.name)


def _controllers(request: RollingRequest) -> dict[int, Address]:
    """Return the dedicated controllers of a cluster that kctl set up."""
    if request.name is None:
        return {}
    from kctl.deploy import lifecycle
    from kctl.restart.own_members import controllers_of

    return controllers_of(lifecycle.load_cluster(request.name))


@contextmanager
def _cluster(target: Target, controllers: Mapping[int, Address]) -> Iterator[LiveCluster]:
    from kctl.restart.live_cluster import LiveCluster

    with LiveCluster(target, controllers=controllers) as cluster:
        yield cluster


def _candidates(request: RollingRequest, hooks: Hooks | None, cluster: LiveCluster) -> dict[int, Broker]:
    """Return the brokers that can be restarted, and the dedicated controllers of a cluster that kctl set up.

    Brokers that are down are included if kctl set them up, if the known facts suffice for their commands, or if they
    were selected.
    """
    if hooks is not None:
        down = cluster.down()
        selected = request.only or ()
        restartable = {
            node: down[node] for node in down if node in selected or hooks.can_run(down[node], ("stop", "start"))
        }
        return {**cluster.client().metadata(()).brokers, **restartable}
    from kctl.deploy import lifecycle
    from kctl.restart.own_members import members_of

    assert request.name is not None
    spec = lifecycle.load_cluster(request.name)
    return members_of((*spec.brokers, *spec.controllers))


def _control(
    request: RollingRequest, hooks: Hooks | None, brokers: Mapping[int, Broker], cluster: LiveCluster
) -> BrokerControl:
    if hooks is None:
        from kctl.deploy import lifecycle
        from kctl.restart.control_local import LocalControl

        assert request.name is not None
        lifecycle.check_startable(request.name)
        return LocalControl(request.name)
    from kctl.restart.control_hooks import HookControl
    from kctl.restart.hooks import check_brokers

    check_brokers(hooks, brokers, ("stop", "start"), existing=_all_ids(hooks, cluster) if hooks.single else None)
    return HookControl(hooks, brokers)


def _all_ids(hooks: Hooks, cluster: LiveCluster) -> set[int]:
    """Return all broker ids of the cluster; the ids in the hooks file if no broker responds."""
    try:
        return {*cluster.client().metadata(()).brokers, *cluster.down()}
    except ConnectionFailed:
        return set(hooks.single)


def _identified(cluster: LiveCluster, target: Target) -> Target:
    """Return the target with its cluster id, or without one if no broker responds."""
    try:
        return cluster.client().target
    except ConnectionFailed:
        return target


def _confirm(inv: Invocation, request: RollingRequest, target: Target, text: str) -> None:
    if request.name is None:
        inv.confirm(text, target=target)
    else:
        confirm_interruption(inv, request.name, text)


# --- carrying out -----------------------------------------------------------------------------------------------------


class TerminalReporter:
    """Progress of a run: one bar, and a line for each broker."""

    def __init__(self, bar: output.Progress) -> None:
        self._bar = bar

    def update(self, message: str, done: float | None = None, total: float | None = None) -> None:
        self._bar.update(message, done, total)

    def note(self, line: str) -> None:
        output.note(line)


def _carry_out(inv: Invocation, run: RestartRun, plan: RestartPlan) -> None:
    from kctl.restart.plan import result_of
    from kctl.restart.run import carry_out

    failure: KctlError | None = None
    started = run.clock.now()
    with interrupt_when_terminated(), output.progress("restarting", lines_every_s=_LINES_EVERY_S) as bar:
        run.reporter = TerminalReporter(bar)
        with _interruptible(run):
            try:
                carry_out(run)
            except KctlError as exc:
                failure = exc
            result = result_of(run, plan, started)
    inv.emit(result, lambda: result_tables(result), changed=bool(result.brokers))
    if failure is not None:
        raise failure
    if result.elected:
        output.note(f"{counted(result.elected, 'partition')} led by the preferred replica again")
    if result.not_elected:
        raise NotHealthy(
            f"restarted, but {counted(len(result.not_elected), 'partition')} not led by the preferred replica: "
            f"{result.not_elected[0]}",
            hint="try again with `kctl leader elect --preferred`",
        )


@contextmanager
def _interruptible(run: RestartRun) -> Iterator[None]:
    """On Ctrl-C, report the state of each broker and how to resume."""
    from kctl.restart.run import current_situation

    try:
        yield
    except KeyboardInterrupt:
        if run.state.outcome is None:
            output.note(current_situation(run))
            output.note(run.how_to_resume)
        raise
