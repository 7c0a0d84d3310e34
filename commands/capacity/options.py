"""The options of kctl capacity. What an input is called there stands in kctl.capacity.fields."""

from __future__ import annotations

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


File = Annotated[
    Path | None, typer.Option("-f", "--file", help="Several topics and their brokers (capacity.yaml); - is stdin.")
]
FromCluster = Annotated[
    bool, typer.Option("--from-cluster", help="Plan for the topics that the cluster has, as they are written now.")
]
Match = Annotated[
    list[str] | None,
    typer.Option(metavar="REGEX", help="With --from-cluster: only these topics; repeatable."),
]
Window = Annotated[
    str | None, typer.Option(metavar="DURATION", help="With --from-cluster: how long to look at writes; 10s.")
]

Throughput = Annotated[
    str | None, typer.Option(metavar="RATE", help="Bytes a second before compression, as 100MB/s or 1Gbit/s.")
]
Messages = Annotated[str | None, typer.Option(metavar="N/s", help="Messages a second (/m, /h), with --message-size.")]
MessageSize = Annotated[str | None, typer.Option(metavar="SIZE", help="Of a message before compression.")]
Ratio = Annotated[str | None, typer.Option(metavar="RATIO", help="4 where 4 bytes are stored and sent as one; 1.")]
Data = Annotated[
    str | None, typer.Option(metavar="SIZE", help="What one copy of the logs holds, instead of a retention.")
]
Keys = Annotated[str | None, typer.Option(metavar="N", help="Keys of a compacted topic, with --message-size.")]
Retention = Annotated[str | None, typer.Option(metavar="DURATION", help="retention.ms; 7d.")]
RetentionBytes = Annotated[str | None, typer.Option(metavar="SIZE", help="retention.bytes, of a partition.")]
SegmentSize = Annotated[str | None, typer.Option(metavar="SIZE", help="segment.bytes; 1GiB.")]
SegmentTime = Annotated[str | None, typer.Option(metavar="DURATION", help="segment.ms; 7d.")]
ReplicationFactor = Annotated[str | None, typer.Option(metavar="N", help="Copies of each partition; 3.")]
MinInsync = Annotated[str | None, typer.Option(metavar="N", help="min.insync.replicas; more than half of the copies.")]
Groups = Annotated[str | None, typer.Option(metavar="N", help="Consumer groups that read all of it; 1.")]
ConsumerRate = Annotated[
    str | None, typer.Option(metavar="RATE", help="What one consumer takes from a partition; 50MB/s, or measured.")
]
ProducerRate = Annotated[
    str | None, typer.Option(metavar="RATE", help="What one producer gets into a partition; no bound, or measured.")
]
MaxPartition = Annotated[str | None, typer.Option(metavar="SIZE", help="The most that a partition shall hold; 25GB.")]
Partitions = Annotated[str | None, typer.Option(metavar="N", help="Plan with this number of partitions.")]

Disk = Annotated[str | None, typer.Option(metavar="SIZE", help="Of one disk of a broker.")]
Disks = Annotated[str | None, typer.Option(metavar="N", help="Disks of this size in a broker; 1.")]
Network = Annotated[str | None, typer.Option(metavar="RATE", help="Of a broker each way, as 10Gbit/s.")]
Headroom = Annotated[str | None, typer.Option(metavar="SHARE", help="Of each disk that stays free; 20%.")]
NetworkLimit = Annotated[str | None, typer.Option(metavar="SHARE", help="Of the network that may be used; 80%.")]
Times = Annotated[str | None, typer.Option(metavar="N", help="Plan for N times the load; 1.")]
Growth = Annotated[str | None, typer.Option(metavar="SHARE", help="By which the load grows each year; 0%.")]
Years = Annotated[str | None, typer.Option(metavar="N", help="That it grows; 1.")]
Survive = Annotated[
    str | None, typer.Option(metavar="N", help="Brokers that may be lost while the others carry all of it; 1.")
]
Brokers = Annotated[str | None, typer.Option(metavar="N", help="Plan with this number of brokers.")]

Measure = Annotated[bool, typer.Option("--measure", help="Measure the rates of one partition, on a topic of its own.")]
Duration = Annotated[str | None, typer.Option(metavar="DURATION", help="With --measure: of each way, at most; 5s.")]
MaxBytes = Annotated[str | None, typer.Option(metavar="SIZE", help="With --measure: the most that is written; 1GB.")]
RecordSize = Annotated[
    str | None, typer.Option(metavar="SIZE", help="With --measure: of a record; the message size, or 1kB.")
]
WithAcks = Annotated[Acks | None, typer.Option(help="With --measure: replicas that must have a record; all.")]
WithCompression = Annotated[
    Compression | None,
    typer.Option("--compression-codec", "--compression", help="With --measure: of the batches; none."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what --measure would do, make no topic.")]
