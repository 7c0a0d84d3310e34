"""Capacity plans: worked examples, and a check that the displayed formulas give the displayed results."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from capacity_testing import planned, reckoned, result, terms
from kctl.capacity import arithmetic
from kctl.capacity.fields import MEASURED, SEEN, Input, parse_input
from kctl.capacity.model import CapacityPlan, TopicPlan
from kctl.capacity.plan import plan
from kctl.capacity.workload import cluster_inputs, workload
from kctl.errors import Refused, UsageError

BARE = {"disk": "4TB", "headroom": "0%", "survive": 0}
DAY = 86_400_000


@pytest.mark.parametrize(("factor", "brokers"), [(1, 5), (3, 15)])
def test_brokers_by_disk(factor: int, brokers: int) -> None:
    """20 TB on disks of 4 TB: 5 brokers at replication factor 1, 15 at 3."""
    found = planned(BARE, {"data": "20TB", "replication_factor": factor})
    assert found.broker_count == brokers
    assert [(bound.name, bound.least) for bound in found.bounds if bound.binds] == [("brokers_for_disk", brokers)]
    assert found.disk_bytes == 20 * 10**12 * factor


def test_headroom_and_survive_add_brokers() -> None:
    found = planned({"disk": "4TB"}, {"data": "20TB"})
    lines = terms(found)
    assert lines["brokers_without_headroom"].value == 15
    assert lines["usable_disk"].value == 3_200_000_000_000
    assert found.broker_count == lines["brokers_for_disk"].value == 20  # ⌈60 ÷ 3.2⌉ = 19, plus one to survive


def test_partitions_by_consumer_rate() -> None:
    """1 GB/s ÷ 50 MB/s = 20, rounded up to a multiple of the brokers."""
    topic = {"throughput": "1GB/s", "consumer_rate": "50MB/s", "retention": "1m", "partitions": 20}
    found = planned({"brokers": 5}, topic)
    assert terms(found.topic_plans[0])["partitions_for_consumers"].value == 20
    del topic["partitions"]
    for brokers, partitions in ((3, 21), (5, 20), (7, 21), (20, 20), (21, 21)):
        assert planned({"brokers": brokers}, topic).topic_plans[0].partition_count == partitions


def test_partitions_by_size() -> None:
    assert planned(BARE, {"data": "20TB"}).topic_plans[0].bounds[0].least == 800  # of 25 GB each
    topic = planned(BARE, {"throughput": "100MB/s", "retention": "1d", "segment_size": "1GB"}).topic_plans[0]
    by_name = {bound.name: bound for bound in topic.bounds}
    assert (by_name["partitions_for_size"].least, by_name["partitions_for_size"].binds) == (360, True)  # 8,640 ÷ 24 GB
    assert topic.partition_bytes <= 25 * 10**9


def test_network() -> None:
    """Inbound: rate × RF. Outbound: rate × (groups + RF − 1). At most 80% of a broker's network is used."""
    topic = {"throughput": "100MB/s", "retention": "1m", "groups": 4}
    found = planned({"network": "1Gbit/s", "survive": 0}, topic)
    lines = terms(found)
    assert (lines["network_in"].value, lines["network_out"].value) == (300_000_000, 600_000_000)
    assert lines["usable_network"].value == 100_000_000
    assert (lines["brokers_for_network_in"].value, lines["brokers_for_network_out"].value) == (3, 6)
    assert found.broker_count == 6
    assert planned({"network": "1Gbit/s", "survive": 2}, topic).broker_count == 8


def test_refill_time_uses_the_free_network() -> None:
    """3 × 1 TB on three brokers; 100 MB/s each, of which 50 are in use: 20,000 s."""
    found = planned({"network": "1Gbit/s", "brokers": 3}, {"data": "1TB", "throughput": "50MB/s"})
    assert terms(found)["refill_time"].value == 20_000_000
    full = planned({"network": "1Gbit/s", "brokers": 3}, {"data": "1TB", "throughput": "100MB/s"})
    assert "refill_time" not in terms(full), "no network is free"


