"""BrokerControl of any other cluster: the commands of hooks.yaml, for example over ssh or systemctl."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import PurePath

from kctl.deploy import process
from kctl.deploy.process import Completed
from kctl.errors import NotFound, OperationFailed, TimedOut
from kctl.model import Broker
from kctl.restart.control import Act
from kctl.restart.hooks import ACTS, Hooks
from kctl.text import printable

_MAX_OUTPUT_BYTES = 64 << 10
_TOLD_LINES = 5
_TOLD_CHARACTERS = 300


class HookControl:
    """brokers: what each told of itself when the run began; one that is down tells nothing any more."""

    def __init__(
        self, hooks: Hooks, brokers: Mapping[int, Broker], *, run: Callable[..., Completed] = process.run
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
        """Run the command to its end. Raises OperationFailed with its last lines when its exit code is not 0.

        It gets no input, so nothing that asks can wait for an answer; what it leaves running in its process group
        must not keep its output.
        """
        if broker not in self._brokers:
            known = ", ".join(map(str, sorted(self._brokers)))
            raise NotFound(f"the cluster has no broker {broker}", hint=f"it has {known}")
        argv = self._hooks.argv(act, self._brokers[broker])
        limit_s = min(self._hooks.timeout_s, timeout_s or self._hooks.timeout_s)
        what = f"the command to {act} broker {broker} ({PurePath(argv[0]).name})"
        try:
            done = self._run(argv, timeout_s=limit_s, max_output_bytes=_MAX_OUTPUT_BYTES)
        except TimedOut:
            raise TimedOut(
                f"{what} did not end within {limit_s:g} s, and was killed",
                hint=f"`timeout` in {self._hooks.source} gives it longer; what it starts must not keep its output",
            ) from None
        if done.returncode != 0:
            raise OperationFailed(
                f"{what} ended with exit code {done.returncode}",
                hint=_last_lines(done) or "it said nothing",
                details={"broker": broker, "act": act, "argv": list(argv), "returncode": done.returncode},
            )


def _last_lines(done: Completed) -> str:
    text = (done.stderr.strip() or done.stdout.strip()).decode("utf-8", "replace")
    lines = [printable(line.rstrip())[:_TOLD_CHARACTERS] for line in text.splitlines() if line.strip()]
    return "\n".join(["it said:", *lines[-_TOLD_LINES:]]) if lines else ""
