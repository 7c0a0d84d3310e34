"""The logs of a cluster's processes: why a process ended, and all logs merged by time, optionally followed.

An entry starts with `[2026-01-31 12:00:00,123] LEVEL `; other lines (a stack trace) belong to the entry before.
Memory is bounded: long entries are truncated, and files are read in blocks.
"""

from __future__ import annotations

import heapq
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

from kctl.deploy.host import Host
from kctl.deploy.layout import ClusterSpec, Node
from kctl.errors import OperationFailed, UsageError

_BLOCK_BYTES = 1 << 20
_MAX_EXCERPT_BYTES = 256 << 10
_EXCERPT_LINES = 15
_EXCERPT_WIDTH = 300
_MAX_LINE = 8192
_MAX_ENTRY_LINES = 400
_MAX_ENTRY = 64 << 10  # characters after the first line
_POLL_BYTES = 8 << 20  # of one log in one poll
_ENTRY = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\] ([A-Z]+) (.*)")
_ROLLED = re.compile(r"\.(\d{1,3})")


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A log entry. text: all of its lines. time: None for lines before the first entry."""

    time: datetime | None
    node: str
    level: str | None
    text: str

    @property
    def sort_key(self) -> float:
        return self.time.timestamp() if self.time else 0.0


def parse_entries(node: str, lines: Iterable[str]) -> Iterator[LogEntry]:
    """Return the lines of one log as entries, in order. Truncated entries are marked."""
    pending: list[str] = []
    omitted_lines = budget = 0
    for line in lines:
        if _ENTRY.match(line) and pending:
            yield _entry(node, pending, omitted_lines)
            pending, omitted_lines = [], 0
        budget = budget - len(line) if pending else _MAX_ENTRY - len(line)
        if len(pending) < _MAX_ENTRY_LINES and (budget >= 0 or not pending):
            pending.append(_cut(line))
        else:
            omitted_lines += 1
    if pending:
        yield _entry(node, pending, omitted_lines)


def _cut(line: str) -> str:
    return line if len(line) <= _MAX_LINE else f"{line[:_MAX_LINE]} ... ({len(line) - _MAX_LINE} more characters)"


def _entry(node: str, lines: Sequence[str], omitted_lines: int) -> LogEntry:
    match = _ENTRY.match(lines[0])
    when = None
    if match:
        try:
            when = datetime.strptime(match.group(1), "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=timezone.utc)
        except ValueError:  # digits that are no date, e.g. day 99
            when = None
    if omitted_lines:
        lines = [*lines, f"... ({omitted_lines} more lines)"]
    return LogEntry(when, node, match.group(2) if match else None, "\n".join(lines))


def compile_pattern(pattern: str | None) -> Callable[[LogEntry], bool]:
    """Return a filter for entries that contain a match of the regular expression. Raises UsageError."""
    if pattern is None:
        return lambda _: True
    try:
        compiled = re.compile(pattern)
    except re.error as exc:
        raise UsageError(f"--grep {pattern!r} is not a regular expression: {exc}") from None
    return lambda entry: compiled.search(entry.text) is not None


class LogReader:
    """A reader of logs. unreadable: the files that could not be read and why, each once."""

    def __init__(self, host: Host, spec: ClusterSpec) -> None:
        self.host, self.spec = host, spec
        self.unreadable: list[str] = []

    def read(self, path: Path, offset: int, max_bytes: int) -> bytes:
        """Read like Host.read_from, but return nothing for an unreadable file."""
        try:
            return self.host.read_from(path, offset, max_bytes)
        except OperationFailed as exc:
            if exc.message not in self.unreadable:
                self.unreadable.append(exc.message)
            return b""

    def files(self, path: Path) -> list[Path]:
        """Return the log and its rolled predecessors (server.log.2, server.log.1, server.log), oldest first."""
        rolled = []
        for name in self.host.list_folder(path.parent):
            match = _ROLLED.fullmatch(name.removeprefix(path.name)) if name.startswith(path.name) else None
            if match:
                rolled.append((int(match.group(1)), path.with_name(name)))
        return [*(p for _, p in sorted(rolled, reverse=True)), path]


def merged(
    reading: LogReader,
    nodes: Sequence[Node],
    *,
    matches: Callable[[LogEntry], bool],
    tail: int | None,
    follower: Follower | None = None,
) -> Iterator[LogEntry]:
    """Return the entries of these nodes, oldest first. tail: only this many, the last ones of all nodes together.

    Ends at the current ends of the logs, or where the follower starts."""
    streams = [
        (entry for entry in parse_entries(node.name, _lines(reading, node, follower)) if matches(entry))
        for node in nodes
    ]
    if tail is None:
        return heapq.merge(*streams, key=lambda e: e.sort_key)
    last = [deque(stream, maxlen=max(tail, 0)) for stream in streams]
    newest = deque(heapq.merge(*last, key=lambda e: e.sort_key), maxlen=max(tail, 0))
    return iter(newest)


def _lines(reading: LogReader, node: Node, follower: Follower | None) -> Iterator[str]:
    file_id, begin = follower.begins[node.name] if follower is not None else (None, 0)
    for file in reading.files(reading.spec.log_path(node)):
        last = file_id is not None and reading.host.file_id(file) == file_id
        end = begin if last else reading.host.size(file) or 0  # it may grow faster than it is read
        if not end:
            reading.read(file, 0, 0)  # a FIFO or a device is reported
        splitter = _LineSplitter()
        offset = 0
        while offset < end and (block := reading.read(file, offset, min(_BLOCK_BYTES, end - offset))):
            offset += len(block)
            yield from splitter.feed(block)
        yield from splitter.rest()
        if last:
            return


class _LineSplitter:
    """A splitter of byte blocks into lines. A line longer than a block is cut."""

    def __init__(self) -> None:
        self._partial = b""

    def feed(self, block: bytes) -> list[str]:
        *whole, self._partial = (self._partial + block).split(b"\n")
        if len(self._partial) > _BLOCK_BYTES:
            whole.append(self._partial)
            self._partial = b""
        return [line.decode("utf-8", "replace").removesuffix("\r") for line in whole]

    def rest(self) -> list[str]:
        partial, self._partial = self._partial, b""
        return [partial.decode("utf-8", "replace")] if partial else []


class Follower:
    """A reader of new log entries, polled repeatedly. Rolls neither lose nor repeat entries.

    begins: by node, the inode of the current log (None if there is no log) and its size.
    """

    def __init__(self, reading: LogReader, nodes: Sequence[Node]) -> None:
        self._logs = [_Followed(reading, node.name, reading.spec.log_path(node)) for node in nodes]
        self.begins = {log.node: (log.file_id, log.offset) for log in self._logs}

    def poll(self) -> list[LogEntry]:
        """Return the new entries of all logs, by time."""
        return sorted((e for log in self._logs for e in log.poll()), key=lambda e: e.sort_key)


class _Followed:
    def __init__(self, reading: LogReader, node: str, path: Path) -> None:
        self._reading, self.node, self._path = reading, node, path
        self.offset = reading.host.size(path) or 0
        self.file_id = reading.host.file_id(path)
        self._splitter = _LineSplitter()
        self._last: datetime | None = None

    def poll(self) -> list[LogEntry]:
        lines: list[str] = []
        budget = _POLL_BYTES
        while budget > 0:
            file = self._current()
            if file is None:
                break
            block = self._reading.read(file, self.offset, min(_BLOCK_BYTES, budget))
            self.offset += len(block)
            budget -= len(block)
            lines += self._splitter.feed(block)
            if not block and not self._next(file):
                break
        return [self._timed(entry) for entry in parse_entries(self.node, lines)]

    def _current(self) -> Path | None:
        """Return the current file, even if it was renamed. If it was truncated, restart at its beginning."""
        files, host = self._reading.files(self._path), self._reading.host
        current_file = next(
            (file for file in files if self.file_id is not None and host.file_id(file) == self.file_id), None
        )
        if current_file is None:  # deleted, or never created
            current_file, self.offset = self._path, 0
            self.file_id = host.file_id(current_file)
        elif (host.size(current_file) or 0) < self.offset:
            self.offset = 0
        return current_file if self.file_id is not None else None

    def _next(self, file: Path) -> bool:
        """Switch to the file that was started when this one was rolled. Return False if there is none."""
        if file == self._path:
            return False
        files = self._reading.files(self._path)
        if file not in files or self._reading.host.file_id(file) != self.file_id:
            return True  # rolled again meanwhile, so its name changed
        following = files[files.index(file) + 1]
        self.file_id, self.offset = self._reading.host.file_id(following), 0
        return self.file_id is not None

    def _timed(self, entry: LogEntry) -> LogEntry:
        """Give the rest of a partly written entry the time of its first part, so that it sorts after that part."""
        if entry.time is None:
            return replace(entry, time=self._last)
        self._last = entry.time
        return entry


def log_excerpt(host: Host, spec: ClusterSpec, node: Node, *, since: int = 0) -> list[str]:
    """Return lines that show why a process ended: from the first error after byte `since`, or the last; and Java's."""
    path = spec.log_path(node)
    size = host.size(path) or 0
    begin = since if since <= size else 0  # it was rolled meanwhile
    reading = LogReader(host, spec)
    data = reading.read(path, max(begin, size - _MAX_EXCERPT_BYTES), _MAX_EXCERPT_BYTES)
    lines = data.decode("utf-8", "replace").splitlines()
    errors = [i for i, line in enumerate(lines) if (m := _ENTRY.match(line)) and m.group(2) in {"ERROR", "FATAL"}]
    first = errors[0] if errors else max(len(lines) - _EXCERPT_LINES, 0)
    console = reading.read(spec.console_path(node), -8192, 8192).decode("utf-8", "replace").splitlines()
    console_lines = [line for line in console if not line.startswith("log4j:")][-5:]
    return [line.expandtabs(4)[:_EXCERPT_WIDTH] for line in (*lines[first : first + _EXCERPT_LINES], *console_lines)]