def test_retention_bytes_apply_per_partition() -> None:
    """disk = partitions × (retention.bytes + one segment) × replication factor."""
    topic = {"throughput": "100MB/s", "retention_bytes": "10GB", "segment_size": "1GB", "partitions": 12}
    found = planned(BARE, topic)
    assert found.disk_bytes == 12 * (10 + 1) * 10**9 * 3
    both = planned(BARE, {**topic, "retention": "1m"})  # 6 GB in a minute: time is the lower limit
    assert both.disk_bytes == (6 + 12) * 10**9 * 3


def test_quiet_topic() -> None:
    """100 MB a day fill a 1 GB segment in 10 days, but it rolls after 7: the oldest record is 14 days old."""
    topic = {"messages": "60/m", "message_size": "1158", "segment_size": "1GB", "partitions": 1}
    (found,) = planned(BARE, topic).topic_plans
    assert terms(found)["fill_time"].value == pytest.approx(10 * DAY, rel=0.01)
    assert found.oldest_record_ms == 14 * DAY
    (busy,) = planned(BARE, {**topic, "messages": "600/s"}).topic_plans
    assert busy.oldest_record_ms == pytest.approx((7 + 10 / 600) * DAY, rel=0.001), "the segment fills before it rolls"


def test_cleaner() -> None:
    """24 bytes per key; the default buffer, filled to 90%, holds 5.03 million keys."""
    fits = arithmetic.CLEANER_BUFFER_BYTES * Fraction(9, 10) / 24
    assert int(fits) == 5_033_164
    topic = {"keys": 5_033_164, "message_size": "1kB", "partitions": 1}
    found = planned(BARE, topic)
    assert terms(found.topic_plans[0])["cleaner_buffer"].value <= arithmetic.CLEANER_BUFFER_BYTES
    assert "cleaner_buffer" not in {each.code for each in found.cautions}
    more = planned(BARE, {**topic, "keys": 5_033_165})
    assert "2 passes" in next(each.message for each in more.cautions if each.code == "cleaner_buffer")
    assert arithmetic.cleaner_bytes(1_000_000, 1, 1) * Fraction(9, 10) == pytest.approx(24_000_000), "1 GB of 1 kB"


@pytest.mark.parametrize(
    ("factor", "min_isr", "down", "writes", "data"),
    [
        (3, 2, 0, 1, 1), (3, 2, 1, 0, 1), (3, 2, 2, -1, 0), (3, 1, 0, 2, 0), (3, 3, 0, 0, 2), (3, 3, 1, -1, 1),
        (2, 2, 0, 0, 1), (1, 2, 0, 0, 0), (1, 1, 1, -1, -1), (5, 3, 0, 2, 2), (5, 3, 1, 1, 2),
    ],
)  # fmt: skip
def test_losses(factor: int, min_isr: int, down: int, writes: int, data: int) -> None:
    """Writes survive RF − min.insync.replicas failures, data min.insync.replicas − 1."""
    assert arithmetic.survivable(factor, min_isr, down) == (writes, data)


def test_growth_and_times() -> None:
    lines = terms(planned({"growth": "20%", "years": 2, "times": 3}, {"data": "1TB"}))
    assert lines["growth_factor"].value == pytest.approx(3 * 1.44)
    grown = planned({"growth": "20%", "years": 2, "times": 3}, {"data": "1TB", "throughput": "10MB/s"})
    topic = terms(grown.topic_plans[0])
    assert (topic["kept"].value, topic["planned_throughput"].value) == (4_320_000_000_000, 43_200_000)


def test_compression() -> None:
    (topic,) = planned({}, {"throughput": "100MB/s", "compression_ratio": 4, "retention": "1h"}).topic_plans
    lines = terms(topic)
    assert lines["stored_rate"].value == 25_000_000
    assert lines["partitions_for_consumers"].value == 2, "consumers read uncompressed data"
    assert lines["network_in"].value == 75_000_000


