"""The options of kctl consume."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from kctl.commands.terminal.topic_options import PARTITION

# Repeated here, because help does not import the modules that define the names.
_DECODERS = (
    "Decode keys and values: text, json, short, int, long, float, double, hex, base64, or a plug-in; with a"
    " schema registry: avro, protobuf, json-schema, registry;"
    " internal topics: offsets, transaction_log, share_group_state, cluster_metadata, remote_log_metadata."
)


@dataclass(frozen=True)
class ConsumeArguments:
    """The arguments and options of the command."""

    topics: Annotated[
        list[str] | None, typer.Argument(metavar="[TOPIC]…", help="Topics to read.", show_default=False)
    ] = None
    match: Annotated[
        list[str] | None,
        typer.Option("--match", metavar="REGEX", help="Also topics whose whole name matches; repeatable."),
    ] = None
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Start at the oldest record (default: at the end).")
    ] = False
    offset: Annotated[
        str | None, typer.Option(metavar="OFFSET", help="Start at this offset: a number, earliest or latest.")
    ] = None
    from_time: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="TIME",
            help="Start at this time: ISO 8601 (UTC if no zone is given), '2h ago', or ms since 1970.",
        ),
    ] = None
    tail: Annotated[
        int | None, typer.Option(min=0, help="Start at the last N records of each partition: 3 partitions give 3 × N.")
    ] = None
    until: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Stop before the first record at or after this time; UTC if no zone is given."
        ),
    ] = None
    until_offset: Annotated[
        int | None, typer.Option("--until-offset", min=0, help="Stop before this offset in each partition.")
    ] = None
    max_messages: Annotated[int | None, typer.Option(min=0, help="Stop after N records.")] = None
    exit_eof: Annotated[bool, typer.Option("--exit-eof", help="Stop at the current end of the log.")] = False
    idle_timeout: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Stop if no record arrives for this long, e.g. 30s.")
    ] = None
    partition: Annotated[list[str] | None, PARTITION] = None
    group: Annotated[
        str | None, typer.Option(help="Read as a member of this group, and commit the offsets of shown records.")
    ] = None
    offset_reset: Annotated[
        str | None,
        typer.Option(
            metavar="earliest|latest",
            help="Where a group starts without a valid committed offset (default: latest, or the oldest record if the "
            "records after the offset were deleted).",
        ),
    ] = None
    as_classic_member: Annotated[
        bool,
        typer.Option(
            "--as-classic-member",
            help="Join a KIP-848 consumer group as a classic member; an empty group becomes a classic group.",
        ),
    ] = False
    key: Annotated[str | None, typer.Option(metavar="REGEX", help="Only records whose key contains a match.")] = None
    value: Annotated[str | None, typer.Option(metavar="REGEX", help="Only records whose value contains a match.")] = (
        None
    )
    header: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=REGEX", help="Only records with a header whose value contains a match; repeatable."),
    ] = None
    json_path: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION", help="Only records whose JSON value matches, e.g. 'a.b[0] == \"x\"'; repeatable."
        ),
    ] = None
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="text, json, hex, or a template such as '{key} {value}\\n'; \\n ends a line.",
        ),
    ] = None
    key_separator: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Show the key, then this text, then the value; \\t is a tab.")
    ] = None
    decoder: Annotated[str | None, typer.Option(metavar="NAME", help=_DECODERS)] = None
    key_decoder: Annotated[str | None, typer.Option(metavar="NAME", help="Decode keys.")] = None
    value_decoder: Annotated[str | None, typer.Option(metavar="NAME", help="Decode values.")] = None
    schema_registry: Annotated[
        str | None,
        typer.Option(
            metavar="URL,…", envvar="KCTL_SCHEMA_REGISTRY", show_envvar=False,
            help="Schema registry URLs, tried in order (default: KCTL_SCHEMA_REGISTRY).",
        ),
    ] = None  # fmt: skip
    schema_registry_ca: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", envvar="KCTL_SCHEMA_REGISTRY_CA", show_envvar=False,
            help="CA certificates for the registry, PEM (default: SSL_CERT_FILE, or the system's CAs).",
        ),
    ] = None  # fmt: skip
    schema_registry_cert: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", envvar="KCTL_SCHEMA_REGISTRY_CERT", show_envvar=False,
            help="Client certificate for the registry, PEM; may contain the key.",
        ),
    ] = None  # fmt: skip
    schema_registry_key: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", envvar="KCTL_SCHEMA_REGISTRY_KEY", show_envvar=False,
            help="Key of the client certificate, PEM; KCTL_SCHEMA_REGISTRY_KEY_PASSWORD has its password.",
        ),
    ] = None  # fmt: skip
    schema_registry_user_info_file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="File with user:password for the registry, or set KCTL_SCHEMA_REGISTRY_USER_INFO."
        ),
    ] = None
    schema_registry_token_file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="File with a bearer token for the registry, or set KCTL_SCHEMA_REGISTRY_TOKEN."
        ),
    ] = None
    schema_id_bytes: Annotated[
        str,
        typer.Option(
            metavar="4|8|auto", help="Size of the schema id before the data; Apicurio before 3 writes 8 bytes."
        ),
    ] = "auto"
    schema_id_kind: Annotated[
        str,
        typer.Option(metavar="content|global|auto", help="Kind of the schema id before the data (Apicurio's own API)."),
    ] = "auto"
    merge: Annotated[bool, typer.Option("--merge", help="Merge all partitions in timestamp order.")] = False
    read_committed: Annotated[
        bool, typer.Option("--read-committed", help="Skip records of aborted and open transactions.")
    ] = False
    stats: Annotated[bool, typer.Option("--stats", help="Print the throughput to stderr every second.")] = False
    quiet: Annotated[bool, typer.Option("--quiet", help="Count records instead of showing them.")] = False
