"""Alter topics: add partitions, change configs. Planned, validated by the brokers, applied, and read back.

Many topics share a request: DescribeConfigs, IncrementalAlterConfigs and CreatePartitions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from kctl.base.config_values import same
from kctl.base.deadline import Deadline
from kctl.base.grouping import chunks
from kctl.base.outcomes import ItemResult
from kctl.cluster.config_resources import Resource
from kctl.cluster.topic_configs import ConfigSource
from kctl.configs.change import ChangedConfig, Edit, check
from kctl.configs.describe import by_name, describe_each
from kctl.configs.dynamic import alter_dynamic
from kctl.configs.keys import unknown
from kctl.configs.model import OWN_SOURCE, Config, Synonym
from kctl.configs.other_units import inherited_values, lacks_inherited_value
from kctl.errors import ConnectionFailed, KctlError, OutcomeUnknown, Reason, Refused, TimedOut
from kctl.model import ClusterState, TopicState
from kctl.protocol.partition_requests import PER_REQUEST, not_sent

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_POLL_S = 0.1
_VALIDATE_S = 10.0
# With ZooKeeper the response waits until *all* partitions of the topic have a leader, including existing ones whose
# broker is down (DelayedCreatePartitions). The brokers get this long; then kctl itself waits for the new partitions.
_REQUEST_S = 5.0
_PARTITIONS_PER_REQUEST = 5_000  # a KRaft controller rejects more than 10,000 (KAFKA-17870)
_OWN = OWN_SOURCE["topic"].value
ORDER_IS_LOST = (
    "adding partitions changes the partition of a key: new records of a key may go to a different partition than its"
    " old records, which breaks ordering, compaction and joins by key; this cannot be undone"
)

Configs = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class TopicChange:
    """The target state of a topic.

    partitions: None keeps the number. assignment: replicas of the new partitions, in order; None: the brokers choose.
    configs: values to set; None removes a config, so that the default applies.
    """

    name: str
    partitions: int | None = None
    assignment: tuple[tuple[int, ...], ...] | None = None
    configs: Configs = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AlteredTopic:
    """The result for one topic. result: would alter, altered, unchanged or failed.

    partition_count_after and the `after` of configs are planned values, and after the change the values read back.
    """

    topic: str
    result: ItemResult
    partition_count_before: int
    partition_count_after: int
    config_changes: tuple[ChangedConfig, ...]
    error: str | None = None


def plan_alter(client: ClusterClient, state: ClusterState, changes: Sequence[TopicChange]) -> list[AlteredTopic]:
    """Return the planned changes, validated by the brokers. state: has the topics.

    Raises Refused for fewer partitions and for changes that the brokers reject, NotFound for unknown configs.
    """
    for change in changes:
        _check_partitions(state.topics[change.name], change, state.brokers)
    before = _read_configs(client, changes)
    behind = inherited_values(client, [before[c.name][k] for c in changes for k, v in c.configs.items() if v is None])
    rows = [_planned(state.topics[change.name], change, before.get(change.name, {}), behind) for change in changes]
    to_alter = _changes_to_make(rows, changes)
    failed = alter_dynamic(client, _config_changes(to_alter, rows), validate_only=True)
    for error in failed.values():
        raise error if isinstance(error, (Refused, ConnectionFailed)) else Refused(error.message, hint=error.hint)
    for error in _create_partitions(
        client, _growing(to_alter, state), timeout_s=_VALIDATE_S, validate_only=True
    ).values():
        raise error if isinstance(error, (Refused, ConnectionFailed)) else Refused(error.message, hint=error.hint)
    return rows


def _check_partitions(topic: TopicState, change: TopicChange, brokers: Collection[int]) -> None:
    count = len(topic.partitions)
    if change.partitions is not None and change.partitions < count:
        raise Refused(
            f"topic {topic.name} has {count} partitions and cannot be reduced to {change.partitions}",
            hint="create a topic with fewer partitions and copy the records; `kctl topic clone` keeps the number",
            reason=Reason.IMPOSSIBLE,
        )
    absent = sorted({node for replicas in change.assignment or () for node in replicas} - set(brokers))
    if absent:
        raise Refused(
            f"the replica assignment contains unknown brokers: {', '.join(map(str, absent))}", reason=Reason.IMPOSSIBLE
        )


def _read_configs(client: ClusterClient, changes: Sequence[TopicChange]) -> dict[str, Mapping[str, Config]]:
    """Return the configs of topics whose configs change. Raises the first topic's error, NotFound for unknown names."""
    changes_by_resource = {Resource.topic(change.name): change for change in changes if change.configs}
    configs_by_topic: dict[str, Mapping[str, Config]] = {}
    for resource, configs in describe_each(client, list(changes_by_resource)).items():
        if isinstance(configs, KctlError):
            raise configs
        definitions = by_name(configs)
        values = changes_by_resource[resource].configs
        unknown_names = [name for name in values if name not in definitions]
        if unknown_names:
            raise unknown(resource, unknown_names, definitions)
        check(resource, [Edit(k, "unset" if v is None else "set", v) for k, v in values.items()], definitions)
        configs_by_topic[resource.name] = definitions
    return configs_by_topic


