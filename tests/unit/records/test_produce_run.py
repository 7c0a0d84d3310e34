"""A complete run of kctl produce without a broker: reasons to end, and the outcome of every record."""

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

from kctl.commands.produce.commands import _save, _supply
from kctl.commands.produce.report import partition_counts, report, speed
from kctl.commands.terminal.invocation import Invocation
from kctl.commands.terminal.output import Table
from kctl.errors import ConnectionFailed, InvalidFile, OperationFailed, Refused, UsageError
from kctl.protocol.client import ClusterClient
from kctl.records.produce.batch import ClosedBatch, OpenBatch
from kctl.records.produce.destination import Destination, check_topic, longest_line
from kctl.records.produce.input import InputLines
from kctl.records.produce.options import ProduceOptions, ProduceResult, UnacknowledgedRecord
from kctl.records.produce.outgoing import Outgoing
from kctl.records.produce.partition_queue import PartitionQueue
from kctl.records.produce.produce import ProduceRun
from kctl.records.produce.undelivered_file import UndeliveredFile
from produce_fakes import FakeBroker, FakeClient, state

Parse = Callable[[bytes, int], Outgoing]


def _run(
    files: list[Path], *, codec: str = "none", limit: int | None = 2000, parse: Parse | None = None, skip: bool = False
) -> ProduceRun:
    options = ProduceOptions(
        topic="t", acks="1", idempotent=False, compression=codec, timeout_s=60, skip_bad_lines=skip, linger_ms=0
    )
    current = state(1)
    destination = Destination(current, limit)
    client = FakeClient(current)
    lines = InputLines(files, longest_line(destination, options, encoded=False))
    run = ProduceRun(cast(ClusterClient, client), destination, options, lines, parse)
    run.prepare()
    return run


class Answering:
    """A thread that responds to requests until it is closed."""

    def __init__(self, run: ProduceRun) -> None:
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
def test_a_line_longer_than_any_record_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parse: Parse | None, skip: bool
) -> None:
    """With compression no limit of the topic rejects it: the part that was read must not be sent instead."""
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


def test_a_deleted_file_ends_the_run_after_the_records_before_it(tmp_path: Path) -> None:
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


def test_an_unexpected_error_is_raised_after_the_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert [row.line for row in run.unacknowledged()] == [1, 2]


