"""Run a kctl command, and send this process a signal in the middle of a copy.

    python clone_killed.py SIGNAL sent|answered NUMBER ARGUMENT…

sent: after the `NUMBER`th batch was passed to the sender. answered: after the `NUMBER`th response to a Produce request
arrived, before it is processed. With fewer, kctl ends normally.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from kctl import __main__
from kctl.records.produce.sender import Sender


def main() -> int:
    """Return the exit code of kctl; -9 for SIGKILL."""
    number, moment, left = signal.Signals[sys.argv[1]], sys.argv[2], int(sys.argv[3])
    name = {"sent": "add_batch", "answered": "_handle"}[moment]
    original = getattr(Sender, name)

    def watched(self: Sender, *arguments: Any) -> None:
        nonlocal left
        left -= 1
        if moment == "sent":
            original(self, *arguments)
            self.step(0)
        if left == 0:
            os.kill(os.getpid(), number)
        if moment == "answered":
            original(self, *arguments)

    setattr(Sender, name, watched)
    sys.argv[1:] = sys.argv[4:]
    return __main__.main()


if __name__ == "__main__":
    sys.exit(main())