def _planned(
    topic: TopicState, change: TopicChange, before: Mapping[str, Config], behind: Mapping[str, Synonym]
) -> AlteredTopic:
    configs = tuple(
        _planned_config(change.name, key, value, before[key], behind.get(key)) for key, value in change.configs.items()
    )
    count = len(topic.partitions)
    after = change.partitions if change.partitions is not None else count
    changes = after != count or any(row.result is not ItemResult.UNCHANGED for row in configs)
    return AlteredTopic(topic.name, ItemResult.WOULD_ALTER if changes else ItemResult.UNCHANGED, count, after, configs)


def _planned_config(topic: str, name: str, value: str | None, config: Config, behind: Synonym | None) -> ChangedConfig:
    """Plan one config. behind: the value that the topic would inherit, if the synonyms omit it. Pure."""
    path = Resource.topic(topic).path
    own = config.own("topic")
    source = config.source.value if config.source else None
    if value is None and own is not None:
        after = _after_unset(config, own, behind)
        return ChangedConfig(path, name, ItemResult.WOULD_UNSET, config.value, source, *after, config.sensitive)
    if value is None or (own is not None and same(config.type, own.value, value) and not config.sensitive):
        return ChangedConfig(
            path, name, ItemResult.UNCHANGED, config.value, source, config.value, source, config.sensitive
        )
    return ChangedConfig(path, name, ItemResult.WOULD_SET, config.value, source, value, _OWN, config.sensitive)


def _after_unset(config: Config, own: Synonym, behind: Synonym | None) -> tuple[str | None, str | None]:
    """Return the value that will apply (None: unknown) and its source."""
    if lacks_inherited_value(config):  # Kafka's default would be 7 days even if log.retention.hours is 24
        return (behind.value, behind.source.value) if behind else (None, None)
    below = next((s for s in config.synonyms if s != own), None)
    return (below.value, below.source.value) if below else (config.default, ConfigSource.DEFAULT.value)


def _changes_to_make(rows: Sequence[AlteredTopic], changes: Sequence[TopicChange]) -> list[TopicChange]:
    return [change for row, change in zip(rows, changes, strict=True) if row.result is ItemResult.WOULD_ALTER]


def _config_changes(
    to_alter: Sequence[TopicChange], rows: Sequence[AlteredTopic]
) -> dict[Resource, dict[str, str | None]]:
    """Return the configs of each topic that actually change."""
    planned = {row.topic: row for row in rows}
    changes: dict[Resource, dict[str, str | None]] = {}
    for change in to_alter:
        names = [row.name for row in planned[change.name].config_changes if row.result is not ItemResult.UNCHANGED]
        if names:
            changes[Resource.topic(change.name)] = {name: change.configs[name] for name in names}
    return changes


def _growing(to_alter: Sequence[TopicChange], state: ClusterState) -> list[TopicChange]:
    return [c for c in to_alter if c.partitions is not None and c.partitions > len(state.topics[c.name].partitions)]


