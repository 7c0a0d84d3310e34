"""What to read of which topics, from where, until when: the options of consuming, and what exclude each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kctl.errors import UsageError
from kctl.records.consume.select import Selection

EARLIEST, LATEST = "earliest", "latest"


@dataclass(frozen=True, slots=True)
class ConsumeOptions:
    """What to read and when to stop.

    Start, in each partition: offset, from_ms (the first record that is not older), tail (the last so many records),
    from_beginning, else the end. group: read as a member of it, from where it stands; the start then only matters
    where it has committed nothing. offset_reset: where a group goes on that has committed nothing, or whose offset is
    gone; None: at the end or with from_beginning at the beginning, and behind deleted records at the log's first.
    End: exit_eof (the end that the log has at the start), until_offset and until_ms (both left out themselves),
    idle_ms without a record, max_messages that were shown. merge: all partitions in the order of their timestamps.
    read_committed: leave out aborted transactions, and stop before open ones. as_classic_member: join a group of the
    consumer protocol (KIP-848) too.
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
    selection: Selection = field(default_factory=Selection)
    timeout_s: float = 30.0

    @property
    def finite(self) -> bool:
        """It ends by itself where the log does."""
        return self.exit_eof or self.until_offset is not None


def check_options(options: ConsumeOptions) -> None:
    """Raise UsageError for options that exclude each other."""
    if not options.topics and not options.patterns:
        raise UsageError("no topic is given", hint="name topics, or choose some with --match REGEX")
    starts = {
        "--offset": options.offset is not None,
        "--from": options.from_ms is not None,
        "--tail": options.tail is not None,
        "--from-beginning": options.from_beginning,
    }
    given = [name for name, there in starts.items() if there]
    if len(given) > 1:
        raise UsageError(f"{given[0]} and {given[1]} are two different starts")
    if options.group is None:
        if options.offset_reset is not None:
            raise UsageError("--offset-reset is a group's rule, and there is no --group")
        if options.as_classic_member:
            raise UsageError("--as-classic-member requires --group", hint="add --group NAME")
        return
    if not options.group:
        raise UsageError("--group is empty")
    if options.partitions is not None or options.offset is not None:
        raise UsageError("--group gets its partitions and offsets from the group: leave out --partition and --offset")
    _refuse(options, given[:1] if given not in ([], ["--from-beginning"]) else [])
    if options.offset_reset is not None and options.from_beginning:
        raise UsageError("--offset-reset and --from-beginning both say where a new group starts: leave one out")


def _refuse(options: ConsumeOptions, starts: Sequence[str]) -> None:
    ends = {
        "--merge": options.merge,
        "--until": options.until_ms is not None,
        "--until-offset": options.until_offset is not None,
    }
    for name in (*starts, *(name for name, there in ends.items() if there)):
        raise UsageError(
            f"{name} does not go with --group, which shares the partitions with others",
            hint="leave --group out; `kctl group reset-offsets` moves a group",
        )
