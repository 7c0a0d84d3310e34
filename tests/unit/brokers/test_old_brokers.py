"""Brokers 0.10 to 2.3: what they lack is refused with exit code 4 and the version that has it, before anything is done.

The ranges are those of kafka-python's tables; the same commands were run against Kafka 0.10.2.1, 1.1.1, 2.0.1, 2.3.1.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka.protocol.broker_version_data import BROKER_API_VERSIONS

from hostile_broker import FIND_COORDINATOR, hostile_broker
from in_process import InProcess

JOIN_GROUP, INCREMENTAL_ALTER_CONFIGS = 11, 44
EVERY = ((0, 10, 2), (1, 1), (2, 0), (2, 3))

COMMANDS: list[tuple[str, str, tuple[tuple[int, ...], ...]]] = [
    ("broker loggers list 1", "2.4", EVERY),
    ("broker loggers set kafka.server.KafkaApis=DEBUG --broker 1 --yes", "2.4", EVERY),
    ("config set topic/t --append cleanup.policy=compact --yes", "1.1", EVERY[:1]),
    ("topic alter t --partitions 3 --yes", "1.0", EVERY[:1]),
    ("topic offsets t --time max-timestamp", "3.0", EVERY),
    ("topic truncate t --all --yes", "0.11", EVERY[:1]),
    ("topic reassign status", "2.4", EVERY),
    ("broker log-dirs", "1.0", EVERY[:1]),
    ("consume t --group g --exit-eof", "0.11", EVERY[:1]),
    ("consume t --exit-eof", "0.11", EVERY[:1]),
    ("group delete-offsets g --topic t --yes", "2.4", EVERY),
    ("group delete g --yes", "1.1", EVERY[:1]),
    ("acl list", "2.0", EVERY[:2]),
    ("user list", "2.7", EVERY),
    ("quota list", "2.6", EVERY),
    ("transaction list", "3.0", EVERY),
]


@pytest.mark.parametrize(("command", "needed", "releases"), COMMANDS)
def test_the_version_that_is_needed_is_named(
    command: str, needed: str, releases: tuple[tuple[int, ...], ...], tmp_path: Path
) -> None:
    kctl = InProcess(tmp_path)
    for release in releases:
        with hostile_broker(ranges=BROKER_API_VERSIONS[release], api_versions_range=(0, 0)) as broker:
            done = kctl(*command.split(), "--bootstrap-server", broker.address, "--timeout", "10s")
            assert done.code == 4, f"{release}: {done}"
            assert f"upgrade to Kafka {needed} or later" in done.err, f"{release}: {done}"
            assert JOIN_GROUP not in broker.asked
            if command.startswith("consume"):
                assert FIND_COORDINATOR not in broker.asked
