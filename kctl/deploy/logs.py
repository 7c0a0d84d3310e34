"""The logs of a cluster's processes: why one ended, and all of them merged by time, as they stand or as they grow.

An entry starts with «[2026-01-31 12:00:00,123] LEVEL »; lines without it (a stack trace) belong to the entry before.
Memory is bounded: an entry keeps its first lines, a file is read in blocks.
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
from kctl.errors import UsageError

_BLOCK_BYTES = 1 << 20
_MAX_EXCERPT_BYTES = 256 << 10
_EXCERPT_LINES = 15
_EXCERPT_WIDTH = 300
_MAX_LINE = 8192
_MAX_ENTRY_LINES = 400
_ENTRY = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\] ([A-Z]+) (.*)")
_ROLLED = re.compile(r"\.(\d{1,3})")


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One entry. text: the whole of it as written, its lines joined; time is None for lines before any entry."""

    time: datetime | None
    node: str
    level: str | None
    text: str

    @property
    def sort_key(self) -> float:
        return self.time.timestamp() if self.time else 0.0


def parse_entries(node: str, lines: Iterable[str]) -> Iterator[LogEntry]:
    """Lines of one log as entries, in their order."""
    pending: list[str] = []
    for line in lines:
        if _ENTRY.match(line) and pending:
            yield _entry(node, pending)
            pending = []
        if len(pending) < _MAX_ENTRY_LINES:
            pending.append(line[:_MAX_LINE])
    if pending:
        yield _entry(node, pending)


def _entry(node: str, lines: Sequence[str]) -> LogEntry:
    match = _ENTRY.match(lines[0])
    when = None
    if match:
        try:
            when = datetime.strptime(match.group(1), "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=timezone.utc)
        except ValueError:  # the 99th of a month
            when = None
    return LogEntry(when, node, match.group(2) if match else None, "\n".join(lines))


def compile_pattern(pattern: str | None) -> Callable[[LogEntry], bool]:
    """A filter for entries: the regular expression occurs in them. Raises UsageError."""
    if pattern is None:
        return lambda _: True
    try:
        found = re.compile(pattern)
    except re.error as exc:
        raise UsageError(f"--grep {pattern!r} is not a regular expression: {exc}") from None
    return lambda entry: found.search(entry.text) is not None


def merged(
    host: Host,
    spec: ClusterSpec,
    nodes: Sequence[Node],
    *,
    wanted: Callable[[LogEntry], bool],
    tail: int | None,
) -> Iterator[LogEntry]:
    """Entries of these nodes, oldest first; tail: only the last so many of them all."""
    streams = [(e for e in parse_entries(n.name, _lines(host, spec.log_path(n))) if wanted(e)) for n in nodes]
    if tail is None:
        return heapq.merge(*streams, key=lambda e: e.sort_key)
    last = [deque(stream, maxlen=max(tail, 0)) for stream in streams]
    newest = deque(heapq.merge(*last, key=lambda e: e.sort_key), maxlen=max(tail, 0))
    return iter(newest)


def _files(host: Host, path: Path) -> list[Path]:
    """The log and its rolled predecessors (server.log.2, server.log.1, server.log), oldest first."""
    rolled = []
    for name in host.list_folder(path.parent):
        match = _ROLLED.fullmatch(name.removeprefix(path.name)) if name.startswith(path.name) else None
        if match:
            rolled.append((int(match.group(1)), path.with_name(name)))
    return [*(p for _, p in sorted(rolled, reverse=True)), path]


def _lines(host: Host, path: Path) -> Iterator[str]:
    for file in _files(host, path):
        splitter = _LineSplitter()
        offset = 0
        while block := host.read_from(file, offset, _BLOCK_BYTES):
            offset += len(block)
            yield from splitter.feed(block)
        yield from splitter.rest()


class _LineSplitter:
    """Bytes in blocks → whole lines; a line without end is cut at the block size."""

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
    """What is added to the logs from now on; `poll` again and again. A roll loses nothing."""

    def __init__(self, host: Host, spec: ClusterSpec, nodes: Sequence[Node]) -> None:
        self._host = host
        self._logs = [_Followed(host, node.name, spec.log_path(node)) for node in nodes]

    def poll(self) -> list[LogEntry]:
        """New entries of all logs, by time."""
        return sorted((e for log in self._logs for e in log.poll()), key=lambda e: e.sort_key)


class _Followed:
    def __init__(self, host: Host, node: str, path: Path) -> None:
        self._host, self._node, self._path = host, node, path
        self._offset = host.size(path) or 0
        self._file_id = host.file_id(path)
        self._splitter = _LineSplitter()
        self._last: datetime | None = None

    def poll(self) -> list[LogEntry]:
        lines: list[str] = []
        file_id = self._host.file_id(self._path)
        if file_id != self._file_id:
            # It was rolled: what was added to the old one before that is in server.log.1 now.
            old = self._path.with_name(self._path.name + ".1")
            if self._file_id is not None and self._host.file_id(old) == self._file_id:
                lines += self._read(old)
            self._file_id, self._offset = file_id, 0
        lines += self._read(self._path)
        return [self._timed(entry) for entry in parse_entries(self._node, lines)]

    def _timed(self, entry: LogEntry) -> LogEntry:
        """The rest of an entry that was seen half written gets its time, so that it follows it."""
        if entry.time is None:
            return replace(entry, time=self._last)
        self._last = entry.time
        return entry

    def _read(self, path: Path) -> list[str]:
        lines: list[str] = []
        while block := self._host.read_from(path, self._offset, _BLOCK_BYTES):
            self._offset += len(block)
            lines += self._splitter.feed(block)
        return lines


def log_excerpt(host: Host, spec: ClusterSpec, node: Node, *, since: int = 0) -> list[str]:
    """Why a process ended: from the first error after byte `since` on, or the last lines; Java's own words too."""
    path = spec.log_path(node)
    size = host.size(path) or 0
    begin = since if since <= size else 0  # it was rolled meanwhile
    data = host.read_from(path, max(begin, size - _MAX_EXCERPT_BYTES), _MAX_EXCERPT_BYTES)
    lines = data.decode("utf-8", "replace").splitlines()
    errors = [i for i, line in enumerate(lines) if (m := _ENTRY.match(line)) and m.group(2) in {"ERROR", "FATAL"}]
    first = errors[0] if errors else max(len(lines) - _EXCERPT_LINES, 0)
    console = host.read_from(spec.console_path(node), -8192, 8192).decode("utf-8", "replace").splitlines()
    own_words = [line for line in console if not line.startswith("log4j:")][-5:]
    return [line[:_EXCERPT_WIDTH] for line in (*lines[first : first + _EXCERPT_LINES], *own_words)]
