"""The options of kctl segment dump."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from kctl.commands.segment.columns import Size

ALL_BYTES = 2**31 - 1  # the default of DumpLogSegments
_DECODERS = "string, long, integer, double, bytes, or Kafka's decoder class."


@dataclass(frozen=True)
class DumpArguments:
    """The arguments and options of the command."""

    paths: Annotated[
        list[str] | None, typer.Argument(metavar="FILE…", help="Files of a log, or a partition folder.")
    ] = None
    files: Annotated[
        str | None, typer.Option(metavar="A,B", help="Comma-separated files, as for kafka-dump-log.sh.")
    ] = None
    records: Annotated[bool, typer.Option("--records", help="Show a row per record, without keys and values.")] = False
    offsets: Annotated[
        str | None, typer.Option(metavar="A..B", help="Only these offsets, both included; also A.. or ..B.")
    ] = None
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Only from this time on, e.g. -2h or ISO 8601, UTC if no zone is given."),
    ] = None
    until: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Only before this time, e.g. -1h or ISO 8601, UTC if no zone is given."),
    ] = None
    key: Annotated[str | None, typer.Option(metavar="TEXT", help="Only records with this key.")] = None
    key_regex: Annotated[str | None, typer.Option(metavar="REGEX", help="Only records whose key contains a match.")] = (
        None
    )
    grep: Annotated[
        str | None, typer.Option(metavar="REGEX", help="Only records whose key, value or headers contain a match.")
    ] = None
    producer_id: Annotated[int | None, typer.Option(help="Only batches of this producer id.")] = None
    transactional: Annotated[bool | None, typer.Option(help="Only batches in, or outside, transactions.")] = None
    limit: Annotated[int | None, typer.Option(min=1, help="Maximum number of rows (default: no limit).")] = None
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Continue as the last file grows, and in new segments.")
    ] = False
    print_data_log: Annotated[bool, typer.Option("--print-data-log", help="Show records with keys and values.")] = False
    deep_iteration: Annotated[bool, typer.Option("--deep-iteration", help="Same as --records.")] = False
    index_sanity_check: Annotated[
        bool, typer.Option("--index-sanity-check", help="-o kafka: only the broker's sanity check of indexes.")
    ] = False
    verify_index_only: Annotated[
        bool, typer.Option("--verify-index-only", help="-o kafka: index mismatches only, no entries.")
    ] = False
    skip_record_metadata: Annotated[
        bool, typer.Option("--skip-record-metadata", help="-o kafka: keys and values without metadata.")
    ] = False
    max_bytes: Annotated[int, typer.Option(min=0, help="Maximum bytes to read from each log.")] = ALL_BYTES
    max_message_size: Size = None
    kafka_version: Annotated[
        str | None,
        typer.Option(
            metavar="X.Y",
            help="-o kafka: the release whose output is printed, 3.9 or 4.4 (default: detected, otherwise 3.9).",
        ),
    ] = None
    jobs: Annotated[int, typer.Option(min=1, max=64, help="-o kafka: number of processes that decode records.")] = 1
    key_decoder_class: Annotated[str | None, typer.Option(metavar="NAME", help=_DECODERS)] = None
    value_decoder_class: Annotated[str | None, typer.Option(metavar="NAME", help=_DECODERS)] = None
    offsets_decoder: Annotated[
        bool, typer.Option("--offsets-decoder", help="Decode records of __consumer_offsets.")
    ] = False
    transaction_log_decoder: Annotated[
        bool, typer.Option("--transaction-log-decoder", help="Decode records of __transaction_state.")
    ] = False
    cluster_metadata_decoder: Annotated[
        bool, typer.Option("--cluster-metadata-decoder", help="Decode records of __cluster_metadata.")
    ] = False
    remote_log_metadata_decoder: Annotated[
        bool, typer.Option("--remote-log-metadata-decoder", help="Decode records of __remote_log_metadata.")
    ] = False
    share_group_state_decoder: Annotated[
        bool,
        typer.Option("--share-group-state-decoder", help="Decode records of __share_group_state (Kafka 4.1 or later)."),
    ] = False
