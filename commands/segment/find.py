"""kctl segment find: where a record is, and how a broker would find it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.base.units import format_size
from kctl.commands.segment.columns import RECORD_COLUMNS, Size, message_limit
from kctl.commands.segment.streams import lean
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.errors import NotFound, NotHealthy, UsageError

if TYPE_CHECKING:
    from kctl.segment.find.find import Found, IndexUse, Place
    from kctl.segment.log.partition_log import PartitionLog


def find(
    ctx: typer.Context,
    paths: Annotated[list[str], typer.Argument(metavar="PATH…", help="A partition's folder, or its log files.")],
    offset: Annotated[int | None, typer.Option(min=0, help="The first record from this offset on.")] = None,
    timestamp: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="The first record at or after this time, e.g. -90m; UTC if no zone is given."
        ),
    ] = None,
    key: Annotated[str | None, typer.Option(metavar="TEXT", help="The newest record with this key.")] = None,
    every: Annotated[bool, typer.Option("--all", help="With --key: all of its records, not only the newest.")] = False,
    no_index: Annotated[bool, typer.Option("--no-index", help="Believe no index: read the log.")] = False,
    max_message_size: Size = None,
) -> None:
    """Find a record by its offset, time or key.

    The indexes are used as a broker does. What an index says is checked in the log; when it is wrong or missing, that
    is said, and the segment is read from its start. Keys have no index: logs are read, the newest segment first.
    Several folders are several partitions, and give a list. Exits 4 when there is no such record, 1 when
    damage was passed over on the way.

    Example: kctl segment find /var/kafka/orders-0 --offset 48120

    Example: kctl segment find /var/kafka/orders-* --key customer-17 -o json
    """
    from kctl.segment.log.partition_log import partition_logs

    inv = invocation(ctx)
    given = sum(each is not None for each in (offset, timestamp, key))
    if given > 1:
        raise UsageError("only one of --offset, --timestamp and --key can be given")
    if not given:
        raise UsageError("one of --offset, --timestamp and --key is needed", hint="for example --offset 1000")
    if every and key is None:
        raise UsageError("--all is for --key", hint="kctl segment dump --offsets A..B shows many records by offset")
    logs = partition_logs(Path(path) for path in paths)
    limit = message_limit(max_message_size)
    if every:
        _every_record(inv, logs, _bytes(key or ""), limit)
        return
    search = _Search(offset, timestamp, key, indexes=not no_index, limit=limit)
    found = [search.run(log) for log in logs]
    inv.emit(found if len(found) > 1 else found[0], lambda: list(_tables(found)))
    for text in (text for each in found for text in each.warnings):
        output.warn(text)
    _judge(found, search.text)


def _bytes(key: str) -> bytes:
    return key.encode("utf-8", "surrogateescape")


class _Search:
    """What is looked for."""

    def __init__(
        self, offset: int | None, timestamp: str | None, key: str | None, *, indexes: bool, limit: int
    ) -> None:
        from kctl.base.moments import moment_text, parse_moment

        self._offset, self._key, self._indexes, self._limit = offset, key, indexes, limit
        self._timestamp = None if timestamp is None else parse_moment(timestamp)
        self.text = f"offset {offset}" if key is None else f"the key {key}"
        if self._timestamp is not None:
            self.text = f"a record of {moment_text(self._timestamp)} or younger"

    def run(self, log: PartitionLog) -> Found:
        """In one partition."""
        if self._offset is not None:
            from kctl.segment.find.find import find_offset

            return find_offset(log, self._offset, indexes=self._indexes, limit=self._limit)
        if self._timestamp is not None:
            from kctl.segment.find.find import find_timestamp

            return find_timestamp(log, self._timestamp, indexes=self._indexes, limit=self._limit)
        from kctl.segment.find.find_key import find_key

        return find_key(log, _bytes(self._key or ""), limit=self._limit)


# --- what is shown --------------------------------------------------------------------------------------------------


def _tables(found: Sequence[Found]) -> Iterator[Table]:
    """The record, where it is, and the way to it; of many partitions only where it was found."""
    for each in found:
        if each.place is not None:
            record = jsonable(each.place.record)
            yield Table(lean(RECORD_COLUMNS, [record]), [record], title=each.path)
            yield Table([Column("what", "FOUND"), Column("text", "AT")], list(_where(each)))
        if each.place is not None or len(found) == 1:
            yield Table([Column("step", "HOW")], [{"step": text} for text in _steps(each)])


def _where(found: Found) -> Iterator[dict[str, Any]]:
    assert found.place is not None
    batch = found.place.batch
    yield {"what": "segment", "text": found.place.segment}
    yield {"what": "position", "text": str(found.place.position)}
    count = "" if batch.count is None else f", {_number(batch.count, 'record')}"
    size = f"{format_size(batch.size_bytes)}, {batch.codec}"
    yield {"what": "batch", "text": f"offsets {batch.base_offset} to {batch.last_offset}{count}, {size}"}
    if batch.partition_leader_epoch is not None:
        yield {"what": "leader epoch", "text": str(batch.partition_leader_epoch)}
    if batch.producer_id is not None:
        yield {"what": "producer", "text": f"{batch.producer_id}, epoch {batch.producer_epoch}"}
    if not found.place.record.valid:
        yield {"what": "valid", "text": f"no: {_invalid(found.place)}"}
    if found.reason:
        yield {"what": "note", "text": found.reason}


def _invalid(place: Place) -> str:
    return "its CRC is wrong" if place.batch.valid else "its batch has a wrong CRC"


def _steps(found: Found) -> Iterator[str]:
    for use in found.indexes:
        yield f"{Path(use.file).name}: {_entry(use)}{'' if use.used else ': wrong, not used'}"
    many = _number(found.scanned_batches, "batch", "batches")
    yield f"log read from position {found.scanned_from} on: {many}, {format_size(found.scanned_bytes)}"


def _number(count: int, one: str, many: str | None = None) -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


def _entry(use: IndexUse) -> str:
    if use.entry is None:
        return "no entries" if not use.entries else f"before the first of {use.entries} entries"
    at = f"offset {use.offset}" if use.timestamp is None else f"{use.timestamp}, offset {use.offset}"
    where = "" if use.position is None else f", position {use.position}"
    return f"entry {use.entry + 1} of {use.entries}: {at}{where}"


def _judge(found: Sequence[Found], text: str, *, shown: int | None = None) -> None:
    """shown: how many records --all has shown."""
    for each in (each for one in found for each in one.damage):
        output.warn(each)
    passed = sum(map(_passed_over, found))
    bad = [each.place for each in found if each.place is not None and not each.place.record.valid]
    if passed:
        # An offset is there once, whatever was passed over before it.
        there = all(each.exact for each in found) and text.startswith("offset ")
        hint = (
            "the record that was found has the offset asked for" if there else "what is looked for may have been in it"
        )
        raise NotHealthy(f"damage was passed over in {_number(passed, 'place')}", hint=hint)
    if bad:
        raise NotHealthy(f"the record was found, and {_invalid(bad[0])}", hint="it may not be what was written")
    if not shown and all(each.place is None for each in found):
        where = f" in {len(found)} partitions" if len(found) > 1 else ""
        reason = f": {found[0].reason}" if len(found) == 1 and found[0].reason else ""
        raise NotFound(f"{text} was not found{where}{reason}")


def _passed_over(found: Found) -> int:
    """In how many places there is damage other than a wrong CRC of the batch of the record found."""
    own = None if found.place is None or found.place.batch.valid else found.place
    start = "" if own is None else f"{own.segment} at {own.position}: "
    return len([each for each in found.damage if own is None or not each.startswith(start)])


def _every_record(inv: Invocation, logs: Sequence[PartitionLog], key: bytes, limit: int) -> None:
    from kctl.segment.dump.rows import RecordRow
    from kctl.segment.find.find import Found
    from kctl.segment.find.find_key import every_record

    if inv.output == "yaml":
        raise UsageError("-o yaml is not a format of --all", hint="use -o json for programs")
    found = [Found(str(log.path)) for log in logs]
    shown = 0

    def rows() -> Iterator[RecordRow]:
        nonlocal shown
        for log, way in zip(logs, found, strict=True):
            for place in every_record(log, key, way, limit=limit):
                shown += 1
                yield place.record

    output.stream(rows(), RECORD_COLUMNS, inv.output, row_type=RecordRow)
    read = format_size(sum(way.scanned_bytes for way in found))
    output.note(f"{_number(shown, 'record')}; {read} of the log were read, for keys have no index")
    _judge(found, f"the key {key.decode('utf-8', 'replace')}", shown=shown)
