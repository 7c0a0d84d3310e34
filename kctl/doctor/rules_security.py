"""Rules about network access and authorization: listeners, authorizers, super users."""

from __future__ import annotations

from kctl.doctor.listeners import client_listeners, is_loopback, is_wildcard, open_listeners
from kctl.doctor.rule import Issue, Rule, Severity, Versions, grouped_by_message
from kctl.doctor.rule_facts import EffectiveSettings, RuleFacts, uses_zookeeper
from kctl.doctor.rules_sizes import per_broker
from kctl.model import ClusterState


def _advertised(facts: RuleFacts) -> list[Issue]:
    """Check the addresses that brokers return to clients of the bootstrap listener.

    Loopback addresses are expected if kctl itself connected through loopback.
    """
    assert isinstance(facts.state, ClusterState)
    assert facts.bootstrap_host is not None
    rows = [
        (f"broker {broker.id}", f"clients are directed to {broker.host}:{broker.port}")
        for _, broker in sorted(facts.state.brokers.items())
        if is_loopback(broker.host) or is_wildcard(broker.host)
    ]
    if not rows:
        return []
    if not is_loopback(facts.bootstrap_host):
        return grouped_by_message(rows)
    names = tuple(subject for subject, _ in rows)
    return [Issue("only clients on the broker machine can connect", names, Severity.INFO)]


def _other_listeners(settings: EffectiveSettings) -> str | None:
    """Report loopback addresses beside addresses that other machines can reach; one of the two is unusual."""
    listeners = client_listeners(settings)
    local = [each for each in listeners if is_loopback(each.host)]
    if not local or len(local) == len(listeners):
        return None
    return f"{', '.join(map(str, local))} beside {', '.join(str(each) for each in listeners if each not in local)}"


def _plaintext(settings: EffectiveSettings) -> str | None:
    listeners = open_listeners(settings, "PLAINTEXT", "SASL_PLAINTEXT")
    return f"without TLS: {', '.join(map(str, listeners))}" if listeners else None


def _passwords_in_the_clear(settings: EffectiveSettings) -> str | None:
    listeners = open_listeners(settings, "SASL_PLAINTEXT")
    if not listeners or "PLAIN" not in settings.items("sasl.enabled.mechanisms"):
        return None
    return f"sasl.enabled.mechanisms includes PLAIN, and {', '.join(map(str, listeners))} has no TLS"


def _authorizer(settings: EffectiveSettings) -> str | None:
    name = "authorizer.class.name"
    if name not in settings.values or settings.text(name) or settings.is_hidden(name):
        return None
    return f"{name} is not set"


def _super_users(settings: EffectiveSettings) -> str | None:
    if settings.text("authorizer.class.name") and "super.users" not in settings.explicit:
        return "authorizer.class.name is set, super.users is not"
    return None


def _anonymous(settings: EffectiveSettings) -> str | None:
    users = (user.strip() for user in (settings.text("super.users") or "").split(";"))
    return "super.users includes User:ANONYMOUS" if "User:ANONYMOUS" in users else None


def _anonymous_in_files(facts: RuleFacts) -> list[Issue]:
    return grouped_by_message((each.owner, _anonymous(each)) for each in facts.broker_files or ())


def _everyone(settings: EffectiveSettings) -> str | None:
    name = "allow.everyone.if.no.acl.found"
    if name not in settings.explicit or settings.boolean(name) is False:
        return None
    value = settings.text(name)
    return f"{name}={value}" if value else f"{name} is set; brokers do not disclose the value"


def _zookeeper_acl(settings: EffectiveSettings) -> str | None:
    if not uses_zookeeper(settings) or settings.boolean("zookeeper.set.acl") is not False:
        return None
    scram = any(each.startswith("SCRAM") for each in settings.items("sasl.enabled.mechanisms"))
    if not scram and not settings.text("authorizer.class.name"):
        return None
    objects = " and ".join(
        name for name, used in (("ACLs", settings.text("authorizer.class.name")), ("SCRAM users", scram)) if used
    )
    return f"{objects} are stored in ZooKeeper, with zookeeper.set.acl=false"


