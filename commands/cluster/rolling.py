"""What `kctl cluster restart --rolling` does: plan → show → confirm → carry out → say what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kctl.base.outcomes import ItemResult
from kctl.base.text import counted
from kctl.commands.cluster.interruption import confirm_interruption
from kctl.commands.cluster.rolling_tables import plan_tables, question, result_tables, said_before, said_plan
from kctl.commands.terminal import output
from kctl.commands.terminal.interrupts import undone_when_terminated
from kctl.commands.terminal.invocation import Invocation
from kctl.errors import ConnectionFailed, KctlError, NotFound, NotHealthy

if TYPE_CHECKING:
    from kctl.model import Broker
    from kctl.protocol.target import Target
    from kctl.restart.control import BrokerControl
    from kctl.restart.hooks import Hooks
    from kctl.restart.look import LiveCluster
    from kctl.restart.plan import RestartPlan
    from kctl.restart.running import Options, Run

_LINES_EVERY_S = 15.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options, read. name: of a cluster that kctl set up; hooks: the file for another one. only: None for all."""

    name: str | None
    hooks: Path | None
    only: frozenset[int] | None
    options: Options


def restart_rolling(inv: Invocation, wanted: Wanted, *, dry_run: bool) -> None:
    """Begin, or go on with what has not ended."""
    from kctl.restart.journals import begin_or_go_on
    from kctl.restart.plan import (
        choose,
        make_plan,
        read_unfinished,
        refuse_blocked,
        refuse_without_election,
        unfinished_run,
    )
    from kctl.restart.running import RealClock, Run, Silent

    hooks, target = _hooks(wanted), _target(inv, wanted)
    with _cluster(target) as cluster:
        _, path = unfinished_run(cluster, target.name, _own_id(wanted))
        state = None if path is None else read_unfinished(path, wanted.only)
        if state is not None:
            brokers: Mapping[int, Broker] = {node: row.broker for node, row in state.brokers.items()}
        else:
            brokers = choose(_known(wanted, hooks, cluster), wanted.only)
        cluster.know(brokers.values())
        control = _control(wanted, hooks, brokers, cluster)
        with output.progress("looking at the cluster"):
            plan = make_plan(
                cluster, target.name, brokers, wanted.options, clock=RealClock(), resumes=path, state=state
            )
        for line in said_before(plan, wanted.options.max_unavailable):
            output.warn(line)
        if dry_run:
            inv.emit(plan, lambda: plan_tables(plan), changed=bool(plan.brokers))
            output.note("nothing was changed (--dry-run)")
        refuse_without_election(cluster, wanted.options, state)
        refuse_blocked(plan)
        if dry_run:
            return
        for line in said_plan(plan):
            output.note(line)
        _confirm(inv, wanted, _identified(cluster, target), question(plan, wanted.options.max_unavailable))
        journal, at = begin_or_go_on(plan.cluster, plan.cluster_id, list(brokers.values()), path)
        with journal:
            _carry_out(inv, Run(cluster, control, journal, at, wanted.options, Silent(), RealClock()), plan)


def abandon_run(inv: Invocation, wanted: Wanted, *, dry_run: bool) -> None:
    """Forget the unfinished run; nothing is started or stopped."""
    from kctl.restart import journals
    from kctl.restart.plan import read_unfinished
    from kctl.restart.steps import situation

    target = _target(inv, wanted)
    with _cluster(target) as cluster:
        path = _to_abandon(cluster, target.name, _own_id(wanted))
    if path is None:
        raise NotFound(f"no rolling restart of {target.name} that was begun on this machine is unfinished")
    state = read_unfinished(path, None) if dry_run else journals.abandon(path)
    result = ItemResult.WOULD_BE_FORGOTTEN if dry_run else ItemResult.FORGOTTEN
    row = {"cluster": state.cluster, "journal": path, "result": result}
    columns = [output.Column("cluster"), output.Column("result")]
    inv.emit(row, lambda: [output.Table(columns, [output.jsonable(row)])], changed=result.changed)
    if state.open:
        output.warn(f"{situation(state)}: this run does not bring it back any more")


def _to_abandon(cluster: LiveCluster, name: str, own_id: str | None) -> Path | None:
    """The run of this cluster, or that of an earlier one of its name: nobody else can end it."""
    from kctl.restart import journals
    from kctl.restart.look import may_be_down
    from kctl.restart.plan import unfinished_run

    try:
        return unfinished_run(cluster, name, own_id)[1] or journals.unfinished_of(name)
    except ConnectionFailed as exc:
        by_name = journals.unfinished_of(name) if may_be_down(exc) else None
        if by_name is None:
            raise
        return by_name


