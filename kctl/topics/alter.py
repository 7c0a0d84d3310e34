"""Changing topics that exist: more partitions, other configs. Planned, checked by the brokers, done, and read back.

Many topics at once: DescribeConfigs, IncrementalAlterConfigs and CreatePartitions take some hundred in a request.
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
from kctl.configs.other_units import lacks_inherited_value, values_behind
from kctl.errors import ConnectionFailed, KctlError, OutcomeUnknown, Refused, TimedOut
from kctl.model import ClusterState, TopicState
from kctl.protocol.partition_requests import PER_REQUEST, not_sent

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_POLL_S = 0.1
_VALIDATE_S = 10.0
# With ZooKeeper the answer waits until *all* partitions of the topic have a leader, also an old one whose broker is
# down (DelayedCreatePartitions): the brokers are given this long, and then it is looked here for the new ones.
_REQUEST_S = 5.0
_PARTITIONS_PER_REQUEST = 5_000  # a KRaft controller refuses more than 10,000 (KAFKA-17870)
_OWN = OWN_SOURCE["topic"].value
ORDER_IS_LOST = (
    "more partitions: records with a key that come from now on go to other partitions than those before them, so the "
    "order of a key's records, compaction by key and joins by key hold no more across that; it cannot be taken back"
)

Configs = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class TopicChange:
    """What shall be of a topic. partitions: None as it is. assignment: replicas of the new partitions, in order; None
    lets the brokers choose. configs: values to set; None takes a config away, so that a default holds again."""

    name: str
    partitions: int | None = None
    assignment: tuple[tuple[int, ...], ...] | None = None
    configs: Configs = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AlteredTopic:
    """What becomes of one topic. result: «would alter», «altered», «unchanged» or «failed».

    partitions_after and the configs' `after` are what is planned, and when it was done, what was read back.
    """

    topic: str
    result: ItemResult
    partition_count_before: int
    partition_count_after: int
    config_changes: tuple[ChangedConfig, ...]
    error: str | None = None


def plan_alter(client: ClusterClient, state: ClusterState, changes: Sequence[TopicChange]) -> list[AlteredTopic]:
    """What the changes would do, checked by the brokers without doing it. state: has the topics.

    Raises Refused for fewer partitions and for what the brokers refuse, NotFound for configs that are not known.
    """
    for change in changes:
        _check_partitions(state.topics[change.name], change, state.brokers)
    before = _read_configs(client, changes)
    behind = values_behind(client, [before[c.name][k] for c in changes for k, v in c.configs.items() if v is None])
    rows = [_planned(state.topics[change.name], change, before.get(change.name, {}), behind) for change in changes]
    todo = _todo(rows, changes)
    failed = alter_dynamic(client, _config_changes(todo, rows), validate_only=True)
    for error in failed.values():
        raise error if isinstance(error, (Refused, ConnectionFailed)) else Refused(error.message, hint=error.hint)
    for error in _create_partitions(client, _growing(todo, state), timeout_s=_VALIDATE_S, validate_only=True).values():
        raise error if isinstance(error, (Refused, ConnectionFailed)) else Refused(error.message, hint=error.hint)
    return rows


def _check_partitions(topic: TopicState, change: TopicChange, brokers: Collection[int]) -> None:
    count = len(topic.partitions)
    if change.partitions is not None and change.partitions < count:
        raise Refused(
            f"topic {topic.name} has {count} partitions, and they cannot become {change.partitions}: they only grow",
            hint="make a topic with fewer, and copy the records; `kctl topic clone` keeps the number",
        )
    absent = sorted({node for replicas in change.assignment or () for node in replicas} - set(brokers))
    if absent:
        raise Refused(f"the replica assignment names brokers that are not there: {', '.join(map(str, absent))}")


def _read_configs(client: ClusterClient, changes: Sequence[TopicChange]) -> dict[str, Mapping[str, Config]]:
    """The configs of topics whose configs are to change. Raises the first topic's error, NotFound for unknown names."""
    wanted = {Resource.topic(change.name): change for change in changes if change.configs}
    found: dict[str, Mapping[str, Config]] = {}
    for resource, configs in describe_each(client, list(wanted)).items():
        if isinstance(configs, KctlError):
            raise configs
        known = by_name(configs)
        values = wanted[resource].configs
        wrong = [name for name in values if name not in known]
        if wrong:
            raise unknown(resource, wrong, known)
        check(resource, [Edit(k, "unset" if v is None else "set", v) for k, v in values.items()], known)
        found[resource.name] = known
    return found


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
    """behind: what holds without the topic's own value, where the config's chain leaves it out. Pure."""
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
    """The value that will hold, None when nobody tells it, and where it is set."""
    if lacks_inherited_value(config):  # Kafka's default would say 7 days where log.retention.hours says one
        return (behind.value, behind.source.value) if behind else (None, None)
    below = next((s for s in config.synonyms if s != own), None)
    return (below.value, below.source.value) if below else (config.default, ConfigSource.DEFAULT.value)


