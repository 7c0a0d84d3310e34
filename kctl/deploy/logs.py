"""The logs of a cluster's processes: the end of one, and all of them merged by time."""

from __future__ import annotations

import re

from kctl.deploy.host import Host
from kctl.deploy.layout import ClusterSpec, Node

_MAX_EXCERPT_BYTES = 256 << 10
_MAX_LINES = 15
_MAX_LINE = 300
_ENTRY = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\] ([A-Z]+) ")


def log_excerpt(host: Host, spec: ClusterSpec, node: Node, *, since: int = 0) -> list[str]:
    """Why a process ended: from the first error after byte `since` on, or the last lines; Java's own words too."""
    path = spec.log_path(node)
    size = host.size(path) or 0
    begin = since if since <= size else 0  # it was rolled meanwhile
    text = host.read_from(path, max(begin, size - _MAX_EXCERPT_BYTES), _MAX_EXCERPT_BYTES).decode(
        "utf-8", "replace"
    )
    lines = text.splitlines()
    errors = [
        i for i, line in enumerate(lines) if (m := _ENTRY.match(line)) and m.group(2) in {"ERROR", "FATAL"}
    ]
    if errors:
        lines = lines[errors[0] : errors[0] + _MAX_LINES]
    console = host.read_from(spec.console_path(node), -8192, 8192).decode("utf-8", "replace").splitlines()
    console = [line for line in console if not line.startswith("log4j:")]
    return [line[:_MAX_LINE] for line in (lines[-_MAX_LINES:] + console[-5:])]