def test_several_topics_are_summed() -> None:
    one, two = {"throughput": "10MB/s", "retention": "1d"}, {"data": "1TB", "replication_factor": 2}
    together = planned({"disk": "1TB", "brokers": 6}, one, two)
    assert [each.topic for each in together.topic_plans] == ["t0", "t1"]
    alone = [planned({"disk": "1TB", "brokers": 6}, each) for each in (one, two)]
    assert together.disk_bytes == sum(each.disk_bytes for each in alone)
    assert together.replica_count == sum(each.replica_count for each in alone)
    assert together.partition_count == sum(each.partition_count for each in together.topic_plans)


def test_even_partitions_need_more_brokers() -> None:
    """Nine brokers hold the data but not the open segments of 9 × 2 partitions; ten hold those of 10 × 1."""
    topic = {"throughput": "1GB/s", "consumer_rate": "100MB/s", "retention_bytes": "8GB", "segment_size": "1GB",
             "replication_factor": 1}  # fmt: skip
    found = planned({"disk": "10GB", "headroom": "0%", "survive": 0}, topic)
    assert (found.broker_count, found.partition_count) == (9 + 1, 10)
    assert terms(found)["broker_count"].value == 10
    assert "brokers_for_even_partitions" in terms(found)


@pytest.mark.parametrize(
    ("cluster", "topic", "brokers"),
    [
        ({"survive": 0}, {"partitions": 4, "replication_factor": 1}, 4),  # 2 TB each, one per broker
        ({"survive": 1}, {"partitions": 4, "replication_factor": 1}, 5),
        ({"survive": 0}, {"partitions": 4, "replication_factor": 3}, 12),
        ({"survive": 0}, {"partitions": 5, "replication_factor": 1}, 3),  # 1.6 TB each, two per broker
        ({"survive": 0}, {"partitions": 8, "replication_factor": 1}, 3),  # 1 TB each, three per broker
        ({"survive": 0}, {"partitions": 1, "replication_factor": 1}, 3),  # fits on no broker: separate warning
    ],
)
def test_partitions_are_not_split(cluster: dict[str, Any], topic: dict[str, Any], brokers: int) -> None:
    """8 TB on disks of 4 TB, of which 3.2 TB are used."""
    found = planned({"disk": "4TB", **cluster}, {"data": "8TB", **topic})
    assert found.broker_count == brokers
    assert terms(found)["broker_count"].value == max(bound.least for bound in found.bounds)


def test_whole_partition_bound_is_reported() -> None:
    found = planned({"disk": "4TB", "survive": 0}, {"data": "8TB", "partitions": 4, "replication_factor": 1})
    assert [(bound.name, bound.least) for bound in found.bounds if bound.binds] == [("brokers_for_whole_partitions", 4)]
    few = planned(
        {"disk": "4TB", "brokers": 3, "survive": 0}, {"data": "8TB", "partitions": 4, "replication_factor": 1}
    )
    assert "brokers_for_whole_partitions is 4" in next(
        each.message for each in few.cautions if each.code == "too_few_brokers"
    )


def test_fullest_broker() -> None:
    """The maximum bytes on one broker when replicas are spread well."""
    assert arithmetic.fullest_broker([(800, 8)], 4) == 200
    assert arithmetic.fullest_broker([(900, 9)], 4) == 300
    assert arithmetic.fullest_broker([(100, 1)] * 400, 4) == 10_075, "many small topics do not all land on one broker"
    big = {"data": "3TB", "partitions": 1, "replication_factor": 1}
    found = planned({"disk": "4TB", "headroom": "0%", "survive": 0}, big, big, {**big, "data": "1TB"})
    assert found.broker_count == 2
    assert "fullest_broker" in {each.code for each in found.cautions}
    more = planned({"disk": "4TB", "headroom": "0%", "survive": 0, "brokers": 4}, big, big, {**big, "data": "1TB"})
    assert "fullest_broker" not in {each.code for each in more.cautions}


