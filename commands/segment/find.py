"""kctl segment find: locate a record like a broker."""

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
    from kctl.segment.find.find import IndexUse, RecordPlace, SearchResult
    from kctl.segment.log.partition_log import PartitionLog


def find(
    ctx: typer.Context,
    paths: Annotated[list[str], typer.Argument(metavar="PATH…", help="Partition folders, or log files.")],
    offset: Annotated[int | None, typer.Option(min=0, help="Find the first record at or after this offset.")] = None,
    timestamp: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Find the first record at or after this time, e.g. -90m; UTC if no zone is given."
        ),
    ] = None,
    key: Annotated[str | None, typer.Option(metavar="TEXT", help="Find the newest record with this key.")] = None,
    every: Annotated[bool, typer.Option("--all", help="With --key: find all records, not only the newest.")] = False,
    no_index: Annotated[bool, typer.Option("--no-index", help="Ignore the indexes and scan the log.")] = False,
    max_message_size: Size = None,
) -> None:
    """Find a record by offset, timestamp or key.

    Uses the indexes like a broker, and checks each index entry against the log. If an index is wrong or missing,
    kctl warns and scans the segment from its start. Keys have no index: all segments are scanned, newest first.
    Each folder is searched as one partition; for several, the result is a list. Exits 4 if there is no such record,
    and 1 if damage was skipped.

    # Find a record by its offset
    kctl segment find /var/kafka/orders-0 --offset 48120

    # Find the newest record with a key, in all partitions
    kctl segment find /var/kafka/orders-* --key customer-17 -o json
    """
    from kctl.segment.log.partition_log import partition_logs

    inv = invocation(ctx)
    targets = sum(each is not None for each in (offset, timestamp, key))
    if targets > 1:
        raise UsageError("--offset, --timestamp and --key cannot be combined", hint="pass one of them")
    if not targets:
        raise UsageError("one of --offset, --timestamp and --key is required", hint="e.g. --offset 1000")
    if every and key is None:
        raise UsageError(
            "--all requires --key", hint="to show records by offset, run `kctl segment dump --records --offsets A..B`"
        )
    logs = partition_logs(Path(path) for path in paths)
    limit = message_limit(max_message_size)
    if every:
        _every_record(inv, logs, _bytes(key or ""), limit)
        return
    search = _SearchTarget(offset, timestamp, key, indexes=not no_index, limit=limit)
    results = [search.run(log) for log in logs]
    inv.emit(results if len(results) > 1 else results[0], lambda: list(_tables(results)))
    for text in (text for each in results for text in each.warnings):
        output.warn(text)
    _judge(results, search.text)


def _bytes(key: str) -> bytes:
    return key.encode("utf-8", "surrogateescape")


class _SearchTarget:
    """The record to search for: by offset, timestamp or key."""

    def __init__(
        self, offset: int | None, timestamp: str | None, key: str | None, *, indexes: bool, limit: int
    ) -> None:
        from kctl.base.timestamps import format_timestamp, parse_timestamp

        self._offset, self._key, self._indexes, self._limit = offset, key, indexes, limit
        self._timestamp = None if timestamp is None else parse_timestamp(timestamp)
        self.text = f"offset {offset}" if key is None else f"the key {key}"
        if self._timestamp is not None:
            self.text = f"a record at or after {format_timestamp(self._timestamp)}"

    def run(self, log: PartitionLog) -> SearchResult:
        """Search one partition."""
        if self._offset is not None:
            from kctl.segment.find.find import find_offset

            return find_offset(log, self._offset, indexes=self._indexes, limit=self._limit)
        if self._timestamp is not None:
            from kctl.segment.find.find import find_timestamp

            return find_timestamp(log, self._timestamp, indexes=self._indexes, limit=self._limit)
        from kctl.segment.find.find_key import find_key

        return find_key(log, _bytes(self._key or ""), limit=self._limit)


# --- output ---------------------------------------------------------------------------------------------------------


def _tables(results: Sequence[SearchResult]) -> Iterator[Table]:
    """Yield the record, its place, and the steps of the search; of several partitions, only those with a match."""
    for each in results:
        if each.place is not None:
            record = jsonable(each.place.record)
            yield Table(lean(RECORD_COLUMNS, [record]), [record], title=each.path)
            yield Table([Column("what", "FOUND"), Column("text", "AT")], list(_place_rows(each)))
        if each.place is not None or len(results) == 1:
            yield Table([Column("step", "HOW")], [{"step": text} for text in _steps(each)])


