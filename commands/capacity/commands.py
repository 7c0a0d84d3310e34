"""kctl capacity."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

import typer

from kctl.base.text import counted
from kctl.commands.capacity.options import CapacityOptions
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.commands.terminal.option_sets import takes_options
from kctl.errors import OperationFailed, UsageError

if TYPE_CHECKING:
    from kctl.capacity.current_load import CurrentLoad
    from kctl.capacity.fields import Input
    from kctl.capacity.measure import Measurement
    from kctl.capacity.model import CapacityPlan, Workload

_ONE_TOPIC = "topic"  # name of the topic in a load without a file
_WINDOW = "10s"
_LONGEST_WINDOW_S = 3600

Planned: TypeAlias = "tuple[CapacityPlan, tuple[str, ...]]"  # and the topics missing in the plan
Source: TypeAlias = "Callable[[Mapping[str, Input]], Planned]"


@takes_options(CapacityOptions)
def command(ctx: typer.Context, options: CapacityOptions) -> None:
    """Plan partitions and brokers for a load.

    --explain shows the arithmetic: each line has its formula, the numbers and their sources. Options override
    values in a file. With --measure, kctl writes to and reads from a temporary topic for a few seconds, to measure
    its own rates on this machine.

    # Plan for 200 MB/s, kept for three days and read by two groups
    kctl capacity --throughput 200MB/s --retention 3d --groups 2 --disk 4TB --network 10Gbit/s
    """
    from kctl.commands.capacity import measure
    from kctl.commands.capacity.tables import emit

    inv = invocation(ctx)
    inputs = _parsed(options.inputs())
    if not options.measure:
        measure.refuse_options(options)
    if not options.from_cluster and (options.match or options.window):
        raise UsageError("--match and --window require --from-cluster")
    source = _source(inv, options, inputs)
    if not options.measure:
        assert source is not None
        _emit_plan(inv, source(inputs), None, explain=options.explain)
        return
    measure_options = measure.measure_options(inv, options, inputs)
    if source is not None and not options.from_cluster:
        source(inputs)  # an error in the load is reported before anything is measured
    inv.report_change(changed=True)
    measured = measure.run(inv, measure_options, dry_run=options.dry_run)
    if measured is None:
        return
    if source is None:
        emit(inv, None, measured, explain=options.explain)
        return
    _emit_plan(inv, source({**measure.rates(measured), **inputs}), measured, explain=options.explain)


def _emit_plan(inv: Invocation, planned: Planned, measured: Measurement | None, *, explain: bool) -> None:
    """Render the plan, then raise OperationFailed if it lacks topics."""
    from kctl.commands.capacity.tables import emit

    plan, skipped = planned
    emit(inv, plan, measured, explain=explain)
    if skipped:
        raise OperationFailed(f"the plan lacks {counted(len(skipped), 'topic')} whose load is unknown")


def _parsed(texts: Mapping[str, str]) -> dict[str, Input]:
    from kctl.capacity.fields import parse_input

    inputs: dict[str, Input] = {}
    for name, text in texts.items():
        try:
            inputs[name] = parse_input(name, text)
        except UsageError as exc:
            raise UsageError(f"--{name.replace('_', '-')}: {exc.message}", hint=exc.hint) from None
    return inputs


def _source(inv: Invocation, options: CapacityOptions, option_inputs: Mapping[str, Input]) -> Source | None:
    """Return a function from inputs to the plan and its missing topics; None if the options contain no load."""
    from kctl.capacity.fields import OF_ONE_TOPIC

    file, from_cluster = options.file, options.from_cluster
    if file is not None and from_cluster:
        raise UsageError("--file and --from-cluster cannot be combined")
    if file is not None or from_cluster:
        for name in OF_ONE_TOPIC:
            if name in option_inputs:
                raise UsageError(
                    f"--{name} is for one topic, but {'--from-cluster' if from_cluster else 'the file'} has several",
                    hint="remove it; to plan for N times the load, use --times",
                )
    if from_cluster:
        return lambda inputs: _plan_of_cluster(inv, inputs, options.match or [], options.window or _WINDOW)
    if file is not None:
        return _plan_of_file(file)
    if options.measure and not option_inputs.keys() & {"throughput", "messages", "data", "keys"}:
        return None
    return _plan_of_options


def _plan_of_options(inputs: Mapping[str, Input]) -> Planned:
    from kctl.capacity.fields import CLUSTER_FIELDS, TOPIC_FIELDS
    from kctl.capacity.workload import workload

    topic_inputs = {name: each for name, each in inputs.items() if name in TOPIC_FIELDS}
    broker_inputs = {name: each for name, each in inputs.items() if name in CLUSTER_FIELDS}
    try:
        load = workload(_ONE_TOPIC, topic_inputs)
    except UsageError as exc:
        raise UsageError(exc.message.removeprefix(f"{_ONE_TOPIC}: "), hint=exc.hint) from None
    return _planned([load], broker_inputs), ()


def _plan_of_file(file: object) -> Source:
    from pathlib import Path

    from kctl.capacity.spec import parse_spec, read_bytes

    assert isinstance(file, Path)
    data, name = read_bytes(file)  # once: it may be stdin

    def planned(inputs: Mapping[str, Input]) -> Planned:
        return _planned(*parse_spec(data, name, inputs)), ()

    return planned


def _plan_of_cluster(inv: Invocation, overrides: Mapping[str, Input], match: list[str], window: str) -> Planned:
    from kctl.base.units import parse_duration_ms
    from kctl.capacity.current_load import read_current_load
    from kctl.capacity.fields import CLUSTER_FIELDS
    from kctl.capacity.workload import merged

    window_s = parse_duration_ms(window) / 1000
    if not 0 < window_s <= _LONGEST_WINDOW_S:
        raise UsageError(f"--window {window} must be between 1ms and 1h")
    with inv.connect() as client, output.progress("reading", lines_every_s=30) as bar:
        current_load = read_current_load(client, match, overrides, window_s=window_s, progress=bar.update)
    _report(current_load)
    cluster = merged(current_load.cluster, overrides, CLUSTER_FIELDS)
    return _planned(list(current_load.workloads), cluster, current_load.counts), current_load.left_out


def _report(current_load: CurrentLoad) -> None:
    for warning in current_load.warnings:
        output.warn(warning)
    for line in current_load.left_out:
        output.warn(f"skipped: {line}")


def _planned(
    workloads: list[Workload], cluster: Mapping[str, Input], current_counts: Mapping[str, int] | None = None
) -> CapacityPlan:
    from kctl.capacity.plan import plan
    from kctl.capacity.workload import cluster_inputs

    return plan(workloads, cluster_inputs(cluster), current_counts=current_counts)
