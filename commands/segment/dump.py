"""kctl segment dump: show log files as tables, JSON Lines, CSV, or in the format of kafka-dump-log.sh."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from kctl.base.text import counted, printable
from kctl.commands.segment.columns import (
    COLUMNS,
    COORDINATOR_COLUMNS,
    METADATA_COLUMNS,
    WIDE,
    batch_marks,
    message_limit,
)
from kctl.commands.segment.dump_options import ALL_BYTES, DumpArguments
from kctl.commands.segment.streams import stream
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import Invocation, invocation, more_formats
from kctl.commands.terminal.option_sets import takes_options
from kctl.commands.terminal.output import Column
from kctl.errors import NotHealthy, UsageError

if TYPE_CHECKING:
    from kctl.segment.dump.dump import DumpRun, Row
    from kctl.segment.dump.kafka_text_options import KafkaTextOptions, Parser
    from kctl.segment.dump.query import Query
    from kctl.segment.dump.rows import RowDecoder
    from kctl.segment.format.release import Release
    from kctl.segment.log.parallel import Processes


_NOT_FOR_KAFKA = (
    "offsets", "since", "until", "key", "key_regex", "grep", "producer_id", "transactional", "limit", "follow",
)  # fmt: skip
_ONLY_FOR_KAFKA = ("index_sanity_check", "verify_index_only", "skip_record_metadata", "kafka_version", "jobs")


@more_formats("kafka")
@takes_options(DumpArguments)
def dump(ctx: typer.Context, options: DumpArguments) -> None:
    """Show the batches or records of log files.

    Exits 1 if a file is damaged. Output formats: table, wide, json (JSON Lines), csv and kafka; not yaml. Damaged
    batches are reported even if a filter excludes them.

    Index, snapshot and checkpoint files can be shown as well, with one table per kind of file; in JSON Lines, each row
    has a kind. --follow continues in the next segment when the broker rolls the log, and ends on Ctrl-C, or after
    --timeout without new data. -o wide shows more columns. -o kafka prints the output of kafka-dump-log.sh and supports
    its options.

    # Show the records with offsets 1000 to 1010
    kctl segment dump --records --offsets 1000..1010 00000000000000000000.log

    # Print committed offsets and group metadata as JSON Lines
    kctl segment dump --offsets-decoder -o json /var/kafka/__consumer_offsets-7

    # Show an index and a checkpoint
    kctl segment dump 00000000000000000000.timeindex /var/kafka/replication-offset-checkpoint
    """
    inv = invocation(ctx)
    paths = _paths(options)
    _check_options(inv.output, options)
    if inv.output == "kafka":
        _print_kafka_text(paths, options)
    else:
        _print_rows(inv, paths, options)


def _check_options(output_format: str | None, arguments: DumpArguments) -> None:
    """Raise UsageError for an option that the output format does not support."""
    unsupported = _NOT_FOR_KAFKA if output_format == "kafka" else _ONLY_FOR_KAFKA
    for name in unsupported:
        if getattr(arguments, name) not in {None, False, 1}:
            option = f"--{name.replace('_', '-')}"
            if output_format == "kafka":
                raise UsageError(f"{option} is not supported with -o kafka", hint="use `-o json`")
            raise UsageError(f"{option} requires -o kafka", hint=f"add `-o kafka`, or remove {option}")


def _paths(options: DumpArguments) -> list[str]:
    """Return the files; a folder stands for its .log files."""
    from kctl.segment.log.partition import is_folder

    arguments = [*(options.paths or []), *(name for name in (options.files or "").split(",") if name)]
    if not arguments:
        raise UsageError("no file given", hint="pass a file, e.g. `kctl segment dump 00000000000000000000.log`")
    return [name for each in arguments for name in (_logs_of(each) if is_folder(Path(each)) else [each])]


def _logs_of(folder: str) -> list[str]:
    names = sorted(str(path) for path in Path(folder).glob("*.log"))
    if not names:
        raise UsageError(f"{folder} has no log segment", hint="pass a partition folder, or files of a log")
    return names


# --- -o kafka -------------------------------------------------------------------------------------------------------


def _print_kafka_text(names: list[str], arguments: DumpArguments) -> None:
    from kctl.segment.dump.kafka_text import KafkaText

    text = KafkaText(_kafka_options(names, arguments), output.raw_writer(), _processes(arguments.jobs))
    for name in names:
        text.dump(name)
    sys.stdout.flush()
    for name in text.ignored:
        sys.stderr.write(f"Ignoring unknown file {printable(name)}\n")
    for finding in text.findings:
        where = "" if finding.position is None else f" at {finding.position}"
        kind = "note" if finding.note else "damage"
        sys.stderr.write(printable(f"{kind}: {finding.path}{where}: {finding.message}") + "\n")
    mismatches = 0
    for mismatches, line in enumerate(text.mismatches(), start=1):  # noqa: B007 - the number is used after the loop
        sys.stderr.write(f"{line}\n")
    if text.unreadable:
        for error in text.unreadable[:-1]:
            output.warn(error.message)
        raise text.unreadable[-1]
    mismatches -= text.expected_lines
    _raise_problems(text.finding_count - text.undecoded_count + mismatches, text.undecoded_count)


def _processes(jobs: int) -> Processes | None:
    from kctl.segment.log.parallel import Processes

    if jobs == 1 or sys.stdout.isatty():  # processes write to it directly, without escaping
        return None
    return Processes(jobs, sys.stdout.fileno(), sys.stdout.buffer.flush)


def _kafka_options(names: list[str], arguments: DumpArguments) -> KafkaTextOptions:
    from kctl.base.units import parse_size
    from kctl.segment.dump.kafka_text_options import MAX_MESSAGE_BYTES, KafkaTextOptions

    release = _release(names, arguments.kafka_version)
    parser, plain = _parser(arguments, release)
    size = arguments.max_message_size
    return KafkaTextOptions(
        release=release,
        deep=arguments.deep_iteration or arguments.records or parser is not None,
        parser=parser,
        plain=plain,
        skip_record_metadata=arguments.skip_record_metadata,
        verify_only=arguments.verify_index_only,
        sanity_only=arguments.index_sanity_check,
        max_bytes=arguments.max_bytes,
        max_message_bytes=MAX_MESSAGE_BYTES if size is None else parse_size(size),
    )


def _release(names: list[str], version: str | None) -> Release:
    """Return the release whose text is printed: that of --kafka-version, else the first that a file's folder shows."""
    from kctl.segment.format.release import Release
    from kctl.segment.log.writer_release import writer_release

    if version is None:
        releases = map(writer_release, dict.fromkeys(Path(name).parent for name in names))
        return next((release for release in releases if release is not None), Release.KAFKA_3_9)
    for release in Release:
        if version == release.value or version.startswith(f"{release.value}."):
            return release
    raise UsageError(
        f"--kafka-version {version}: only the output of 3.9 and 4.4 is supported",
        hint="use 3.9 for Kafka 3 and earlier, and 4.4 for Kafka 4",
    )