# --- which cluster ----------------------------------------------------------------------------------------------------


def _hooks(wanted: Wanted) -> Hooks | None:
    from kctl.restart.hooks import read_hooks

    return None if wanted.hooks is None else read_hooks(wanted.hooks)


def _target(inv: Invocation, wanted: Wanted) -> Target:
    if wanted.name is None:
        return inv.target()
    from kctl.deploy import health, lifecycle

    return health.target_of(lifecycle.load_cluster(wanted.name))


def _own_id(wanted: Wanted) -> str | None:
    """The id of one of kctl's own clusters, also while it is down."""
    if wanted.name is None:
        return None
    from kctl.deploy import lifecycle

    return lifecycle.own_cluster_id(wanted.name)


@contextmanager
def _cluster(target: Target) -> Iterator[LiveCluster]:
    from kctl.restart.look import LiveCluster

    with LiveCluster(target) as cluster:
        yield cluster


def _known(wanted: Wanted, hooks: Hooks | None, cluster: LiveCluster) -> dict[int, Broker]:
    """The brokers that there are: also those that are down, if they are kctl's own, or the commands need not more than
    is known of them, or they were asked for."""
    if hooks is not None:
        down = cluster.down()
        asked = wanted.only or ()
        able = {node: down[node] for node in down if node in asked or hooks.reaches(down[node], ("stop", "start"))}
        return {**cluster.client().metadata(()).brokers, **able}
    from kctl.deploy import lifecycle
    from kctl.deploy.layout import LOOPBACK
    from kctl.model import Broker

    assert wanted.name is not None
    spec = lifecycle.load_cluster(wanted.name)
    return {node.id: Broker(node.id, LOOPBACK, node.port, node.rack) for node in spec.brokers}


def _control(wanted: Wanted, hooks: Hooks | None, brokers: Mapping[int, Broker], cluster: LiveCluster) -> BrokerControl:
    if hooks is None:
        from kctl.deploy import lifecycle
        from kctl.restart.control_local import LocalControl

        assert wanted.name is not None
        lifecycle.check_startable(wanted.name)
        return LocalControl(wanted.name)
    from kctl.restart.control_hooks import HookControl
    from kctl.restart.hooks import check_brokers

    check_brokers(hooks, brokers, ("stop", "start"), known=_all_ids(hooks, cluster) if hooks.single else None)
    return HookControl(hooks, brokers)


def _all_ids(hooks: Hooks, cluster: LiveCluster) -> set[int]:
    """Of the cluster, whichever of its brokers are to be restarted; those of the file when nobody is there to tell."""
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


def _confirm(inv: Invocation, wanted: Wanted, target: Target, asked: str) -> None:
    if wanted.name is None:
        inv.confirm(asked, target=target)
    else:
        confirm_interruption(inv, wanted.name, asked)


# --- carrying out -----------------------------------------------------------------------------------------------------


class _Terminal:
    """Shows a run's progress: one bar, and a line for each broker."""

    def __init__(self, bar: output.Progress) -> None:
        self._bar = bar

    def update(self, message: str, done: float | None = None, total: float | None = None) -> None:
        self._bar.update(message, done, total)

    def note(self, line: str) -> None:
        output.note(line)


def _carry_out(inv: Invocation, run: Run, plan: RestartPlan) -> None:
    from kctl.restart.plan import result_of
    from kctl.restart.run import carry_out

    failure: KctlError | None = None
    began = run.clock.now()
    with undone_when_terminated(), output.progress("restarting", lines_every_s=_LINES_EVERY_S) as bar:
        run.told = _Terminal(bar)
        with _interruptible(run):
            try:
                carry_out(run)
            except KctlError as exc:
                failure = exc
            result = result_of(run, plan, began)
    inv.emit(result, lambda: result_tables(result), changed=bool(result.brokers))
    if failure is not None:
        raise failure
    if result.elected:
        output.note(f"{counted(result.elected, 'partition')} led by the preferred replica again")
    if result.not_elected:
        raise NotHealthy(
            f"restarted, but {counted(len(result.not_elected), 'partition')} not led by the preferred replica: "
            f"{result.not_elected[0]}",
            hint="kctl leader elect --preferred tries it again",
        )


@contextmanager
def _interruptible(run: Run) -> Iterator[None]:
    """Ctrl-C says which broker is in which state, and how to go on."""
    from kctl.restart.run import WAYS_ON, where_it_stands

    try:
        yield
    except KeyboardInterrupt:
        if run.state.outcome is None:
            output.note(where_it_stands(run))
            output.note(WAYS_ON)
        raise
