"""kctl consume while brokers die and stand still: every record once, or the exit code says that some are missing."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterator
from itertools import islice

import pytest

from kctl_testing import SCRIPT, Kctl, eventually, within

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
LINES = 400_000  # of 100 bytes: much more than a reader has fetched that waits for its pipe


@pytest.fixture(scope="module")
def breakable(tmp_path_factory: pytest.TempPathFactory, shared: dict[str, str]) -> Iterator[Kctl]:
    """Three brokers that tests of this module kill, and start again behind them."""
    kctl = Kctl(tmp_path_factory.mktemp("home"), shared)
    created = kctl("cluster", "create", "reads", "--use", "--layout", "pseudo-distributed", timeout=180)
    assert created.code == 0, str(created)
    yield kctl
    kctl("cluster", "destroy", "reads", "--yes", "--confirm-cluster", "reads", timeout=120)


class Reader:
    """A `kctl consume` whose pipe is read as far as a test wants it."""

    def __init__(self, kctl: Kctl, *args: str) -> None:
        self._err = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by end
        self.process = subprocess.Popen(
            [str(SCRIPT), "consume", *args], env=kctl.environment, text=True, stdout=subprocess.PIPE, stderr=self._err
        )

    def lines(self, count: int | None = None) -> list[int]:
        """So many of the numbers that it shows; None: until it ends."""
        assert self.process.stdout
        return [int(line.split(" ", 1)[0]) for line in islice(self.process.stdout, count)]

    def end(self) -> tuple[int, str]:
        """Exit code and stderr."""
        try:
            code = self.process.wait(within(60))
        finally:
            self.process.kill()
        with self._err:
            self._err.seek(0)
            return code, self._err.read()


def _fill(kctl: Kctl, topic: str, *placement: str) -> None:
    kctl.ok("topic", "create", topic, *placement)
    lines = "".join(f"{number} {'x' * 92}\n" for number in range(LINES))
    kctl.ok("produce", topic, "--acks", "all", stdin=lines, timeout=120)


def _all_in_sync(kctl: Kctl) -> None:
    kctl.ok("cluster", "start", "reads", timeout=120)
    eventually(lambda: kctl("cluster", "status", "reads").code == 0, seconds=120, what="all are in sync")


@pytest.mark.parametrize("how", [(), ("--group", "killed-group"), ("--merge",)])
def test_leaders_killed_while_reading(breakable: Kctl, how: tuple[str, ...]) -> None:
    topic = f"killed{'-'.join(how)}"
    _fill(breakable, topic, "--partitions", "6", "--replication-factor", "3")
    reader = Reader(breakable, topic, "--from-beginning", "--exit-eof", "--timeout", "120s", *how)
    seen = reader.lines(20_000)
    breakable.ok("cluster", "kill", "reads", "1", "--yes")
    seen += reader.lines()
    code, err = reader.end()
    assert code == 0, err
    assert sorted(seen) == list(range(LINES)), "each once"
    _all_in_sync(breakable)


def test_a_leader_that_stands_still(breakable: Kctl) -> None:
    """Its partitions cannot be read to their end: that is told within --timeout, and is no success."""
    _fill(breakable, "still", "--replica-assignment", "2,2,2")
    reader = Reader(breakable, "still", "--from-beginning", "--exit-eof", "--timeout", "6s")
    seen = reader.lines(20_000)
    breakable.ok("cluster", "pause", "reads", "2", "--yes")
    try:
        started = time.monotonic()
        seen += reader.lines()
        code, err = reader.end()
        took = time.monotonic() - started
    finally:
        breakable.ok("cluster", "unpause", "reads", "2")
    assert code == 5, err
    assert "could not be read for 6 s" in err
    assert len(seen) == len(set(seen)) < LINES
    assert took < within(45)
    _all_in_sync(breakable)