PLANS: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [
    ({"disk": "4TB", "network": "10Gbit/s"}, [{"throughput": "1GB/s", "retention": "7d"}]),
    ({"disk": "4TB", "network": "1Gbit/s", "growth": "33%", "years": 3}, [{"data": "20TB", "throughput": "200MB/s"}]),
    ({"disk": "2TB", "disks_per_broker": 6, "times": 2}, [
        {"messages": "5000/s", "message_size": "2kB", "retention": "3d", "retention_bytes": "5GB", "groups": 7,
         "producer_rate": "3MB/s", "compression_ratio": "2.5"},
        {"keys": 30_000_000, "message_size": "500", "replication_factor": 2, "messages": "100/s"},
        {"data": "700GB", "partitions": 7, "min_insync_replicas": 1},
    ]),
    ({"brokers": 3}, [{"throughput": "1MB/s", "retention_bytes": "1GB"}]),
    ({}, [{"keys": 1000, "message_size": "1kB"}]),
    ({"disk": "10GB", "headroom": "0%", "survive": 0}, [
        {"throughput": "1GB/s", "consumer_rate": "100MB/s", "retention_bytes": "8GB", "segment_size": "1GB",
         "replication_factor": 1}]),
]  # fmt: skip


@pytest.mark.parametrize(("cluster", "topics"), PLANS)
def test_displayed_formulas_give_the_results(cluster: dict[str, Any], topics: list[dict[str, Any]]) -> None:
    """Evaluating the formula of each computed line gives its result."""
    found = planned(cluster, *topics)
    checked = 0
    parts: list[CapacityPlan | TopicPlan] = [found, *found.topic_plans]
    for each in parts:
        lines = {**terms(found), **terms(each)}
        for term in each.terms:
            if term.source != "computed" or term.formula is None or term.formula.startswith(("sum", "largest", "the ")):
                continue
            assert result(term) == pytest.approx(reckoned(term.formula, lines), rel=1e-6, abs=1), term
            checked += 1
    assert checked > 15
    for topic in found.topic_plans:
        assert topic.partition_count == terms(topic)["partition_count"].value
        assert (topic.partition_bytes, topic.disk_bytes) == (
            terms(topic)["partition_bytes"].value, terms(topic)["disk_bytes"].value,
        )  # fmt: skip
    lines = terms(found)
    assert lines["disk_bytes"].value == found.disk_bytes == sum(topic.disk_bytes for topic in found.topic_plans)
    assert lines["replica_count"].value == found.replica_count


def test_lines_have_a_source() -> None:
    found = planned({"disk": "4TB"}, {"throughput": "1MB/s"})
    sources = {name: term.source for name, term in {**terms(found), **terms(found.topic_plans[0])}.items()}
    assert (sources["disk"], sources["throughput"]) == ("given", "given")
    assert (sources["headroom"], sources["retention"], sources["consumer_rate"]) == ("default",) * 3
    measured = workload("t", {"throughput": parse_input("throughput", "1MB/s"), "consumer_rate": Input(7, "measured")})
    assert terms(plan([measured], cluster_inputs({})).topic_plans[0])["consumer_rate"].source == "measured"


# --- existing topics ----------------------------------------------------------------------------------------------


def _existing_topic(partitions: int, **values: Any) -> CapacityPlan:
    inputs = {name: Input(parse_input(name, str(value)).value, SEEN) for name, value in values.items()}
    return plan([workload("t", inputs, current_partitions=partitions)], cluster_inputs({}))


def test_sufficient_partitions_are_kept() -> None:
    found = _existing_topic(1, data="1GB")
    assert found.partition_count == 1, "an existing topic is not rounded up to a multiple of the brokers"
    assert "more_partitions" not in {each.code for each in found.cautions}
    grown = _existing_topic(1, data="50GB")
    assert (grown.broker_count, grown.partition_count) == (3, 3)
    assert "more_partitions" in {each.code for each in grown.cautions}


# --- warnings -----------------------------------------------------------------------------------------------------

