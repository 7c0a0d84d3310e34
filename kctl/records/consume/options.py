"""The options of consuming, and the check for options that cannot be combined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kctl.errors import UsageError
from kctl.records.consume.select import RecordFilter

EARLIEST, LATEST = "earliest", "latest"


@dataclass(frozen=True, slots=True)
class ConsumeOptions:
    """The options of consuming: what to read, where to start, when to stop.

    Start of each partition: offset, from_ms (the first record that is not older), tail (the last N records),
    from_beginning; otherwise the end of the log. group: read as a member, from the committed offsets; the start then
    only applies to partitions without a commit. offset_reset: the start without a valid committed offset; None: the
    end, or the beginning with from_beginning, and the oldest record if records were deleted.
    End: exit_eof (the end of the log when reading starts), until_offset and until_ms (both exclusive), idle_ms without
    a record, max_messages delivered records. merge: all partitions in timestamp order. read_committed: skip aborted
    transactions, and stop before open ones. as_classic_member: also join a group of the consumer protocol (KIP-848).
    """

    topics: tuple[str, ...]
    patterns: tuple[str, ...] = ()
    partitions: tuple[int, ...] | None = None
    offset: int | None = None
    from_ms: int | None = None
    tail: int | None = None
    from_beginning: bool = False
    group: str | None = None
    offset_reset: str | None = None
    as_classic_member: bool = False
    max_messages: int | None = None
    exit_eof: bool = False
    until_offset: int | None = None
    until_ms: int | None = None
    idle_ms: int | None = None
    read_committed: bool = False
    merge: bool = False
    selection: RecordFilter = field(default_factory=RecordFilter)
    timeout_s: float = 30.0

    @property
    def finite(self) -> bool:
        """Return True if reading ends at an offset."""
        return self.exit_eof or self.until_offset is not None


def check_options(options: ConsumeOptions) -> None:
    """Raise UsageError for options that cannot be combined."""
    if not options.topics and not options.patterns:
        raise UsageError("no topic", hint="add topic names, or select topics with --match REGEX")
    start_options = {
        "--offset": options.offset is not None,
        "--from": options.from_ms is not None,
        "--tail": options.tail is not None,
        "--from-beginning": options.from_beginning,
    }
    starts = [name for name, is_set in start_options.items() if is_set]
    if len(starts) > 1:
        raise UsageError(f"{starts[0]} and {starts[1]} cannot be combined")
    if options.group is None:
        if options.offset_reset is not None:
            raise UsageError("--offset-reset requires --group", hint="add --group NAME")
        if options.as_classic_member:
            raise UsageError("--as-classic-member requires --group", hint="add --group NAME")
        return
    if not options.group:
        raise UsageError("--group is empty")
    if options.partitions is not None or options.offset is not None:
        raise UsageError(
            "--group cannot be combined with --partition or --offset",
            hint="the group assigns the partitions and has the offsets",
        )
    _check_group_options(options, starts[:1] if starts not in ([], ["--from-beginning"]) else [])
    if options.offset_reset is not None and options.from_beginning:
        raise UsageError("--offset-reset and --from-beginning cannot be combined")


def _check_group_options(options: ConsumeOptions, starts: Sequence[str]) -> None:
    ends = {
        "--merge": options.merge,
        "--until": options.until_ms is not None,
        "--until-offset": options.until_offset is not None,
    }
    for name in (*starts, *(name for name, is_set in ends.items() if is_set)):
        raise UsageError(
            f"{name} cannot be combined with --group, whose members share the partitions",
            hint="remove --group, or move the group with `kctl group reset-offsets`",
        )