def _internal_topic(arguments: DumpArguments) -> str | None:
    """Return the internal topic whose decoder is requested, the first one if several are."""
    names = ("offsets", "transaction_log", "cluster_metadata", "remote_log_metadata", "share_group_state")
    return next((name for name in names if getattr(arguments, f"{name}_decoder")), None)


def _parser(arguments: DumpArguments, release: Release) -> tuple[Parser | None, bool]:
    """Return the parser of keys and values, and True if it prints them unchanged."""
    from kctl.segment.dump import decoders

    internal = _internal_topic(arguments)
    if internal is not None:
        from kctl.segment.dump import internal_topics

        return internal_topics.TEXTS[internal](release), False
    names = arguments.key_decoder_class, arguments.value_decoder_class
    if names == (None, None):
        return (decoders.TEXT, True) if arguments.print_data_log else (None, True)
    key, value = (decoders.decoder(name or "string") for name in names)
    return decoders.parser(key, value), False


# --- tables, JSON Lines, CSV ----------------------------------------------------------------------------------------


def _print_rows(inv: Invocation, names: list[str], arguments: DumpArguments) -> None:
    from kctl.segment.dump.dump import DumpOptions, DumpRun, row_types
    from kctl.segment.log.partition import offset_of

    if inv.output == "yaml":
        raise UsageError("-o yaml is not supported by `kctl segment dump`", hint="use `-o json`")
    decode = _row_decoder(arguments)
    options = DumpOptions(
        query=_query(arguments),
        records=arguments.records or arguments.print_data_log or arguments.deep_iteration or decode is not None,
        limit=arguments.limit,
        follow=arguments.follow,
        idle_s=inv.timeout_s(0) if inv.timeout else None,
        max_bytes=arguments.max_bytes if arguments.max_bytes < ALL_BYTES else None,
        max_message_bytes=message_limit(arguments.max_message_size),
        decode=decode,
        json_lines=inv.output == "json",
    )
    paths = [Path(name) for name in names]
    types = row_types(paths, records=options.records)
    if inv.output == "csv" and len(types) > 1:
        raise UsageError("-o csv requires files of one kind", hint="use `-o json`, or pass files of one kind")
    run = DumpRun(paths, options)
    if inv.output in {"json", "csv"}:
        rows = _texts(run) if inv.output == "json" else _without_remarks(run.rows())
        output.stream(rows, [], inv.output, row_type=types[0])
    else:
        columns = _columns(arguments, wide=inv.output == "wide")
        # Messages of internal topics, and -o wide, are too wide for tables.
        blocks = inv.output == "wide" or columns["RecordRow"] in (METADATA_COLUMNS, COORDINATOR_COLUMNS)
        titles = len(paths) > 1 or any(path.suffix == ".log" and offset_of(path) is None for path in paths)
        _tables(_without_remarks(run.rows()), columns, titles=titles, blocks=blocks)
    _raise_problems(run.damaged, run.undecoded)


