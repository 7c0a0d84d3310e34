"""Run a kctl command against brokers whose disks are almost full: 100 kB are free in each log dir.

    python kctl_full_disks.py ARGUMENT…

Replaces one number, since no disk can be filled on demand. Apart from the usable bytes, responses are real.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

from kctl import __main__
from kctl.cluster import log_dirs
from kctl.errors import KctlError

USABLE_BYTES = 100_000
_parse = log_dirs._parse


def _full(node: int, response: Any) -> list[log_dirs.LogDir] | KctlError:
    found = _parse(node, response)
    return found if isinstance(found, KctlError) else [replace(d, usable_bytes=USABLE_BYTES) for d in found]


if __name__ == "__main__":
    setattr(log_dirs, "_parse", _full)  # noqa: B010 - mypy takes it for an assignment of another type
    sys.exit(__main__.main())
