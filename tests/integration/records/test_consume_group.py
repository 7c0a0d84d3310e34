"""kctl consume as a member of a group that others join and leave while records come."""

from __future__ import annotations

import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from kctl_testing import SCRIPT, Kctl, eventually, within

_RECORDS = 2000  # written at a time


@contextmanager
def _writing(kctl: Kctl, out: Path, *args: str) -> Iterator[subprocess.Popen[bytes]]:
    """A kctl whose stdout is the file `out`."""
    with out.open("wb") as stream:
        process = subprocess.Popen(
            [str(SCRIPT), *args], env=kctl.environment, stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.PIPE
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()


def _interrupt(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGINT)
    assert process.wait(within(20)) == 130


def test_members_come_and_go(kctl: Kctl, tmp_path: Path, topic: Callable[..., str]) -> None:
    """One is there all the time; another one comes and leaves, twice."""
    mine = topic(partitions=6)
    group = f"come-and-go-{mine}"
    read = ("consume", mine, "--group", group, "--from-beginning")
    outs = [tmp_path / name for name in ("stays", "first", "second")]
    written = 0

    def reads(out: Path) -> bool:
        """Whether it has read any of what has come until now; more comes."""
        nonlocal written
        numbers = range(written, written + _RECORDS)
        kctl.ok("produce", mine, stdin="".join(f"{number}\n" for number in numbers))
        written += _RECORDS
        return out.stat().st_size > 0

    with _writing(kctl, outs[0], *read) as stays:
        eventually(lambda: reads(outs[0]), seconds=within(30), what="the first reads")
        for out in outs[1:]:
            with _writing(kctl, out, *read) as comes:
                eventually(partial(reads, out), seconds=within(30), what=f"the {out.name} one that comes reads")
                _interrupt(comes)
            reads(out)
        _interrupt(stays)
    rest = kctl.ok("consume", mine, "--group", group, "--exit-eof").out
    seen = Counter([*rest.split(), *(line for out in outs for line in out.read_text().split())])
    assert seen.keys() == {str(number) for number in range(written)}, "nothing is left out"
    # An interrupt between a write and its count, and a commit that is slower than a rebalance, show some twice.
    assert sum(seen.values()) - written < _RECORDS
    assert sum(row["lag"] for row in kctl.json("lag", group)) == 0


def test_a_member_without_partitions_gets_them_when_the_other_one_ends(kctl: Kctl, topic: Callable[..., str]) -> None:
    mine = topic()
    group = f"next-{mine}"
    kctl.ok("produce", mine, stdin="a\nb\n")
    read = ("consume", mine, "--group", group, "--from-beginning")
    with kctl.running(*read) as first:
        assert first.stdout
        assert [first.stdout.readline() for _ in range(2)] == ["a\n", "b\n"]
        with kctl.running(*read) as second:

            def both() -> bool:
                return len(kctl.json("group", "describe", group)[0]["members"]) == 2

            eventually(both, seconds=within(30), what="both are members")
            first.send_signal(signal.SIGINT)
            _, said = first.communicate(timeout=within(20))
            assert first.returncode == 130, said
            kctl.ok("produce", mine, stdin="c\n")
            assert second.stdout
            assert second.stdout.readline() == "c\n", "a and b were committed"
