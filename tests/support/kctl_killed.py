"""Run kctl's command line, and kill -9 this process right before or right after a step is written to a journal.

    python kctl_killed.py before|after STEP ARGUMENT…

Only the journal's own append is wrapped, so that nothing in kctl knows of it. Ends as kctl does when the step never
comes.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from kctl import __main__, journal


def main() -> int:
    """Exit code of kctl; -9 (SIGKILL) when the step came."""
    moment, step = sys.argv[1:3]
    sys.argv[1:] = sys.argv[3:]
    append = journal.Journal.append

    def watched(self: journal.Journal, name: str, **fields: Any) -> None:
        here = str(getattr(name, "value", name)) == step
        if here and moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        append(self, name, **fields)
        if here:
            os.kill(os.getpid(), signal.SIGKILL)

    setattr(journal.Journal, "append", watched)  # noqa: B010 - mypy takes it for an assignment of another type
    return __main__.main()


if __name__ == "__main__":
    sys.exit(main())
