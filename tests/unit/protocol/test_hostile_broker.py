"""What a broker cannot do to kctl: stages of a conversation × ways to misbehave × commands, and KIP-511."""

from __future__ import annotations

import resource
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from hostile_broker import (
    API_VERSIONS,
    BEHAVIORS,
    DESCRIBE_GROUPS,
    FIND_COORDINATOR,
    LIST_GROUPS,
    LIST_OFFSETS,
    METADATA,
    OFFSET_FETCH,
    hostile_broker,
)
from kctl.cluster.groups.describe import list_groups
from kctl.errors import ConnectionFailed, KctlError, NotKafka, NotSupported, OutcomeUnknown
from kctl.lag.collect import collect
from kctl.protocol.client import ClusterClient, connect
from kctl.protocol.security import Security
from kctl.protocol.target import Target
from kctl.topics.create import plan_create
from kctl.topics.new_topic import NewTopic

LIMIT_S = 1.0
SLACK_S = 4.0  # a busy machine, and pauses between attempts; before, waits added up to many times the limit
SASL_HANDSHAKE, CREATE_TOPICS = 17, 19


def _lag(client: ClusterClient) -> None:
    report = collect(client, ["g"], members=True)
    if not report.complete:
        raise ConnectionFailed(next(iter((*report.failed.values(), *report.unread.values()))))


def _all_groups(client: ClusterClient) -> None:
    if problems := list_groups(client).unlisted:
        raise next(iter(problems.values()))


def _topics(client: ClusterClient) -> None:
    assert set(client.metadata().topics) == {"t"}


def _create(client: ClusterClient) -> None:
    plan_create(client, [NewTopic("new", 1, 1)])


CASES = [
    ("tcp", _topics), ("tls", _topics), (API_VERSIONS, _topics), (SASL_HANDSHAKE, _topics), (METADATA, _topics),
    (FIND_COORDINATOR, _lag), (DESCRIBE_GROUPS, _lag), (OFFSET_FETCH, _lag), (LIST_OFFSETS, _lag),
    (LIST_GROUPS, _all_groups), (CREATE_TOPICS, _create),
]  # fmt: skip


def _target(address: str, stage: str | int) -> Target:
    security = Security()
    if stage == "tls":
        security = Security("SSL")
    if stage == SASL_HANDSHAKE:
        security = Security("SASL_PLAINTEXT", "PLAIN", "u", "hunter2")
    return Target("hostile", (address,), security=security)


def _outcome(case: tuple[str | int, str, Any]) -> tuple[float, KctlError | None]:
    stage, behavior, act = case
    with hostile_broker(stage, behavior) as broker:
        began = time.monotonic()
        try:
            with connect(_target(broker.address, stage), timeout_s=LIMIT_S) as client:
                act(client)
        except KctlError as exc:
            return time.monotonic() - began, exc
        return time.monotonic() - began, None


@pytest.mark.parametrize("behavior", BEHAVIORS)
def test_no_broker_keeps_a_command_beyond_its_limit(behavior: str) -> None:
    cases = [(stage, behavior, act) for stage, act in CASES]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(_outcome, cases))
    for (stage, _, _), (seconds, error) in zip(cases, outcomes, strict=True):
        where = f"{behavior} at {stage}"
        assert seconds < LIMIT_S + SLACK_S, f"{where}: {seconds:.1f} s"
        assert isinstance(error, KctlError), f"{where}: no error"
        assert isinstance(error, (ConnectionFailed, NotSupported, OutcomeUnknown)) or behavior == "garbage", (
            f"{where}: {error!r}"
        )
        assert "hunter2" not in f"{error}{error.hint}"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # kB


def test_the_fake_behaves_well_otherwise() -> None:
    with hostile_broker() as broker, connect(_target(broker.address, ""), timeout_s=5) as client:
        _topics(client)
        _lag(client)
        _all_groups(client)
        (row,) = collect(client, ["g"]).rows
        assert (row.committed_offset, row.log_end_offset) == (3, 5)


# --- KIP-511: brokers that do not have version 0 of ApiVersions ---------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "asked"),
    [(0, 0, 1), (0, 4, 1), (1, 1, 2), (1, 3, 2), (2, 3, 2), (3, 3, 2), (3, 4, 2), (4, 4, 2), (2, 9, 2)],
)
def test_api_versions_are_asked_in_the_range_that_a_broker_has(low: int, high: int, asked: int) -> None:
    with (
        hostile_broker(api_versions_range=(low, high)) as broker,
        connect(_target(broker.address, ""), timeout_s=5) as client,
    ):
        _topics(client)
        _lag(client)
        assert client.api_version(API_VERSIONS) == high
        assert broker.asked.count(API_VERSIONS) == asked * (1 + (broker.asked.count(API_VERSIONS) > asked))


def test_api_versions_that_are_too_new() -> None:
    with (
        hostile_broker(api_versions_range=(7, 9)) as broker,
        pytest.raises(NotSupported, match=r"supports ApiVersions versions 7 to 9; kctl supports up to version 4"),
        connect(_target(broker.address, ""), timeout_s=2),
    ):
        pass


def test_a_gateway_that_knows_few_apis() -> None:
    """What it lacks is named; what it has works."""
    ranges = {METADATA: (0, 12), 0: (0, 8), 1: (4, 12)}
    with hostile_broker(ranges=ranges) as broker, connect(_target(broker.address, ""), timeout_s=5) as client:
        _topics(client)
        with pytest.raises(NotSupported, match="does not have the API"):
            _lag(client)
    with (
        hostile_broker(ranges={0: (0, 8)}) as broker,
        pytest.raises(NotKafka, match="is a KRaft controller"),
        connect(_target(broker.address, ""), timeout_s=5),
    ):
        pass


@pytest.mark.parametrize("versions", [(0, 4), (2, 3), (3, 3)])
def test_kafka_pythons_own_client_copes(versions: tuple[int, int]) -> None:
    with (
        hostile_broker(api_versions_range=versions) as broker,
        connect(_target(broker.address, ""), timeout_s=5) as client,
    ):
        consumer: Any = client.consumer(group_id=None)
        try:
            assert consumer.partitions_for_topic("t") == {0}
        finally:
            consumer.close()