def _texts(run: DumpRun) -> Iterator[Row | bytes | None]:
    """Yield rows, and the JSON Lines of many rows as bytes."""
    from kctl.segment.dump.dump import JsonLines

    return (row.text if isinstance(row, JsonLines) else row for row in run.rows_and_lines())


def _row_decoder(arguments: DumpArguments) -> RowDecoder | None:
    """Return the decoder of keys and values; None: text or base64."""
    from kctl.segment.dump.decoders import decoder_name

    internal = _internal_topic(arguments)
    if internal is not None:
        from kctl.segment.dump.row_decoders import INTERNAL_TOPICS

        return INTERNAL_TOPICS[internal]
    names = arguments.key_decoder_class, arguments.value_decoder_class
    if names == (None, None):
        return None
    from kctl.segment.dump.row_decoders import of_types

    key, value = (decoder_name(name or "string") for name in names)
    return of_types(key, value)


def _query(arguments: DumpArguments) -> Query:
    from kctl.base.timestamps import parse_timestamp
    from kctl.segment.dump.query import Query
    from kctl.segment.log.ranges import parse_offsets, parse_pattern

    first, last = parse_offsets(arguments.offsets) if arguments.offsets else (None, None)
    return Query(
        first=first,
        last=last,
        since_ms=parse_timestamp(arguments.since) if arguments.since else None,
        until_ms=parse_timestamp(arguments.until) if arguments.until else None,
        key=None if arguments.key is None else arguments.key.encode("utf-8", "surrogateescape"),
        key_pattern=parse_pattern("--key-regex", arguments.key_regex) if arguments.key_regex else None,
        pattern=parse_pattern("--grep", arguments.grep) if arguments.grep else None,
        producer_id=arguments.producer_id,
        transactional=arguments.transactional,
    )


def _columns(arguments: DumpArguments, *, wide: bool) -> dict[str, list[Column]]:
    """Return the columns by row class name."""
    if wide:
        return {**COLUMNS, **WIDE}
    if arguments.cluster_metadata_decoder or arguments.remote_log_metadata_decoder:
        return {**COLUMNS, "RecordRow": METADATA_COLUMNS}
    if arguments.offsets_decoder or arguments.transaction_log_decoder or arguments.share_group_state_decoder:
        return {**COLUMNS, "RecordRow": COORDINATOR_COLUMNS}
    return COLUMNS


def _tables(rows: Iterator[Row | None], columns: Mapping[str, list[Column]], *, titles: bool, blocks: bool) -> None:
    """Print a table per file. titles: print the name of the first file too. blocks: see stream."""
    last: tuple[type, str] | None = None

    def kind(row: Row | None) -> tuple[type, str] | None:
        nonlocal last
        last = last if row is None else (type(row), row.file)
        return last

    table_count = 0
    for key, group in groupby(rows, kind):
        if key is not None:
            if table_count:
                output.write_line("")
            if titles or table_count:
                output.heading(key[1])
            table_count += 1
        stream(map(_with_marks, group), columns[key[0].__name__] if key else [], blocks=blocks)
    if not table_count:
        output.note("nothing to show")


def _with_marks(row: Row | None) -> dict[str, Any] | None:
    json_row: dict[str, Any] | None = output.jsonable(row)
    return {**json_row, "marks": batch_marks(json_row)} if json_row and json_row["kind"] == "batch" else json_row


def _without_remarks(rows: Iterator[Row | None]) -> Iterator[Row | None]:
    """Yield the rows of contents. Print damage and notes to stderr."""
    from kctl.segment.dump.rows import DamageRow, NoteRow

    for row in rows:
        if isinstance(row, DamageRow):
            output.warn(f"{row.file} at {row.position}: {row.damage} ({row.size_bytes} bytes)")
        elif isinstance(row, NoteRow):
            output.note(f"{row.file} at {row.position}: {row.note}")
        else:
            yield row


def _raise_problems(damaged: int, undecoded: int) -> None:
    """Raise NotHealthy for damage, and for records that could not be decoded."""
    problems = []
    if damaged:
        problems.append(f"damage in {counted(damaged, 'place')}")
    if undecoded:
        problems.append(f"{counted(undecoded, 'record')} could not be decoded")
    if problems:
        hint = (
            "run `kctl segment verify` for details" if damaged else "check that the decoder is the one for this topic"
        )
        raise NotHealthy("; ".join(problems), hint=hint)
