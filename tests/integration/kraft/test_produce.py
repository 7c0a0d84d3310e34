"""kctl produce on a broker of 4.x, which no longer takes the oldest Produce requests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kctl_testing import Kctl


@pytest.fixture
def there(own_kctl: Kctl, kraft: str) -> Kctl:
    """With a context for the broker of 4.x, and a topic of its own."""
    own_kctl.ok("context", "add", "kraft", "--bootstrap-server", kraft)
    own_kctl.ok("topic", "create", "produce-kraft", "--partitions", "3", "--if-not-exists")
    return own_kctl


def test_written_and_read_back(there: Kctl, tmp_path: Path) -> None:
    lines = "".join(f"key{n % 7}:{n}\n" for n in range(3000))
    for more in (("--compression-codec", "zstd"), ("--compression-codec", "none", "--acks", "1")):
        assert (
            there.json("produce", "produce-kraft", "--key-separator", ":", *more, stdin=lines)["acknowledged"] == 3000
        )
    out = there.ok("consume", "produce-kraft", "--from-beginning", "--exit-eof", "-o", "json").out
    values = sorted(int(json.loads(line)["value"]) for line in out.splitlines())
    assert values == sorted([*range(3000)] * 2)
    there.ok("topic", "delete", "produce-kraft", "--yes")
    gone = there("produce", "produce-kraft", stdin="x\n")
    assert (gone.code, "does not exist" in gone.err) == (4, True)