def _todo(rows: Sequence[AlteredTopic], changes: Sequence[TopicChange]) -> list[TopicChange]:
    return [change for row, change in zip(rows, changes, strict=True) if row.result is ItemResult.WOULD_ALTER]


def _config_changes(todo: Sequence[TopicChange], rows: Sequence[AlteredTopic]) -> dict[Resource, dict[str, str | None]]:
    """Only what is not already so."""
    planned = {row.topic: row for row in rows}
    found: dict[Resource, dict[str, str | None]] = {}
    for change in todo:
        names = [row.name for row in planned[change.name].config_changes if row.result is not ItemResult.UNCHANGED]
        if names:
            found[Resource.topic(change.name)] = {name: change.configs[name] for name in names}
    return found


def _growing(todo: Sequence[TopicChange], state: ClusterState) -> list[TopicChange]:
    return [c for c in todo if c.partitions is not None and c.partitions > len(state.topics[c.name].partitions)]


def _create_partitions(
    client: ClusterClient, changes: Sequence[TopicChange], *, timeout_s: float, validate_only: bool
) -> dict[str, KctlError]:
    """Topics whose partitions were not added, and why. One whose request got no answer is OutcomeUnknown."""
    failed: dict[str, KctlError] = {}
    sent = 0
    for chunk in chunks(
        changes, lambda change: change.partitions or 0, limit=_PARTITIONS_PER_REQUEST, most=PER_REQUEST
    ):
        try:
            response = client.send_to_controller(_partitions_request(chunk, timeout_s, validate_only=validate_only))
        except KctlError as exc:
            failed.update({change.name: exc for change in chunk})
            failed.update(
                {change.name: not_sent(f"topic {change.name}", exc) for change in changes[sent + len(chunk) :]}
            )
            break
        sent += len(chunk)
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
    """Do what `plan` says «would alter», and say what was read back. Failures of single topics are results.

    Configs first: what is refused then leaves the number of partitions as it was.
    """
    deadline = Deadline(timeout_s)
    todo = _todo(plan, changes)
    config_changes = _config_changes(todo, plan)
    failed = {resource.name: error for resource, error in alter_dynamic(client, config_changes).items()}
    before = {row.topic: row.partition_count_before for row in plan}
    growing = [c for c in todo if c.name not in failed and c.partitions is not None and c.partitions > before[c.name]]
    failed |= _create_partitions(client, growing, timeout_s=min(timeout_s, _REQUEST_S), validate_only=False)
    topics, unread = _await_partitions(client, growing, before, failed, deadline, progress)
    after, unread_configs = _await_configs(client, config_changes, failed, deadline)
    unread |= unread_configs
    return [
        _outcome(row, failed.get(row.topic), topics.get(row.topic), after.get(row.topic, {}), unread.get(row.topic))
        for row in plan
    ]


def _may_be_done(error: KctlError | None) -> bool:
    """Whether a change may have been made in spite of this answer, so that it has to be looked at."""
    return error is None or isinstance(error, (OutcomeUnknown, TimedOut))


