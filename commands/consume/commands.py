"""kctl consume: read records as text, JSON Lines, hex or by a template."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import typer

from kctl.base.text import counted
from kctl.base.units import parse_duration_ms
from kctl.commands.consume.options import ConsumeArguments
from kctl.commands.terminal import output
from kctl.commands.terminal.interrupts import interrupt_when_terminated
from kctl.commands.terminal.invocation import Invocation, formats_are, invocation
from kctl.commands.terminal.option_sets import takes_options
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.errors import NotHealthy, UsageError

if TYPE_CHECKING:
    from kctl.records.chunk import Chunk
    from kctl.records.consume.consume import ConsumeOptions, ConsumeResult
    from kctl.records.consume.delivery import Stats
    from kctl.records.consume.select import RecordFilter
    from kctl.records.decode.decoding import RecordDecoder
    from kctl.records.decode.registry_settings import RegistryOptions

_STARTS = {"earliest": (True, None), "latest": (False, None)}
_RESETS = ("earliest", "latest")


@formats_are("json (JSON Lines; default: text); with --quiet table, wide, json, yaml or csv.")
@takes_options(ConsumeArguments)
def command(ctx: typer.Context, options: ConsumeArguments) -> None:
    """Read records of topics: values as text, one per line, or whole records with -o json.

    Values are written unchanged to a pipe or file; on a terminal, control characters are escaped. The command waits for
    more records until Ctrl-C, unless --exit-eof, --until, --max-messages or --idle-timeout ends it. --timeout limits
    the wait for brokers (default: 30s) and schema registries (default: 10s), not the wait for records.

    # Print all records of a topic as JSON Lines, then exit
    kctl consume orders --from-beginning --exit-eof -o json
    """
    inv = invocation(ctx)
    request = _request(options, timeout_s=inv.timeout_s(30))
    if inv.timeout is not None and not _ends(request):
        output.note("--timeout does not end the wait for records; use --idle-timeout or --exit-eof")
    decode = _decoder(inv, options)
    sink = _StdoutSink(_writer(inv, options))
    _run(inv, request, sink, decode, stats=options.stats, quiet=options.quiet)


def _run(
    inv: Invocation,
    options: ConsumeOptions,
    sink: _StdoutSink,
    decode: RecordDecoder | None,
    *,
    stats: bool,
    quiet: bool,
) -> None:
    from kctl.records.consume.consume import check_options, consume

    check_options(options)
    with interrupt_when_terminated(), inv.connect() as client:
        if options.group is not None:
            question = f"Read as a member of group {options.group} on {client.target.name}, and commit?"
            inv.confirm_protected(question, target=client.target)
        inv.report_change(changed=options.group is not None)
        result = consume(client, options, sink, decoder=decode, stats=stats)
    if quiet:
        _emit(inv, result)
    start = tail_text(options, result)
    undecoded = (
        f"{result.undecoded:,} of {result.records:,} records could not be decoded and are shown undecoded;"
        f" the first: {result.first_undecoded}"
    )
    if result.ended == "interrupted":
        if result.undecoded:
            output.warn(undecoded)
        output.note(f"{counted(result.records, 'record')} read{start}{_commit_text(result)}")
        raise KeyboardInterrupt
    if start:
        output.note(f"{counted(result.records, 'record')} read{start}")
    if result.undecoded:
        raise NotHealthy(undecoded)


# --- options --------------------------------------------------------------------------------------------------------


def _request(arguments: ConsumeArguments, *, timeout_s: float) -> ConsumeOptions:
    from kctl.cluster.partition_numbers import parse_each
    from kctl.records.consume.consume import ConsumeOptions

    numbers = parse_each(arguments.partition)
    from_start, number = _start(arguments.offset)
    return ConsumeOptions(
        topics=tuple(dict.fromkeys(arguments.topics or ())),
        patterns=tuple(arguments.match or ()),
        partitions=None if numbers is None else tuple(numbers),
        offset=number,
        from_ms=_time_ms(arguments.from_time),
        tail=arguments.tail,
        from_beginning=arguments.from_beginning or from_start,
        group=arguments.group,
        offset_reset=_reset(arguments.offset_reset),
        as_classic_member=arguments.as_classic_member,
        max_messages=arguments.max_messages,
        exit_eof=arguments.exit_eof,
        until_offset=arguments.until_offset,
        until_ms=_time_ms(arguments.until),
        idle_ms=parse_duration_ms(arguments.idle_timeout) if arguments.idle_timeout else None,
        read_committed=arguments.read_committed,
        merge=arguments.merge,
        selection=_selection(arguments),
        timeout_s=timeout_s,
    )


def _start(offset: str | None) -> tuple[bool, int | None]:
    if offset is None:
        return False, None
    if offset in _STARTS:
        return _STARTS[offset]
    if offset.isascii() and offset.isdigit() and int(offset) < 2**63:
        return False, int(offset)
    raise UsageError(f"--offset {offset!r} is not an offset", hint="use a number, earliest or latest")


def _ends(options: ConsumeOptions) -> bool:
    """Return True if the run can end without a signal while no records arrive."""
    return options.finite or options.until_ms is not None or options.idle_ms is not None or options.max_messages == 0


def _time_ms(text: str | None) -> int | None:
    from kctl.base.timestamps import parse_timestamp

    return None if text is None else parse_timestamp(text)


def _reset(where: str | None) -> str | None:
    if where is not None and where not in _RESETS:
        raise UsageError(f"--offset-reset {where!r} is unknown", hint="use earliest or latest")
    return where


def _selection(arguments: ConsumeArguments) -> RecordFilter:
    from kctl.records.consume.json_path import parse_condition
    from kctl.records.consume.select import RecordFilter, parse_header
    from kctl.segment.log.ranges import parse_pattern

    return RecordFilter(
        key=None if arguments.key is None else parse_pattern("--key", arguments.key),
        value=None if arguments.value is None else parse_pattern("--value", arguments.value),
        headers=tuple(map(parse_header, arguments.header or ())),
        json=tuple(map(parse_condition, arguments.json_path or ())),
    )


def _decoder(inv: Invocation, arguments: ConsumeArguments) -> RecordDecoder | None:
    from kctl.records.decode.decoder_settings import DecoderSettings
    from kctl.records.decode.decoding import may_need_registry, record_decoder
    from kctl.records.decode.registry_settings import decoder_settings

    key, value, both = arguments.key_decoder, arguments.value_decoder, arguments.decoder
    if both is not None and (key is not None or value is not None):
        raise UsageError("--decoder sets both decoders and cannot be combined with --key-decoder or --value-decoder")
    key, value = both or key, both or value
    if not (may_need_registry(key) or may_need_registry(value)):
        return record_decoder(key, value, DecoderSettings())  # registry credentials are not read if not needed
    registry = _registry(arguments)
    settings = decoder_settings(registry, command_config=inv.command_config, timeout_s=inv.timeout_s(10))
    return record_decoder(key, value, settings)


def _registry(arguments: ConsumeArguments) -> RegistryOptions:
    from kctl.records.decode.registry_settings import RegistryOptions

    return RegistryOptions(
        arguments.schema_registry,
        arguments.schema_registry_ca,
        arguments.schema_registry_cert,
        arguments.schema_registry_key,
        arguments.schema_registry_user_info_file,
        arguments.schema_registry_token_file,
        arguments.schema_id_bytes,
        arguments.schema_id_kind,
    )


# --- output ---------------------------------------------------------------------------------------------------------


def _writer(inv: Invocation, arguments: ConsumeArguments) -> Callable[[Chunk], None]:
    from kctl.commands.consume import formats
    from kctl.records.lines import parse_separator

    form, quiet = arguments.form, arguments.quiet
    separator = parse_separator(arguments.key_separator) if arguments.key_separator is not None else None
    if inv.output in {"yaml", "csv", "wide"} and not quiet:
        raise UsageError(f"-o {inv.output} is not a format of kctl consume", hint="use text (the default) or -o json")
    if form is not None and form != "json" and inv.output == "json" and not quiet:
        raise UsageError("-o json and --format cannot be combined")
    chosen = form or ("json" if inv.output == "json" else "text")
    if separator is not None and chosen not in {"text", "json"}:
        raise UsageError("--key-separator requires text or JSON output", hint="in a template, use {key}")
    if chosen == "text":
        writer = formats.text_writer(separator)
    elif chosen == "json":
        writer = formats.write_json
    elif chosen == "hex":
        writer = formats.write_hex
    elif "{" in chosen:
        writer = formats.template_writer(chosen)
    else:
        raise UsageError(
            f"--format {chosen!r} is not a format",
            hint="use text, json, hex, or a template such as '{offset} {value}\\n'",
        )
    return _count_only if quiet else writer


def _count_only(_chunk: Chunk) -> None:
    pass


class _StdoutSink:
    """A sink that writes records to stdout with `show`."""

    def __init__(self, show: Callable[[Chunk], None]) -> None:
        self.write = show

    def flush(self) -> None:
        sys.stdout.flush()

    def warn(self, text: str) -> None:
        output.warn(text)

    def stats(self, stats: Stats) -> None:
        from kctl.base.units import format_size

        seconds = stats.interval_ms / 1000
        output.note(
            f"{stats.records / seconds:,.0f} records/s, {format_size(round(stats.bytes / seconds))}/s;"
            f" {stats.total_records:,} records, {format_size(stats.total_bytes)} in total"
        )


def tail_text(options: ConsumeOptions, result: ConsumeResult) -> str:
    """Return where --tail started; "" for one partition, because the number of records already says so."""
    if options.tail is None or result.partition_count < 2:
        return ""
    records = "record" if options.tail == 1 else f"{options.tail:,} records"
    return f", starting at the last {records} of each of {result.partition_count:,} partitions"


def _commit_text(result: ConsumeResult) -> str:
    if result.group is None:
        return ""
    several = len(result.topics) > 1
    offsets = " ".join(
        f"{f'{each.topic}-' if several else ''}{each.partition}:{each.committed_offset}"
        for each in result.partitions
        if each.committed_offset is not None
    )
    return f", group {result.group} committed at {offsets}" if offsets else f", nothing committed for {result.group}"


def _emit(inv: Invocation, result: ConsumeResult) -> None:
    columns = [
        Column("topics", "TOPIC", show=", ".join),
        Column("group"),
        Column("records", align="right"),
        Column("bytes", align="right"),
        Column("skipped", align="right"),
        Column("filtered", align="right", wide=True),
        Column("undecoded", align="right", wide=True),
        Column("ended", "ENDED BY"),
    ]
    inv.emit(result, lambda: [Table(columns, [jsonable(result)])])