def _create_partitions(
    client: ClusterClient, changes: Sequence[TopicChange], *, timeout_s: float, validate_only: bool
) -> dict[str, KctlError]:
    """Add partitions. Return the error of each failed topic; OutcomeUnknown if there was no response."""
    failed: dict[str, KctlError] = {}
    sent_count = 0
    for chunk in chunks(
        changes, lambda change: change.partitions or 0, limit=_PARTITIONS_PER_REQUEST, max_rows=PER_REQUEST
    ):
        try:
            response = client.send_to_controller(_partitions_request(chunk, timeout_s, validate_only=validate_only))
        except KctlError as exc:
            failed.update({change.name: exc for change in chunk})
            failed.update(
                {change.name: not_sent(f"topic {change.name}", exc) for change in changes[sent_count + len(chunk) :]}
            )
            break
        sent_count += len(chunk)
        failed |= _errors(response)
    return failed


def _partitions_request(changes: Sequence[TopicChange], timeout_s: float, *, validate_only: bool) -> Any:
    from kafka.protocol.admin import CreatePartitionsRequest

    topic_class = CreatePartitionsRequest.CreatePartitionsTopic
    assignment_class = topic_class.CreatePartitionsAssignment
    return CreatePartitionsRequest(
        topics=[
            topic_class(
                name=change.name,
                count=change.partitions,
                assignments=None
                if change.assignment is None
                else [assignment_class(broker_ids=list(replicas)) for replicas in change.assignment],
            )
            for change in changes
        ],
        timeout_ms=int(timeout_s * 1000),
        validate_only=validate_only,
    )


def _errors(response: Any) -> dict[str, KctlError]:
    from kctl.protocol.client import error_for

    return {
        row.name: error_for(row.error_code, row.error_message, subject=f"topic {row.name}")
        for row in response.results
        if row.error_code
    }


def alter_topics(
    client: ClusterClient,
    changes: Sequence[TopicChange],
    plan: Sequence[AlteredTopic],
    *,
    timeout_s: float = 30.0,
    progress: Callable[[str], None] | None = None,
) -> list[AlteredTopic]:
    """Apply the planned changes, and return the state read back. Failures of single topics are in the rows.

    Configs are changed first: if they are rejected, the number of partitions stays as it was.
    """
    deadline = Deadline(timeout_s)
    to_alter = _changes_to_make(plan, changes)
    config_changes = _config_changes(to_alter, plan)
    failed = {resource.name: error for resource, error in alter_dynamic(client, config_changes).items()}
    before = {row.topic: row.partition_count_before for row in plan}
    growing = [
        c for c in to_alter if c.name not in failed and c.partitions is not None and c.partitions > before[c.name]
    ]
    failed |= _create_partitions(client, growing, timeout_s=min(timeout_s, _REQUEST_S), validate_only=False)
    topics, unread = _await_partitions(client, growing, before, failed, deadline, progress)
    after, unread_configs = _await_configs(client, config_changes, failed, deadline)
    unread |= unread_configs
    return [
        _outcome(row, failed.get(row.topic), topics.get(row.topic), after.get(row.topic, {}), unread.get(row.topic))
        for row in plan
    ]


def _may_be_done(error: KctlError | None) -> bool:
    """Return True if the change may have been made despite this error, so that it must be read back."""
    return error is None or isinstance(error, (OutcomeUnknown, TimedOut))


def _await_partitions(
    client: ClusterClient,
    growing: Sequence[TopicChange],
    before: Mapping[str, int],
    failed: Mapping[str, KctlError],
    deadline: Deadline,
    progress: Callable[[str], None] | None,
) -> tuple[dict[str, TopicState], dict[str, KctlError]]:
    """Return the topics once all new partitions have a leader or the time is up; and why topics are unreadable.

    before: the previous numbers of partitions. Existing partitions are ignored: one may stay without a leader.
    """
    expected = {change.name: change.partitions or 0 for change in growing if _may_be_done(failed.get(change.name))}
    topics: dict[str, TopicState] = {}
    while expected:
        try:
            topics = client.metadata(expected).topics
        except KctlError as exc:
            return {}, dict.fromkeys(expected, exc)
        late = [n for n, count in expected.items() if n not in topics or _lacking(topics[n], before[n], count)]
        if not late or deadline.expired:
            break
        if progress:
            progress(f"{len(late)} of {len(expected)} topics are waiting for leaders")
        time.sleep(_POLL_S)
    return topics, {}