def _await_partitions(
    client: ClusterClient,
    growing: Sequence[TopicChange],
    before: Mapping[str, int],
    failed: Mapping[str, KctlError],
    deadline: Deadline,
    progress: Callable[[str], None] | None,
) -> tuple[dict[str, TopicState], dict[str, KctlError]]:
    """The topics as soon as all new partitions are there with a leader, or when time is up; or why they cannot be read.

    before: how many partitions there were. Of those nothing is awaited: one without a leader may stay so.
    """
    wanted = {change.name: change.partitions or 0 for change in growing if _may_be_done(failed.get(change.name))}
    topics: dict[str, TopicState] = {}
    while wanted:
        try:
            topics = client.metadata(wanted).topics
        except KctlError as exc:
            return {}, dict.fromkeys(wanted, exc)
        late = [n for n, count in wanted.items() if n not in topics or _lacking(topics[n], before[n], count)]
        if not late or deadline.expired:
            break
        if progress:
            progress(f"{len(late)} of {len(wanted)} topics have not all leaders yet")
        time.sleep(_POLL_S)
    return topics, {}


def _lacking(topic: TopicState, before: int, wanted: int) -> str | None:
    """What new partitions lack still: themselves, or a leader. Pure."""
    count = len(topic.partitions)
    if count < wanted:
        return f"{count} of {wanted} partitions are there so far"
    leaderless = [str(p.partition) for p in topic.partitions if p.offline and p.partition >= before]
    return f"new partitions have no leader so far: {', '.join(leaderless)}" if leaderless else None


def _await_configs(
    client: ClusterClient,
    changes: Mapping[Resource, Mapping[str, str | None]],
    failed: Mapping[str, KctlError],
    deadline: Deadline,
) -> tuple[dict[str, Mapping[str, Config]], dict[str, KctlError]]:
    """The configs as they hold now, as soon as all are as wanted or when time is up; or why they cannot be read."""
    wanted = {resource: values for resource, values in changes.items() if _may_be_done(failed.get(resource.name))}
    found: dict[str, Mapping[str, Config]] = {}
    unread: dict[str, KctlError] = {}
    while wanted:
        names = {name for values in wanted.values() for name in values}
        read = describe_each(client, list(wanted), names=names)
        found = {r.name: by_name(configs) for r, configs in read.items() if not isinstance(configs, KctlError)}
        unread = {r.name: configs for r, configs in read.items() if isinstance(configs, KctlError)}
        late = [r for r, values in wanted.items() if not _holds(found.get(r.name, {}), values)]
        if not late or deadline.expired:
            break
        time.sleep(_POLL_S)
    return found, unread


def _holds(configs: Mapping[str, Config], values: Mapping[str, str | None]) -> bool:
    return all(_is_set(configs.get(name), value) for name, value in values.items())


def _is_set(config: Config | None, value: str | None) -> bool:
    """Whether a topic itself has this value, however the brokers write it; None: whether it has none."""
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
    """What became of a topic. error: what was answered; when that is not certain, what was read back decides. Pure."""
    if row.result is not ItemResult.WOULD_ALTER:
        return row
    configs = tuple(_read_back(planned, after.get(planned.name)) for planned in row.config_changes)
    count = len(topic.partitions) if topic else row.partition_count_after if unread else row.partition_count_before
    reason = error.message if error else None
    if _may_be_done(error):
        lack = _lack(row, topic, [each.name for each in configs if each.result is ItemResult.FAILED], unread)
        reason = None if lack is None else reason or lack
    return replace(
        row,
        result=ItemResult.FAILED if reason else ItemResult.ALTERED,
        partition_count_after=count
        if row.partition_count_after != row.partition_count_before
        else row.partition_count_after,
        config_changes=configs,
        error=reason,
    )


def _lack(row: AlteredTopic, topic: TopicState | None, configs: Sequence[str], unread: KctlError | None) -> str | None:
    """How what was read back is not as planned; configs: those that are not."""
    if unread:
        return f"the brokers took it, but it could not be read back: {unread.message}"
    if row.partition_count_after != row.partition_count_before:
        lacking = (
            _lacking(topic, row.partition_count_before, row.partition_count_after)
            if topic
            else "no broker shows the topic"
        )
        if lacking:
            return f"the controller took it, but {lacking}"
    return f"the brokers took it, but do not show it: {', '.join(configs)}" if configs else None


def _read_back(planned: ChangedConfig, config: Config | None) -> ChangedConfig:
    if planned.result is ItemResult.UNCHANGED:
        return planned
    source = config.source.value if config and config.source else None
    value = config.value if config else None
    wanted = None if planned.result is ItemResult.WOULD_UNSET else planned.after
    done = config is not None and _is_set(config, wanted)
    return replace(planned, result=planned.result.done if done else ItemResult.FAILED, after=value, after_source=source)
