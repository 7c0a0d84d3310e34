"""The options of kctl consume."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.commands.terminal.topic_options import PARTITION

# As help says it: the names are in modules that help does not import.
_DECODERS = (
    "Decode keys and values: text, json, short, int, long, float, double, hex, base64, a plug-in's; by a"
    " schema registry: avro, protobuf, json-schema, registry; or one of"
    " Kafka's own topics: offsets, transaction_log, share_group_state, cluster_metadata, remote_log_metadata."
)

Topics = Annotated[list[str] | None, typer.Argument(metavar="[TOPIC]...", show_default=False)]
Match = Annotated[
    list[str] | None, typer.Option("--match", metavar="REGEX", help="Topics of such names too; repeatable.")
]
FromBeginning = Annotated[bool, typer.Option("--from-beginning", help="Start at the oldest record, not at the end.")]
Offset = Annotated[str | None, typer.Option(metavar="OFFSET", help="Where to start: a number, earliest or latest.")]
FromTime = Annotated[
    str | None,
    typer.Option("--from", metavar="TIME", help="Start at this time: ISO 8601, UTC if no zone is given; '2h ago'; ms."),
]
Tail = Annotated[int | None, typer.Option(min=0, help="Start at the last N records of each partition.")]
Until = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Stop before the first record at or after this time; UTC if no zone is given."),
]
UntilOffset = Annotated[
    int | None, typer.Option("--until-offset", min=0, help="Stop before this offset in each partition.")
]
MaxMessages = Annotated[int | None, typer.Option(min=0, help="Stop after so many records.")]
ExitEof = Annotated[bool, typer.Option("--exit-eof", help="Stop at the end that the log has now.")]
IdleTimeout = Annotated[str | None, typer.Option(metavar="DURATION", help="Stop after so long without a record.")]
Partition = Annotated[list[str] | None, PARTITION]
Group = Annotated[str | None, typer.Option(help="Read as a member of this group, and commit what was shown.")]
OffsetReset = Annotated[
    str | None,
    typer.Option(metavar="earliest|latest", help="For a group without an offset, or whose offset is gone."),
]
AsClassicMember = Annotated[
    bool,
    typer.Option(
        "--as-classic-member",
        help="Join a group of the consumer protocol (KIP-848) too; without members it becomes a classic group.",
    ),
]
Key = Annotated[str | None, typer.Option(metavar="REGEX", help="Only records whose key has this.")]
Value = Annotated[str | None, typer.Option(metavar="REGEX", help="Only records whose value has this.")]
Header = Annotated[
    list[str] | None, typer.Option(metavar="NAME=REGEX", help="Only records with such a header; repeatable.")
]
JsonPath = Annotated[
    list[str] | None,
    typer.Option(metavar="CONDITION", help="Only JSON values for which it holds: 'a.b[0] == \"x\"'; repeatable."),
]
Form = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="text, json, hex or a template: '{key} {value}\\n'; its lines end where \\n stands.",
    ),
]
KeySeparator = Annotated[
    str | None, typer.Option(metavar="TEXT", help="Show the key too, and this between key and value; \\t is a tab.")
]
Decoder = Annotated[str | None, typer.Option(metavar="NAME", help=_DECODERS)]
KeyDecoder = Annotated[str | None, typer.Option(metavar="NAME", help="Decode keys.")]
ValueDecoder = Annotated[str | None, typer.Option(metavar="NAME", help="Decode values.")]
SchemaRegistry = Annotated[
    str | None,
    typer.Option(
        metavar="URL,…", envvar="KCTL_SCHEMA_REGISTRY", show_envvar=False,
        help="Schema registry URLs, tried in order (default: KCTL_SCHEMA_REGISTRY).",
    ),
]  # fmt: skip
SchemaRegistryCa = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", envvar="KCTL_SCHEMA_REGISTRY_CA", show_envvar=False,
        help="CA certificates for the registry, PEM (default: SSL_CERT_FILE, or the system's CAs).",
    ),
]  # fmt: skip
SchemaRegistryCert = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", envvar="KCTL_SCHEMA_REGISTRY_CERT", show_envvar=False,
        help="Client certificate for the registry, PEM; may contain the key.",
    ),
]  # fmt: skip
SchemaRegistryKey = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", envvar="KCTL_SCHEMA_REGISTRY_KEY", show_envvar=False,
        help="Key of the client certificate, PEM; KCTL_SCHEMA_REGISTRY_KEY_PASSWORD has its password.",
    ),
]  # fmt: skip
SchemaRegistryUserInfoFile = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="File with user:password for the registry, or set KCTL_SCHEMA_REGISTRY_USER_INFO."
    ),
]
SchemaRegistryTokenFile = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="File with a bearer token for the registry, or set KCTL_SCHEMA_REGISTRY_TOKEN."),
]
SchemaIdBytes = Annotated[
    str,
    typer.Option(metavar="4|8|auto", help="Size of the schema id before the data; Apicurio before 3 writes 8 bytes."),
]
SchemaIdKind = Annotated[
    str, typer.Option(metavar="content|global|auto", help="Kind of the schema id before the data (Apicurio's own API).")
]
Merge = Annotated[bool, typer.Option("--merge", help="All partitions in the order of their timestamps.")]
ReadCommitted = Annotated[bool, typer.Option("--read-committed", help="Leave out aborted and open transactions.")]
Stats = Annotated[bool, typer.Option("--stats", help="Say on stderr each second how fast it goes.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Count the records instead of showing them.")]
