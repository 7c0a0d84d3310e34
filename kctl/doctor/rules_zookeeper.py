"""Rules about ZooKeeper: its servers, and the nodes that unauthenticated clients can read or write."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kctl.base.text import counted
from kctl.doctor.rule import Issue, Rule, Severity, Versions
from kctl.doctor.rule_facts import RuleFacts, ZooKeeperFacts, readable_brokers, uses_zookeeper
from kctl.zookeeper.nodes import Grant
from kctl.zookeeper.servers import problems

USERS = "/config/users"
# Brokers and the controller act on what these nodes contain.
METADATA_NODES = ("/brokers/ids", "/brokers/topics", "/controller", "/config", "/admin", "/kafka-acl")


def _zookeeper_facts(facts: RuleFacts) -> ZooKeeperFacts:
    assert isinstance(facts.zookeeper, ZooKeeperFacts)
    return facts.zookeeper


def _servers(facts: RuleFacts) -> list[Issue]:
    servers = _zookeeper_facts(facts).servers
    names = {each.server: re.compile(rf"(?<!\S){re.escape(each.server)}(?![\w.])") for each in servers if each.problem}
    return [
        Issue(line, tuple(name for name, pattern in names.items() if pattern.search(line)))
        for line in problems(servers)
    ]


def _voters(facts: RuleFacts) -> list[str]:
    return [each.server for each in _zookeeper_facts(facts).servers if each.mode != "observer"]


def _single(facts: RuleFacts) -> list[Issue]:
    servers = _voters(facts)
    return [Issue("1 server", tuple(servers))] if len(servers) == 1 else []


def _even(facts: RuleFacts) -> list[Issue]:
    servers = _voters(facts)
    if len(servers) < 2 or len(servers) % 2:
        return []
    return [
        Issue(
            f"{len(servers)} servers survive {counted(len(servers) // 2 - 1, 'failure')}, like {len(servers) - 1}",
            tuple(servers),
        )
    ]


def is_open_to_anyone(grants: Sequence[Grant] | None, *permissions: str) -> bool:
    """Return True if world:anyone has one of these permissions."""
    return any(
        grant.scheme == "world" and grant.id == "anyone" and set(grant.permissions) & set(permissions)
        for grant in grants or ()
    )


def _credentials(facts: RuleFacts) -> list[Issue]:
    zookeeper = _zookeeper_facts(facts)
    # If no user node is readable, check their parent instead: user nodes are created with its ACL.
    paths = [
        path
        for path, grants in zookeeper.grants.items()
        if path.startswith(USERS) and is_open_to_anyone(grants, "read")
    ]
    users = [path for path in paths if path != USERS]
    if not zookeeper.scram_users or not (users or paths):
        return []
    message = f"anyone can read the salts and keys of {counted(zookeeper.scram_users, 'SCRAM user')}"
    return [Issue(message, tuple(sorted(users or paths)))]


def _writable(facts: RuleFacts) -> list[Issue]:
    grants = _zookeeper_facts(facts).grants
    paths = [
        path for path in METADATA_NODES if is_open_to_anyone(grants.get(path), "write", "create", "delete", "admin")
    ]
    return [Issue("anyone who can connect to ZooKeeper can change these nodes", tuple(paths))] if paths else []


def _uses_zookeeper(facts: RuleFacts) -> list[Issue]:
    brokers = tuple(each.owner for each in readable_brokers(facts) if uses_zookeeper(each))
    return [Issue("metadata is stored in ZooKeeper", brokers)] if brokers else []


_Z = ("zookeeper",)
_BEFORE_4 = Versions(before=(4, 0))

RULES = (
    Rule(
        "zookeeper-servers", Severity.ERROR, "ZooKeeper servers are not serving", _Z,
        "Without a majority of the servers, there is no controller election, no new topic and no ISR change. Brokers "
        "keep serving clients for a while.",
        "`kctl zk stat`", "Start the server, or check its log.", _servers, _BEFORE_4,
    ),
    Rule(
        "zookeeper-single", Severity.WARNING, "ZooKeeper has only one server", _Z,
        "While it is down, the cluster accepts no metadata changes, and brokers that lose their session cannot "
        "rejoin. If its disk fails, all metadata is lost.",
        "ZooKeeper Administrator's Guide", "Run three or five ZooKeeper servers.", _single, _BEFORE_4,
    ),
    Rule(
        "zookeeper-even", Severity.WARNING, "ZooKeeper has an even number of servers", _Z,
        "Four servers need a majority of three, as five do. The last server only adds one more that can fail.",
        "ZooKeeper Administrator's Guide", "Remove or add one server.", _even, _BEFORE_4,
    ),
    Rule(
        "zookeeper-credentials", Severity.ERROR, "Anyone can read the users' credentials", _Z,
        "With the salt, stored key and server key of SCRAM, an attacker can guess passwords offline and impersonate "
        "the broker.",
        "KIP-84, \"Security Considerations\"",
        "Set zookeeper.set.acl=true, run zookeeper-security-migration.sh, and change the passwords (`kctl user add`). "
        "Or restrict the ZooKeeper port to the brokers.",
        _credentials, _BEFORE_4,
    ),
    Rule(
        "zookeeper-open", Severity.WARNING, "Anyone can change the cluster metadata", _Z,
        "Anyone who can connect to ZooKeeper can delete topics, set configs and ACLs, and remove the controller, "
        "without Kafka's authorization.",
        "Kafka's documentation, \"ZooKeeper Authentication\"",
        "Set zookeeper.set.acl=true and run zookeeper-security-migration.sh. Restrict the ZooKeeper port to the "
        "brokers.",
        _writable, _BEFORE_4,
    ),
    Rule(
        "zookeeper-ends", Severity.INFO, "Kafka 4 does not support ZooKeeper", ("brokers",),
        "3.9 is the last release line that runs with ZooKeeper, and the one to migrate from.",
        "KIP-866", "Migrate to KRaft on 3.9 before you upgrade to 4.0.", _uses_zookeeper,
        Versions(since=(3, 5), before=(4, 0)),
    ),
)  # fmt: skip
