"""kctl capacity --measure: show, confirm, measure, and always delete the topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kctl.base.units import format_size, parse_duration_ms, parse_size
from kctl.commands.capacity.options import CapacityOptions, DurableAcks
from kctl.commands.terminal import output
from kctl.commands.terminal.codecs import Compression
from kctl.commands.terminal.interrupts import call_on_interrupt, interrupt_when_terminated
from kctl.commands.terminal.invocation import Invocation
from kctl.errors import KctlError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kctl.capacity.fields import Input
    from kctl.capacity.measure import Measurement, MeasureOptions
    from kctl.capacity.measurement_topic import Leftovers, MeasurementTopic
    from kctl.protocol.client import ClusterClient

_DURATION, _MAX_BYTES, _RECORD_SIZE = "5s", "1GB", "1kB"
_LONGEST_S = 600.0


def refuse_options(options: CapacityOptions) -> None:
    """Raise UsageError for an option that requires --measure."""
    values = {
        "--duration": options.duration, "--max-bytes": options.max_bytes, "--record-size": options.record_size,
        "--acks": options.acks, "--compression-codec": options.compression,
    }  # fmt: skip
    for name, value in values.items():
        if value is not None:
            raise UsageError(f"{name} requires --measure")


def measure_options(inv: Invocation, options: CapacityOptions, inputs: Mapping[str, Input]) -> MeasureOptions:
    """Return the options of the measurement, on a topic with the planned replication. Raises UsageError."""
    from kctl.capacity.measure import MAX_RECORD_BYTES, MeasureOptions
    from kctl.capacity.measurement_topic import new_name
    from kctl.capacity.workload import with_defaults

    factor = int(with_defaults(inputs, ("replication_factor",))["replication_factor"].value)
    min_isr = int(inputs["min_insync_replicas"].value) if "min_insync_replicas" in inputs else factor // 2 + 1
    min_isr = min(min_isr, factor)  # since 3.7 brokers treat a larger value as the factor; older ones reject writes
    record = parse_size(options.record_size or _RECORD_SIZE)
    if options.record_size is None and "message_size" in inputs:
        record = int(inputs["message_size"].value)
    if not 1 <= record <= MAX_RECORD_BYTES:
        raise UsageError(
            f"record size {record:,} must be 1 to {MAX_RECORD_BYTES:,} bytes",
            hint="set another size, e.g. --record-size 1kB",
        )
    max_bytes = parse_size(options.max_bytes or _MAX_BYTES)
    if max_bytes < record:
        raise UsageError(f"--max-bytes {options.max_bytes} is smaller than one record")
    duration_s = parse_duration_ms(options.duration or _DURATION) / 1000
    if not 0.1 <= duration_s <= _LONGEST_S:
        raise UsageError(f"--duration {options.duration} must be between 100ms and 10m")
    return MeasureOptions(
        new_name(), factor, min_isr, record, duration_s, max_bytes, (options.acks or DurableAcks.ALL).value,
        (options.compression or Compression.NONE).value, inv.timeout_s(30),
    )  # fmt: skip


def run(inv: Invocation, options: MeasureOptions, *, dry_run: bool) -> Measurement | None:
    """Confirm, measure and clean up. Return None for a dry run."""
    from kctl.capacity import measurement_topic

    with interrupt_when_terminated(), inv.connect() as client:
        state = client.metadata()
        leftovers = measurement_topic.find_leftovers(client, state)
        for line in measurement_topic.check(client, options):
            output.warn(line)
        _show(options, leftovers, client.target.name)
        if dry_run:
            return None
        inv.confirm(f"Write up to {format_size(options.max_bytes)} to {client.target.name}?", target=client.target)
        for name in leftovers.topics:
            measurement_topic.remove_leftover(client, name, timeout_s=options.timeout_s)
            output.note(f"deleted {name}, left by a measurement that was killed")
        return _measured(client, options, state.cluster_id)


def _show(options: MeasureOptions, leftovers: Leftovers, cluster: str) -> None:
    output.note(
        f"on {cluster}: create topic {options.topic} (1 partition, replication factor {options.replication_factor},"
        f" min.insync.replicas {options.min_insync_replicas}), write for {options.duration_s:g} s with"
        f" acks={options.acks} and records of {format_size(options.record_bytes)}, at most"
        f" {format_size(options.max_bytes)}, read for {options.duration_s:g} s, and delete the topic"
    )
    for name in leftovers.topics:
        output.note(f"{name}, left by a measurement that was killed, will be deleted first")
    for name in leftovers.others:
        output.warn(f"{name} may be left by another machine: if no measurement runs, run `kctl topic delete {name}`")


def _measured(client: ClusterClient, options: MeasureOptions, cluster_id: str | None) -> Measurement:
    from kctl.capacity.measure import measure
    from kctl.capacity.measurement_topic import measurement_topic

    with measurement_topic(client, options, cluster_id) as topic:
        failing = True
        try:
            with output.progress("measuring", lines_every_s=30) as bar:
                result = measure(client, options, topic.create(), progress=bar.update)
            failing = False
            return result
        finally:
            _remove(topic, failing=failing)


def _remove(topic: MeasurementTopic, *, failing: bool) -> None:
    """Delete the topic despite interrupts. failing: another error is being raised and must not be hidden."""
    with call_on_interrupt(_continue):
        try:
            topic.delete()
        except KctlError as exc:
            if not failing:
                raise
            output.warn(f"{exc.message}; {exc.hint}" if exc.hint else exc.message)


def _continue() -> None:
    """Ignore an interrupt: the topic must be deleted."""


def rates(measured: Measurement) -> dict[str, Input]:
    """Return the measured rates as inputs of a plan."""
    from kctl.capacity.fields import MEASURED, Input

    return {
        "producer_rate": Input(max(1, measured.producer.bytes_per_s), MEASURED),
        "consumer_rate": Input(max(1, measured.consumer.bytes_per_s), MEASURED),
    }
