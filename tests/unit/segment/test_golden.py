"""What people and programs see of segments, against golden files: on terminals of 80 and 120 columns, JSON, CSV.

KCTL_UPDATE_GOLDEN=1 writes them anew: look at the diff.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kctl.commands.app import main
from segment_files import Rec, batch, leader_epochs, write

pytestmark = pytest.mark.usefixtures("one_command_tree")
DATA = Path(__file__).parents[2] / "data" / "segments"
GOLDEN = DATA.with_name("segments_golden")
FORMATS = {"80 columns": [], "120 columns": [], "json": ["-o", "json"], "csv": ["-o", "csv"]}
# name → command line, run in tests/data/segments or, with a name of a folder below it, there
CASES: dict[str, tuple[str, str]] = {
    "dump-batches": ("v2/none", "dump 00000000000000000036.log 00000000000000000072.log"),
    "dump-wide": ("v2/txn", "dump 00000000000000000104.log -o wide"),
    "dump-records-wide": ("v2/txn", "dump 00000000000000000104.log --records --limit 3 -o wide"),
    "dump-batches-v1": ("v1/mixed", "dump ."),
    "dump-batches-transactions": ("v2/txn", "dump 00000000000000000104.log 00000000000000000115.log --limit 12"),
    "dump-records": ("v2/none", "dump --records --offsets 28..32 ."),
    "dump-records-v0": ("v0/snappy", "dump --records --offsets 3..5 ."),
    "dump-records-markers": ("v2/txn", "dump --records --offsets 136..143 ."),
    "dump-records-none": ("v2/none", "dump --records --key nobody ."),
    "dump-damage": ("corrupt", "dump zero-tail bitflip-attributes record-length-bad-crc-ok --records --offsets 34.."),
    "dump-index": ("v2/txn", "dump 00000000000000000115.index"),
    "dump-timeindex": ("v2/txn", "dump 00000000000000000115.timeindex"),
    "dump-txnindex": ("v2/txn", "dump 00000000000000000115.txnindex"),
    "dump-snapshot": ("v2/txn", "dump 00000000000000000115.snapshot"),
    "dump-checkpoints": (
        "logdir-28", "dump cleaner-offset-checkpoint log-start-offset-checkpoint recovery-point-offset-checkpoint"
    ),
    "dump-epochs": ("v2/txn", "dump leader-epoch-checkpoint"),
    "dump-settings": (".", "dump logdir-28/meta.properties v2/none/partition.metadata"),
    "dump-mixture": ("v2/txn", "dump 00000000000000000209.log 00000000000000000209.txnindex leader-epoch-checkpoint"),
    "dump-offsets": ("internal/kafka-2.8-consumer_offsets", "dump --offsets-decoder --limit 4 ."),
    "dump-transaction-state": ("internal/zk-3.9-transaction_state", "dump --transaction-log-decoder --limit 3 ."),
    "dump-metadata": ("internal/kraft-3.9-cluster_metadata", "dump --cluster-metadata-decoder --limit 5 ."),
    "dump-kraft-snapshot": ("internal/kraft-3.9-cluster_metadata", "dump --records bootstrap.checkpoint"),
    "find-offset": ("v2", "find none --offset 65"),
    "find-compacted": ("v2", "find compact --offset 30"),
    "find-behind": ("v2", "find none --offset 500"),
    "find-timestamp": ("v2", "find none --timestamp 2023-11-14T22:14:50Z"),
    "find-key": ("v2", "find none append --key key-5"),
    "find-key-all": ("v2", "find compact --key k4 --all"),
    "find-wrong-index": ("corrupt", "find index-pos-wrong --offset 35"),
    "find-damage": ("corrupt", "find bitflip-attributes --offset 20"),
    "diff-same": ("v2", "diff none gzip"),
    "diff-damage": ("corrupt", "diff index-missing bitflip-attributes"),
}  # fmt: skip


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def printed(args: list[str], columns: int | None, monkeypatch: pytest.MonkeyPatch) -> str:
    """What stands on stdout and stderr, and the exit code; columns: of a terminal, None: they are pipes."""
    out, err = (Terminal(), Terminal()) if columns else (io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO())
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        patch.setenv("COLUMNS", str(columns or 80))
        patch.setenv("NO_COLOR", "1")
        patch.setenv("TERM", "xterm")
        code = main(["segment", *args])
    out.flush()
    text = out.getvalue() if isinstance(out, io.StringIO) else out.buffer.getvalue().decode()
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    return f"{text}--- stderr\n{err.getvalue()}--- exit code {code}\n"


def all_formats(args: list[str], monkeypatch: pytest.MonkeyPatch) -> str:
    parts = []
    for name, options in FORMATS.items():
        if "-o" in args and options:
            continue
        columns = int(name.split()[0]) if name.endswith("columns") else None
        text = printed([*args, *options], columns, monkeypatch)
        wide = [line for line in text.splitlines() if columns and len(line) > columns]
        parts.append(f"=== {name}{' (too narrow)' if wide else ''}: kctl segment {' '.join([*args, *options])}\n{text}")
    return "\n".join(parts)


def compare(name: str, text: str) -> None:
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("KCTL_UPDATE_GOLDEN") == "1":
        GOLDEN.mkdir(exist_ok=True)
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", CASES)
def test_golden(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, line = CASES[name]
    monkeypatch.chdir(DATA / folder)
    compare(name, all_formats(line.split(), monkeypatch))


def _unclean_election() -> None:
    common = [batch(10 * number, 10, epoch=min(number, 1)) for number in range(3)]
    old = [batch(30, [Rec(b"k", b"old")] * 20, epoch=1)]
    new = [batch(30, [Rec(b"k", b"new")] * 14, epoch=2)]
    for broker, parts, epochs in (
        ("broker1", [*common, *old], [(0, 0), (1, 10)]),
        ("broker2", [*common, *new], [(0, 0), (1, 10), (2, 30)]),
    ):
        write(Path(broker, "orders-0"), 0, parts)
        Path(broker, "orders-0", "leader-epoch-checkpoint").write_bytes(leader_epochs(epochs))


def _one_lacks_records() -> None:
    parts = [batch(10 * number, 10) for number in range(6)]
    write(Path("broker1/orders-0"), 0, parts)
    write(Path("broker2/orders-0"), 20, [parts[2], parts[4]])


@pytest.mark.parametrize(("name", "build"), [("diff-divergent", _unclean_election), ("diff-lacks", _one_lacks_records)])
def test_golden_diff(name: str, build: Callable[[], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    build()
    compare(name, all_formats(["diff", "broker1/orders-0", "broker2/orders-0"], monkeypatch))


def test_every_golden_file_has_a_case() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == {*CASES, "diff-divergent", "diff-lacks"}
