"""Rules about connection and security settings of producers and consumers."""

from __future__ import annotations

from collections.abc import Callable

from kctl.doctor.listeners import is_loopback
from kctl.doctor.rule import Evaluate, Issue, Rule, Severity, grouped_by_message
from kctl.doctor.rule_facts import EffectiveSettings, RuleFacts


def _per_client(judge: Callable[[EffectiveSettings], str | None]) -> Evaluate:
    def evaluate(facts: RuleFacts) -> list[Issue]:
        return grouped_by_message((each.owner, judge(each)) for each in facts.clients or ())

    return evaluate


def _protocol(settings: EffectiveSettings) -> str:
    """Return security.protocol in upper case; empty if the value is not disclosed."""
    if settings.is_hidden("security.protocol"):
        return ""
    return (settings.text("security.protocol") or "PLAINTEXT").strip().upper()


def _is_local(settings: EffectiveSettings) -> bool:
    """Return True if every bootstrap server is on loopback."""
    hosts = [server.rpartition(":")[0].strip("[]") for server in settings.items("bootstrap.servers")]
    return bool(hosts) and all(is_loopback(host) for host in hosts)


def _plaintext(settings: EffectiveSettings) -> str | None:
    protocol = _protocol(settings)
    if protocol not in {"PLAINTEXT", "SASL_PLAINTEXT"} or _is_local(settings):
        return None
    return f"security.protocol={protocol}"


def _password(settings: EffectiveSettings) -> str | None:
    if (settings.text("sasl.mechanism") or "").upper() != "PLAIN" or _protocol(settings) != "SASL_PLAINTEXT":
        return None
    return None if _is_local(settings) else "sasl.mechanism=PLAIN without TLS"


def _host_names(settings: EffectiveSettings) -> str | None:
    name = "ssl.endpoint.identification.algorithm"
    if settings.values.get(name) != "" or not _protocol(settings).endswith("SSL"):
        return None
    return f"{name} is {'empty' if name in settings.explicit else 'not set'}"


def _one_server(settings: EffectiveSettings) -> str | None:
    servers = settings.items("bootstrap.servers")
    return f"bootstrap.servers={servers[0]}" if len(servers) == 1 and not _is_local(settings) else None


_C = ("clients",)

RULES = (
    Rule(
        "client-plaintext", Severity.WARNING, "The client connects without TLS", _C,
        "Anyone who can see the network traffic can read and change the records.",
        "Kafka's documentation, security.protocol", "Set security.protocol=SSL or SASL_SSL.", _per_client(_plaintext),
    ),
    Rule(
        "client-password", Severity.ERROR, "The client sends its password in clear text", _C,
        "SASL/PLAIN sends the password itself, and this connection is not encrypted.",
        "Kafka's documentation, \"Authentication using SASL/PLAIN\"",
        "Set security.protocol=SASL_SSL, or use SCRAM.", _per_client(_password),
    ),
    Rule(
        "client-host-names", Severity.WARNING, "The client does not verify the broker's host name", _C,
        "Anyone with a certificate of the same CA can impersonate a broker.",
        "KIP-294 (default: https since 2.0)", "Set ssl.endpoint.identification.algorithm=https.",
        _per_client(_host_names),
    ),
    Rule(
        "client-one-server", Severity.INFO, "Only one bootstrap server", _C,
        "While that broker is down, the client cannot start, even though the cluster is up.",
        "Kafka's documentation, bootstrap.servers",
        "List two or three brokers in bootstrap.servers, or a DNS name that resolves to several.",
        _per_client(_one_server),
    ),
)  # fmt: skip
