"""The options of kctl capacity. kctl.capacity.fields defines the inputs."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from kctl.commands.terminal.codecs import Compression


class DurableAcks(str, Enum):
    """Replicas that acknowledge a record. 0 is missing: it does not confirm written records."""

    ALL = "all"
    LEADER = "1"


@dataclass(frozen=True)
class CapacityOptions:
    """The options as entered. `inputs`: options that describe the load or the brokers."""

    file: Annotated[
        Path | None, typer.Option("-f", "--file", help="YAML file with topics and brokers (capacity.yaml); - is stdin.")
    ] = None
    from_cluster: Annotated[
        bool, typer.Option("--from-cluster", help="Plan for the cluster's topics and their current load.")
    ] = False
    match: Annotated[
        list[str] | None,
        typer.Option(metavar="REGEX", help="With --from-cluster: only matching topics; repeatable."),
    ] = None
    window: Annotated[
        str | None, typer.Option(metavar="DURATION", help="With --from-cluster: time to watch writes (default: 10s).")
    ] = None
    throughput: Annotated[
        str | None, typer.Option(metavar="RATE", help="Bytes per second before compression, e.g. 100MB/s or 1Gbit/s.")
    ] = None
    messages: Annotated[
        str | None, typer.Option(metavar="N/s", help="Messages per second (or /m, /h); requires --message-size.")
    ] = None
    message_size: Annotated[str | None, typer.Option(metavar="SIZE", help="Message size before compression.")] = None
    compression_ratio: Annotated[
        str | None, typer.Option(metavar="RATIO", help="Uncompressed size divided by compressed size (default: 1).")
    ] = None
    data: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Size of one copy of the logs, instead of a retention.")
    ] = None
    keys: Annotated[
        str | None,
        typer.Option(metavar="N", help="Number of distinct keys of a compacted topic; requires --message-size."),
    ] = None
    retention: Annotated[str | None, typer.Option(metavar="DURATION", help="retention.ms (default: 7d).")] = None
    retention_bytes: Annotated[str | None, typer.Option(metavar="SIZE", help="retention.bytes, per partition.")] = None
    segment_size: Annotated[str | None, typer.Option(metavar="SIZE", help="segment.bytes (default: 1GiB).")] = None
    segment_time: Annotated[str | None, typer.Option(metavar="DURATION", help="segment.ms (default: 7d).")] = None
    replication_factor: Annotated[str | None, typer.Option(metavar="N", help="Replication factor (default: 3).")] = None
    min_insync_replicas: Annotated[
        str | None, typer.Option(metavar="N", help="min.insync.replicas (default: a majority of the replicas).")
    ] = None
    groups: Annotated[
        str | None, typer.Option(metavar="N", help="Number of consumer groups that read every record (default: 1).")
    ] = None
    consumer_rate: Annotated[
        str | None, typer.Option(metavar="RATE", help="One consumer's rate (default: 50MB/s, or measured).")
    ] = None
    producer_rate: Annotated[
        str | None, typer.Option(metavar="RATE", help="One producer's rate (default: unlimited, or measured).")
    ] = None
    max_partition_size: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Maximum size of a partition (default: 25GB).")
    ] = None
    partitions: Annotated[str | None, typer.Option(metavar="N", help="Plan with this number of partitions.")] = None
    disk: Annotated[str | None, typer.Option(metavar="SIZE", help="Size of one disk of a broker.")] = None
    disks_per_broker: Annotated[str | None, typer.Option(metavar="N", help="Disks per broker (default: 1).")] = None
    network: Annotated[str | None, typer.Option(metavar="RATE", help="Broker network, each way, e.g. 10Gbit/s.")] = None
    headroom: Annotated[
        str | None, typer.Option(metavar="SHARE", help="Share of each disk to keep free (default: 20%).")
    ] = None
    network_limit: Annotated[
        str | None, typer.Option(metavar="SHARE", help="Share of the network to use (default: 80%).")
    ] = None
    times: Annotated[str | None, typer.Option(metavar="N", help="Plan for N times the load (default: 1).")] = None
    growth: Annotated[str | None, typer.Option(metavar="SHARE", help="Load growth per year (default: 0%).")] = None
    years: Annotated[str | None, typer.Option(metavar="N", help="Years of growth (default: 1).")] = None
    survive: Annotated[
        str | None, typer.Option(metavar="N", help="Number of broker failures to survive (default: 1).")
    ] = None
    brokers: Annotated[str | None, typer.Option(metavar="N", help="Plan with this number of brokers.")] = None
    measure: Annotated[
        bool, typer.Option("--measure", help="Measure the rates of one partition on a temporary topic.")
    ] = False
    duration: Annotated[
        str | None, typer.Option(metavar="DURATION", help="With --measure: maximum time per direction (default: 5s).")
    ] = None
    max_bytes: Annotated[
        str | None, typer.Option(metavar="SIZE", help="With --measure: maximum bytes to write (default: 1GB).")
    ] = None
    record_size: Annotated[
        str | None, typer.Option(metavar="SIZE", help="With --measure: record size (default: message size, or 1kB).")
    ] = None
    acks: Annotated[DurableAcks | None, typer.Option(help="With --measure: acks of the producer (default: all).")] = (
        None
    )
    compression: Annotated[
        Compression | None,
        typer.Option("--compression-codec", "--compression", help="With --measure: codec of batches (default: none)."),
    ] = None
    explain: Annotated[
        bool, typer.Option("--explain", help="Show the arithmetic too: each line with its formula and sources.")
    ] = False
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what --measure would do; create no topic.")] = False

    def inputs(self) -> dict[str, str]:
        """Return the inputs of the arithmetic that are set, by name."""
        from kctl.capacity.fields import CLUSTER_FIELDS, TOPIC_FIELDS

        texts = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: text
            for name, text in texts.items()
            if text is not None and (name in TOPIC_FIELDS or name in CLUSTER_FIELDS)
        }
