"""Apply a topics file: compare, plan, change and read back. Topics that are not in the file stay."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.base.outcomes import ItemResult
from kctl.cluster.topic_configs import fetch_topic_configs
from kctl.cluster.topic_names import unified
from kctl.cluster.topics import hidden
from kctl.errors import KctlError, OutcomeUnknown, Reason, Refused
from kctl.model import ClusterState, TopicState
from kctl.topics.alter import AlteredTopic, TopicChange, alter_topics, plan_alter
from kctl.topics.create import CreatedTopic, create_topics, plan_create
from kctl.topics.new_topic import NewTopic
from kctl.topics.own_configs import set_on_topic
from kctl.topics.spec import TopicSpec

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


@dataclass(frozen=True, slots=True)
class AppliedTopic:
    """The result for one topic. result: would create, created, would alter, altered, unchanged or failed.

    changes: one per difference. before: None if not set (e.g. for a new topic). after: None if removed, or if the
    broker's default is unknown.
    """

    topic: str
    result: ItemResult
    changes: tuple[PropertyChange, ...]
    error: str | None = None


@dataclass(frozen=True, slots=True)
class PropertyChange:
    """One difference. what: `partitions`, `replication_factor`, or the name of a config."""

    what: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class ApplyPlan:
    """The topics to create and to alter, validated by the brokers, in the order of the file."""

    specs: tuple[TopicSpec, ...]
    new: list[NewTopic]
    created: list[CreatedTopic]
    changes: list[TopicChange]
    altered: list[AlteredTopic]

    @property
    def todo(self) -> int:
        """Return the number of topics to create or alter."""
        return len(self.new) + sum(row.result is ItemResult.WOULD_ALTER for row in self.altered)


def plan_apply(client: ClusterClient, specs: Sequence[TopicSpec], state: ClusterState) -> ApplyPlan:
    """Compare the specs with the cluster. state: all topics.

    Raises Refused for unsupported changes: fewer partitions, another replication factor, internal topics, and
    everything that the brokers reject. Everything is checked before anything is changed.
    """
    existing = [spec for spec in specs if spec.name in state.topics]
    internal = [spec for spec in existing if hidden(state.topics[spec.name])]
    if internal:
        raise Refused(f"{internal[0].where}: {internal[0].name} is an internal topic", reason=Reason.INTERNAL_TOPIC)
    for spec in existing:
        _check_factor(spec, state.topics[spec.name])
    configs = _set_on_topics(client, [spec.name for spec in existing if spec.configs is not None], state)
    changes = [change_of(spec, configs.get(spec.name, {})) for spec in existing]
    new = [
        NewTopic(spec.name, spec.partitions, spec.replication_factor, None, spec.configs or {})
        for spec in specs
        if spec.name not in state.topics
    ]
    _check_collisions(specs, state)
    created = plan_create(client, new) if new else []
    altered = plan_alter(client, state, changes) if changes else []
    return ApplyPlan(tuple(specs), new, created, changes, altered)


def _check_collisions(specs: Sequence[TopicSpec], state: ClusterState) -> None:
    """Raise Refused if a new topic's name differs from another one only in '.' and '_'.

    Pairs that already exist are accepted; they were created before brokers checked this.
    """
    by_metric: dict[str, list[str]] = {}
    for name in dict.fromkeys((*state.topics, *(spec.name for spec in specs))):
        by_metric.setdefault(unified(name), []).append(name)
    for spec in specs:
        others = [name for name in by_metric[unified(spec.name)] if name != spec.name]
        if others and spec.name not in state.topics:
            raise Refused(
                f"{spec.where}: topic {spec.name} collides with {', '.join(others)}",
                hint="nothing was changed; metrics cannot distinguish '.' and '_', so brokers reject such names",
                reason=Reason.IMPOSSIBLE,
            )


def _check_factor(spec: TopicSpec, topic: TopicState) -> None:
    if spec.replication_factor not in {None, topic.replication_factor}:
        raise Refused(
            f"{spec.where}: topic {spec.name} has replication factor {topic.replication_factor}, "
            f"not {spec.replication_factor}",
            hint="nothing was changed; change it with `kctl topic reassign plan --replication-factor`",
            reason=Reason.IMPOSSIBLE,
        )


def _set_on_topics(client: ClusterClient, names: Sequence[str], state: ClusterState) -> dict[str, dict[str, str]]:
    """Return the configs that are set on each topic itself. Raises the error of the first unreadable topic."""
    configs: dict[str, dict[str, str]] = {}
    for name, entries in (fetch_topic_configs(client, names, state.brokers) if names else {}).items():
        if isinstance(entries, KctlError):
            raise entries
        configs[name] = set_on_topic(entries)
    return configs


def change_of(spec: TopicSpec, existing: Mapping[str, str]) -> TopicChange:
    """Return the change for an existing topic. existing: the configs that are set on it."""
    if spec.configs is None:
        return TopicChange(spec.name, spec.partitions)
    removed = {name: None for name in existing if name not in spec.configs}
    return TopicChange(spec.name, spec.partitions, None, {**spec.configs, **removed})


def rows_of(plan: ApplyPlan, created: Sequence[CreatedTopic], altered: Sequence[AlteredTopic]) -> list[AppliedTopic]:
    """Return one row per topic, in the order of the file. created, altered: planned or actual results."""
    rows = {row.topic: _created(row) for row in created} | {row.topic: _altered(row) for row in altered}
    return [rows[spec.name] for spec in plan.specs]


def _created(row: CreatedTopic) -> AppliedTopic:
    changes = [PropertyChange("partitions", None, _text(row.partition_count))]
    changes.append(PropertyChange("replication_factor", None, _text(row.replication_factor)))
    changes += [PropertyChange(name, None, value) for name, value in row.configs.items()]
    return AppliedTopic(row.topic, row.result, tuple(changes), row.error)


def _altered(row: AlteredTopic) -> AppliedTopic:
    changes = []
    if row.partition_count_after != row.partition_count_before:
        changes.append(PropertyChange("partitions", str(row.partition_count_before), str(row.partition_count_after)))
    changes += [
        PropertyChange(c.name, c.before, c.after) for c in row.config_changes if c.result is not ItemResult.UNCHANGED
    ]
    return AppliedTopic(row.topic, row.result, tuple(changes), row.error)


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)


def carry_out(
    client: ClusterClient,
    plan: ApplyPlan,
    *,
    timeout_s: float = 30.0,
    progress: Callable[[str], None] | None = None,
) -> list[AppliedTopic]:
    """Create, then alter. Failures of single topics are in the rows. If create_topics raises, nothing is altered."""
    created: list[CreatedTopic] = []
    altered: list[AlteredTopic] = []
    if plan.new:
        try:
            created = create_topics(client, plan.new, plan.created, timeout_s=timeout_s, progress=progress)
        except OutcomeUnknown as exc:
            raise OutcomeUnknown(exc.message, hint="run it again to apply the rest", details=exc.details) from None
    if plan.changes:
        altered = alter_topics(client, plan.changes, plan.altered, timeout_s=timeout_s, progress=progress)
    return rows_of(plan, created, altered)
