"""A whole run of kctl produce without a broker: what ends it, and that everything is accounted for."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kctl.commands.produce.commands import _keep
from kctl.commands.produce.report import partition_counts, report
from kctl.commands.terminal.invocation import Invocation
from kctl.commands.terminal.output import Table
from kctl.errors import ConnectionFailed, InvalidFile, OperationFailed, Refused, UsageError
from kctl.protocol.client import ClusterClient
from kctl.records.produce.batch import ClosedBatch, OpenBatch
from kctl.records.produce.destination import Destination, check_topic, longest_line
from kctl.records.produce.input import Lines
from kctl.records.produce.options import Lost, ProduceOptions, ProduceResult
from kctl.records.produce.outgoing import Outgoing
from kctl.records.produce.partition_queue import PartitionQueue
from kctl.records.produce.produce import Producing
from kctl.records.produce.undelivered_file import UndeliveredFile
from produce_fakes import FakeBroker, FakeClient, state

Parse = Callable[[bytes, int], Outgoing]


def _run(
    files: list[Path], *, codec: str = "none", limit: int | None = 2000, parse: Parse | None = None, skip: bool = False
) -> Producing:
    options = ProduceOptions(
        topic="t", acks="1", idempotent=False, compression=codec, timeout_s=60, skip_bad_lines=skip, linger_ms=0
    )
    known = state(1)
    destination = Destination(known, limit)
    client = FakeClient(known)
    lines = Lines(files, longest_line(destination, options, encoded=False))
    run = Producing(cast(ClusterClient, client), destination, options, lines, parse)
    run.prepare()
    return run


class Answering:
    """A thread that answers what is sent, as long as it is wanted."""

    def __init__(self, run: Producing) -> None:
        self._broker: FakeBroker = cast(FakeClient, run._client).brokers[-1]
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._serve)

    def _serve(self) -> None:
        while not self._ended.wait(0.005):
            self._broker.listen()
            while self._broker.requests:
                self._broker.answer()

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._broker.close()


@pytest.mark.parametrize("parse", [None, lambda line, _number: Outgoing(b"k", line)])
@pytest.mark.parametrize("skip", [True, False])
def test_a_line_longer_than_any_record_is_refused_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parse: Parse | None, skip: bool
) -> None:
    """Compressed, no limit of the topic stops it: what was read of it must not be sent for it."""
    monkeypatch.setattr("kctl.records.produce.destination.MAX_RECORD_BYTES", 300_000)
    path = tmp_path / "lines"
    path.write_bytes(b"a" * 300_000 + b"\n" + b"b" * 900_000 + b"\nnext\n")
    run = _run([path], codec="gzip", parse=parse, skip=skip)
    with Answering(run):
        result = run.run()
    assert result.bad_line == "line 2 is too large: it has more than 300000 bytes"
    assert (result.acknowledged, result.skipped) == ((2, 1) if skip else (1, 0))
    keys = (2 if skip else 1) if parse else 0
    assert result.bytes == 300_000 + (4 if skip else 0) + keys


def test_a_file_that_is_gone_ends_it_behind_what_was_sent(tmp_path: Path) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    first.write_text("a\nb\n")
    second.write_text("c\n")
    run = _run([first, second])
    second.unlink()
    with Answering(run):
        result = run.run()
    assert (result.sent, result.acknowledged) == (2, 2)
    assert result.error == f"cannot read {second}: No such file or directory"
    with pytest.raises(OperationFailed, match=r"cannot read .* 2 records before it sent"):
        report(_Shown(), result, run.cause, None, None)
    empty = tmp_path / "empty"
    empty.write_text("")
    run = _run([empty, second])
    with Answering(run):
        result = run.run()
    with pytest.raises(UsageError, match="cannot read"):
        report(_Shown(), result, run.cause, None, None)


def test_what_nobody_foresaw_is_told_with_an_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lines"
    path.write_text("a\nb\n")
    run = _run([path])

    def finished() -> list[Any]:
        if run.result.sent:
            raise OSError(errno.EMFILE, "too many")
        return []

    monkeypatch.setattr(run._background, "finished", finished)
    result = run.run()
    assert isinstance(run.unexpected, OSError)
    assert result.sent == result.failed + result.unknown == 2
    assert result.error == "unexpected error: OSError(24, 'too many')"
    assert [row.line for row in run.lost()] == [1, 2]


def test_no_file_descriptor_is_a_broker_that_cannot_be_reached(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_text("a\n")
    run = _run([path])
    broker = run._sender._leaders._brokers[1]
    client = cast(FakeClient, run._client)
    client.dial_known = lambda *_, **__: (_ for _ in ()).throw(OSError(errno.EMFILE, "too many"))  # type: ignore[method-assign]
    with pytest.raises(ConnectionFailed, match="broker 1 cannot be reached: too many"):
        run._sender._leaders._dial_one(broker)
    run._sender.close()


def test_a_second_interrupt_waits_no_longer_and_loses_nothing(tmp_path: Path) -> None:
    """Nobody answers. However often it is interrupted, each record has its outcome."""
    path = tmp_path / "lines"
    path.write_text("".join(f"{number}\n" for number in range(500)))
    run = _run([path])
    started = time.monotonic()

    def press() -> None:
        time.sleep(0.3)
        run.interrupt()
        time.sleep(0.2)
        for _ in range(50):
            run.interrupt()

    pressing = threading.Thread(target=press)
    pressing.start()
    result = run.run()
    pressing.join()
    assert time.monotonic() - started < 4, "the first one alone waits for five seconds"
    assert result.interrupted
    assert result.sent == result.failed + result.unknown == 500
    assert [row.line for row in run.lost()] == list(range(1, 501))


def test_a_pipe_as_a_later_file_is_waited_for_without_stopping(tmp_path: Path) -> None:
    """What was sent is answered meanwhile, and an interrupt ends it."""
    first, pipe = tmp_path / "1", tmp_path / "pipe"
    first.write_text("a\n")
    os.mkfifo(pipe)
    run = _run([first, pipe])
    told: list[int | None] = []

    def write() -> None:
        while not run.result.acknowledged:
            time.sleep(0.01)
        told.append(run.result.acknowledged)
        pipe.write_text("b\nc\n")

    writing = threading.Thread(target=write)
    writing.start()
    with Answering(run):
        result = run.run()
    writing.join()
    assert told == [1]
    assert result.acknowledged == 3
    run = _run([pipe])
    pressing = threading.Timer(0.2, run.interrupt)
    pressing.start()
    assert run.run().sent == 0
    pressing.join()


def test_each_lost_record_has_its_own_outcome() -> None:
    run = _run([])
    for first, outcome in ((1, "unknown"), (2, "failed")):
        batch = OpenBatch(0, 1000)
        for number in (first, first + 2):
            batch.add(Outgoing(None, b"v"), number)
        run._done(batch.close("none", None), outcome, None)
    assert [(row.line, row.outcome) for row in run.lost()] == [
        (1, "unknown"), (2, "failed"), (3, "unknown"), (4, "failed"),
    ]  # fmt: skip
    run._sender.close()


class _Shown(Invocation):
    """Keeps what is emitted."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: Any = None

    def emit(
        self,
        result: Any,
        tables: Sequence[Table] | Callable[[], Sequence[Table]],
        csv_rows: Callable[[], Sequence[Any]] | None = None,
        row_type: type | None = None,
        *,
        changed: bool | None = None,
    ) -> None:
        self.shown = result


