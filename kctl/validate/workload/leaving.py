"""When a process of a validation has to end: it was asked to (SIGTERM), or the kctl that started it is gone."""

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

_LOOK_S = 0.3
_Settings = TypeVar("_Settings", ProducerSettings, ConsumerSettings)


class Leaving:
    """True as soon as the process has to end. Takes Ctrl-C, too, which no terminal sends to it."""

    def __init__(self, parent: ProcessIdentity) -> None:
        self._parent = parent
        self._asked = False
        self.alone = False  # there is nobody who waits for an orderly end
        self._looked = time.monotonic()
        signal.signal(signal.SIGTERM, self._ask)
        signal.signal(signal.SIGINT, self._ask)

    def _ask(self, _number: int, _frame: FrameType | None) -> None:
        self._asked = True

    def __bool__(self) -> bool:
        now = time.monotonic()
        if not self._asked and now - self._looked > _LOOK_S:
            self._looked = now
            if not is_running(self._parent):  # SIGTERM may come meanwhile: never set the flags back
                self._asked = self.alone = True
        return self._asked


def main(work: Callable[[Task, Leaving], None], kind: type[_Settings]) -> int:
    """`python -m … FILE`: do the task of FILE; why it failed is the last line on stderr. The exit code."""
    os.umask(0o077)
    if len(sys.argv) != 2:
        sys.stderr.write("one argument is needed: the file that kctl writes for this process\n")
        return ExitCode.USAGE
    try:
        task = take_task(Path(sys.argv[1]))
        if not isinstance(task.settings, kind):
            sys.stderr.write("the file is for another kind of process\n")
            return ExitCode.USAGE
        work(task, Leaving(task.parent))
    except KctlError as exc:
        sys.stderr.write(exc.message + "\n")
        return exc.exit_code
    return ExitCode.OK
