"""kctl doctor with KRaft 4.x: features instead of a protocol version, and no ZooKeeper."""

from __future__ import annotations

import json

from kctl_testing import Kctl


def test_a_cluster_of_one(own_kctl: Kctl, kraft: str) -> None:
    result = own_kctl("doctor", "--fail-on", "never", "-o", "json", "--bootstrap-server", kraft)
    assert result.code == 0, str(result)
    found = json.loads(result.out)
    assert (found["broker_count"], found["unknown"], found["notes"]) == (1, [], [])
    assert found["releases"][0].startswith("4.")
    outcomes = {each["rule"]: each for each in found["rules"]}
    for rule in ("zookeeper-open", "zookeeper-ends", "protocol-version", "topic-min-isr-refuses"):
        assert outcomes[rule]["outcome"] == "skipped"
    assert outcomes["zookeeper-ends"]["reasons"] == [
        f"applies to releases since 3.5, before 4.0; this is {found['releases'][0]}"
    ]
    assert outcomes["metadata-version"]["outcome"] == "ok"
    assert outcomes["combined-roles"]["outcome"] == "found"
    single = [each for each in found["findings"] if each["rule"] == "topic-one-replica"]
    assert {each["severity"] for each in single} <= {"info"}, "there is one broker: there is no other way"


def test_rules_that_look_at_nothing(own_kctl: Kctl, kraft: str) -> None:
    done = own_kctl("doctor", "--about", "zookeeper", "--bootstrap-server", kraft)
    assert (done.code, "none of the selected rules applies" in done.err) == (4, True)
