"""Commands about topics and configs with recorded answers: what was not read, or is not well, decides the exit code."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fake_cluster import FakeCluster
from health_testing import partition, state
from kctl.base.outcomes import ItemResult
from kctl.cluster.config_resources import Resource
from kctl.cluster.log_offsets import LogOffsets
from kctl.cluster.offsets import ListedOffset
from kctl.cluster.topic_configs import ConfigSource
from kctl.commands.app import main
from kctl.commands.config import diff as config_diff
from kctl.commands.terminal.invocation import Invocation
from kctl.commands.topic import describe as topic_describe
from kctl.configs import describe, explain
from kctl.configs.change import ChangedConfig
from kctl.configs.model import Config
from kctl.errors import ConnectionRefused, ConnectionTimedOut, KctlError, NotAuthorized
from kctl.model import ClusterState, TopicPartition
from kctl.topics import apply, offsets
from kctl.topics.alter import AlteredTopic
from kctl.topics.change_warnings import alter_warnings
from kctl.topics.create import CreatedTopic
from kctl.topics.describe import DescribedTopics, DescribeRequest, describe_topics
from kctl.topics.sizes import ReplicaSizes, TopicSizes

pytestmark = pytest.mark.usefixtures("one_command_tree")

ONE = state([partition("12", "12")])


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The client that commands get. Its metadata is ONE."""
    result = SimpleNamespace(
        metadata=lambda *_: ONE, api_version=lambda _: None, target=SimpleNamespace(name="c", protected=False)
    )
    monkeypatch.setattr(Invocation, "connect", lambda _self, **_: nullcontext(result))
    return result


def _config(value: str, source: ConfigSource | None = ConfigSource.STATIC_BROKER) -> Config:
    return Config("num.io.threads", value, source, "8", "int", False, False, ())


# --- topics ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("error", "code"), [(None, 0), ("partitions without a leader: 0", 1)])
def test_apply_made_a_topic_without_a_leader(
    monkeypatch: pytest.MonkeyPatch, client: SimpleNamespace, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    error: str | None, code: int,
) -> None:  # fmt: skip
    file = tmp_path / "topics.yaml"
    file.write_text("topics:\n- name: t\n  partitions: 1\n")
    new = CreatedTopic("t", ItemResult.WOULD_CREATE, 1, 1, {})
    done = CreatedTopic("t", ItemResult.CREATED, 1, 1, {}, error=error)
    monkeypatch.setattr(apply, "plan_create", lambda *_: [new])
    monkeypatch.setattr(apply, "create_topics", lambda *_, **__: [done])
    client.metadata = lambda *_: ClusterState("id", 1, ONE.brokers, {})
    assert main(["topic", "apply", "-f", str(file)]) == code
    assert (error is not None) == ("created, but t: partitions without a leader: 0" in capsys.readouterr().err)


@pytest.mark.parametrize(
    ("value", "said"),
    [("1", ""), ("2", "equals the number of replicas"), ("3", "with 2 replicas, counts as 2 since Kafka 3.7")],
)
def test_a_minimum_is_compared_with_the_replicas(value: str, said: str) -> None:
    change = ChangedConfig("topic t", "min.insync.replicas", ItemResult.WOULD_SET, None, None, value, None, False)
    rows = [AlteredTopic("t", ItemResult.WOULD_ALTER, 1, 1, (change,))]
    warnings = list(alter_warnings(SimpleNamespace(), rows, ONE))  # type: ignore[arg-type]  # not called
    assert len(warnings) == bool(said)
    assert all(said in line for line in warnings)


