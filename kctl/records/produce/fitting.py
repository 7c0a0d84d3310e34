"""Whether lines can be records of a topic: the same rules before a run as in it."""

from __future__ import annotations

from collections.abc import Callable

from kctl.records.produce.batch import record_room, smallest_batch
from kctl.records.produce.destination import Destination
from kctl.records.produce.input import Supply
from kctl.records.produce.options import ProduceOptions
from kctl.records.produce.outgoing import Outgoing, Unfit

Parse = Callable[[bytes, int], Outgoing]
_NEAR = 512  # from here on a record is measured exactly


class Fitting:
    """parse: makes a record of a line and its number, or raises Unfit; None: the line is the value."""

    def __init__(self, destination: Destination, options: ProduceOptions, supply: Supply, parse: Parse | None) -> None:
        self._options, self._supply, self._parse = options, supply, parse
        self.partitions = len(destination.state.topics[options.topic].partitions)
        # The largest batch, as long as it is not compressed: what it will be then nobody knows before.
        self._limit = destination.max_batch_bytes if options.compression == "none" else None
        self._limit_name = destination.limit_name

    @property
    def plain(self) -> bool:
        """Each line is a value."""
        return self._parse is None

    def all_fit(self, start: int, end: int) -> bool:
        """Whether supply.lines[start:end] are small enough as values to need no look at each."""
        longest = self._supply.max_bytes
        room = longest if self._limit is None else min(self._limit - _NEAR, longest)
        return max(map(len, self._supply.lines[start:end])) <= room

    def record(self, line: bytes, number: int) -> Outgoing:
        """What a line is. Raises Unfit."""
        if len(line) > self._supply.max_bytes:
            raise Unfit(f"is too large: it has more than {self._supply.max_bytes} bytes")
        if self._parse is None:
            record = Outgoing(None, line, partition=self._options.partition)
        else:
            record = self._parse(line, number)
        self._check(record)
        return record

    def why(self, number: int, unfit: Unfit) -> str:
        """«line 3 is no JSON; …»."""
        reason = f"{unfit.reason}; {unfit.hint}" if unfit.hint else unfit.reason
        return f"{self._supply.where(number)} {reason}"

    def _check(self, record: Outgoing) -> None:
        if self._limit is not None and record_room(record) + _NEAR > self._limit:
            size = smallest_batch(record)
            if size > self._limit:
                raise Unfit(
                    f"is too large: at least {size} bytes as a batch,"
                    f" and the topic takes {self._limit} ({self._limit_name})"
                )
        if record.partition is not None and record.partition >= self.partitions:
            raise Unfit(
                f"names partition {record.partition}, and topic {self._options.topic} has 0 to {self.partitions - 1}",
                hint="--repartition lets the keys decide",
            )
