"""kctl produce --dry-run without a broker."""

from __future__ import annotations

import os
import threading
import time
from contextlib import nullcontext
from pathlib import Path

import pytest

from kctl.commands.produce.report import report_check
from kctl.commands.terminal.invocation import Invocation
from kctl.errors import KctlError, NotHealthy, UsageError
from kctl.records.produce.check import PartitionRecords, ProduceCheck, check_lines
from kctl.records.produce.destination import Destination
from kctl.records.produce.input import Endless, InputLines
from kctl.records.produce.options import ProduceOptions
from kctl.records.produce.outgoing import Outgoing, Unfit
from produce_fakes import state


def _parse(line: bytes, _number: int) -> Outgoing:
    if line == b"bad":
        raise Unfit("is bad", hint="mend it")
    return Outgoing(line[:1] or None, line[1:] or None)


def test_every_line_is_checked(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"ax\nbad\nb\n")
    two.write_bytes(b"\xff\xfe\n" + b"bad\n" * 30 + b"z" + b"y" * 2000)
    supply = InputLines([one, two], 10_000)
    result = check_lines(Destination(state(3), 1000), ProduceOptions("t"), supply, _parse)
    assert (result.records, result.bytes, result.tombstone_count, result.largest_bytes) == (3, 5, 1, 2)
    assert sum(each.records for each in result.partitions) == 3
    assert (result.bad_line_count, len(result.bad_lines)) == (32, 20)
    assert result.bad_lines[:2] == [f"{one} line 2 is bad; mend it", f"{two} line 2 is bad; mend it"]


def test_a_partition_that_does_not_exist(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"0\n2\n3\n")
    options = ProduceOptions("t")
    result = check_lines(
        Destination(state(3), None),
        options,
        InputLines([file], 10),
        lambda line, _: Outgoing(b"k", line, (), None, int(line)),
    )
    assert result.partitions == [PartitionRecords(0, 1), PartitionRecords(2, 1)]
    assert "line 3 names partition 3, and topic t has 0 to 2" in result.bad_lines[0]


def test_lines_that_are_values_are_counted_in_bulk(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"abc\n\n" + b"x" * 2000 + b"\nde")
    messages: list[int] = []
    for partition in (None, 1):
        options = ProduceOptions("t", partition=partition)
        supply = InputLines([file], 1000)
        result = check_lines(
            Destination(state(3), 1000), options, supply, None, progress=lambda it: messages.append(it.records)
        )
        assert (result.records, result.bytes, result.largest_bytes, result.bad_line_count) == (3, 5, 3, 1)
        assert (result.any_partition_count, result.partitions) == (
            (3, []) if partition is None else (0, [PartitionRecords(1, 3)])
        )
        assert "line 3 is too large" in result.bad_lines[0]
    assert messages[-1] == 2, "the last line, without an end, is taken behind it"
    few = check_lines(Destination(state(3), None), ProduceOptions("t", count=2), InputLines([file], 1000), None)
    assert (few.records, few.bytes) == (2, 3)


def test_checking_stops_at_the_count() -> None:
    options = ProduceOptions("t", count=2500)
    result = check_lines(Destination(state(1), None), options, Endless(), lambda _line, n: Outgoing(None, b"%d" % n))
    assert (result.records, result.any_partition_count, result.largest_bytes) == (2500, 2500, 4)


def test_checking_waits_for_the_writer_of_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write() -> None:
        time.sleep(0.2)
        with pipe.open("wb") as file:
            file.write(b"a\nb")
            file.flush()
            time.sleep(0.3)
            file.write(b"c\n")

    thread = threading.Thread(target=write)
    thread.start()
    began = time.process_time()
    result = check_lines(Destination(state(1), None), ProduceOptions("t"), InputLines([pipe], 100), None)
    thread.join()
    assert (result.records, result.bytes) == (2, 3)
    assert time.process_time() - began < 0.2, "it waits, and does not try again and again"


class _Shown(Invocation):
    def emit(self, result: object, *_: object, changed: bool | None = None) -> None:
        pass


@pytest.mark.parametrize(
    ("bad", "skip", "shortage", "raised"),
    [
        (0, False, None, None),
        (1, False, None, UsageError),
        (1, True, None, None),
        (1, False, "partitions without a leader: 0", UsageError),
        (0, False, "partitions without a leader: 0", NotHealthy),
        (1, True, "partitions without a leader: 0", NotHealthy),
    ],
)
def test_errors_of_a_dry_run(bad: int, skip: bool, shortage: str | None, raised: type[KctlError] | None) -> None:
    result = ProduceCheck("t", bad_line_count=bad, bad_lines=["line 1 is bad"] * bad, max_batch_bytes=1000)
    with pytest.raises(raised) if raised else nullcontext():
        report_check(_Shown(), result, ProduceOptions("t", skip_bad_lines=skip), shortage)