def _place_rows(result: SearchResult) -> Iterator[dict[str, Any]]:
    assert result.place is not None
    batch = result.place.batch
    yield {"what": "segment", "text": result.place.segment}
    yield {"what": "position", "text": str(result.place.position)}
    count = "" if batch.count is None else f", {_number(batch.count, 'record')}"
    size = f"{format_size(batch.size_bytes)}, {batch.codec}"
    yield {"what": "batch", "text": f"offsets {batch.base_offset} to {batch.last_offset}{count}, {size}"}
    if batch.partition_leader_epoch is not None:
        yield {"what": "leader epoch", "text": str(batch.partition_leader_epoch)}
    if batch.producer_id is not None:
        yield {"what": "producer", "text": f"{batch.producer_id}, epoch {batch.producer_epoch}"}
    if not result.place.record.valid:
        yield {"what": "valid", "text": f"no: {_invalid(result.place)}"}
    if result.reason:
        yield {"what": "note", "text": result.reason}


def _invalid(place: RecordPlace) -> str:
    return "the CRC of the record does not match" if place.batch.valid else "the CRC of the batch does not match"


def _steps(result: SearchResult) -> Iterator[str]:
    for use in result.indexes:
        yield f"{Path(use.file).name}: {_entry(use)}{'' if use.used else ': wrong, ignored'}"
    batches = _number(result.scanned_batches, "batch", "batches")
    yield f"log read from position {result.scanned_from} on: {batches}, {format_size(result.scanned_bytes)}"


def _number(count: int, one: str, many: str | None = None) -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


def _entry(use: IndexUse) -> str:
    if use.entry is None:
        return "no entries" if not use.entries else f"before the first of {use.entries} entries"
    at = f"offset {use.offset}" if use.timestamp is None else f"{use.timestamp}, offset {use.offset}"
    where = "" if use.position is None else f", position {use.position}"
    return f"entry {use.entry + 1} of {use.entries}: {at}{where}"


def _judge(results: Sequence[SearchResult], text: str, *, printed: int | None = None) -> None:
    """Print damage, and raise if the search failed. printed: number of records printed by --all."""
    for each in (each for one in results for each in one.damage):
        output.warn(each)
    skipped = sum(map(_skipped_damage, results))
    invalid = [each.place for each in results if each.place is not None and not each.place.record.valid]
    if skipped:
        # Offsets are unique, whatever damage precedes the record.
        certain = all(each.exact for each in results) and text.startswith("offset ")
        hint = "the record found has exactly this offset" if certain else "the record may have been in the damaged part"
        raise NotHealthy(f"skipped damage in {_number(skipped, 'place')}", hint=hint)
    if invalid:
        raise NotHealthy(
            f"the record was found, but {_invalid(invalid[0])}", hint="its content may differ from what was written"
        )
    if not printed and all(each.place is None for each in results):
        where = f" in {len(results)} partitions" if len(results) > 1 else ""
        reason = f": {results[0].reason}" if len(results) == 1 and results[0].reason else ""
        raise NotFound(f"{text} was not found{where}{reason}")


def _skipped_damage(result: SearchResult) -> int:
    """Return the number of damaged places, except a wrong CRC of the matching record's own batch."""
    match = None if result.place is None or result.place.batch.valid else result.place
    start = "" if match is None else f"{match.segment} at {match.position}: "
    return len([each for each in result.damage if match is None or not each.startswith(start)])


def _every_record(inv: Invocation, logs: Sequence[PartitionLog], key: bytes, limit: int) -> None:
    from kctl.segment.dump.rows import RecordRow
    from kctl.segment.find.find import SearchResult
    from kctl.segment.find.find_key import every_record

    if inv.output == "yaml":
        raise UsageError("-o yaml is not supported with --all", hint="use `-o json`")
    results = [SearchResult(str(log.path)) for log in logs]
    printed = 0

    def rows() -> Iterator[RecordRow]:
        nonlocal printed
        for log, result in zip(logs, results, strict=True):
            for place in every_record(log, key, result, limit=limit):
                printed += 1
                yield place.record

    output.stream(rows(), RECORD_COLUMNS, inv.output, row_type=RecordRow)
    scanned = format_size(sum(each.scanned_bytes for each in results))
    output.note(f"{_number(printed, 'record')}; {scanned} of the log were scanned, because keys have no index")
    _judge(results, f"the key {key.decode('utf-8', 'replace')}", printed=printed)
