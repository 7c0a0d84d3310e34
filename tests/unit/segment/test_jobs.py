"""A dump by several processes says what one process says, byte for byte, in the same order."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from kctl.errors import OperationFailed
from kctl.segment.dump import decoders, kafka_text
from kctl.segment.dump.kafka_text import KafkaText
from kctl.segment.dump.kafka_text_options import KafkaTextOptions
from kctl.segment.log import parallel
from kctl.segment.log.parallel import Processes, in_order

DATA = Path(__file__).parents[2] / "data" / "segments"
LOGS = sorted(path.relative_to(DATA) for path in DATA.rglob("*.log"))
OPTIONS = KafkaTextOptions(deep=True, parser=decoders.TEXT, plain=True)


def _dump(names: list[str], target: Path, jobs: int) -> tuple[bytes, list[str], list[tuple[int | None, str]]]:
    with target.open("wb") as out:
        text = KafkaText(OPTIONS, out.write, Processes(jobs, out.fileno(), out.flush) if jobs > 1 else None)
        for name in names:
            text.dump(name)
    return (
        target.read_bytes(),
        list(text.mismatches()),
        [(row.position, row.message) for row in text.findings],
    )


@pytest.mark.parametrize("jobs", [2, 3])
def test_the_same_as_one_process(jobs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every log there is, damaged ones too, cut into parts of a few batches."""
    for module in (parallel, kafka_text):
        monkeypatch.setattr(module, "PART_BYTES", 150)
    names = [str(DATA / path) for path in LOGS]
    assert _dump(names, tmp_path / "many", jobs) == _dump(names, tmp_path / "one", 1)


def test_damage_at_the_end_of_a_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The part behind it looks for a valid batch first, as one process does on its way."""
    for module in (parallel, kafka_text):
        monkeypatch.setattr(module, "PART_BYTES", 1)
    good = (DATA / "v2/none/00000000000000000000.log").read_bytes()
    size = int.from_bytes(good[8:12], "big") + 12
    dies = bytearray(good[:size])
    dies[57:61] = (-1).to_bytes(4, "big", signed=True)  # a record count that cannot be
    wrong = bytearray(good[:size])
    wrong[-1] ^= 1  # a CRC that does not fit, where a valid batch is looked for
    log = tmp_path / "00000000000000000000.log"
    log.write_bytes(bytes(dies) + bytes(wrong) + good + bytes(dies))
    once = _dump([str(log)], tmp_path / "one", 1)
    assert {position for position, _ in once[2]} == {0, 2 * size + len(good)}  # the wrong one is passed over
    assert _dump([str(log)], tmp_path / "many", 2) == once


class _Part:
    open_end = False


def _run(work: Callable[[int, int, bool, Callable[[bytes], object]], _Part], fd: int) -> int:
    ranges = [(number, number + 1) for number in range(6)]
    return len(list(in_order(ranges, work, Processes(2, fd, lambda: None))))


def test_a_process_that_is_killed(tmp_path: Path) -> None:
    def work(start: int, _end: int, _search: bool, _write: Callable[[bytes], object]) -> _Part:
        if start == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return _Part()

    with (tmp_path / "out").open("wb") as out, pytest.raises(OperationFailed, match="killed"):
        _run(work, out.fileno())


def test_an_error_and_a_reader_that_left() -> None:
    def work(start: int, _end: int, _search: bool, write: Callable[[bytes], object]) -> _Part:
        if start == 4:
            raise OperationFailed("no more")
        write(b"x" * 100)
        return _Part()

    reader, writer = os.pipe()
    with pytest.raises(OperationFailed, match="no more"):
        _run(work, writer)
    os.close(reader)
    with pytest.raises(BrokenPipeError):
        _run(work, writer)
    os.close(writer)