_B = ("brokers",)

RULES = (
    Rule(
        "advertised-listeners", Severity.ERROR, "Clients are directed to addresses that they cannot reach",
        ("state", "bootstrap_host"),
        "Brokers return advertised.listeners to clients, and clients connect to these addresses. A loopback address "
        "sends each client to its own machine. (The severity is info if the check connected through loopback.)",
        "Kafka's documentation, advertised.listeners",
        "Set advertised.listeners on each broker to a host name that clients can resolve.",
        _advertised,
    ),
    Rule(
        "mixed-listeners", Severity.INFO, "Some listeners are advertised on loopback, others are not", _B,
        "Only clients on the broker machine can use the loopback listener. That is right for a sidecar; otherwise it "
        "is a mistake.",
        "Kafka's documentation, advertised.listeners",
        "Check whether this is intended. If not, advertise a host name in advertised.listeners.",
        per_broker(_other_listeners),
    ),
    Rule(
        "plaintext-listeners", Severity.WARNING, "Listeners without TLS", _B,
        "Anyone who can see the network traffic can read and change the records. Without SASL, clients are not "
        "authenticated.",
        "Kafka's documentation, \"Security\"", "Use SSL or SASL_SSL in listener.security.protocol.map.",
        per_broker(_plaintext),
    ),
    Rule(
        "clear-passwords", Severity.ERROR, "Passwords are sent in clear text", _B,
        "SASL/PLAIN sends the password itself, and the listener has no TLS.",
        "Kafka's documentation, \"Authentication using SASL/PLAIN\"",
        "Use SASL_SSL for the listener, or SCRAM instead of PLAIN.",
        per_broker(_passwords_in_the_clear), Versions(since=(0, 10)),
    ),
    Rule(
        "no-authorizer", Severity.WARNING, "No authorizer: all clients may do everything", _B,
        "Anyone who can connect to a broker can read, write and delete all topics.",
        "Kafka's documentation, \"Authorization and ACLs\"",
        "Set authorizer.class.name: AclAuthorizer with ZooKeeper, StandardAuthorizer with KRaft.",
        per_broker(_authorizer),
    ),
    Rule(
        "no-super-users", Severity.WARNING, "No super user can repair the ACLs", _B,
        "With an authorizer and no super user, one wrong ACL can lock out everyone, including the brokers.",
        "Kafka's documentation, super.users", "Set super.users=User:admin in server.properties.",
        per_broker(_super_users),
    ),
    Rule(
        "anonymous-super-user", Severity.ERROR, "Unauthenticated clients are super users", ("broker_files",),
        "User:ANONYMOUS is every client of a listener without authentication. (Live brokers do not disclose "
        "super.users, so this rule checks files only.)",
        "Kafka's documentation, super.users", "Remove User:ANONYMOUS from super.users and list real users.",
        _anonymous_in_files,
    ),
    Rule(
        "allow-everyone", Severity.WARNING, "Resources without an ACL are open to everyone", _B,
        "A new topic is open to all clients until its first ACL. That ACL then shuts out all other clients.",
        "Kafka's documentation, allow.everyone.if.no.acl.found", "Remove allow.everyone.if.no.acl.found.",
        per_broker(_everyone),
    ),
    Rule(
        "zookeeper-set-acl", Severity.WARNING, "Brokers write to ZooKeeper without ACLs", _B,
        "Anyone who can connect to ZooKeeper can read and change its nodes: write ACLs without Kafka's authorization, "
        "and read SCRAM salts and keys.",
        "Kafka's documentation, \"ZooKeeper Authentication\"",
        "Set up SASL or mutual TLS to ZooKeeper, set zookeeper.set.acl=true, and run zookeeper-security-migration.sh.",
        per_broker(_zookeeper_acl), Versions(since=(0, 9), before=(4, 0)),
    ),
)  # fmt: skip
