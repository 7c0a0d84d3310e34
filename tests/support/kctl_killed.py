"""Run a kctl command, and kill -9 this process right before or right after a step is written to a journal.

    python kctl_killed.py before|after STEP ARGUMENT…

Only the journal's append is wrapped, without support in kctl. If the step is never written, kctl ends normally.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from kctl import __main__
from kctl.base import journal


def kill_at(moment: str, step: str, number: int = 1) -> None:
    """Kill -9 this process `before` or `after` the `number`th write of a step; `*` is any step."""
    append = journal.Journal.append
    left = number

    def watched(self: journal.Journal, name: str, /, **fields: Any) -> None:
        nonlocal left
        left -= step in {"*", str(getattr(name, "value", name))}
        if left == 0 and moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        append(self, name, **fields)
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    setattr(journal.Journal, "append", watched)  # noqa: B010 - mypy takes it for an assignment of another type


def main() -> int:
    """Return the exit code of kctl; -9 (SIGKILL) if the step was written."""
    moment, step = sys.argv[1:3]
    kill_at(moment, step)
    sys.argv[1:] = sys.argv[3:]
    return __main__.main()


if __name__ == "__main__":
    sys.exit(main())
