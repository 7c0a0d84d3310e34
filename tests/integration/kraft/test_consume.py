"""kctl consume against a broker of Kafka 4.x, which has no old versions of the requests any more."""

from __future__ import annotations

import json

import pytest

from kctl.protocol.client import connect
from kctl.protocol.target import Target
from kctl_testing import Kctl

TOPIC = "consume-4x"
READ = ("--from-beginning", "--exit-eof")


@pytest.fixture
def on_4x(own_kctl: Kctl, kraft: str) -> Kctl:
    """A kctl for the broker, on which a topic of two partitions has a committed and an aborted transaction."""
    own_kctl.ok("context", "add", "kraft", "--bootstrap-server", kraft)
    own_kctl.ok("context", "use", "kraft")
    own_kctl("topic", "delete", TOPIC, "--yes")
    own_kctl.ok("topic", "create", TOPIC, "--partitions", "2")
    with connect(Target("kraft", (kraft,))) as client:
        producer = client.producer(transactional_id="consume-4x")
        producer.init_transactions()
        for word, end in (("kept", producer.commit_transaction), ("dropped", producer.abort_transaction)):
            producer.begin_transaction()
            for partition in range(2):
                producer.send(TOPIC, f"{word}-{partition}".encode(), partition=partition).get(timeout=20)
            end()
        producer.close()
    return own_kctl


def test_alone_and_as_a_member(on_4x: Kctl) -> None:
    kept, every = ["kept-0", "kept-1"], ["dropped-0", "dropped-1", "kept-0", "kept-1"]
    assert sorted(on_4x.ok("consume", TOPIC, *READ).out.split()) == every
    assert sorted(on_4x.ok("consume", TOPIC, *READ, "--read-committed", "--merge").out.split()) == kept
    tail = on_4x.ok("consume", TOPIC, "--tail", "1", "--exit-eof", "--read-committed").out.split()
    assert sorted(tail) == kept
    assert on_4x.ok("consume", TOPIC, "--from", "now", "--exit-eof").out == ""
    member = ("--group", "consume-4x", "--read-committed")
    assert sorted(on_4x.ok("consume", TOPIC, *READ, *member).out.split()) == kept
    assert on_4x.ok("consume", TOPIC, *READ, *member).out == ""
    on_4x.ok("topic", "delete", TOPIC, "--yes")


def test_a_topic_that_is_not_there(on_4x: Kctl) -> None:
    result = on_4x("consume", "no-such-topic", "-o", "json")
    assert result.code == 4
    assert json.loads(result.err)["code"] == "not_found"
    on_4x.ok("topic", "delete", TOPIC, "--yes")
