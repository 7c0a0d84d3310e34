"""Rules about who reaches a cluster and what they may: listeners, authorizers, super users."""

from __future__ import annotations

from kctl.doctor.listeners import client_listeners, is_loopback, is_wildcard, open_listeners
from kctl.doctor.rule import Found, Rule, Severity, Versions, grouped_by_message
from kctl.doctor.rule_facts import RuleFacts, Settings, with_zookeeper
from kctl.doctor.rules_sizes import per_broker
from kctl.model import ClusterState


def _advertised(facts: RuleFacts) -> list[Found]:
    """As clients of the listener that was asked see it. Through a loopback address that is what is to be expected."""
    assert isinstance(facts.state, ClusterState)
    assert facts.reached is not None
    rows = [
        (f"broker {broker.id}", f"clients are told to go to {broker.host}:{broker.port}")
        for _, broker in sorted(facts.state.brokers.items())
        if is_loopback(broker.host) or is_wildcard(broker.host)
    ]
    local = is_loopback(facts.reached)
    if not rows:
        return []
    if not local:
        return grouped_by_message(rows)
    names = tuple(subject for subject, _ in rows)
    return [Found("only clients on the brokers' own machine reach them", names, Severity.INFO)]


def _other_listeners(settings: Settings) -> str | None:
    """Loopback beside addresses that others reach: which is right cannot be told, but one of them is odd."""
    found = client_listeners(settings)
    local = [each for each in found if is_loopback(each.host)]
    if not local or len(local) == len(found):
        return None
    return f"{', '.join(map(str, local))} beside {', '.join(str(each) for each in found if each not in local)}"


def _plaintext(settings: Settings) -> str | None:
    found = open_listeners(settings, "PLAINTEXT", "SASL_PLAINTEXT")
    return f"without TLS: {', '.join(map(str, found))}" if found else None


def _passwords_in_the_clear(settings: Settings) -> str | None:
    found = open_listeners(settings, "SASL_PLAINTEXT")
    if not found or "PLAIN" not in settings.items("sasl.enabled.mechanisms"):
        return None
    return f"sasl.enabled.mechanisms has PLAIN, and {', '.join(map(str, found))} no TLS"


def _authorizer(settings: Settings) -> str | None:
    name = "authorizer.class.name"
    if name not in settings.values or settings.text(name) or settings.hidden(name):
        return None
    return f"{name} is not set"


def _super_users(settings: Settings) -> str | None:
    if settings.text("authorizer.class.name") and "super.users" not in settings.given:
        return "an authorizer, and super.users is not set"
    return None


def _anonymous(settings: Settings) -> str | None:
    users = (user.strip() for user in (settings.text("super.users") or "").split(";"))
    return "super.users has User:ANONYMOUS" if "User:ANONYMOUS" in users else None


def _anonymous_in_files(facts: RuleFacts) -> list[Found]:
    return grouped_by_message((each.where, _anonymous(each)) for each in facts.broker_files or ())


def _everyone(settings: Settings) -> str | None:
    name = "allow.everyone.if.no.acl.found"
    if name not in settings.given or settings.truth(name) is False:
        return None
    told = settings.text(name)
    return f"{name}={told}" if told else f"{name} is set; brokers do not tell to what"


def _zookeeper_acl(settings: Settings) -> str | None:
    if not with_zookeeper(settings) or settings.truth("zookeeper.set.acl") is not False:
        return None
    scram = any(each.startswith("SCRAM") for each in settings.items("sasl.enabled.mechanisms"))
    if not scram and not settings.text("authorizer.class.name"):
        return None
    kept = " and ".join(
        each for each, there in (("ACLs", settings.text("authorizer.class.name")), ("SCRAM users", scram)) if there
    )
    return f"{kept} are kept in ZooKeeper, with zookeeper.set.acl=false"


_B = ("brokers",)

RULES = (
    Rule(
        "advertised-listeners", Severity.ERROR, "Clients are sent to addresses that they cannot reach",
        ("state", "reached"),
        "Listeners are where a broker binds, not a filter; where clients go then is advertised.listeners. A loopback "
        "address leads each client to its own machine. (info: this very cluster was reached through a loopback "
        "address.)",
        "Kafka's documentation, advertised.listeners", "advertised.listeners with a name that clients can resolve, "
        "on each "
        "broker.",
        _advertised,
    ),
    Rule(
        "mixed-listeners", Severity.INFO, "One listener is advertised on loopback, another is not", _B,
        "Clients of the listener on loopback can only be on the broker's own machine: right for a side-car, else a "
        "slip.",
        "Kafka's documentation, advertised.listeners", "Look whether that is meant.", per_broker(_other_listeners),
    ),
    Rule(
        "plaintext-listeners", Severity.WARNING, "Listeners without TLS", _B,
        "Whoever sees the network reads records and can change them; without SASL, nobody knows who a client is.",
        "Kafka's documentation, «Security»", "SSL or SASL_SSL in listener.security.protocol.map.",
        per_broker(_plaintext),
    ),
    Rule(
        "clear-passwords", Severity.ERROR, "Passwords travel in the clear", _B,
        "SASL/PLAIN sends the password itself, and the listener has no TLS.",
        "Kafka's documentation, «Authentication using SASL/PLAIN»", "SASL_SSL, or SCRAM.",
        per_broker(_passwords_in_the_clear), Versions(since=(0, 10)),
    ),
    Rule(
        "no-authorizer", Severity.WARNING, "Everybody may do everything", _B,
        "Without an authorizer, whoever reaches a broker can read, write and delete all topics.",
        "Kafka's documentation, «Authorization and ACLs»",
        "authorizer.class.name: AclAuthorizer with ZooKeeper, StandardAuthorizer with KRaft.", per_broker(_authorizer),
    ),
    Rule(
        "no-super-users", Severity.WARNING, "Nobody can repair the ACLs", _B,
        "With an authorizer and no super user, a wrong ACL can lock everybody out, brokers too.",
        "Kafka's documentation, super.users", "super.users=User:admin in server.properties.", per_broker(_super_users),
    ),
    Rule(
        "anonymous-super-user", Severity.ERROR, "Whoever does not log in is super user", ("broker_files",),
        "User:ANONYMOUS is every client of a listener without authentication. (Running brokers do not tell "
        "super.users: "
        "this is seen in files only.)",
        "Kafka's documentation, super.users", "Name real users.", _anonymous_in_files,
    ),
    Rule(
        "allow-everyone", Severity.WARNING, "What has no ACL is open", _B,
        "A new topic is open to all until its first ACL, and that one closes it to all others.",
        "Kafka's documentation, allow.everyone.if.no.acl.found", "Remove allow.everyone.if.no.acl.found.",
        per_broker(_everyone),
    ),
    Rule(
        "zookeeper-set-acl", Severity.WARNING, "What brokers write to ZooKeeper is open", _B,
        "ZooKeeper is readable, and its nodes changeable, for whoever reaches it: ACLs can be written past Kafka, and "
        "SCRAM's salts and keys be read.",
        "Kafka's documentation, «ZooKeeper Authentication»", "SASL or mutual TLS to ZooKeeper, "
        "zookeeper.set.acl=true, then "
        "zookeeper-security-migration.sh.",
        per_broker(_zookeeper_acl), Versions(since=(0, 9), before=(4, 0)),
    ),
)  # fmt: skip
