"""The files of the incidents in docs/segments.md: `python tests/support/incident_files.py FOLDER` creates them.

corrupt    a log dir with one flipped bit in a batch of the second-to-last segment of orders-0
replica    the same partitions of another broker, intact
index      a log dir where a segment of orders-0 has the .index of another one
retention  a log dir where a record of clicks-0 has a timestamp far in the future, set by its client
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "data" / "incidents"
FIRST, SECOND = "00000000000000000000", "00000000000000000340"
TURNED_AT = 7924  # in the records of the batch of offsets 160 to 179


def make(folder: Path) -> None:
    """Copy the broker's files and damage them."""
    for name in ("corrupt", "replica", "index", "retention"):
        shutil.copytree(SOURCE, folder / name, ignore=shutil.ignore_patterns("README.md"))
    _turn_bit(folder / "corrupt" / "orders-0" / f"{FIRST}.log", TURNED_AT)
    orders = folder / "index" / "orders-0"
    shutil.copyfile(orders / f"{SECOND}.index", orders / f"{FIRST}.index")


def _turn_bit(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 0x10
    path.write_bytes(data)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
