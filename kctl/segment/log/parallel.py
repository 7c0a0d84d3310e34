"""Process parts of one log in several processes, with the output in log order.

Each process produces the output of its part in memory and writes it when the previous part is written. A token passes
from part to part and carries whether the previous part ended in damage. No output passes through the parent.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from kctl.base.binary_layout import INT32
from kctl.errors import OperationFailed
from kctl.segment.format.batch import LENGTH_AT, LOG_OVERHEAD, V0_OVERHEAD
from kctl.segment.log.source import Source

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

PART_BYTES = 4 << 20
_BUFFER_BYTES = 32 << 20  # of output that waits for its turn; then the process pauses


class PartResult(Protocol):
    """The result of a part. open_end: it ended in damage; the next part must look for a valid batch first."""

    @property
    def open_end(self) -> bool: ...


Result = TypeVar("Result", bound=PartResult)
# (start, end, True after damage, write) → result
Work = Callable[[int, int, bool, Callable[[bytes], object]], Result]


class Processes(NamedTuple):
    """The processes. jobs: maximum number; fd: where they write; flush: flushes earlier output to fd."""

    jobs: int
    fd: int
    flush: Callable[[], object]


def parts(source: Source, end: int) -> list[tuple[int, int]]:
    """Split a log at batch boundaries into parts of about PART_BYTES. After a broken length, the rest is one part."""
    cuts, position = [0], 0
    while position + LOG_OVERHEAD <= end:
        (length,) = INT32.unpack(source.peek(position + LENGTH_AT, INT32.size))
        if length < V0_OVERHEAD or position + LOG_OVERHEAD + length > end:
            break
        position += LOG_OVERHEAD + length
        if position - cuts[-1] >= PART_BYTES and position < end:
            cuts.append(position)
    return list(zip(cuts, [*cuts[1:], end], strict=True))


def in_order(ranges: Sequence[tuple[int, int]], work: Work[Result], processes: Processes) -> Iterator[Result]:
    """Yield the results of all parts in order, while their output is written. `work` runs in child processes.

    Raises the errors of `work`, BrokenPipeError if the reader closed the pipe, OperationFailed if a child was killed.
    """
    import multiprocessing  # slow to import, and not always needed

    context = multiprocessing.get_context("fork")
    processes.flush()  # otherwise the children would write the buffered output again
    jobs = min(processes.jobs, len(ranges))
    turns = [context.Pipe(duplex=False) for _ in range(jobs)]
    results = [context.Pipe(duplex=False) for _ in range(jobs)]
    children: list[BaseProcess] = []
    for number in range(jobs):
        child = _Child(turns[number][0], turns[(number + 1) % jobs][1], results[number][1], work, processes.fd)
        mine = {id(turns[number][0]), id(turns[(number + 1) % jobs][1]), id(results[number][1])}
        others = [end for pipe in (*turns, *results) for end in pipe if id(end) not in mine]
        process: BaseProcess = context.Process(target=child.run, args=(ranges[number::jobs], others), daemon=True)
        process.start()
        children.append(process)
    turns[0][1].send(False)
    for end in (*(end for pipe in turns for end in pipe), *(pipe[1] for pipe in results)):
        end.close()
    try:
        for number in range(len(ranges)):
            yield _received(results[number % jobs][0])
    finally:
        for process in children:
            process.terminate()
            process.join()
        for pipe in results:
            pipe[0].close()


def _received(connection: Connection) -> Any:
    try:
        result = connection.recv()
    except EOFError:
        raise OperationFailed("a kctl process was killed", hint="try again with `--jobs 1`") from None
    if isinstance(result, BaseException):
        raise result
    return result


class _Child(Generic[Result]):
    """A child process, which handles its parts one by one."""

    def __init__(self, turn: Connection, after: Connection, results: Connection, work: Work[Result], fd: int) -> None:
        self._turn, self._after, self._results, self._work, self._fd = turn, after, results, work, fd
        self._buffered: list[bytes] = []
        self._buffered_bytes = 0
        self._has_turn = self._assumed = False

    def run(self, ranges: Sequence[tuple[int, int]], others: Sequence[Connection]) -> None:
        """Process the parts. others: pipe ends of other processes; closed here, so that readers see the end of file."""
        for end in others:
            end.close()
        try:
            for start, stop in ranges:
                result = self._part(start, stop)
                self._results.send(result)
                with suppress(BrokenPipeError):  # no part follows the last one
                    self._after.send(result.open_end)
        except EOFError:  # the previous process was killed; the parent reports it
            return
        except KeyboardInterrupt:
            return
        except BaseException as exc:  # noqa: BLE001 - the parent raises it
            with suppress(BrokenPipeError):
                self._results.send(exc)

    def _part(self, start: int, end: int) -> Result:
        self._has_turn = self._assumed = False
        try:
            result = self._work(start, end, False, self._write)
            self._take_turn()
        except _DamageBefore:
            self._buffered, self._buffered_bytes = [], 0
            result = self._work(start, end, True, self._write)
        return result

    def _write(self, data: bytes) -> None:
        if self._has_turn:
            self._put(data)
            return
        self._buffered.append(data)
        self._buffered_bytes += len(data)
        if self._buffered_bytes > _BUFFER_BYTES:
            self._take_turn()

    def _take_turn(self) -> None:
        if self._has_turn:
            return
        damaged = self._turn.recv()
        self._has_turn = True
        if damaged:
            raise _DamageBefore
        self._put(b"".join(self._buffered))
        self._buffered, self._buffered_bytes = [], 0

    def _put(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]


class _DamageBefore(Exception):
    """The part must be processed again, because damage precedes it."""
