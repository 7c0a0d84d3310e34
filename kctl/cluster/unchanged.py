"""The check, right before a change, that the facts behind the plan are unchanged.

A confirmation prompt may wait for an hour, and topics, groups and configs are identified by name: a topic that was
deleted and recreated meanwhile is a different topic. A plan keeps its facts as a `Basis`. `Basis.check` reads them
again and refuses the change if one differs. Brokers before 2.8 have no topic ids: there the number of partitions is
compared, and logs must not have become shorter.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.errors import ClusterReplaced, Reason, Refused
from kctl.model import ClusterState, TopicPartition, TopicState

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

ObjectFacts = Mapping[str, Mapping[str, object]]  # object, for example "topic orders" → its facts


TOPIC_ID = "topic id"
_SHOWN = 3


class Grows(int):
    """A number that never decreases: a smaller value belongs to a different object."""


@dataclass(frozen=True, slots=True)
class Basis:
    """The facts behind a plan, and a function that reads them again. Objects missing in its result no longer exist."""

    facts: ObjectFacts
    read_facts: Callable[[], ObjectFacts]

    def check(self) -> None:
        """Raise Refused if a fact changed. Raises the errors of the function that reads the facts."""
        try:
            now = self.read_facts()
        except ClusterReplaced as exc:
            raise Refused(exc.message, hint="nothing was changed", reason=Reason.WRONG_CLUSTER) from None
        changes = list(differences(self.facts, now))
        if changes:
            more = f"; and {len(changes) - _SHOWN} more changes" if len(changes) > _SHOWN else ""
            raise Refused(
                f"the cluster changed after the plan was made: {'; '.join(changes[:_SHOWN])}{more}",
                hint="nothing was changed; run the command again to plan from the current state",
                details={"changed": changes},
                reason=Reason.CHANGED_MEANWHILE,
            )

    def also(self, other: Basis) -> Basis:
        """Return a basis with the facts of both."""
        return Basis({**self.facts, **other.facts}, lambda: {**self.read_facts(), **other.read_facts()})


def differences(before: ObjectFacts, now: ObjectFacts) -> Iterable[str]:
    """Return a line for each fact that changed. Pure."""
    for subject, facts in before.items():
        if subject not in now:
            yield f"{subject} no longer exists"
            continue
        for name, value in facts.items():
            current = now[subject].get(name)
            if not _holds(value, current):
                if name == TOPIC_ID:
                    yield f"{subject} was deleted and recreated (topic id {value}, now {current})"
                    break
                yield f"{subject}: {name} was {_text(value)} and is now {_text(current)}"


def _holds(before: object, now: object) -> bool:
    if isinstance(before, Grows):
        return isinstance(now, int) and now >= before
    return before == now


def _text(value: object) -> str:
    if value is None:
        return "not set"
    return ",".join(map(str, value)) if isinstance(value, (tuple, list, frozenset)) else str(value)


def topics(
    client: ClusterClient,
    names: Collection[str],
    *,
    state: ClusterState | None = None,
    ids: Mapping[str, str | None] | None = None,
    replicas: bool = False,
) -> Basis:
    """Return a basis of topics, compared by topic id.

    state: the metadata of the plan; None: read it now. ids: the topic ids of a saved plan, which take precedence over
    `state`. replicas: also compare the replicas of each partition.
    """
    topic_names = sorted(set(names))
    if not topic_names:
        return Basis({}, dict)
    before = state if state is not None else client.metadata(topic_names)

    def facts(current: ClusterState) -> dict[str, dict[str, object]]:
        present = [current.topics[name] for name in topic_names if name in current.topics]
        ends = _log_ends(client, current, [topic for topic in present if _without_id(before, topic.name)])
        return {f"topic {t.name}": {**_topic_facts(t, replicas=replicas), **ends.get(t.name, {})} for t in present}

    basis = facts(before)
    for name, topic_id in (ids or {}).items():
        if topic_id is not None:
            basis[f"topic {name}"] = {**basis.get(f"topic {name}", {}), TOPIC_ID: topic_id}
    return Basis(basis, lambda: facts(client.metadata(topic_names)))


def _without_id(state: ClusterState, name: str) -> bool:
    return name in state.topics and state.topics[name].topic_id is None


def _topic_facts(topic: TopicState, *, replicas: bool) -> dict[str, object]:
    replica_facts = {f"replicas of partition {p.partition}": p.replicas for p in topic.partitions} if replicas else {}
    return {TOPIC_ID: topic.topic_id, "number of partitions": len(topic.partitions), **replica_facts}


def _log_ends(
    client: ClusterClient, state: ClusterState, without_id: Iterable[TopicState]
) -> dict[str, dict[str, object]]:
    """Return the log start and end of topics without an id; partitions without a leader are skipped."""
    from kctl.cluster.log_offsets import read_log_offsets

    partitions = [p.tp for topic in without_id for p in topic.partitions if not p.offline]
    if not partitions:
        return {}
    logs, _, _ = read_log_offsets(client, partitions, state=state)
    ends: dict[str, dict[str, object]] = {}
    for tp, log in logs.items():
        of_topic = ends.setdefault(tp.topic, {})
        of_topic[f"start of the log of partition {tp.partition}"] = Grows(log.start)
        of_topic[f"end of the log of partition {tp.partition}"] = Grows(log.end)
    return ends


def leaderless(client: ClusterClient, state: ClusterState, partitions: Collection[TopicPartition]) -> Basis:
    """Return a basis of partitions without a leader and of their replicas on live brokers."""
    names = {tp.topic for tp in partitions}
    selected = frozenset(partitions)

    def facts(current: ClusterState) -> dict[str, dict[str, object]]:
        return {
            f"partition {p.tp}": {
                "leader": "none" if p.offline else p.leader,
                "live replicas": tuple(node for node in p.replicas if node in current.brokers),
            }
            for topic in current.topics.values()
            for p in topic.partitions
            if p.tp in selected
        }

    return topics(client, names, state=state).also(Basis(facts(state), lambda: facts(client.metadata(names))))