def test_sizes_are_of_the_topics_as_they_were_described(
    monkeypatch: pytest.MonkeyPatch, client: SimpleNamespace
) -> None:
    """A topic that is made anew meanwhile may have fewer partitions."""
    two = state([partition("12", "12"), partition("12", "12", number=1)])
    looks = [ONE, two]
    client.metadata = lambda *_: looks.pop()

    def sizes(_client: object, known: ClusterState, topics: Sequence[Any]) -> TopicSizes:
        assert list(topics) == list(known.topics.values())
        return TopicSizes({p.tp: ReplicaSizes(1, 0, 1) for topic in topics for p in topic.partitions}, [])

    monkeypatch.setattr("kctl.topics.describe.fetch_topic_configs", lambda *_, **__: {"t": []})
    monkeypatch.setattr("kctl.topics.describe.reassignments_if_known", lambda *_: {})
    monkeypatch.setattr("kctl.topics.describe.fetch_sizes", sizes)
    result = describe_topics(client, DescribeRequest(["t"], size=True))  # type: ignore[arg-type]  # recorded answers
    assert [p.size_bytes for p in result.topics[0].partitions] == [1, 1]


def test_a_watch_says_what_is_not_known() -> None:
    received = DescribedTopics([], ["configs: no"], ["sizes: no"])
    assert topic_describe._view(received, []).failures == ["configs: no", "sizes: no"]


def test_times_of_first_records_that_are_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    tp = TopicPartition("t", 0)
    refused = NotAuthorized("topic t: no")

    def listed(_client: object, _tps: object, timestamp: int, *_: object, **__: object) -> Any:
        return ({}, {tp: refused}) if timestamp == 0 else ({tp: ListedOffset(4, 0)}, {})

    monkeypatch.setattr(offsets, "read_log_offsets", lambda *_, **__: ({tp: LogOffsets(0, 5)}, set(), {}))
    monkeypatch.setattr(offsets, "list_offsets", listed)
    spans, failures = offsets.log_spans(None, ONE, ONE.topics.values())  # type: ignore[arg-type]  # not asked
    assert spans[tp].first_timestamp is None
    assert failures == ["no offsets for t-0: topic t: no"]


@pytest.mark.parametrize(
    ("argv", "some", "code", "said"),
    [
        (("list",), False, 0, "there is no topic, or none that this user may describe"),
        (("offsets",), False, 0, "there is no topic, or none that this user may describe"),
        (("describe",), False, 0, "there is no topic, or none that this user may describe"),
        (("describe", "--unavailable"), False, 5, "there is no topic, or none that this user may describe"),
        (("list", "--under-replicated"), False, 5, "there is no topic, or none that this user may describe"),
        (("list", "--under-replicated"), True, 0, "only topics that this user may describe were examined"),
        (("list",), True, 0, ""),
    ],
)
def test_hidden_topics_are_not_called_well(
    client: SimpleNamespace, capsys: pytest.CaptureFixture[str], argv: Sequence[str], some: bool, code: int, said: str
) -> None:
    def metadata(names: object = None, **_: object) -> ClusterState:
        if names:
            raise NotAuthorized("no")
        return ONE if some else ClusterState("id", 1, ONE.brokers, {})

    client.metadata = metadata
    assert main(["topic", *argv]) == code
    err = capsys.readouterr().err
    assert said in err
    assert bool(err) == bool(said)


# --- configs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("differ", "failed", "code"), [(True, True, 1), (True, False, 1), (False, True, 5), (False, False, 0)]
)
def test_differences_count_for_more_than_a_broker_that_failed(
    monkeypatch: pytest.MonkeyPatch, client: SimpleNamespace, capsys: pytest.CaptureFixture[str],
    differ: bool, failed: bool, code: int,
) -> None:  # fmt: skip
    reader = {"broker/1": [_config("8")], "broker/2": [_config("9" if differ else "8")]}
    errors: dict[str, KctlError] = {"broker/3": ConnectionRefused("it is down")} if failed else {}
    monkeypatch.setattr(config_diff, "_read_configs", lambda *_: (reader, errors))
    assert main(["config", "diff", "--all-brokers"]) == code
    assert ("broker/3 was not compared: it is down" in capsys.readouterr().err) == failed


@pytest.mark.parametrize("other", ["broker/1", "default"])
def test_what_is_set_for_all_brokers_is_not_compared(other: str, capsys: pytest.CaptureFixture[str]) -> None:
    """No broker has just that, so everything would differ."""
    assert main(["config", "diff", "brokers", other, "--bootstrap-server", "127.0.0.1:1"]) == 2
    assert "cannot be compared" in capsys.readouterr().err