def _result() -> ProduceResult:
    return ProduceResult("t", "all", sent=6, acknowledged=2, unknown=4, not_acknowledged=[3, 4, 5, 9], error="why")


def test_numbers_of_lines_are_numbers() -> None:
    shown = _Shown()
    with pytest.raises(OperationFailed) as caught:
        report(shown, _result(), None, None, None)
    assert shown.shown["not_acknowledged"] == [[3, 5], [9, 9]]
    assert caught.value.details == {"not_acknowledged": [[3, 5], [9, 9]]}
    assert "lines 3-5,9 not acknowledged" in caught.value.message


def test_a_full_disk_does_not_hide_the_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = _run([])
    record = Outgoing(b"k", b"v", (), 1, 0)
    monkeypatch.setattr(run, "lost", lambda: iter([Lost(n, record, "unknown") for n in range(250)]))
    kept = UndeliveredFile(tmp_path / "kept")

    def full(_fd: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    why = _keep(kept, run)
    assert why is not None
    assert "No space left on device; only the first 250 records are complete" in why.message
    assert run.result.failed_file == str(tmp_path / "kept")
    shown = _Shown()
    with pytest.raises(OperationFailed, match=r"lines 3-5,9 not acknowledged .*: why; cannot write .* No space left"):
        report(shown, _result(), None, None, why)
    assert shown.shown["unknown"] == 4
    kept.close()
    run._sender.close()


def test_the_file_of_what_is_lost_removes_only_what_it_made(tmp_path: Path) -> None:
    mine, link, pipe = tmp_path / "mine", tmp_path / "link", tmp_path / "pipe"
    mine.touch()
    link.symlink_to(mine)
    os.mkfifo(pipe)
    for path in (mine, link):
        file = UndeliveredFile(path)
        assert file.write("t", []) == 0
        file.close()
        assert path.exists()
    with pytest.raises(InvalidFile, match="cannot write"):
        UndeliveredFile(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(InvalidFile, match="is not a regular file"):
        UndeliveredFile(pipe)
    os.close(reader)
    with pytest.raises(InvalidFile, match="is not a regular file"):
        UndeliveredFile(Path("/dev/null"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "mine", "pipe"]


def test_what_is_written_is_counted_when_it_is_on_the_disk(tmp_path: Path) -> None:
    """Not when it is in a buffer."""
    file = UndeliveredFile(tmp_path / "kept")
    os.close(file._fd)
    file._fd = os.open("/dev/full", os.O_WRONLY)
    with pytest.raises(OperationFailed, match="only the first 0 records are complete"):
        file.write("t", [Lost(n, Outgoing(b"k", b"v", (), 1, 0), "unknown") for n in range(250)])
    assert file.written == 0
    file.close()


def test_what_brokers_take_of_nobody_is_refused_before_a_line_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    known = state(1)
    internal = replace(known, topics={"t": replace(known.topics["t"], internal=True)})
    monkeypatch.setattr("kctl.records.produce.destination.known_topics", lambda *_: internal)
    with pytest.raises(Refused, match="topic t is Kafka's own") as refused:
        check_topic(cast(ClusterClient, FakeClient(internal)), ProduceOptions("t"))
    assert refused.value.exit_code == 4


@pytest.mark.parametrize(("kept", "said"), [(None, True), ("lost.jsonl", False)])
def test_how_to_keep_what_is_lost_is_said_to_who_did_not(kept: str | None, said: bool) -> None:
    result = ProduceResult("t", "all", sent=2, unknown=1, acknowledged=1, not_acknowledged=[2], failed_file=kept)
    with pytest.raises(OperationFailed) as failed:
        report(_Shown(), result, OperationFailed("silent"), None, None)
    assert failed.value.hint
    assert failed.value.hint.startswith("no line after 2 was read")
    assert ("--failed-file" in failed.value.hint) is said


@pytest.mark.parametrize(
    ("limit", "codec", "encoded", "expected"),
    [
        (1 << 20, "none", False, 1 << 20), (1 << 20, "none", True, (6 << 20) + (64 << 10)),
        (None, "none", False, 64 << 20), (1 << 20, "gzip", False, 64 << 20), (1 << 20, "gzip", True, 128 << 20),
        (110_000_000, "none", False, 110_000_000), (110_000_000, "gzip", False, 110_000_000),
        (110_000_000, "zstd", True, 220_000_000),
    ],
)  # fmt: skip
def test_the_longest_line(limit: int | None, codec: str, encoded: bool, expected: int) -> None:
    """A record that fits without a codec is not refused because of one."""
    destination = Destination(state(1), limit)
    assert longest_line(destination, ProduceOptions("t", compression=codec), encoded=encoded) == expected


def test_a_request_too_large_for_the_brokers_is_explained() -> None:
    queue = PartitionQueue(0, 1)
    for size, said in ((1 << 20, False), (105_000_000, True)):
        queue.under_way = [cast(ClosedBatch, SimpleNamespace(wire_bytes=size))]
        assert ("socket.request.max.bytes" in (queue.size_hint or "")) is said


def test_many_partitions_are_summarized() -> None:
    rows = [{"partition": number, "records": 10 + number} for number in range(100)]
    assert partition_counts(rows[:2]) == "0:10 1:11"
    assert partition_counts(rows) == "100 partitions, 10 to 109 records each"
