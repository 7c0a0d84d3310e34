"""The table of all doctor rules."""

from __future__ import annotations

from kctl.doctor import (
    rules_brokers,
    rules_clients,
    rules_consumers,
    rules_files,
    rules_groups,
    rules_producers,
    rules_security,
    rules_sizes,
    rules_state,
    rules_topics,
    rules_zookeeper,
)
from kctl.doctor.rule import Rule

# Subject → its rules, in display order.
SUBJECTS: dict[str, tuple[Rule, ...]] = {
    "state": rules_state.RULES,
    "brokers": rules_brokers.RULES,
    "sizes": rules_sizes.RULES,
    "security": rules_security.RULES,
    "topics": rules_topics.RULES,
    "groups": rules_groups.RULES,
    "zookeeper": rules_zookeeper.RULES,
    "files": rules_files.RULES,
    "clients": rules_clients.RULES,
    "producers": rules_producers.RULES,
    "consumers": rules_consumers.RULES,
}
RULES: tuple[Rule, ...] = tuple(rule for rules in SUBJECTS.values() for rule in rules)
