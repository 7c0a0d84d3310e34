"""Validate lines as records of a topic, with the same rules in a dry run and a run."""

from __future__ import annotations

from collections.abc import Callable

from kctl.records.produce.batch import max_record_size, smallest_batch
from kctl.records.produce.destination import Destination
from kctl.records.produce.input import Supply
from kctl.records.produce.options import ProduceOptions
from kctl.records.produce.outgoing import Outgoing, Unfit

Parse = Callable[[bytes, int], Outgoing]
_NEAR = 512  # closer to the limit than this, a record is measured exactly


class Fitting:
    """The check of lines. parse: see `line_parser`; it may raise Unfit. None: each line is a value."""

    def __init__(self, destination: Destination, options: ProduceOptions, supply: Supply, parse: Parse | None) -> None:
        self._options, self._supply, self._parse = options, supply, parse
        self.partitions = len(destination.state.topics[options.topic].partitions)
        # The largest batch; the size of a compressed batch is unknown in advance.
        self._limit = destination.max_batch_bytes if options.compression == "none" else None
        self._limit_name = destination.limit_name

    @property
    def plain(self) -> bool:
        """Return True if each line is a value."""
        return self._parse is None

    def all_fit(self, start: int, end: int) -> bool:
        """Return True if supply.lines[start:end] are so small that they need no individual check as values."""
        limit = self._supply.max_bytes if self._limit is None else min(self._limit - _NEAR, self._supply.max_bytes)
        return max(map(len, self._supply.lines[start:end])) <= limit

    def record(self, line: bytes, number: int) -> Outgoing:
        """Return the record of a line. Raises Unfit."""
        if len(line) > self._supply.max_bytes:
            raise Unfit(f"is too large: it has more than {self._supply.max_bytes} bytes")
        if self._parse is None:
            record = Outgoing(None, line, partition=self._options.partition)
        else:
            record = self._parse(line, number)
        self._check(record)
        return record

    def why(self, number: int, unfit: Unfit) -> str:
        """Return the reason as text, e.g. "line 3 is not JSON; …"."""
        reason = f"{unfit.reason}; {unfit.hint}" if unfit.hint else unfit.reason
        return f"{self._supply.where(number)} {reason}"

    def _check(self, record: Outgoing) -> None:
        if self._limit is not None and max_record_size(record) + _NEAR > self._limit:
            size = smallest_batch(record)
            if size > self._limit:
                raise Unfit(
                    f"is too large: at least {size} bytes as a batch,"
                    f" and the limit of the topic is {self._limit} ({self._limit_name})"
                )
        if record.partition is not None and record.partition >= self.partitions:
            raise Unfit(
                f"names partition {record.partition}, and topic {self._options.topic} has 0 to {self.partitions - 1}",
                hint="use --repartition to partition by key",
            )
