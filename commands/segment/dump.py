"""kctl segment dump: what log files hold, for people, for programs, and as kafka-dump-log.sh prints it."""

# ruff: noqa: ARG001 - a command with this many options reads them from ctx.params

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.base.text import counted, printable
from kctl.commands.segment.columns import (
    COLUMNS,
    COORDINATOR_COLUMNS,
    METADATA_COLUMNS,
    WIDE,
    Size,
    batch_marks,
    message_limit,
)
from kctl.commands.segment.streams import stream
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import Invocation, invocation, more_formats
from kctl.commands.terminal.output import Column
from kctl.errors import NotHealthy, UsageError

if TYPE_CHECKING:
    from kctl.segment.dump.dump import DumpRun, Row
    from kctl.segment.dump.kafka_text_options import KafkaTextOptions, Parser
    from kctl.segment.dump.query import Query
    from kctl.segment.dump.rows import RowDecoder
    from kctl.segment.log.parallel import Processes


_ALL_BYTES = 2**31 - 1  # the default of DumpLogSegments
_NOT_FOR_KAFKA = (
    "offsets", "since", "until", "key", "key_regex", "grep", "producer_id", "transactional", "limit", "follow",
)  # fmt: skip
_ONLY_FOR_KAFKA = ("index_sanity_check", "verify_index_only", "skip_record_metadata", "jobs")
_DECODERS = "string, long, integer, double, bytes, or Kafka's class."


@more_formats("kafka")
def dump(
    ctx: typer.Context,
    paths: Annotated[list[str] | None, typer.Argument(metavar="FILE…", help="Files, or a partition's folder.")] = None,
    files: Annotated[str | None, typer.Option(metavar="A,B", help="Files as DumpLogSegments takes them.")] = None,
    records: Annotated[bool, typer.Option("--records", help="A row for each record, not for each batch.")] = False,
    offsets: Annotated[str | None, typer.Option(metavar="A..B", help="Only these, both included.")] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only from this time on, e.g. -2h; UTC if no zone is given.")
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only before this time; UTC if no zone is given.")
    ] = None,
    key: Annotated[str | None, typer.Option(metavar="TEXT", help="Only records with this key.")] = None,
    key_regex: Annotated[str | None, typer.Option(metavar="REGEX", help="Only where it occurs in the key.")] = None,
    grep: Annotated[str | None, typer.Option(metavar="REGEX", help="In key, value or a header.")] = None,
    producer_id: Annotated[int | None, typer.Option(help="Only of this producer.")] = None,
    transactional: Annotated[bool | None, typer.Option(help="Only in transactions, or only outside.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after so many rows.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as the last file grows.")] = False,
    print_data_log: Annotated[bool, typer.Option("--print-data-log", help="Records, with keys and values.")] = False,
    deep_iteration: Annotated[bool, typer.Option("--deep-iteration", help="Records.")] = False,
    index_sanity_check: Annotated[
        bool, typer.Option("--index-sanity-check", help="-o kafka: only a broker's own check of indexes.")
    ] = False,
    verify_index_only: Annotated[
        bool, typer.Option("--verify-index-only", help="-o kafka: mismatches, without the entries.")
    ] = False,
    skip_record_metadata: Annotated[
        bool, typer.Option("--skip-record-metadata", help="-o kafka: keys and values only.")
    ] = False,
    max_bytes: Annotated[int, typer.Option(min=0, help="Read so much of each log.")] = _ALL_BYTES,
    max_message_size: Size = None,
    jobs: Annotated[int, typer.Option(min=1, max=64, help="-o kafka: so many processes for records.")] = 1,
    key_decoder_class: Annotated[str | None, typer.Option(metavar="NAME", help=_DECODERS)] = None,
    value_decoder_class: Annotated[str | None, typer.Option(metavar="NAME", help=_DECODERS)] = None,
    offsets_decoder: Annotated[bool, typer.Option("--offsets-decoder", help="It is __consumer_offsets.")] = False,
    transaction_log_decoder: Annotated[
        bool, typer.Option("--transaction-log-decoder", help="It is __transaction_state.")
    ] = False,
    cluster_metadata_decoder: Annotated[
        bool, typer.Option("--cluster-metadata-decoder", help="It is __cluster_metadata.")
    ] = False,
    remote_log_metadata_decoder: Annotated[
        bool, typer.Option("--remote-log-metadata-decoder", help="It is __remote_log_metadata.")
    ] = False,
    share_group_state_decoder: Annotated[
        bool, typer.Option("--share-group-state-decoder", help="It is __share_group_state of Kafka 4.1 or later.")
    ] = False,
) -> None:
    """Show what log files hold: batches, or records. Exits 1 when damage was found.

    -o is table, wide, json (JSON Lines), csv or kafka; there is no yaml. Damaged batches are told whatever is looked
    for.

    Indexes, snapshots and checkpoint files are shown as well, each kind as a table of its own; -o json gives JSON
    Lines, where each row says of which kind it is. --follow goes on in the next segment when the broker begins one, and
    ends after --timeout without anything new. -o wide shows more of each batch and record; -o kafka prints what
    kafka-dump-log.sh prints, and takes its options.

    Example: kctl segment dump --records --offsets 1000..1010 00000000000000000000.log

    Example: kctl segment dump --offsets-decoder -o json /var/kafka/__consumer_offsets-7

    Example: kctl segment dump 00000000000000000000.timeindex /var/kafka/replication-offset-checkpoint
    """
    inv = invocation(ctx)
    chosen = _paths(paths, files)
    _check_options(inv.output, ctx.params)
    if inv.output == "kafka":
        _as_kafka_prints_it(chosen, ctx.params)
    else:
        _for_people_and_programs(inv, chosen, ctx.params)


