"""The effect of an unclean election on other topics. Pure except `OtherTopics.read`.

Two brokers are down at once: the paused follower and the killed leader. A partition with all replicas on these two
brokers and unclean elections enabled would lose records just like the test topic: its leader acknowledges alone and is
killed, and the follower is elected without those records. Such a pair is never selected. Topics that only reject writes
during the fault are reported before the run.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING

from kctl.cluster.topic_configs import ConfigEntry, fetch_topic_configs
from kctl.errors import KctlError, Reason, Refused
from kctl.health.partitions import effective_min_isr, partitions_of
from kctl.model import ClusterState
from kctl.restart.gate import UnprotectedTopic
from kctl.restart.snapshot import MinIsr
from kctl.validate.leftovers import PREFIX

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

UNCLEAN = "unclean.leader.election.enable"
Pair = tuple[int, int]
_SHOWN = 3


@dataclass(frozen=True)
class OtherTopics:
    """The brokers, and the topics that an unclean election puts at risk.

    controller: None if unknown or irrelevant. at_risk: pair of brokers → topics that have all replicas of a partition
    on them, with unclean elections enabled or unreadable settings. no_election: the reason why preferred
    leaders cannot be elected.
    """

    brokers: tuple[int, ...]
    controller: int | None
    at_risk: Mapping[frozenset[int], Sequence[str]] = field(default_factory=dict)
    no_election: str | None = None

    @classmethod
    def read(
        cls, client: ClusterClient, state: ClusterState, controller: int | None, no_election: str | None = None
    ) -> OtherTopics:
        """Read the topics at risk. Raises subclasses of ConnectionFailed."""
        brokers = tuple(sorted(state.brokers))
        topics = {topic for topics in on_two(state).values() for topic in topics}
        configs = fetch_topic_configs(client, topics, brokers, names=[UNCLEAN])
        unclean = {topic for topic in topics if elects_unclean(configs.get(topic))}
        return cls(brokers, controller, risks(state, unclean), no_election)

    def pair(self) -> Pair | None:
        """Return the leader and the follower of an unclean election, None if every pair has a topic at risk.

        The controller is avoided if possible: its loss would be a different test.
        """
        others = [broker for broker in self.brokers if broker != self.controller]
        for candidates in (others, self.brokers):
            for first, second in combinations(candidates, 2):
                if frozenset((first, second)) not in self.at_risk:
                    return first, second
        return None

    def why_none(self) -> str:
        """Return the reason why there is no `pair`."""
        topics = sorted({topic for topics in self.at_risk.values() for topic in topics})
        more = f" and {len(topics) - _SHOWN:,} more" if len(topics) > _SHOWN else ""
        return (
            "every pair of brokers holds all replicas of partitions with unclean elections enabled or unknown "
            f"({', '.join(topics[:_SHOWN])}{more}), which would lose acknowledged records"
        )

    def assignment(self) -> tuple[tuple[int, ...], ...]:
        """Return the assignment of one partition to the pair; empty without a pair."""
        pair = self.pair()
        return () if pair is None else (pair,)

    def required_assignment(self) -> tuple[tuple[int, ...], ...]:
        """Return the assignment. Raises Refused if there is no pair."""
        if not self.assignment():
            raise Refused(
                f"no two brokers can be stopped: {self.why_none()}",
                hint=f"set {UNCLEAN}=false on these topics",
                reason=Reason.IMPOSSIBLE,
            )
        return self.assignment()


def on_two(state: ClusterState) -> dict[frozenset[int], list[str]]:
    """Return pairs of brokers → other topics with a partition whose replicas are exactly on this pair."""
    by_pair: dict[frozenset[int], list[str]] = {}
    for p in partitions_of(state):
        if len(set(p.replicas)) == 2 and not p.topic.startswith(PREFIX):
            topics = by_pair.setdefault(frozenset(p.replicas), [])
            if p.topic not in topics[-1:]:  # partitions are grouped by topic
                topics.append(p.topic)
    return by_pair


def risks(state: ClusterState, unclean: Collection[str]) -> dict[frozenset[int], list[str]]:
    """Return the entries of `on_two`, reduced to the topics in `unclean`."""
    by_pair = {pair: [topic for topic in topics if topic in unclean] for pair, topics in on_two(state).items()}
    return {pair: topics for pair, topics in by_pair.items() if topics}


def elects_unclean(configs: Collection[ConfigEntry] | KctlError | None) -> bool:
    """Return True if a topic may elect unclean leaders.

    configs: non-default configs; unreadable configs count as True.
    """
    if configs is None or isinstance(configs, KctlError):
        return True
    return any(entry.name == UNCLEAN and entry.value != "false" for entry in configs)


def without_two(state: ClusterState, min_isr: MinIsr, pair: Collection[int] | None) -> list[UnprotectedTopic]:
    """Return other topics that reject writes or are unavailable only if two brokers are down, not if one is.

    pair: the two brokers; None: any two.
    """
    rows: dict[tuple[str, int, int, bool], int] = {}
    for p in partitions_of(state):
        min_insync, replicas = min_isr.get(p.topic), set(p.replicas)
        if not isinstance(min_insync, int) or p.topic.startswith(PREFIX):
            continue
        down_count = min(2, len(replicas)) if pair is None else len(replicas.intersection(pair))
        remaining, required = len(replicas) - down_count, effective_min_isr(p, min_insync)
        # Otherwise the loss of one broker is enough, and the topic is reported for all scenarios.
        if down_count == 2 and remaining < required and (remaining == 0 or required < len(replicas)):
            key = p.topic, len(p.replicas), min_insync, remaining == 0
            rows[key] = rows.get(key, 0) + 1
    when = "two brokers are down" if pair is None else "brokers {} and {} are down".format(*sorted(pair))
    return [
        UnprotectedTopic(
            topic, count, factor, min_insync, f"{'unavailable' if offline else 'acks=all writes rejected'} while {when}"
        )
        for (topic, factor, min_insync, offline), count in rows.items()
    ]