def _lacking(topic: TopicState, before: int, expected: int) -> str | None:
    """Return what the new partitions still lack: they do not exist, or have no leader. Pure."""
    count = len(topic.partitions)
    if count < expected:
        return f"only {count} of {expected} partitions exist"
    leaderless = [str(p.partition) for p in topic.partitions if p.offline and p.partition >= before]
    return f"new partitions have no leader yet: {', '.join(leaderless)}" if leaderless else None


def _await_configs(
    client: ClusterClient,
    changes: Mapping[Resource, Mapping[str, str | None]],
    failed: Mapping[str, KctlError],
    deadline: Deadline,
) -> tuple[dict[str, Mapping[str, Config]], dict[str, KctlError]]:
    """Return the configs once all have the target values or the time is up; and why configs are unreadable."""
    expected = {resource: values for resource, values in changes.items() if _may_be_done(failed.get(resource.name))}
    current: dict[str, Mapping[str, Config]] = {}
    unread: dict[str, KctlError] = {}
    while expected:
        names = {name for values in expected.values() for name in values}
        responses = describe_each(client, list(expected), names=names)
        current = {r.name: by_name(configs) for r, configs in responses.items() if not isinstance(configs, KctlError)}
        unread = {r.name: configs for r, configs in responses.items() if isinstance(configs, KctlError)}
        late = [r for r, values in expected.items() if not _are_set(current.get(r.name, {}), values)]
        if not late or deadline.expired:
            break
        time.sleep(_POLL_S)
    return current, unread


def _are_set(configs: Mapping[str, Config], values: Mapping[str, str | None]) -> bool:
    return all(_is_set(configs.get(name), value) for name, value in values.items())


def _is_set(config: Config | None, value: str | None) -> bool:
    """Return True if the topic itself has this value, in any notation; None: if it has no value of its own."""
    own = config.own("topic") if config else None
    if config is None or own is None:
        return value is None
    return config.sensitive or same(config.type, own.value, value)


def _outcome(
    row: AlteredTopic,
    error: KctlError | None,
    topic: TopicState | None,
    after: Mapping[str, Config],
    unread: KctlError | None = None,
) -> AlteredTopic:
    """Return the result of a topic. After an uncertain error, the state read back decides. Pure."""
    if row.result is not ItemResult.WOULD_ALTER:
        return row
    configs = tuple(_with_actual_value(planned, after.get(planned.name)) for planned in row.config_changes)
    count = len(topic.partitions) if topic else row.partition_count_after if unread else row.partition_count_before
    reason = error.message if error else None
    if _may_be_done(error):
        difference = _difference(
            row, topic, [each.name for each in configs if each.result is ItemResult.FAILED], unread
        )
        reason = None if difference is None else reason or difference
    return replace(
        row,
        result=ItemResult.FAILED if reason else ItemResult.ALTERED,
        partition_count_after=count
        if row.partition_count_after != row.partition_count_before
        else row.partition_count_after,
        config_changes=configs,
        error=reason,
    )


def _difference(
    row: AlteredTopic, topic: TopicState | None, configs: Sequence[str], unread: KctlError | None
) -> str | None:
    """Return how the state read back differs from the plan. configs: names of configs that differ."""
    if unread:
        return f"the change was accepted, but could not be read back: {unread.message}"
    if row.partition_count_after != row.partition_count_before:
        lacking = (
            _lacking(topic, row.partition_count_before, row.partition_count_after)
            if topic
            else "no broker shows the topic"
        )
        if lacking:
            return f"the change was accepted, but {lacking}"
    return f"the change was accepted, but these configs are unchanged: {', '.join(configs)}" if configs else None


def _with_actual_value(planned: ChangedConfig, config: Config | None) -> ChangedConfig:
    if planned.result is ItemResult.UNCHANGED:
        return planned
    source = config.source.value if config and config.source else None
    value = config.value if config else None
    expected = None if planned.result is ItemResult.WOULD_UNSET else planned.after
    applied = config is not None and _is_set(config, expected)
    return replace(
        planned, result=planned.result.done if applied else ItemResult.FAILED, after=value, after_source=source
    )
