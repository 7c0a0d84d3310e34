"""Rules about ZooKeeper: its servers, and what whoever reaches it may read and write."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kctl.base.text import counted
from kctl.doctor.rule import Found, Rule, Severity, Versions
from kctl.doctor.rule_facts import RuleFacts, ZooKeeperFacts, read_brokers, with_zookeeper
from kctl.zookeeper.nodes import Grant
from kctl.zookeeper.servers import problems

USERS = "/config/users"
# Nodes by which a cluster is steered: what is written there is obeyed.
STEERING = ("/brokers/ids", "/brokers/topics", "/controller", "/config", "/admin", "/kafka-acl")


def _facts(facts: RuleFacts) -> ZooKeeperFacts:
    assert isinstance(facts.zookeeper, ZooKeeperFacts)
    return facts.zookeeper


def _servers(facts: RuleFacts) -> list[Found]:
    servers = _facts(facts).servers
    wrong = {each.server: re.compile(rf"(?<!\S){re.escape(each.server)}(?![\w.])") for each in servers if each.problem}
    return [
        Found(line, tuple(name for name, named in wrong.items() if named.search(line))) for line in problems(servers)
    ]


def _voters(facts: RuleFacts) -> list[str]:
    return [each.server for each in _facts(facts).servers if each.mode != "observer"]


def _single(facts: RuleFacts) -> list[Found]:
    servers = _voters(facts)
    return [Found("one server", tuple(servers))] if len(servers) == 1 else []


def _even(facts: RuleFacts) -> list[Found]:
    servers = _voters(facts)
    if len(servers) < 2 or len(servers) % 2:
        return []
    return [Found(f"{len(servers)} servers survive {len(servers) // 2 - 1} losses, as one less would", tuple(servers))]


def open_to_all(grants: Sequence[Grant] | None, *permissions: str) -> bool:
    """Whether anybody has one of these permissions: «world:anyone»."""
    return any(
        grant.scheme == "world" and grant.id == "anyone" and set(grant.permissions) & set(permissions)
        for grant in grants or ()
    )


def _credentials(facts: RuleFacts) -> list[Found]:
    found = _facts(facts)
    # A user's node is made with the grants of its kind; that of the folder stands for them.
    paths = [path for path, grants in found.grants.items() if path.startswith(USERS) and open_to_all(grants, "read")]
    own = [path for path in paths if path != USERS]
    if not found.scram_users or not (own or paths):
        return []
    said = f"{counted(found.scram_users, 'SCRAM user')}, whose salts and keys anybody can read"
    return [Found(said, tuple(sorted(own or paths)))]


def _writable(facts: RuleFacts) -> list[Found]:
    grants = _facts(facts).grants
    paths = [path for path in STEERING if open_to_all(grants.get(path), "write", "create", "delete", "admin")]
    return [Found("anybody who reaches ZooKeeper can change them", tuple(paths))] if paths else []


def _will_go(facts: RuleFacts) -> list[Found]:
    old = tuple(each.where for each in read_brokers(facts) if with_zookeeper(each))
    return [Found("the metadata is in ZooKeeper", old)] if old else []


_Z = ("zookeeper",)
_BEFORE_4 = Versions(before=(4, 0))

RULES = (
    Rule(
        "zookeeper-servers", Severity.ERROR, "Not all of ZooKeeper's servers serve", _Z,
        "Without a majority there is no controller election, no new topic, no change of an ISR; brokers go on for a "
        "while.",
        "`kctl zk stat`", "Start the server, or look into its log.", _servers, _BEFORE_4,
    ),
    Rule(
        "zookeeper-single", Severity.WARNING, "ZooKeeper is one server", _Z,
        "While it is down the cluster takes no changes, and brokers that lose their session cannot come back; with "
        "its disk "
        "all metadata is gone.",
        "ZooKeeper's Administrator's Guide", "Three or five servers.", _single, _BEFORE_4,
    ),
    Rule(
        "zookeeper-even", Severity.WARNING, "An even number of ZooKeeper's servers", _Z,
        "A majority of four is three, as of five: the last server adds nothing but one more that can fail.",
        "ZooKeeper's Administrator's Guide", "An odd number: one less or one more.", _even, _BEFORE_4,
    ),
    Rule(
        "zookeeper-credentials", Severity.ERROR, "Anybody can read the users' credentials", _Z,
        "Salt, stored key and server key of SCRAM are enough to guess passwords offline, and to play the server.",
        "KIP-84, «Security Considerations»", "zookeeper.set.acl=true and zookeeper-security-migration.sh, and new "
        "passwords; or keep ZooKeeper's port from everybody but brokers.",
        _credentials, _BEFORE_4,
    ),
    Rule(
        "zookeeper-open", Severity.WARNING, "Anybody can change the cluster's metadata", _Z,
        "Whoever reaches ZooKeeper can delete topics, set configs and ACLs, and remove the controller, past all of "
        "Kafka's rights.",
        "Kafka's documentation, «ZooKeeper Authentication»", "zookeeper.set.acl=true and "
        "zookeeper-security-migration.sh; "
        "keep ZooKeeper's port from everybody but brokers.",
        _writable, _BEFORE_4,
    ),
    Rule(
        "zookeeper-ends", Severity.INFO, "Kafka 4 has no ZooKeeper", ("brokers",),
        "3.9 is the last line that runs with ZooKeeper, and the one from which to migrate.",
        "KIP-866", "Migrate to KRaft on 3.9 before 4.0.", _will_go, Versions(since=(3, 5), before=(4, 0)),
    ),
)  # fmt: skip
