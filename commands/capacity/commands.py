"""kctl capacity."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import typer

from kctl.base.text import counted
from kctl.commands.capacity import options
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.errors import OperationFailed, UsageError

if TYPE_CHECKING:
    from kctl.capacity.current_load import CurrentLoad
    from kctl.capacity.fields import Input
    from kctl.capacity.model import CapacityPlan, Workload

_ONE_TOPIC = "topic"  # what a load without a file is called
_WINDOW = "10s"
_LONGEST_WINDOW_S = 3600


def command(
    ctx: typer.Context,
    file: options.File = None,
    from_cluster: options.FromCluster = False,
    match: options.Match = None,
    window: options.Window = None,
    throughput: options.Throughput = None,
    messages: options.Messages = None,
    message_size: options.MessageSize = None,
    compression_ratio: options.Ratio = None,
    data: options.Data = None,
    keys: options.Keys = None,
    retention: options.Retention = None,
    retention_bytes: options.RetentionBytes = None,
    segment_size: options.SegmentSize = None,
    segment_time: options.SegmentTime = None,
    replication_factor: options.ReplicationFactor = None,
    min_insync_replicas: options.MinInsync = None,
    groups: options.Groups = None,
    consumer_rate: options.ConsumerRate = None,
    producer_rate: options.ProducerRate = None,
    max_partition_size: options.MaxPartition = None,
    partitions: options.Partitions = None,
    disk: options.Disk = None,
    disks_per_broker: options.Disks = None,
    network: options.Network = None,
    headroom: options.Headroom = None,
    network_limit: options.NetworkLimit = None,
    times: options.Times = None,
    growth: options.Growth = None,
    years: options.Years = None,
    survive: options.Survive = None,
    brokers: options.Brokers = None,
    measure: options.Measure = False,
    duration: options.Duration = None,
    max_bytes: options.MaxBytes = None,
    record_size: options.RecordSize = None,
    acks: options.WithAcks = None,
    compression: options.WithCompression = None,
    dry_run: options.DryRun = False,
) -> None:
    """Plan partitions and brokers for a load, and show the arithmetic line by line.

    Each line has its formula, the numbers in it and where they are from. An option wins over what a file says. With
    --measure, a topic of kctl's own is written to for some seconds and read: what kctl itself gets on this machine.

    Example: kctl capacity --throughput 200MB/s --retention 3d --groups 2 --disk 4TB --network 10Gbit/s
    """
    from kctl.commands.capacity import measure as capacity_measure
    from kctl.commands.capacity import tables as capacity_tables

    inv = invocation(ctx)
    given = _given(
        {
            "throughput": throughput, "messages": messages, "message_size": message_size,
            "compression_ratio": compression_ratio, "data": data, "keys": keys, "retention": retention,
            "retention_bytes": retention_bytes, "segment_size": segment_size, "segment_time": segment_time,
            "replication_factor": replication_factor, "min_insync_replicas": min_insync_replicas, "groups": groups,
            "consumer_rate": consumer_rate, "producer_rate": producer_rate, "max_partition_size": max_partition_size,
            "partitions": partitions, "disk": disk, "disks_per_broker": disks_per_broker, "network": network,
            "headroom": headroom, "network_limit": network_limit, "times": times, "growth": growth, "years": years,
            "survive": survive, "brokers": brokers,
        }
    )  # fmt: skip
    asked = capacity_measure.Asked(duration, max_bytes, record_size, acks, compression)
    if not measure:
        asked.refuse_alone()
    if not from_cluster and (match or window):
        raise UsageError("--match and --window go with --from-cluster")
    source = _source(inv, file, given, match or [], window, from_cluster=from_cluster, measure=measure)
    if not measure:
        assert source is not None
        made, doubtful = source(given)
        capacity_tables.emit(inv, made, None)
        _raise_left_out(doubtful)
        return
    measured_options = asked.options(inv, given)
    if source is not None and not from_cluster:
        source(given)  # what is wrong with it is told before anything is measured
    measured = capacity_measure.run(inv, measured_options, dry_run=dry_run)
    if measured is None:
        return
    rates = capacity_measure.rates(measured)
    if source is None:
        capacity_tables.emit(inv, None, measured)
        return
    made, doubtful = source({**rates, **given})
    capacity_tables.emit(inv, made, measured)
    _raise_left_out(doubtful)


def _given(texts: Mapping[str, str | None]) -> dict[str, Input]:
    from kctl.capacity.fields import parse_input

    found: dict[str, Input] = {}
    for name, text in texts.items():
        if text is None:
            continue
        try:
            found[name] = parse_input(name, text)
        except UsageError as exc:
            raise UsageError(f"--{name.replace('_', '-')}: {exc.message}", hint=exc.hint) from None
    return found


Source = Callable[[Mapping[str, "Input"]], "tuple[CapacityPlan, tuple[str, ...]]"]


def _source(
    inv: Invocation,
    file: object,
    given: Mapping[str, Input],
    match: list[str],
    window: str | None,
    *,
    from_cluster: bool,
    measure: bool,
) -> Source | None:
    """What makes the plan of inputs, and says which topics it lacks; None when nothing is said of a load."""
    from kctl.capacity.fields import OF_ONE_TOPIC

    if file is not None and from_cluster:
        raise UsageError("--file and --from-cluster are two loads: give one")
    if file is not None or from_cluster:
        for name in OF_ONE_TOPIC:
            if name in given:
                raise UsageError(
                    f"--{name} is of one topic, and {'--from-cluster' if from_cluster else 'the file'} has several",
                    hint="leave it out; --times plans for N times the load",
                )
    if from_cluster:
        return lambda inputs: _of_cluster(inv, inputs, match, window or _WINDOW)
    if file is not None:
        return _of_file(file)
    if measure and not given.keys() & {"throughput", "messages", "data", "keys"}:
        return None
    return _of_options


def _of_options(given: Mapping[str, Input]) -> tuple[CapacityPlan, tuple[str, ...]]:
    from kctl.capacity.fields import CLUSTER_FIELDS, TOPIC_FIELDS
    from kctl.capacity.workload import workload

    of_topic = {name: each for name, each in given.items() if name in TOPIC_FIELDS}
    of_cluster = {name: each for name, each in given.items() if name in CLUSTER_FIELDS}
    try:
        load = workload(_ONE_TOPIC, of_topic)
    except UsageError as exc:
        raise UsageError(exc.message.removeprefix(f"{_ONE_TOPIC}: "), hint=exc.hint) from None
    return _planned([load], of_cluster), ()


def _of_file(file: object) -> Source:
    from pathlib import Path

    from kctl.capacity.spec import parse_spec, read_bytes

    assert isinstance(file, Path)
    data, name = read_bytes(file)  # once: it may be stdin

    def made(given: Mapping[str, Input]) -> tuple[CapacityPlan, tuple[str, ...]]:
        return _planned(*parse_spec(data, name, given)), ()

    return made


def _of_cluster(
    inv: Invocation, given: Mapping[str, Input], match: list[str], window: str
) -> tuple[CapacityPlan, tuple[str, ...]]:
    from kctl.base.units import parse_duration_ms
    from kctl.capacity.current_load import read_current_load
    from kctl.capacity.fields import CLUSTER_FIELDS
    from kctl.capacity.workload import merged

    window_s = parse_duration_ms(window) / 1000
    if not 0 < window_s <= _LONGEST_WINDOW_S:
        raise UsageError(f"--window {window} is not between 1ms and 1h")
    with inv.connect() as client, output.progress("looking", lines_every_s=30) as bar:
        seen = read_current_load(client, match, given, window_s=window_s, progress=bar.update)
    _tell(seen)
    cluster = merged(seen.cluster, given, CLUSTER_FIELDS)
    return _planned(list(seen.workloads), cluster, seen.counts), seen.left_out


def _tell(seen: CurrentLoad) -> None:
    for warning in seen.warnings:
        output.warn(warning)
    for line in seen.left_out:
        output.warn(f"left out: {line}")


def _planned(
    workloads: list[Workload], cluster: Mapping[str, Input], seen: Mapping[str, int] | None = None
) -> CapacityPlan:
    from kctl.capacity.plan import plan
    from kctl.capacity.workload import cluster_inputs

    return plan(workloads, cluster_inputs(cluster), current_counts=seen)


def _raise_left_out(left_out: tuple[str, ...]) -> None:
    if left_out:
        raise OperationFailed(f"the plan is without {counted(len(left_out), 'topic')} whose load is not known")
