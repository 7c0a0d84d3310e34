"""The options of kctl capacity. What an input is called there stands in kctl.capacity.fields."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer


class Acks(str, Enum):
    """Who has to have a record before it counts; with none, nobody would know what got through."""

    ALL = "all"
    LEADER = "1"


class Compression(str, Enum):
    """The codec of record batches."""

    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


@dataclass(frozen=True)
class CapacityOptions:
    """The options as written. `inputs` are those that say something of the load or of the brokers."""

    file: Annotated[
        Path | None, typer.Option("-f", "--file", help="Several topics and their brokers (capacity.yaml); - is stdin.")
    ] = None
    from_cluster: Annotated[
        bool, typer.Option("--from-cluster", help="Plan for the topics that the cluster has, as they are written now.")
    ] = False
    match: Annotated[
        list[str] | None,
        typer.Option(metavar="REGEX", help="With --from-cluster: only these topics; repeatable."),
    ] = None
    window: Annotated[
        str | None, typer.Option(metavar="DURATION", help="With --from-cluster: how long to look at writes; 10s.")
    ] = None
    throughput: Annotated[
        str | None, typer.Option(metavar="RATE", help="Bytes a second before compression, as 100MB/s or 1Gbit/s.")
    ] = None
    messages: Annotated[
        str | None, typer.Option(metavar="N/s", help="Messages a second (/m, /h), with --message-size.")
    ] = None
    message_size: Annotated[str | None, typer.Option(metavar="SIZE", help="Of a message before compression.")] = None
    compression_ratio: Annotated[
        str | None, typer.Option(metavar="RATIO", help="4 where 4 bytes are stored and sent as one; 1.")
    ] = None
    data: Annotated[
        str | None, typer.Option(metavar="SIZE", help="What one copy of the logs holds, instead of a retention.")
    ] = None
    keys: Annotated[str | None, typer.Option(metavar="N", help="Keys of a compacted topic, with --message-size.")] = (
        None
    )
    retention: Annotated[str | None, typer.Option(metavar="DURATION", help="retention.ms; 7d.")] = None
    retention_bytes: Annotated[str | None, typer.Option(metavar="SIZE", help="retention.bytes, of a partition.")] = None
    segment_size: Annotated[str | None, typer.Option(metavar="SIZE", help="segment.bytes; 1GiB.")] = None
    segment_time: Annotated[str | None, typer.Option(metavar="DURATION", help="segment.ms; 7d.")] = None
    replication_factor: Annotated[str | None, typer.Option(metavar="N", help="Copies of each partition; 3.")] = None
    min_insync_replicas: Annotated[
        str | None, typer.Option(metavar="N", help="min.insync.replicas; more than half of the copies.")
    ] = None
    groups: Annotated[str | None, typer.Option(metavar="N", help="Consumer groups that read all of it; 1.")] = None
    consumer_rate: Annotated[
        str | None, typer.Option(metavar="RATE", help="What one consumer takes from a partition; 50MB/s, or measured.")
    ] = None
    producer_rate: Annotated[
        str | None, typer.Option(metavar="RATE", help="What one producer gets into a partition; no bound, or measured.")
    ] = None
    max_partition_size: Annotated[
        str | None, typer.Option(metavar="SIZE", help="The most that a partition shall hold; 25GB.")
    ] = None
    partitions: Annotated[str | None, typer.Option(metavar="N", help="Plan with this number of partitions.")] = None
    disk: Annotated[str | None, typer.Option(metavar="SIZE", help="Of one disk of a broker.")] = None
    disks_per_broker: Annotated[str | None, typer.Option(metavar="N", help="Disks of this size in a broker; 1.")] = None
    network: Annotated[str | None, typer.Option(metavar="RATE", help="Of a broker each way, as 10Gbit/s.")] = None
    headroom: Annotated[str | None, typer.Option(metavar="SHARE", help="Of each disk that stays free; 20%.")] = None
    network_limit: Annotated[
        str | None, typer.Option(metavar="SHARE", help="Of the network that may be used; 80%.")
    ] = None
    times: Annotated[str | None, typer.Option(metavar="N", help="Plan for N times the load; 1.")] = None
    growth: Annotated[str | None, typer.Option(metavar="SHARE", help="By which the load grows each year; 0%.")] = None
    years: Annotated[str | None, typer.Option(metavar="N", help="That it grows; 1.")] = None
    survive: Annotated[
        str | None, typer.Option(metavar="N", help="Brokers that may be lost while the others carry all of it; 1.")
    ] = None
    brokers: Annotated[str | None, typer.Option(metavar="N", help="Plan with this number of brokers.")] = None
    measure: Annotated[
        bool, typer.Option("--measure", help="Measure the rates of one partition, on a topic of its own.")
    ] = False
    duration: Annotated[
        str | None, typer.Option(metavar="DURATION", help="With --measure: of each way, at most; 5s.")
    ] = None
    max_bytes: Annotated[
        str | None, typer.Option(metavar="SIZE", help="With --measure: the most that is written; 1GB.")
    ] = None
    record_size: Annotated[
        str | None, typer.Option(metavar="SIZE", help="With --measure: of a record; the message size, or 1kB.")
    ] = None
    acks: Annotated[Acks | None, typer.Option(help="With --measure: replicas that must have a record; all.")] = None
    compression: Annotated[
        Compression | None,
        typer.Option("--compression-codec", "--compression", help="With --measure: of the batches; none."),
    ] = None
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what --measure would do, make no topic.")] = False

    def inputs(self) -> dict[str, str]:
        """Return the given inputs of the arithmetic by name."""
        from kctl.capacity.fields import CLUSTER_FIELDS, TOPIC_FIELDS

        texts = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: text
            for name, text in texts.items()
            if text is not None and (name in TOPIC_FIELDS or name in CLUSTER_FIELDS)
        }