WARNINGS = [
    ("no_disk", {}, {"data": "1TB"}),
    ("no_network", {}, {"throughput": "1MB/s"}),
    ("too_few_brokers", {"brokers": 4, "disk": "4TB"}, {"data": "20TB"}),
    ("replicas_per_broker", {"brokers": 3}, {"data": "1GB", "partitions": 4000}),
    ("replicas", {"brokers": 100}, {"data": "1GB", "partitions": 70_000}),
    ("memory_maps", {"brokers": 4}, {"data": "40TB"}),
    ("min_insync_above_replicas", {}, {"data": "1GB", "replication_factor": 2, "min_insync_replicas": 3}),
    ("replicas_above_brokers", {"brokers": 2}, {"data": "1GB"}),
    ("one_replica", {}, {"data": "1GB", "replication_factor": 1}),
    ("writes_stop", {}, {"data": "1GB", "replication_factor": 2}),
    ("data_at_risk", {}, {"data": "1GB", "min_insync_replicas": 1}),
    ("large_partition", {}, {"data": "1TB", "partitions": 3}),
    ("partition_above_disk", {"disk": "100GB", "disks_per_broker": 20}, {"data": "1TB", "partitions": 3}),
    ("fullest_broker", {"disk": "4TB", "headroom": "0%"}, {"data": "20TB", "replication_factor": 1}),
    ("too_few_partitions", {}, {"throughput": "1GB/s", "retention": "1m", "partitions": 3}),
    ("cleaner_buffer", {}, {"keys": 10**8, "message_size": 10, "partitions": 3}),
    ("consumer_rate_assumed", {}, {"throughput": "1MB/s"}),
    ("records_live_longer", {}, {"throughput": "1kB/s", "retention": "1h"}),
]


@pytest.mark.parametrize(("code", "cluster", "topic"), WARNINGS)
def test_warnings(code: str, cluster: dict[str, Any], topic: dict[str, Any]) -> None:
    assert code in {each.code for each in planned(cluster, topic).cautions}


def test_measured_consumer_rate_has_a_warning() -> None:
    topic = {"throughput": parse_input("throughput", "1MB/s"), "consumer_rate": Input(400_000_000, MEASURED)}
    codes = {each.code for each in plan([workload("t", topic)], cluster_inputs({})).cautions}
    assert {each for each in codes if each.startswith("consumer_rate")} == {"consumer_rate_measured"}


def test_sound_plan_has_no_warnings() -> None:
    topic = {"throughput": "100MB/s", "retention": "1d", "consumer_rate": "20MB/s"}
    assert planned({"disk": "4TB", "network": "10Gbit/s"}, topic).cautions == ()


# --- rejected inputs ----------------------------------------------------------------------------------------------

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({}, "no load is specified"),
    ({"retention": "7d"}, "no load is specified"),
    ({"messages": "5/s"}, "messages requires message-size"),
    ({"throughput": "1MB/s", "message_size": "1kB"}, "message-size requires messages or keys"),
    ({"keys": 5}, "keys requires message-size"),
    ({"throughput": "1MB/s", "messages": "5/s", "message_size": 5}, "cannot be combined"),
    ({"data": "1TB", "retention": "7d"}, "cannot be combined"),
    ({"data": "1TB", "retention_bytes": "7GB"}, "cannot be combined"),
    ({"throughput": "1MB/s", "max_partition_size": "1GiB"}, "too small for a segment"),
]


@pytest.mark.parametrize(("topic", "why"), REFUSED)
def test_rejected_inputs(topic: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        planned({}, topic)


def test_load_beyond_any_cluster() -> None:
    with pytest.raises(Refused, match="more than 10,000 brokers"):
        planned({"disk": "1GB"}, {"data": "99999TB"})
    with pytest.raises(Refused, match="more than 10,000 brokers"):
        planned({"disk": "1B"}, {"throughput": "1MB/s"})
    with pytest.raises(Refused, match="more than 10,000,000 partitions"):
        planned({}, {"throughput": "999999999TB/s"})
    with pytest.raises(UsageError, match="no topic"):
        planned({})
