"""kctl consume: read records as text, JSON Lines, hex or by a template."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import typer

from kctl.base.text import counted
from kctl.base.units import parse_duration_ms
from kctl.commands.consume import options as consume_options
from kctl.commands.terminal import output
from kctl.commands.terminal.interrupts import interrupt_when_terminated
from kctl.commands.terminal.invocation import Invocation, formats_are, invocation
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
def command(
    ctx: typer.Context,
    topics: consume_options.Topics = None,
    match: consume_options.Match = None,
    from_beginning: consume_options.FromBeginning = False,
    offset: consume_options.Offset = None,
    from_time: consume_options.FromTime = None,
    tail: consume_options.Tail = None,
    until: consume_options.Until = None,
    until_offset: consume_options.UntilOffset = None,
    max_messages: consume_options.MaxMessages = None,
    exit_eof: consume_options.ExitEof = False,
    idle_timeout: consume_options.IdleTimeout = None,
    partition: consume_options.Partition = None,
    group: consume_options.Group = None,
    offset_reset: consume_options.OffsetReset = None,
    as_classic_member: consume_options.AsClassicMember = False,
    key: consume_options.Key = None,
    value: consume_options.Value = None,
    header: consume_options.Header = None,
    json_path: consume_options.JsonPath = None,
    form: consume_options.Form = None,
    key_separator: consume_options.KeySeparator = None,
    decoder: consume_options.Decoder = None,
    key_decoder: consume_options.KeyDecoder = None,
    value_decoder: consume_options.ValueDecoder = None,
    schema_registry: consume_options.SchemaRegistry = None,
    schema_registry_ca: consume_options.SchemaRegistryCa = None,
    schema_registry_cert: consume_options.SchemaRegistryCert = None,
    schema_registry_key: consume_options.SchemaRegistryKey = None,
    schema_registry_user_info_file: consume_options.SchemaRegistryUserInfoFile = None,
    schema_registry_token_file: consume_options.SchemaRegistryTokenFile = None,
    schema_id_bytes: consume_options.SchemaIdBytes = "auto",
    schema_id_kind: consume_options.SchemaIdKind = "auto",
    merge: consume_options.Merge = False,
    read_committed: consume_options.ReadCommitted = False,
    stats: consume_options.Stats = False,
    quiet: consume_options.Quiet = False,
) -> None:
    """Read records of topics: values as text, one per line, or whole records with -o json.

    Values are written unchanged to a pipe or file; on a terminal, control characters are escaped. The command waits for
    more records until Ctrl-C, unless --exit-eof, --until, --max-messages or --idle-timeout ends it. --timeout limits
    the wait for brokers (default: 30s) and schema registries (default: 10s), not the wait for records.

    Example: kctl consume orders --from-beginning --exit-eof -o json
    """
    from kctl.cluster.partition_numbers import parse_each
    from kctl.records.consume.consume import ConsumeOptions
    from kctl.records.decode.registry_settings import RegistryOptions

    inv, numbers = invocation(ctx), parse_each(partition)
    from_start, number = _start(offset)
    options = ConsumeOptions(
        topics=tuple(dict.fromkeys(topics or ())),
        patterns=tuple(match or ()),
        partitions=None if numbers is None else tuple(numbers),
        offset=number,
        from_ms=_time_ms(from_time),
        tail=tail,
        from_beginning=from_beginning or from_start,
        group=group,
        offset_reset=_reset(offset_reset),
        as_classic_member=as_classic_member,
        max_messages=max_messages,
        exit_eof=exit_eof,
        until_offset=until_offset,
        until_ms=_time_ms(until),
        idle_ms=parse_duration_ms(idle_timeout) if idle_timeout else None,
        read_committed=read_committed,
        merge=merge,
        selection=_selection(key, value, header, json_path),
        timeout_s=inv.timeout_s(30),
    )
    registry = RegistryOptions(
        schema_registry, schema_registry_ca, schema_registry_cert, schema_registry_key,
        schema_registry_user_info_file, schema_registry_token_file, schema_id_bytes, schema_id_kind,
    )  # fmt: skip
    if inv.timeout is not None and not _ends(options):
        output.note("--timeout does not end the wait for records; use --idle-timeout or --exit-eof")
    decode = _decoder(inv, decoder, key_decoder, value_decoder, registry)
    sink = _StdoutSink(_writer(inv, form, key_separator, quiet=quiet))
    _run(inv, options, sink, decode, stats=stats, quiet=quiet)


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
        output.note(f"{counted(result.records, 'record')} read{start}{_where(result)}")
        raise KeyboardInterrupt
    if start:
        output.note(f"{counted(result.records, 'record')} read{start}")
    if result.undecoded:
        raise NotHealthy(undecoded)


# --- options --------------------------------------------------------------------------------------------------------


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


def _selection(
    key: str | None, value: str | None, headers: list[str] | None, conditions: list[str] | None
) -> RecordFilter:
    from kctl.records.consume.json_path import parse_condition
    from kctl.records.consume.select import RecordFilter, parse_header
    from kctl.segment.log.ranges import parse_pattern

    return RecordFilter(
        key=None if key is None else parse_pattern("--key", key),
        value=None if value is None else parse_pattern("--value", value),
        headers=tuple(map(parse_header, headers or ())),
        json=tuple(map(parse_condition, conditions or ())),
    )


def _decoder(
    inv: Invocation, both: str | None, key: str | None, value: str | None, registry: RegistryOptions
) -> RecordDecoder | None:
    from kctl.records.decode.decoder_settings import DecoderSettings
    from kctl.records.decode.decoding import may_need_registry, record_decoder
    from kctl.records.decode.registry_settings import decoder_settings

    if both is not None and (key is not None or value is not None):
        raise UsageError("--decoder sets both decoders and cannot be combined with --key-decoder or --value-decoder")
    key, value = both or key, both or value
    if not (may_need_registry(key) or may_need_registry(value)):
        return record_decoder(key, value, DecoderSettings())  # registry credentials are not read if not needed
    settings = decoder_settings(registry, command_config=inv.command_config, timeout_s=inv.timeout_s(10))
    return record_decoder(key, value, settings)


# --- output ---------------------------------------------------------------------------------------------------------


def _writer(inv: Invocation, form: str | None, separator: str | None, *, quiet: bool) -> Callable[[Chunk], None]:
    from kctl.commands.consume import formats
    from kctl.records.lines import parse_separator

    between = parse_separator(separator) if separator is not None else None
    if inv.output in {"yaml", "csv", "wide"} and not quiet:
        raise UsageError(f"-o {inv.output} is not a format of kctl consume", hint="use text (the default) or -o json")
    if form is not None and form != "json" and inv.output == "json" and not quiet:
        raise UsageError("-o json and --format cannot be combined")
    chosen = form or ("json" if inv.output == "json" else "text")
    if between is not None and chosen not in {"text", "json"}:
        raise UsageError("--key-separator requires text or JSON output", hint="in a template, use {key}")
    if chosen == "text":
        writer = formats.text_writer(between)
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


def _where(result: ConsumeResult) -> str:
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