def _check_options(chosen: str | None, given: Mapping[str, Any]) -> None:
    """An option that the chosen format does not have is not passed over in silence."""
    others = _NOT_FOR_KAFKA if chosen == "kafka" else _ONLY_FOR_KAFKA
    for name in others:
        if given[name] not in {None, False, 1}:
            option = f"--{name.replace('_', '-')}"
            if chosen == "kafka":
                raise UsageError(f"{option} is not for -o kafka", hint="-o json has it")
            raise UsageError(f"{option} is for -o kafka", hint="add -o kafka, or leave it out")


def _paths(paths: list[str] | None, files: str | None) -> list[str]:
    """Files as they were given; a folder stands for its logs."""
    from kctl.segment.log.partition import is_folder

    found = [*(paths or []), *(name for name in (files or "").split(",") if name)]
    if not found:
        raise UsageError("no file was given", hint="for example: kctl segment dump 00000000000000000000.log")
    return [name for each in found for name in (_logs_of(each) if is_folder(Path(each)) else [each])]


def _logs_of(folder: str) -> list[str]:
    names = sorted(str(path) for path in Path(folder).glob("*.log"))
    if not names:
        raise UsageError(f"{folder} has no log segment", hint="give a partition's folder, or files")
    return names


# --- -o kafka -------------------------------------------------------------------------------------------------------


def _as_kafka_prints_it(names: list[str], given: Mapping[str, Any]) -> None:
    from kctl.segment.dump.kafka_text import KafkaText

    text = KafkaText(_kafka_options(given), output.raw_writer(), _processes(given["jobs"]))
    for name in names:
        text.dump(name)
    sys.stdout.flush()
    for name in text.ignored:
        sys.stderr.write(f"Ignoring unknown file {printable(name)}\n")
    for found in text.found:
        where = "" if found.position is None else f" at {found.position}"
        kind = "note" if found.note else "damage"
        sys.stderr.write(printable(f"{kind}: {found.path}{where}: {found.message}") + "\n")
    mismatches = 0
    for mismatches, line in enumerate(text.mismatches(), start=1):  # noqa: B007 - their number is used behind the loop
        sys.stderr.write(f"{line}\n")
    if text.unreadable:
        for error in text.unreadable[:-1]:
            output.warn(error.message)
        raise text.unreadable[-1]
    _end(text.found_count - text.undecoded_count + mismatches, text.undecoded_count)


