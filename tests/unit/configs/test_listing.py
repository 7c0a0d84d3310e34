"""Groups and client metrics subscriptions with configs of their own: what old brokers list, and odd answers."""

from __future__ import annotations

from types import SimpleNamespace as Answer
from typing import Any

import pytest

from fake_cluster import FakeCluster
from kctl.configs.explain import explain
from kctl.configs.listing import ConfiguredResource, list_configured, parse_kinds
from kctl.errors import KctlError, NotAuthorized, NotFound, NotSupported, UsageError

GROUP, METRICS = 32, 16
TOO_OLD = NotSupported("h:9092 supports ListConfigResources versions 0 to 0; kctl requires 1 or later")


def listed(*rows: tuple[int, str], code: int = 0) -> Answer:
    resources = [Answer(resource_type=kind, resource_name=name) for kind, name in rows]
    return Answer(error_code=code, config_resources=resources)


def config(name: str, value: str | None, source: int, *, sensitive: bool = False, documentation: str = "") -> Answer:
    return Answer(
        name=name, value=value, config_source=source, is_sensitive=sensitive, read_only=False, config_type=3,
        synonyms=[], documentation=documentation,
    )  # fmt: skip


def described(_node: int, request: Any) -> Answer:
    """One config that is set, one default; the group "forbidden" is not described."""
    own = {GROUP: ("consumer.session.timeout.ms", 8), METRICS: ("interval.ms", 7), 4: ("log.dirs", 4)}
    rows = []
    for each in request.resources:
        name, source = own.get(each.resource_type, ("x", 1))
        configs = [config(name, "50", source, documentation="<p>How long.</p>"), config("default", "1", 5)]
        code = 30 if each.resource_name == "forbidden" else 0
        rows.append(
            Answer(resource_type=each.resource_type, resource_name=each.resource_name, error_code=code,
                   error_message=None, configs=[] if each.resource_name == "empty" else configs)
        )  # fmt: skip
    return Answer(results=rows)


def cluster(*answers: Any) -> FakeCluster:
    fake = FakeCluster(brokers=[1])
    fake.script("ListConfigResources", *answers)
    fake.always("DescribeConfigs", described)
    return fake


def test_only_values_of_the_resource_itself() -> None:
    """A hostile answer has the topic "t", an empty name, and a name twice; "empty" was unset since it was listed."""
    fake = cluster(listed((GROUP, "b"), (METRICS, "a"), (2, "t"), (GROUP, ""), (GROUP, "b"), (GROUP, "empty")))
    rows, failures = list_configured(fake.client)
    assert rows == [
        ConfiguredResource("client-metrics/a", {"interval.ms": "50"}),
        ConfiguredResource("group/b", {"consumer.session.timeout.ms": "50"}),
    ]
    assert failures == []


def test_a_group_that_cannot_be_described_is_a_failure() -> None:
    rows, (failure,) = list_configured(cluster(listed((GROUP, "b"), (GROUP, "forbidden"))).client)
    assert [row.resource for row in rows] == ["group/b"]
    assert "configs of group forbidden: not authorized" in failure


def test_brokers_before_4_1_list_subscriptions_only() -> None:
    rows, (failure,) = list_configured(cluster(TOO_OLD, listed((METRICS, "a"))).client)
    assert [row.resource for row in rows] == ["client-metrics/a"]
    assert failure.startswith("groups are not listed: h:9092 supports ListConfigResources")
    fake = cluster(TOO_OLD, listed((METRICS, "a")))
    assert list_configured(fake.client, parse_kinds(["client-metrics"]))[1] == []
    with pytest.raises(NotSupported):
        list_configured(cluster(TOO_OLD).client, parse_kinds(["group"]))


def test_an_error_is_no_empty_list() -> None:
    with pytest.raises(NotAuthorized):
        list_configured(cluster(listed(code=31)).client)
    with pytest.raises(KctlError, match="resources with configs"):
        list_configured(cluster(listed(code=9_999)).client)


def test_other_kinds_are_not_listed() -> None:
    assert parse_kinds([]) == parse_kinds(["group", "client-metrics"]) == ("client-metrics", "group")
    with pytest.raises(UsageError, match="'topic' is not a kind of resource that can be listed"):
        parse_kinds(["topic"])


def test_configs_of_groups_are_explained() -> None:
    fake = cluster()
    (found,), _ = explain(fake.client, ["consumer.session.timeout.ms"])
    assert (found.of, found.documentation) == ("group", "How long.")
    (found,), _ = explain(fake.client, ["log.dirs"])
    asked = [each.request.resources[0].resource_type for each in fake.requests if each.api == "DescribeConfigs"]
    assert (found.of, asked) == ("broker", [4, GROUP, 4]), "groups are asked only for a name that is still unknown"


def test_a_name_that_may_be_a_groups_is_not_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = cluster()
    monkeypatch.setattr("kctl.configs.explain._ANY_NAME", "forbidden")
    monkeypatch.setattr("kctl.configs.explain._ask", lambda client: (_broker(client), []))
    with pytest.raises(NotAuthorized, match="configs of group forbidden: not authorized"):
        explain(fake.client, ["no.such.key"])
    monkeypatch.setattr("kctl.configs.explain._ANY_NAME", "kctl")
    with pytest.raises(NotFound, match=r"has no config no\.such\.key"):
        explain(fake.client, ["no.such.key"])


def _broker(client: Any) -> Any:
    from kctl.cluster.config_resources import Resource
    from kctl.configs.describe import describe_each

    return describe_each(client, [Resource.broker(1)], documentation=True)
