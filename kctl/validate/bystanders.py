"""What an unclean election does to topics of others: two brokers are away at once, the follower behind and then the
leader killed. Pure but for `Bystanders.read`.

A partition that has all its replicas on these two, and elects unclean leaders, goes through the same election as the
validation's own: its leader acknowledges alone, is killed, and the other one is elected without those records. So such
a pair is never chosen. What only stops taking writes meanwhile is told before.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING

from kctl.cluster.topic_configs import ConfigEntry, fetch_topic_configs
from kctl.errors import KctlError, Refused
from kctl.health.partitions import effective_min_isr, partitions_of
from kctl.model import ClusterState
from kctl.restart.gate import UnprotectedTopic
from kctl.restart.snapshot import MinIsr
from kctl.validate.leftovers import PREFIX

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

UNCLEAN = "unclean.leader.election.enable"
Pair = tuple[int, int]
_NAMED = 3


@dataclass(frozen=True)
class Bystanders:
    """controller: None when there is none, or it is no matter. at_risk: by pair of brokers, the topics that have all
    replicas of a partition there and elect unclean leaders, or may: nobody told. no_election: why preferred leaders
    cannot be elected."""

    brokers: tuple[int, ...]
    controller: int | None
    at_risk: Mapping[frozenset[int], Sequence[str]] = field(default_factory=dict)
    no_election: str | None = None

    @classmethod
    def read(
        cls, client: ClusterClient, state: ClusterState, controller: int | None, no_election: str | None = None
    ) -> Bystanders:
        """Raises ConnectionFailed's subclasses."""
        brokers = tuple(sorted(state.brokers))
        topics = {topic for found in on_two(state).values() for topic in found}
        configs = fetch_topic_configs(client, topics, brokers, names=[UNCLEAN])
        unclean = {topic for topic in topics if elects_unclean(configs.get(topic))}
        return cls(brokers, controller, risks(state, unclean), no_election)

    def pair(self) -> Pair | None:
        """The leader and the follower of an unclean election; None where each pair has a topic at risk, or there is
        none. Not the controller where others are enough: its loss would be another test."""
        others = [broker for broker in self.brokers if broker != self.controller]
        for candidates in (others, self.brokers):
            for first, second in combinations(candidates, 2):
                if frozenset((first, second)) not in self.at_risk:
                    return first, second
        return None

    def why_none(self) -> str:
        """What keeps `pair` from finding any."""
        topics = sorted({topic for found in self.at_risk.values() for topic in found})
        more = f" and {len(topics) - _NAMED:,} more" if len(topics) > _NAMED else ""
        return (
            f"every two brokers have all replicas of partitions that elect unclean leaders, or may "
            f"({', '.join(topics[:_NAMED])}{more}): what was acknowledged to others would be lost"
        )

    def assignment(self) -> tuple[tuple[int, ...], ...]:
        """One partition on the pair; none without a pair."""
        found = self.pair()
        return () if found is None else (found,)

    def placed(self) -> tuple[tuple[int, ...], ...]:
        """`assignment`; raises Refused when there is no pair."""
        if not self.assignment():
            raise Refused(
                f"no two brokers can be taken away: {self.why_none()}", hint=f"set {UNCLEAN}=false on these topics"
            )
        return self.assignment()


def on_two(state: ClusterState) -> dict[frozenset[int], list[str]]:
    """By two brokers, topics of others with a partition that has replicas on both and nowhere else."""
    found: dict[frozenset[int], list[str]] = {}
    for p in partitions_of(state):
        if len(set(p.replicas)) == 2 and not p.topic.startswith(PREFIX):
            topics = found.setdefault(frozenset(p.replicas), [])
            if p.topic not in topics[-1:]:  # partitions come by topic
                topics.append(p.topic)
    return found


def risks(state: ClusterState, unclean: Collection[str]) -> dict[frozenset[int], list[str]]:
    """Of `on_two`, what is among `unclean`."""
    found = {pair: [topic for topic in topics if topic in unclean] for pair, topics in on_two(state).items()}
    return {pair: topics for pair, topics in found.items() if topics}


def elects_unclean(configs: Collection[ConfigEntry] | KctlError | None) -> bool:
    """Among a topic's configs that are not the default. What nobody told may be so."""
    if configs is None or isinstance(configs, KctlError):
        return True
    return any(entry.name == UNCLEAN and entry.value != "false" for entry in configs)


def without_two(state: ClusterState, min_isr: MinIsr, pair: Collection[int] | None) -> list[UnprotectedTopic]:
    """Topics of others that stop taking writes, or are gone, while two brokers are away though one could be.

    pair: which two; None where that is not known yet: any.
    """
    rows: dict[tuple[str, int, int, bool], int] = {}
    for p in partitions_of(state):
        least, replicas = min_isr.get(p.topic), set(p.replicas)
        if not isinstance(least, int) or p.topic.startswith(PREFIX):
            continue
        hit = min(2, len(replicas)) if pair is None else len(replicas.intersection(pair))
        left, needed = len(replicas) - hit, effective_min_isr(p, least)
        if hit == 2 and left < needed and (left == 0 or needed < len(replicas)):  # else one is too many: told of all
            key = p.topic, len(p.replicas), least, left == 0
            rows[key] = rows.get(key, 0) + 1
    two = "two brokers are away" if pair is None else "brokers {} and {} are away".format(*sorted(pair))
    return [
        UnprotectedTopic(topic, count, factor, least, f"{'not available' if gone else 'acks=all refused'} while {two}")
        for (topic, factor, least, gone), count in rows.items()
    ]
