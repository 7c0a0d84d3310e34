"""The names of client properties: the keys that kctl reads, the keys without effect, and the keys that it refuses.

Sources: Kafka 3.9.2's and 4.3's ConfigDefs (SslConfigs, SaslConfigs, CommonClientConfigs), librdkafka's
CONFIGURATION.md, Spring Boot's KafkaProperties.
"""

from __future__ import annotations

import re

BOOTSTRAP = "bootstrap.servers"
PROTOCOL = "security.protocol"
MECHANISM = "sasl.mechanism"
JAAS = "sasl.jaas.config"
USERNAME, PASSWORD = "sasl.username", "sasl.password"
KEY_PASSWORD = "ssl.key.password"  # noqa: S105 - a name
CHECK_HOSTNAME = "ssl.endpoint.identification.algorithm"
VERIFICATION = "enable.ssl.certificate.verification"
PROTOCOLS, CIPHERS = "ssl.enabled.protocols", "ssl.cipher.suites"

# Two names of one setting.
SYNONYMS = {"metadata.broker.list": BOOTSTRAP, "sasl.mechanisms": MECHANISM}

# librdkafka's names for settings that have another name in Kafka's clients.
IN_KAFKA = {
    **SYNONYMS,
    USERNAME: JAAS,
    PASSWORD: JAAS,
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.certificate.location": "ssl.keystore.location",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "ssl.key.location": "ssl.keystore.location",
    "ssl.key.pem": "ssl.keystore.key",
}

# Without security.protocol, Kafka's clients ignore these keys and connect in plaintext.
SASL_KEYS = frozenset({MECHANISM, JAAS, USERNAME, PASSWORD})
STORE_KEYS = frozenset(
    {
        "ssl.truststore.location", "ssl.truststore.type", "ssl.truststore.certificates",
        "ssl.keystore.location", "ssl.keystore.type", "ssl.keystore.key", "ssl.keystore.certificate.chain",
        KEY_PASSWORD, "ssl.ca.location", "ssl.ca.pem", "ssl.certificate.location", "ssl.certificate.pem",
        "ssl.key.location", "ssl.key.pem", VERIFICATION,
    }
)  # fmt: skip
READ = SASL_KEYS | STORE_KEYS | {BOOTSTRAP, PROTOCOL, CHECK_HOSTNAME, PROTOCOLS, CIPHERS}
SECRETS = frozenset({JAAS, PASSWORD, KEY_PASSWORD, "ssl.keystore.key", "ssl.key.pem"})

# Known, but without effect on PLAIN or SCRAM logins and on TLS with PEM files.
HARMLESS = frozenset(
    {
        "ssl.protocol", "ssl.keymanager.algorithm", "ssl.trustmanager.algorithm", "ssl.secure.random.implementation",
        "ssl.truststore.password", "ssl.keystore.password", "ssl.ca.certificate.stores", "https.ca.location",
        "https.ca.pem", "enable.sasl.oauthbearer.unsecure.jwt", "ssl.engine.id",
    }
)  # fmt: skip
# For other SASL mechanisms, and for other programs that read the same file (schema registry, interceptors, Connect).
HARMLESS_PREFIXES = (
    "sasl.kerberos.", "sasl.login.", "sasl.oauthbearer.", "schema.registry.", "basic.auth.", "confluent.",
    "key.converter.", "value.converter.", "zookeeper.", "config.providers.",
)  # fmt: skip

_JAVA_CLASS = "it names a Java class, which kctl cannot load"
_OPENSSL = "OpenSSL decides this in kctl, so the restriction would be lost"
REFUSED = {
    "sasl.client.callback.handler.class": _JAVA_CLASS,
    "sasl.login.callback.handler.class": _JAVA_CLASS,
    "sasl.login.class": _JAVA_CLASS,
    "ssl.engine.factory.class": _JAVA_CLASS,
    "ssl.provider": _JAVA_CLASS,
    "security.providers": _JAVA_CLASS,
    "ssl.crl.location": "kctl does not check revocation lists",
    "ssl.curves.list": _OPENSSL,
    "ssl.sigalgs.list": _OPENSSL,
    "ssl.providers": _OPENSSL,
    "ssl.engine.location": _OPENSSL,
}
# Keys of brokers and of other programs, with the client's key for the same purpose.
MISTAKEN = {
    "security.inter.broker.protocol": PROTOCOL,
    "listener.security.protocol.map": PROTOCOL,
    "sasl.mechanism.inter.broker.protocol": MECHANISM,
    "sasl.enabled.mechanisms": MECHANISM,
    "ssl.client.auth": "ssl.keystore.location",
    "java.security.auth.login.config": JAAS,
    "ssl.ca": "ssl.ca.location",
    "ssl.cafile": "ssl.ca.location",
    "ssl.cert": "ssl.certificate.location",
    "ssl.key": "ssl.key.location",
    "ssl.certfile": "ssl.certificate.location",
    "ssl.keyfile": "ssl.key.location",
    "ssl.check.hostname": CHECK_HOSTNAME,
    "sasl.plain.username": USERNAME,
    "sasl.plain.password": PASSWORD,
}

_SECURITY_WORD = re.compile(r"ssl|sasl|security|jaas|truststore|keystore|trust.store|key.store|tls")


def is_known(key: str) -> bool:
    """Return True if kctl knows the meaning of the key, even if it does not read the key."""
    return key in READ or key in HARMLESS or key in REFUSED or key.startswith(HARMLESS_PREFIXES)


def concerns_security(key: str) -> bool:
    """Return True if an unknown key may be a security setting, so that ignoring it could expose a login."""
    return bool(_SECURITY_WORD.search(key.lower()))


def right_name(key: str) -> str | None:
    """Return the name that was probably meant, or None if no name is similar."""
    names = {_plain(name): name for name in (*READ, *SYNONYMS, *REFUSED, *HARMLESS)}
    mistaken = {_plain(name): right for name, right in MISTAKEN.items()}
    words = _plain(key)
    if words in mistaken:
        return mistaken[words]
    ends = [name for name in names if words.endswith(name)]
    if ends:
        return names[max(ends, key=len)]
    from kctl.base.suggestions import closest

    return next(iter(closest(key.lower(), (*READ, *SYNONYMS), limit=1)), None)


def _plain(key: str) -> str:
    """Return a name without the separators of its words."""
    return re.sub(r"[^a-z0-9]", "", key.lower())
