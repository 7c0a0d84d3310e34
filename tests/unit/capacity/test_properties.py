"""Properties of capacity plans that hold for every load."""

from __future__ import annotations

import time
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_testing import planned, reckoned, result, terms
from kctl.capacity.model import CapacityPlan
from kctl.errors import Refused

_MORE = st.integers(1, 5)
_CLUSTERS = st.fixed_dictionaries(
    {"disk": st.sampled_from(["50GB", "1TB", "4TB", "16TB"]), "network": st.sampled_from(["1Gbit/s", "25Gbit/s"])},
    optional={
        "headroom": st.sampled_from(["0%", "20%", "50%"]),
        "survive": st.integers(0, 3),
        "disks_per_broker": st.integers(1, 12),
        "growth": st.sampled_from(["0%", "25%"]),
    },
)
_SPREAD = {
    "replication_factor": st.integers(1, 5),
    "groups": st.integers(0, 10),
    "consumer_rate": st.sampled_from(["1MB/s", "50MB/s"]),
    "compression_ratio": st.sampled_from(["1", "3.7"]),
    "segment_size": st.sampled_from(["16MB", "1GiB"]),
}
_TOPICS = st.fixed_dictionaries(
    {"throughput": st.integers(1, 2000).map(lambda mb: f"{mb}MB/s")},
    optional={
        **_SPREAD,
        "retention": st.integers(1, 200).map(lambda hours: f"{hours}h"),
        "retention_bytes": st.sampled_from(["1GB", "30GB"]),
    },
)


def _plan(cluster: dict[str, Any], *topics: dict[str, Any]) -> CapacityPlan | None:
    """Return the plan; None if no cluster can hold the load."""
    try:
        return planned(cluster, *topics)
    except Refused:
        return None


def _brokers(found: CapacityPlan | None) -> float:
    return float("inf") if found is None else found.broker_count


@given(_CLUSTERS, _TOPICS, _MORE)
@settings(max_examples=40, deadline=None)
def test_more_throughput_never_needs_fewer_brokers(cluster: dict[str, Any], topic: dict[str, Any], more: int) -> None:
    amount = int(topic["throughput"].removesuffix("MB/s"))
    grown = {**topic, "throughput": f"{amount * more + 1}MB/s"}
    assert _brokers(_plan(cluster, topic)) <= _brokers(_plan(cluster, grown))


@given(_CLUSTERS, _TOPICS, _TOPICS)
@settings(max_examples=40, deadline=None)
def test_another_topic_never_needs_fewer_brokers(
    cluster: dict[str, Any], topic: dict[str, Any], other: dict[str, Any]
) -> None:
    assert _brokers(_plan(cluster, topic)) <= _brokers(_plan(cluster, topic, other))


@given(_CLUSTERS, _TOPICS, _MORE)
@settings(max_examples=40, deadline=None)
def test_more_failures_or_data_never_need_fewer_brokers(
    cluster: dict[str, Any], topic: dict[str, Any], more: int
) -> None:
    fewest = _brokers(_plan({**cluster, "survive": 0}, topic))
    assert fewest <= _brokers(_plan({**cluster, "survive": more}, topic))
    assert _brokers(_plan({**cluster, "times": 1}, topic)) <= _brokers(_plan({**cluster, "times": 1 + more}, topic))


@given(_CLUSTERS, st.lists(_TOPICS, min_size=1, max_size=4))
@settings(max_examples=40, deadline=None)
def test_plan_holds_the_load(cluster: dict[str, Any], topics: list[dict[str, Any]]) -> None:
    found = _plan(cluster, *topics)
    if found is None:
        return
    lines = terms(found)
    survive, brokers = lines["survive"].value, found.broker_count
    live_brokers = max(1, brokers - survive)
    assert lines["usable_disk"].value * live_brokers >= found.disk_bytes, "the remaining brokers hold all data"
    assert lines["usable_network"].value * live_brokers >= max(lines["network_in"].value, lines["network_out"].value)
    assert any(bound.binds and bound.least == brokers for bound in found.bounds)
    for topic in found.topic_plans:
        assert topic.partition_count % brokers == 0
        assert topic.replication_factor <= brokers
        assert topic.partition_count >= max(bound.least for bound in topic.bounds)
        own = terms(topic)
        assert "retention_bytes" in own or topic.partition_bytes <= own["max_partition_size"].value
        for term in topic.terms:
            if term.formula is not None:
                expected = reckoned(term.formula, {**lines, **own})
                assert abs(result(term) - expected) <= 1 + abs(expected) / 10**6, term


def test_planning_is_fast() -> None:
    """A thousand topics that force the search to try many numbers of brokers."""
    hard = {"throughput": "2MB/s", "consumer_rate": "1kB/s", "retention_bytes": "10GB", "replication_factor": 3}
    started_at = time.process_time()
    for disk in ("100GB", "1TB", "16TB"):
        _plan({"disk": disk}, *[hard] * 1000)
    assert time.process_time() - started_at < 20