def _processes(jobs: int) -> Processes | None:
    from kctl.segment.log.parallel import Processes

    if jobs == 1 or sys.stdout.isatty():  # they write to it directly: nothing would be escaped
        return None
    return Processes(jobs, sys.stdout.fileno(), sys.stdout.buffer.flush)


def _kafka_options(given: Mapping[str, Any]) -> KafkaTextOptions:
    from kctl.base.units import parse_size
    from kctl.segment.dump.kafka_text_options import MAX_MESSAGE_BYTES, KafkaTextOptions

    parser, plain = _parser(given)
    size = given["max_message_size"]
    return KafkaTextOptions(
        deep=given["deep_iteration"] or given["records"] or parser is not None,
        parser=parser,
        plain=plain,
        skip_record_metadata=given["skip_record_metadata"],
        verify_only=given["verify_index_only"],
        sanity_only=given["index_sanity_check"],
        max_bytes=given["max_bytes"],
        max_message_bytes=MAX_MESSAGE_BYTES if size is None else parse_size(size),
    )


def _internal_topic(given: Mapping[str, Any]) -> str | None:
    """The first internal topic whose decoder was asked for."""
    names = ("offsets", "transaction_log", "cluster_metadata", "remote_log_metadata", "share_group_state")
    return next((name for name in names if given[f"{name}_decoder"]), None)


def _parser(given: Mapping[str, Any]) -> tuple[Parser | None, bool]:
    """What prints keys and values, and whether it prints them as they are."""
    from kctl.segment.dump import decoders

    internal = _internal_topic(given)
    if internal is not None:
        from kctl.segment.dump import internal_topics

        return internal_topics.TEXTS[internal], False
    names = given["key_decoder_class"], given["value_decoder_class"]
    if names == (None, None):
        return (decoders.TEXT, True) if given["print_data_log"] else (None, True)
    key, value = (decoders.decoder(name or "string") for name in names)
    return decoders.parser(key, value), False


# --- tables, JSON Lines, CSV ----------------------------------------------------------------------------------------


def _for_people_and_programs(inv: Invocation, names: list[str], given: Mapping[str, Any]) -> None:
    from kctl.segment.dump.dump import DumpOptions, DumpRun, row_types
    from kctl.segment.log.partition import offset_of

    if inv.output == "yaml":
        raise UsageError("-o yaml is not a format of kctl segment dump", hint="use -o json for programs")
    decode = _row_decoder(given)
    options = DumpOptions(
        query=_query(given),
        records=given["records"] or given["print_data_log"] or given["deep_iteration"] or decode is not None,
        limit=given["limit"],
        follow=given["follow"],
        idle_s=inv.timeout_s(0) if inv.timeout else None,
        max_bytes=given["max_bytes"] if given["max_bytes"] < _ALL_BYTES else None,
        max_message_bytes=message_limit(given["max_message_size"]),
        decode=decode,
        json_lines=inv.output == "json",
    )
    paths = [Path(name) for name in names]
    types = row_types(paths, records=options.records)
    if inv.output == "csv" and len(types) > 1:
        raise UsageError("-o csv has one kind of rows, and these files have several", hint="use -o json, or one kind")
    run = DumpRun(paths, options)
    if inv.output in {"json", "csv"}:
        rows = _texts(run) if inv.output == "json" else _without_remarks(run.rows())
        output.stream(rows, [], inv.output, row_type=types[0])
    else:
        columns = _columns(given, wide=inv.output == "wide")
        # Kafka's own messages are long, and -o wide is.
        blocks = inv.output == "wide" or columns["RecordRow"] in (METADATA_COLUMNS, COORDINATOR_COLUMNS)
        titles = len(paths) > 1 or any(path.suffix == ".log" and offset_of(path) is None for path in paths)
        _tables(_without_remarks(run.rows()), columns, titles=titles, blocks=blocks)
    _end(run.damaged, run.undecoded)


def _texts(run: DumpRun) -> Iterator[Row | bytes | None]:
    """Rows, and the text of many of them."""
    from kctl.segment.dump.dump import JsonLines

    return (row.text if isinstance(row, JsonLines) else row for row in run.rows_and_lines())


