"""kctl consume as a member of a group that others join and leave while records come."""

from __future__ import annotations

import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kctl_testing import SCRIPT, Kctl, eventually, within

_RECORDS = 24_000


@contextmanager
def _writing(kctl: Kctl, out: Path, *args: str, lines: Path | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A kctl whose stdout is the file `out`, and its stdin `lines`."""
    with out.open("wb") as stream, (lines or Path("/dev/null")).open("rb") as stdin:
        process = subprocess.Popen(
            [str(SCRIPT), *args], env=kctl.environment, stdin=stdin, stdout=stream, stderr=subprocess.PIPE
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()


def test_members_come_and_go(kctl: Kctl, tmp_path: Path, topic: Callable[..., str]) -> None:
    """One reads from the beginning to the end; beside it one leaves after 1,500 records and one is interrupted."""
    mine = topic(partitions=6)
    group = f"come-and-go-{mine}"
    lines = tmp_path / "lines"
    lines.write_text("".join(f"{number}\n" for number in range(_RECORDS)))
    read = ("consume", mine, "--group", group, "--from-beginning")
    stays, interrupted = tmp_path / "stays", tmp_path / "interrupted"
    with (
        _writing(kctl, tmp_path / "report", "produce", mine, "--rate", "3000/s", lines=lines) as producer,
        _writing(kctl, stays, *read, "--idle-timeout", f"{within(8):g}s") as staying,
    ):
        eventually(lambda: stays.stat().st_size > 0, seconds=within(30), what="the first reads")
        left = kctl.ok(*read, "--max-messages", "1500", timeout=within(60)).out.split()
        with _writing(kctl, interrupted, *read) as process:
            eventually(lambda: interrupted.stat().st_size > 5000, seconds=within(30), what="the other one reads, too")
            process.send_signal(signal.SIGINT)
            assert process.wait(within(20)) == 130
        assert producer.wait(within(60)) == 0
        assert staying.wait(within(60)) == 0
    assert len(left) == 1500
    seen = Counter([*stays.read_text().split(), *left, *interrupted.read_text().split()])
    assert seen.keys() == {str(number) for number in range(_RECORDS)}, "nothing is left out"
    # An interrupt between a write and its count, and a commit that is slower than a rebalance, show some twice.
    assert sum(seen.values()) - _RECORDS < 2000
    assert kctl.ok("consume", mine, "--group", group, "--exit-eof").out == "", "and all of it is committed"
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
            assert first.wait(within(20)) == 130
            kctl.ok("produce", mine, stdin="c\n")
            assert second.stdout
            assert second.stdout.readline() == "c\n", "a and b were committed"
