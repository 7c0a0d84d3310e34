"""BrokerControl for a cluster that kctl did not set up: the commands of hooks.yaml, e.g. over ssh or systemctl."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePath

from kctl.base.text import printable
from kctl.deploy import process
from kctl.deploy.process import Ended
from kctl.errors import NotFound, OperationFailed, TimedOut
from kctl.model import Broker
from kctl.restart.control import Act
from kctl.restart.hooks import ACTS, Hooks

_MAX_LINES = 5
_MAX_CHARACTERS = 300


class HookControl:
    """Control by commands. brokers: as of the start of the run, because a broker that is down reports no address."""

    def __init__(
        self, hooks: Hooks, brokers: Mapping[int, Broker], *, run: Callable[..., Ended] = process.run_logged
    ) -> None:
        self._hooks, self._brokers, self._run = hooks, brokers, run
        self.acts: Collection[Act] = [
            act for act in ACTS if all(hooks.template(act, broker) is not None for broker in brokers)
        ]

    def stop(self, broker: int, *, timeout_s: float) -> None:
        self._act("stop", broker, timeout_s)

    def start(self, broker: int, *, timeout_s: float) -> None:
        self._act("start", broker, timeout_s)

    def kill(self, broker: int) -> None:
        self._act("kill", broker)

    def pause(self, broker: int) -> None:
        self._act("pause", broker)

    def unpause(self, broker: int) -> None:
        self._act("unpause", broker)

    def _act(self, act: Act, broker: int, timeout_s: float | None = None) -> None:
        """Run the command and wait until it ends. Raises OperationFailed with its last lines if its exit code is not 0.

        The command gets no input, so it cannot wait for an answer. Processes that it leaves running must not keep its
        output open.
        """
        if broker not in self._brokers:
            ids_text = ", ".join(map(str, sorted(self._brokers)))
            raise NotFound(f"the cluster has no broker {broker}", hint=f"its brokers: {ids_text}")
        argv = self._hooks.argv(act, self._brokers[broker])
        limit_s = min(self._hooks.timeout_s, timeout_s or self._hooks.timeout_s)
        limit_setting = f"`timeout` in {self._hooks.source}" if limit_s == self._hooks.timeout_s else "--broker-timeout"
        details = {"broker": broker, "act": act}
        run_command(
            argv, f"{act} broker {broker}", limit_s, limit_setting=limit_setting, details=details, run=self._run
        )


def run_command(
    argv: Sequence[str], action: str, limit_s: float, *, limit_setting: str, details: Mapping[str, object],
    run: Callable[..., Ended] = process.run_logged,
) -> None:  # fmt: skip
    """Run one command of hooks.yaml and wait until it ends.

    action: for messages, e.g. "stop broker 1". limit_setting: the setting that raises the limit. Raises TimedOut, and
    OperationFailed with the last lines if the exit code is not 0.
    """
    what = f"the command to {action} ({PurePath(argv[0]).name})"
    lines: deque[str] = deque(maxlen=_MAX_LINES)
    try:
        done = run(argv, timeout_s=limit_s, on_line=partial(_add_line, lines), cwd=Path())
    except TimedOut:
        raise TimedOut(
            f"{what} did not end within {limit_s:g} s and was killed",
            hint=f"{_output_text(lines)}\nraise {limit_setting}; the command gets no input, and processes that it"
            " starts must not keep its output open",
        ) from None
    if done.code != 0:
        raise OperationFailed(
            f"{what} failed with exit code {done.code}",
            hint=_output_text(lines),
            details={**details, "returncode": done.code},
        )


def _add_line(lines: deque[str], line: str) -> None:
    if line.strip():
        lines.append(line[:_MAX_CHARACTERS])


def _output_text(lines: Collection[str]) -> str:
    return "\n".join(["its output:", *map(printable, lines)]) if lines else "it printed nothing"