def test_without_file_descriptors_a_broker_is_unreachable(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_text("a\n")
    run = _run([path])
    broker = run._sender._leaders._brokers[1]
    client = cast(FakeClient, run._client)
    client.dial_known = lambda *_, **__: (_ for _ in ()).throw(OSError(errno.EMFILE, "too many"))  # type: ignore[method-assign]
    with pytest.raises(ConnectionFailed, match="broker 1 cannot be reached: too many"):
        run._sender._leaders._dial_one(broker)
    run._sender.close()


def test_a_second_interrupt_stops_waiting_and_reports_every_record(tmp_path: Path) -> None:
    """No broker responds. However often the run is interrupted, each record has an outcome."""
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
    assert [row.line for row in run.unacknowledged()] == list(range(1, 501))


def test_waiting_for_a_pipe_does_not_block_the_sender(tmp_path: Path) -> None:
    """Responses are handled in the meantime, and an interrupt ends the run."""
    first, pipe = tmp_path / "1", tmp_path / "pipe"
    first.write_text("a\n")
    os.mkfifo(pipe)
    run = _run([first, pipe])
    messages: list[int | None] = []

    def write() -> None:
        while not run.result.acknowledged:
            time.sleep(0.01)
        messages.append(run.result.acknowledged)
        pipe.write_text("b\nc\n")

    writing = threading.Thread(target=write)
    writing.start()
    with Answering(run):
        result = run.run()
    writing.join()
    assert messages == [1]
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
    assert [(row.line, row.outcome) for row in run.unacknowledged()] == [
        (1, "unknown"), (2, "failed"), (3, "unknown"), (4, "failed"),
    ]  # fmt: skip
    run._sender.close()


class _Shown(Invocation):
    """An invocation that records the emitted result."""

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


def test_line_numbers_are_numbers_in_json() -> None:
    output = _Shown()
    with pytest.raises(OperationFailed) as caught:
        report(output, _result(), None, None, None)
    assert output.shown["not_acknowledged"] == [[3, 5], [9, 9]]
    assert caught.value.details == {"not_acknowledged": [[3, 5], [9, 9]]}
    assert "lines 3-5,9 not acknowledged" in caught.value.message


def test_quiet_prints_nothing_if_every_record_is_acknowledged(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with speed(terminal=False, quiet=True) as progress:
        assert progress is None
    marked = tmp_path / "marked"
    marked.write_bytes(b"\xef\xbb\xbfa\n")
    lines = _supply([marked], ProduceOptions("t"), Destination(state(1), 1000), encoded=False, quiet=True)
    lines.fill()
    output = _Shown()
    report(output, ProduceResult("t", "all", sent=2, acknowledged=2), None, None, None, quiet=True)
    nothing = output.shown
    assert nothing is None
    assert capsys.readouterr() == ("", "")
    with pytest.raises(OperationFailed):
        report(output, _result(), None, None, None, quiet=True)
    assert output.shown["unknown"] == 4, "a failure prints the result"


def test_a_full_disk_does_not_hide_the_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = _run([])
    record = Outgoing(b"k", b"v", (), 1, 0)
    monkeypatch.setattr(
        run, "unacknowledged", lambda: iter([UnacknowledgedRecord(n, record, "unknown") for n in range(250)])
    )
    saved = UndeliveredFile(tmp_path / "kept")

    def full(_fd: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    why = _save(saved, run)
    assert why is not None
    assert "No space left on device; only the first 250 records are complete" in why.message
    assert run.result.failed_file == str(tmp_path / "kept")
    output = _Shown()
    with pytest.raises(OperationFailed, match=r"lines 3-5,9 not acknowledged .*: why; cannot write .* No space left"):
        report(output, _result(), None, None, why)
    assert output.shown["unknown"] == 4
    saved.close()
    run._sender.close()


def test_the_file_of_unacknowledged_records_is_removed_only_if_new(tmp_path: Path) -> None:
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


def test_records_are_counted_once_they_are_on_disk(tmp_path: Path) -> None:
    """Records in a buffer do not count."""
    file = UndeliveredFile(tmp_path / "kept")
    os.close(file._fd)
    file._fd = os.open("/dev/full", os.O_WRONLY)
    with pytest.raises(OperationFailed, match="only the first 0 records are complete"):
        file.write("t", [UnacknowledgedRecord(n, Outgoing(b"k", b"v", (), 1, 0), "unknown") for n in range(250)])
    assert file.written == 0
    file.close()


def test_an_internal_topic_is_refused_before_a_line_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    current = state(1)
    internal = replace(current, topics={"t": replace(current.topics["t"], internal=True)})
    monkeypatch.setattr("kctl.records.produce.destination.known_topics", lambda *_: internal)
    with pytest.raises(Refused, match="topic t is internal") as refused:
        check_topic(cast(ClusterClient, FakeClient(internal)), ProduceOptions("t"))
    assert refused.value.exit_code == 4


@pytest.mark.parametrize(("kept", "said"), [(None, True), ("lost.jsonl", False)])
def test_the_hint_suggests_the_failed_file(kept: str | None, said: bool) -> None:
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
    """A record that fits uncompressed is not rejected because of a codec."""
    destination = Destination(state(1), limit)
    assert longest_line(destination, ProduceOptions("t", compression=codec), encoded=encoded) == expected


def test_a_request_too_large_for_the_brokers_is_explained() -> None:
    queue = PartitionQueue(0, 1)
    for size, message in ((1 << 20, False), (105_000_000, True)):
        queue.in_flight = [cast(ClosedBatch, SimpleNamespace(wire_bytes=size))]
        assert ("socket.request.max.bytes" in (queue.size_hint or "")) is message


def test_many_partitions_are_summarized() -> None:
    rows = [{"partition": number, "records": 10 + number} for number in range(100)]
    assert partition_counts(rows[:2]) == "0:10 1:11"
    assert partition_counts(rows) == "100 partitions, 10 to 109 records each"