@pytest.mark.parametrize(("options", "differ"), [((), []), (("--all",), ["listeners"])])
def test_what_each_broker_has_for_itself_is_no_difference_to_the_defaults(
    monkeypatch: pytest.MonkeyPatch, client: SimpleNamespace, capsys: pytest.CaptureFixture[str],
    options: Sequence[str], differ: list[str],
) -> None:  # fmt: skip
    listeners = Config("listeners", "PLAINTEXT://:1", ConfigSource.STATIC_BROKER, "PLAINTEXT://:9092", "string", False,
                       True, ())  # fmt: skip
    monkeypatch.setattr(config_diff, "_read_configs", lambda *_: ({"broker/1": [listeners]}, {}))
    assert main(["config", "diff", "broker/1", "default", "-o", "json", *options]) == bool(differ)
    assert [row["name"] for row in json.loads(capsys.readouterr().out)] == differ


@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state"])
@pytest.mark.parametrize("command", [("set", "cleanup.policy=delete"), ("unset", "cleanup.policy")])
def test_kafkas_own_topics_are_changed_with_force_only(
    name: str, command: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["config", command[0], f"topic/{name}", command[1], "--yes", "--bootstrap-server", "127.0.0.1:1"]
    assert main(argv) == 4
    assert f"topic {name} is internal" in capsys.readouterr().err
    assert main([*argv, "--force"]) == 3, "nobody is there to be asked"


def test_nothing_set_for_all_brokers(
    monkeypatch: pytest.MonkeyPatch, client: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(describe, "describe", lambda *_, **__: [_config("8", None)])
    assert main(["config", "get", "brokers"]) == 0
    out, err = capsys.readouterr()
    assert "no config is set for all brokers" in out + err


def _broker_configs(node: int, _request: object) -> Any:
    rows = [
        SimpleNamespace(resource_type=4, resource_name=name, error_code=0, error_message=None, configs=[])
        for name in (str(node), "")
    ]
    return SimpleNamespace(results=rows)


@pytest.fixture
def silent() -> FakeCluster:
    """Brokers 1 to 3, of which none answers DescribeConfigs."""
    fake = FakeCluster(brokers=(1, 2, 3))
    fake.always("DescribeConfigs", lambda node, _request: ConnectionTimedOut(f"broker {node} does not answer"))
    return fake


def test_another_broker_tells_what_is_set_for_all(silent: FakeCluster) -> None:
    silent.always("DescribeConfigs", _broker_configs, node=2)
    assert isinstance(describe.describe(silent.client, Resource.brokers()), list)
    assert [each.node for each in silent.requests if each.api == "DescribeConfigs"] == [1, 2]


def test_no_broker_tells_what_is_set_for_all(silent: FakeCluster) -> None:
    with pytest.raises(ConnectionTimedOut, match="broker 3"):
        describe.describe(silent.client, Resource.brokers())


def test_another_broker_explains(monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[Resource] = []

    def described(_client: object, resources: Sequence[Resource], **_: object) -> dict[Resource, Any]:
        requests.extend(resources)
        silent = ConnectionTimedOut("no answer")
        return {r: silent if r == Resource.broker(1) else [_config("8")] for r in resources}

    monkeypatch.setattr(explain, "describe_each", described)
    client: Any = SimpleNamespace(metadata=lambda: ONE)
    result, warnings = explain.explain(client, ["num.io.threads"])
    assert requests == [Resource.broker(1), Resource.broker(2), Resource.topic("t")]
    assert ([row.of for row in result], warnings) == (["topic", "broker"], [])


def test_configs_of_a_broker_under_both_names(
    monkeypatch: pytest.MonkeyPatch, client: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(describe, "describe", lambda _client, resource: [_config(f"of {resource}")])
    output = []
    for words in (["broker", "config", "1"], ["config", "get", "broker/1"]):
        assert main([*words, "-o", "json"]) == 0
        output.append(capsys.readouterr().out)
    assert output[0] == output[1]
    assert "of broker 1" in output[0]
