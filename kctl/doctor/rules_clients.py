"""Rules about settings that all clients have: the connection, and its secrets."""

from __future__ import annotations

from collections.abc import Callable

from kctl.doctor.listeners import is_loopback
from kctl.doctor.rule import Evaluate, Found, Rule, Severity, grouped_by_message
from kctl.doctor.rule_facts import RuleFacts, Settings


def _per_client(judge: Callable[[Settings], str | None]) -> Evaluate:
    def evaluate(facts: RuleFacts) -> list[Found]:
        return grouped_by_message((each.where, judge(each)) for each in facts.clients or ())

    return evaluate


def _protocol(settings: Settings) -> str:
    """Empty: set, and nobody tells to what."""
    if settings.hidden("security.protocol"):
        return ""
    return (settings.text("security.protocol") or "PLAINTEXT").strip().upper()


def _local(settings: Settings) -> bool:
    """Whether it only talks to this machine."""
    hosts = [server.rpartition(":")[0].strip("[]") for server in settings.items("bootstrap.servers")]
    return bool(hosts) and all(is_loopback(host) for host in hosts)


def _plaintext(settings: Settings) -> str | None:
    protocol = _protocol(settings)
    if protocol not in {"PLAINTEXT", "SASL_PLAINTEXT"} or _local(settings):
        return None
    return f"security.protocol={protocol}"


def _password(settings: Settings) -> str | None:
    if (settings.text("sasl.mechanism") or "").upper() != "PLAIN" or _protocol(settings) != "SASL_PLAINTEXT":
        return None
    return None if _local(settings) else "sasl.mechanism=PLAIN without TLS"


def _host_names(settings: Settings) -> str | None:
    name = "ssl.endpoint.identification.algorithm"
    if settings.values.get(name) != "" or not _protocol(settings).endswith("SSL"):
        return None
    return f"{name} is {'empty' if name in settings.given else 'not set'}"


def _one_server(settings: Settings) -> str | None:
    servers = settings.items("bootstrap.servers")
    return f"bootstrap.servers={servers[0]}" if len(servers) == 1 and not _local(settings) else None


_C = ("clients",)

RULES = (
    Rule(
        "client-plaintext", Severity.WARNING, "A client without TLS", _C,
        "Whoever sees the network reads records and can change them.",
        "Kafka's documentation, security.protocol", "security.protocol=SSL or SASL_SSL.", _per_client(_plaintext),
    ),
    Rule(
        "client-password", Severity.ERROR, "The client's password travels in the clear", _C,
        "SASL/PLAIN sends the password itself, and there is no TLS.",
        "Kafka's documentation, «Authentication using SASL/PLAIN»", "SASL_SSL, or SCRAM.", _per_client(_password),
    ),
    Rule(
        "client-host-names", Severity.WARNING, "Any server with a certificate will do", _C,
        "Without the check of host names whoever has a certificate of the same CA can stand between.",
        "KIP-294 (https by default since 2.0)", "ssl.endpoint.identification.algorithm=https",
        _per_client(_host_names),
    ),
    Rule(
        "client-one-server", Severity.INFO, "One server to begin with", _C,
        "While that broker is down the client cannot start, though the cluster is there.",
        "Kafka's documentation, bootstrap.servers", "Two or three servers, or a name that stands for several.",
        _per_client(_one_server),
    ),
)  # fmt: skip