def _row_decoder(given: Mapping[str, Any]) -> RowDecoder | None:
    """What makes objects or numbers of keys and values; None: they are text or base64."""
    from kctl.segment.dump.decoders import decoder_name

    internal = _internal_topic(given)
    if internal is not None:
        from kctl.segment.dump.row_decoders import INTERNAL_TOPICS

        return INTERNAL_TOPICS[internal]
    names = given["key_decoder_class"], given["value_decoder_class"]
    if names == (None, None):
        return None
    from kctl.segment.dump.row_decoders import of_types

    key, value = (decoder_name(name or "string") for name in names)
    return of_types(key, value)


def _query(given: Mapping[str, Any]) -> Query:
    from kctl.base.moments import parse_moment
    from kctl.segment.dump.query import Query
    from kctl.segment.log.ranges import parse_offsets, parse_pattern

    first, last = parse_offsets(given["offsets"]) if given["offsets"] else (None, None)
    return Query(
        first=first,
        last=last,
        since_ms=parse_moment(given["since"]) if given["since"] else None,
        until_ms=parse_moment(given["until"]) if given["until"] else None,
        key=None if given["key"] is None else given["key"].encode("utf-8", "surrogateescape"),
        key_pattern=parse_pattern("--key-regex", given["key_regex"]) if given["key_regex"] else None,
        pattern=parse_pattern("--grep", given["grep"]) if given["grep"] else None,
        producer_id=given["producer_id"],
        transactional=given["transactional"],
    )


def _columns(given: Mapping[str, Any], *, wide: bool) -> dict[str, list[Column]]:
    """By the names of the rows' classes."""
    if wide:
        return {**COLUMNS, **WIDE}
    if given["cluster_metadata_decoder"] or given["remote_log_metadata_decoder"]:
        return {**COLUMNS, "RecordRow": METADATA_COLUMNS}
    if given["offsets_decoder"] or given["transaction_log_decoder"] or given["share_group_state_decoder"]:
        return {**COLUMNS, "RecordRow": COORDINATOR_COLUMNS}
    return COLUMNS


def _tables(rows: Iterator[Row | None], columns: Mapping[str, list[Column]], *, titles: bool, blocks: bool) -> None:
    """A table for each file. titles: the file's name above it; a second file has it anyway. blocks: see stream."""
    last: tuple[type, str] | None = None

    def kind(row: Row | None) -> tuple[type, str] | None:
        nonlocal last
        last = last if row is None else (type(row), row.file)
        return last

    shown = 0
    for key, group in groupby(rows, kind):
        if key is not None:
            if shown:
                output.write_line("")
            if titles or shown:
                output.heading(key[1])
            shown += 1
        stream(map(_marked, group), columns[key[0].__name__] if key else [], blocks=blocks)
    if not shown:
        output.note("nothing to show")


def _marked(row: Row | None) -> dict[str, Any] | None:
    known: dict[str, Any] | None = output.jsonable(row)
    return {**known, "marks": batch_marks(known)} if known and known["kind"] == "batch" else known


def _without_remarks(rows: Iterator[Row | None]) -> Iterator[Row | None]:
    """Rows of contents; damage and notes go to stderr."""
    from kctl.segment.dump.rows import DamageRow, NoteRow

    for row in rows:
        if isinstance(row, DamageRow):
            output.warn(f"{row.file} at {row.position}: {row.damage} ({row.size_bytes} bytes)")
        elif isinstance(row, NoteRow):
            output.note(f"{row.file} at {row.position}: {row.note}")
        else:
            yield row


def _end(damaged: int, undecoded: int) -> None:
    """Raise NotHealthy for damage, and for records that a decoder does not know."""
    problems = []
    if damaged:
        problems.append(f"damage was found in {counted(damaged, 'place')}")
    if undecoded:
        problems.append(f"{counted(undecoded, 'record')} could not be decoded")
    if problems:
        hint = "`kctl segment verify` explains the damage" if damaged else "is this the decoder for these records?"
        raise NotHealthy("; ".join(problems), hint=hint)
