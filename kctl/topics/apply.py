"""Making topics what a file says: compared, shown, done, and read back. Topics that the file does not name stay."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.base.outcomes import ItemResult
from kctl.cluster.topic_configs import fetch_topic_configs
from kctl.cluster.topic_names import unified
from kctl.cluster.topics import hidden
from kctl.errors import KctlError, OutcomeUnknown, Refused
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
    """What becomes of one topic. result: «would create», «created», «would alter», «altered», «unchanged», «failed».

    changes: what differs, one thing each; before is None for what is not set (all of a new topic), after for what is
    taken away, or where the brokers' default is not known.
    """

    topic: str
    result: ItemResult
    changes: tuple[Change, ...]
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """One difference. what: `partitions`, `replication_factor`, or a config's name."""

    what: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class ApplyPlan:
    """What is to be done, checked by the brokers: topics to create and to alter, in the order of the file."""

    specs: tuple[TopicSpec, ...]
    new: list[NewTopic]
    created: list[CreatedTopic]
    changes: list[TopicChange]
    altered: list[AlteredTopic]

    @property
    def todo(self) -> int:
        """How many topics are to be created or altered."""
        return len(self.new) + sum(row.result is ItemResult.WOULD_ALTER for row in self.altered)


def plan_apply(client: ClusterClient, specs: Sequence[TopicSpec], state: ClusterState) -> ApplyPlan:
    """Compare the specs with what there is. state: all topics.

    Raises Refused for what cannot be made so: fewer partitions, another replication factor, Kafka's own topics, and
    what the brokers refuse. Everything is checked before anything is changed.
    """
    there = [spec for spec in specs if spec.name in state.topics]
    own = [spec for spec in there if hidden(state.topics[spec.name])]
    if own:
        raise Refused(f"{own[0].where}: {own[0].name} is Kafka's own")
    for spec in there:
        _check_factor(spec, state.topics[spec.name])
    configs = _set_on_topics(client, [spec.name for spec in there if spec.configs is not None], state)
    changes = [change_of(spec, configs.get(spec.name, {})) for spec in there]
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
    """Raise Refused for a topic that would have to be created beside one whose name differs only in '.' and '_'. Two
    that are both there already, from before brokers looked at this, are none of the file's business."""
    by_metric: dict[str, list[str]] = {}
    for name in dict.fromkeys((*state.topics, *(spec.name for spec in specs))):
        by_metric.setdefault(unified(name), []).append(name)
    for spec in specs:
        others = [name for name in by_metric[unified(spec.name)] if name != spec.name]
        if others and spec.name not in state.topics:
            raise Refused(
                f"{spec.where}: topic {spec.name} cannot be created beside {', '.join(others)}",
                hint="nothing was changed; brokers refuse such a pair, because metrics cannot distinguish '.' and '_'",
            )


def _check_factor(spec: TopicSpec, topic: TopicState) -> None:
    if spec.replication_factor not in {None, topic.replication_factor}:
        raise Refused(
            f"{spec.where}: topic {spec.name} has replication factor {topic.replication_factor}, "
            f"not {spec.replication_factor}",
            hint="nothing was changed; `kctl topic reassign plan --replication-factor` makes such a move",
        )


def _set_on_topics(client: ClusterClient, names: Sequence[str], state: ClusterState) -> dict[str, dict[str, str]]:
    """The configs that are set on each topic itself. Raises the error of the first that cannot be read."""
    found: dict[str, dict[str, str]] = {}
    for name, entries in (fetch_topic_configs(client, names, state.brokers) if names else {}).items():
        if isinstance(entries, KctlError):
            raise entries
        found[name] = set_on_topic(entries)
    return found


def change_of(spec: TopicSpec, there: Mapping[str, str]) -> TopicChange:
    """What to change of a topic that is there. there: the configs that are set on it."""
    if spec.configs is None:
        return TopicChange(spec.name, spec.partitions)
    gone = {name: None for name in there if name not in spec.configs}
    return TopicChange(spec.name, spec.partitions, None, {**spec.configs, **gone})


def rows_of(plan: ApplyPlan, created: Sequence[CreatedTopic], altered: Sequence[AlteredTopic]) -> list[AppliedTopic]:
    """A row for each topic of the file, in its order. created, altered: as planned or as done."""
    rows = {row.topic: _created(row) for row in created} | {row.topic: _altered(row) for row in altered}
    return [rows[spec.name] for spec in plan.specs]


def _created(row: CreatedTopic) -> AppliedTopic:
    changes = [Change("partitions", None, _text(row.partition_count))]
    changes.append(Change("replication_factor", None, _text(row.replication_factor)))
    changes += [Change(name, None, value) for name, value in row.configs.items()]
    return AppliedTopic(row.topic, row.result, tuple(changes), row.error)


def _altered(row: AlteredTopic) -> AppliedTopic:
    changes = []
    if row.partition_count_after != row.partition_count_before:
        changes.append(Change("partitions", str(row.partition_count_before), str(row.partition_count_after)))
    changes += [Change(c.name, c.before, c.after) for c in row.config_changes if c.result is not ItemResult.UNCHANGED]
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
    """Create, then alter; failures of single topics are results. Raises as create_topics: nothing is altered then."""
    created: list[CreatedTopic] = []
    altered: list[AlteredTopic] = []
    if plan.new:
        try:
            created = create_topics(client, plan.new, plan.created, timeout_s=timeout_s, progress=progress)
        except OutcomeUnknown as exc:
            raise OutcomeUnknown(exc.message, hint="run it again: it does what is left", details=exc.details) from None
    if plan.changes:
        altered = alter_topics(client, plan.changes, plan.altered, timeout_s=timeout_s, progress=progress)
    return rows_of(plan, created, altered)
