"""Shutdown of a validation process: on SIGTERM, or if the kctl that started it has exited."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TypeVar

from kctl.deploy.process import ProcessIdentity, is_running
from kctl.errors import ExitCode, KctlError
from kctl.validate.workload.settings import ConsumerSettings, ProducerSettings, Task, take_task

_CHECK_S = 0.3
_Settings = TypeVar("_Settings", ProducerSettings, ConsumerSettings)


class ShutdownRequest:
    """A flag that is true as soon as the process must exit. SIGINT counts, although no terminal sends it here."""

    def __init__(self, parent: ProcessIdentity) -> None:
        self._parent = parent
        self._requested = False
        self.alone = False  # the parent has exited
        self._checked_at = time.monotonic()
        signal.signal(signal.SIGTERM, self._request)
        signal.signal(signal.SIGINT, self._request)

    def _request(self, _number: int, _frame: FrameType | None) -> None:
        self._requested = True

    def __bool__(self) -> bool:
        now = time.monotonic()
        if not self._requested and now - self._checked_at > _CHECK_S:
            self._checked_at = now
            if not is_running(self._parent):  # never reset the flags: SIGTERM may arrive in between
                self._requested = self.alone = True
        return self._requested


def main(work: Callable[[Task, ShutdownRequest], None], kind: type[_Settings]) -> int:
    """Run the task in FILE of `python -m … FILE`. Return the exit code. The last line on stderr is the error."""
    os.umask(0o077)
    if len(sys.argv) != 2:
        sys.stderr.write("requires one argument: the task file written by kctl\n")
        return ExitCode.USAGE
    try:
        task = take_task(Path(sys.argv[1]))
        if not isinstance(task.settings, kind):
            sys.stderr.write("the task file is for another process\n")
            return ExitCode.USAGE
        work(task, ShutdownRequest(task.parent))
    except KctlError as exc:
        sys.stderr.write(exc.message + "\n")
        return exc.exit_code
    return ExitCode.OK
