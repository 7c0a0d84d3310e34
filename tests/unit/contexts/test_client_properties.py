"""Client properties as Kafka, librdkafka, Spring and Connect write them: understood, or refused with the key."""

from __future__ import annotations

from pathlib import Path

import pytest

from kctl.contexts.command_config import client_config
from kctl.errors import InvalidFile
from kctl.protocol.security import Security

CERTIFICATES = Path(__file__).parents[2] / "data" / "tls"
SECRET = "s3cret-7c2e"
JAAS = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="ops" password="{SECRET}";'
PLAIN = Security("SASL_PLAINTEXT", "PLAIN", "ops", SECRET)
OVER_TLS = Security("SASL_SSL", "PLAIN", "ops", SECRET, "/ca.pem")
KAFKA = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": JAAS}
RDKAFKA = {
    "security.protocol": "sasl_plaintext",
    "sasl.mechanisms": "PLAIN",
    "sasl.username": "ops",
    "sasl.password": SECRET,
}
TLS = {"security.protocol": "ssl"}


def security(properties: dict[str, str], *, ignore_unknown: bool = False) -> Security:
    return client_config(properties, source="f", ignore_unknown=ignore_unknown).security


def prefixed(prefix: str, properties: dict[str, str]) -> dict[str, str]:
    return {prefix + key: value for key, value in properties.items()}


UNDERSTOOD = {
    "nothing": ({}, Security()),
    "no security": ({"client.id": "x", "acks": "all"}, Security()),
    "Kafka": (KAFKA, PLAIN),
    "librdkafka": (RDKAFKA, PLAIN),
    "librdkafka, its alias": ({**RDKAFKA, "sasl.mechanism": "plain"}, PLAIN),
    "both, with the same values": ({**KAFKA, **RDKAFKA}, PLAIN),
    "an empty password": ({**RDKAFKA, "sasl.password": ""}, Security("SASL_PLAINTEXT", "PLAIN", "ops", "")),
    "blanks around": (
        {"security.protocol": " SSL ", "ssl.ca.location": " /ca.pem "},
        Security("SSL", ssl_cafile="/ca.pem"),
    ),
    "librdkafka's CA": ({**TLS, "ssl.ca.location": "/ca.pem"}, Security("SSL", ssl_cafile="/ca.pem")),
    "the system's CAs": ({**TLS, "ssl.ca.location": "probe"}, Security("SSL")),
    "librdkafka's certificate": (
        {**TLS, "ssl.certificate.location": "/c.pem", "ssl.key.location": "/k.pem", "ssl.key.password": "kp"},
        Security("SSL", ssl_certfile="/c.pem", ssl_keyfile="/k.pem", ssl_key_password="kp"),
    ),
    "a certificate with its key": (
        {**TLS, "ssl.certificate.location": "/c.pem"},
        Security("SSL", ssl_certfile="/c.pem"),
    ),
    "PEM by the name of the file alone": (
        {**TLS, "ssl.truststore.location": "/ca.pem", "ssl.keystore.location": "/me.pem"},
        Security("SSL", ssl_cafile="/ca.pem", ssl_certfile="/me.pem"),
    ),
    "PEM by content": (
        {**TLS, "ssl.truststore.location": str(CERTIFICATES / "ca.pem")},
        Security("SSL", ssl_cafile=str(CERTIFICATES / "ca.pem")),
    ),
    "no host name, Kafka": (
        {**TLS, "ssl.endpoint.identification.algorithm": ""},
        Security("SSL", ssl_check_hostname=False),
    ),
    "no host name, librdkafka": (
        {**TLS, "ssl.endpoint.identification.algorithm": "none"},
        Security("SSL", ssl_check_hostname=False),
    ),
    "the host name": ({**TLS, "ssl.endpoint.identification.algorithm": "HTTPS"}, Security("SSL")),
    "verified": ({**TLS, "enable.ssl.certificate.verification": "true"}, Security("SSL")),
    "versions": ({**TLS, "ssl.enabled.protocols": "TLSv1.3"}, Security("SSL", ssl_protocols="TLSv1.3")),
    "Java's other settings": (
        {
            **TLS,
            "ssl.protocol": "TLSv1.3",
            "ssl.trustmanager.algorithm": "PKIX",
            "ssl.truststore.password": SECRET,
            "sasl.kerberos.service.name": "kafka",
            "sasl.login.refresh.window.factor": "0.8",
            "ssl.provider": "",
            "sasl.oauthbearer.token.endpoint.url": "https://idp",
        },
        Security("SSL"),
    ),
    "PLAINTEXT is said": ({**KAFKA, "security.protocol": "PLAINTEXT", "ssl.ca.location": "/x"}, Security()),
    "TLS without the login": ({**KAFKA, "security.protocol": "SSL"}, Security("SSL")),
    "the login without TLS": ({**KAFKA, "ssl.truststore.location": "/x.jks"}, PLAIN),
    "Spring's map": (prefixed("spring.kafka.properties.", KAFKA), PLAIN),
    "Spring's map in brackets": ({f"spring.kafka.properties[{key}]": value for key, value in KAFKA.items()}, PLAIN),
    "Spring": (
        {
            "spring.kafka.security.protocol": "SASL_SSL",
            "spring.kafka.properties.sasl.mechanism": "PLAIN",
            "spring.kafka.properties.sasl.jaas.config": JAAS,
            "spring.kafka.ssl.trust-store-location": "file:/ca.pem",
            "spring.kafka.ssl.trust-store-type": "PEM",
            "spring.kafka.ssl.trust-store-password": "x",
        },
        OVER_TLS,
    ),
    "Spring in other words": (
        {
            "spring.kafka.security.protocol": "SSL",
            "spring.kafka.ssl.keyStoreLocation": "file:///me.pem",
            "spring.kafka.ssl.key_store_type": "PEM",
            "spring.kafka.ssl.key-password": "kp",
        },
        Security("SSL", ssl_certfile="/me.pem", ssl_key_password="kp"),
    ),
    "Spring's admin clients": (
        {**prefixed("spring.kafka.admin.properties.", KAFKA), "spring.kafka.security.protocol": "SSL"},
        PLAIN,
    ),
    "Spring's consumers": (prefixed("spring.kafka.consumer.properties.", KAFKA), PLAIN),
    "Spring Cloud Stream": (prefixed("spring.cloud.stream.kafka.binder.configuration.", KAFKA), PLAIN),
    "a Connect worker": (
        {**KAFKA, **prefixed("producer.", {"sasl.jaas.config": JAAS.replace("ops", "p"), "security.protocol": "SSL"})},
        PLAIN,
    ),
    "producers and consumers that agree": ({**prefixed("producer.", KAFKA), **prefixed("consumer.", KAFKA)}, PLAIN),
    "consumers alone": (prefixed("consumer.", RDKAFKA), PLAIN),
    "admin clients first": ({**prefixed("admin.", KAFKA), **KAFKA, "security.protocol": "SSL"}, PLAIN),
    "of other programs": (
        {
            **KAFKA,
            "schema.registry.ssl.truststore.location": "/x.jks",
            "key.converter.schema.registry.ssl.key.password": "y",
            "confluent.monitoring.interceptor.sasl.mechanism": "GSSAPI",
        },
        PLAIN,
    ),
}


@pytest.mark.parametrize("name", UNDERSTOOD)
def test_understood(name: str) -> None:
    properties, expected = UNDERSTOOD[name]
    assert security(properties) == expected


REFUSED: list[tuple[dict[str, str], str, str]] = [
    # spellings that other programs have: a login must not go out in the clear for them
    *(
        ({key: "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": JAAS}, key, "security.protocol")
        for key in (
            "security_protocol",
            "security-protocol",
            "securityProtocol",
            "SECURITY.PROTOCOL",
            "Security.Protocol",
            "securityprotocol",
            "kafka.security.protocol",
            "KAFKA_SECURITY_PROTOCOL",
            "client.security.protocol",
            "source.security.protocol",
            "security.protokol",
            "security.inter.broker.protocol",
            "spring.kafka.securityprotocol",
            "spring.kafka.consumer.security_protocol",
            "mp.messaging.connector.smallrye-kafka.security.protocol",
        )
    ),
    ({**KAFKA, "sasl_mechanism": "PLAIN"}, "sasl_mechanism", "sasl.mechanism"),
    ({**KAFKA, "sasl.plain.username": "x"}, "sasl.plain.username", "sasl.username"),
    ({**KAFKA, "sasl_plain_password": SECRET}, "sasl_plain_password", "sasl.password"),
    ({**KAFKA, "sasl.jass.config": "x"}, "sasl.jass.config", "sasl.jaas.config"),
    ({**TLS, "ssl.ca": "/x"}, "unknown setting ssl.ca", "ssl.ca.location"),
    ({**TLS, "ssl_cafile": "/x"}, "ssl_cafile", "ssl.ca.location"),
    ({**TLS, "ssl.trustore.location": "/x"}, "ssl.trustore.location", "ssl.truststore.location"),
    ({**TLS, "ssl.truststore.path": "/x"}, "ssl.truststore.path", "ssl.truststore"),
    ({**TLS, "truststore.location": "/x"}, "truststore.location", "ssl.truststore.location"),
    ({**TLS, "spring.kafka.ssl.bundle": "x"}, "spring.kafka.ssl.bundle", "spring.kafka.properties"),
    ({**TLS, "spring.kafka.jaas.enabled": "true"}, "spring.kafka.jaas.enabled", "spring.kafka.properties"),
    # without security.protocol nothing of this has an effect
    *(
        ({key: "/x"}, f"{key} has no effect without security.protocol", "SSL")
        for key in (
            "ssl.ca.location",
            "ssl.truststore.location",
            "ssl.keystore.location",
            "ssl.certificate.location",
            "ssl.ca.pem",
            "sasl.username",
            "sasl.jaas.config",
            "sasl.mechanisms",
        )
    ),
    # two names, two values
    ({**RDKAFKA, "sasl.mechanism": "SCRAM-SHA-256"}, "and sasl.mechanism are the same setting", "remove one"),
    ({**KAFKA, "sasl.username": "other"}, "sasl.jaas.config and sasl.username have different values", "remove one"),
    ({**KAFKA, "sasl.password": "other"}, "sasl.jaas.config and sasl.password have different values", "remove one"),
    ({"bootstrap.servers": "a:1", "metadata.broker.list": "b:1"}, "are the same setting", "remove one"),
    ({**TLS, "ssl.ca.location": "/a", "ssl.truststore.location": "/b"}, "cannot be combined", "remove one"),
    ({**TLS, "ssl.keystore.location": "/a.pem", "ssl.certificate.location": "/b"}, "cannot be combined", "remove one"),
    (
        {"producer.security.protocol": "SSL", "consumer.security.protocol": "PLAINTEXT"},
        "producer.security.protocol",
        "remove",
    ),
    (
        {"spring.kafka.security.protocol": "SSL", "security.protocol": "PLAINTEXT"},
        "spring.kafka.security.protocol",
        "remove",
    ),
    # what kctl does not do
    ({**RDKAFKA, "sasl.mechanisms": "OAUTHBEARER"}, "sasl.mechanisms OAUTHBEARER is not supported", "SCRAM-SHA-512"),
    ({"security.protocol": "SASL_SSL", "sasl.jaas.config": JAAS}, "sasl.mechanism is missing, and GSSAPI", "PLAIN"),
    ({**TLS, "enable.ssl.certificate.verification": "false"}, "verification=false is not supported", "ca.location"),
    ({**TLS, "ssl.endpoint.identification.algorithm": "off"}, "'off' is unknown", "https"),
    *(
        ({**TLS, key: "x"}, f"{key} is not supported", "--ignore-unknown")
        for key in (
            "ssl.engine.factory.class",
            "ssl.provider",
            "security.providers",
            "ssl.crl.location",
            "ssl.curves.list",
            "ssl.sigalgs.list",
            "ssl.engine.location",
            "sasl.login.callback.handler.class",
            "sasl.login.class",
            "spring.kafka.properties.ssl.engine.factory.class",
        )
    ),
    ({**TLS, "ssl.enabled.protocols": "TLSv1,SSLv3"}, "ssl.enabled.protocols", "leave it out"),
    ({**TLS, "ssl.enabled.protocols": "TLS1.2"}, "'TLS1.2' is not a TLS version", "leave it out"),
    ({**TLS, "ssl.cipher.suites": "TLS_AES_128_GCM_SHA256"}, "cannot be chosen one by one", "leave it out"),
    ({**TLS, "ssl.cipher.suites": "NO_SUCH"}, "no cipher suite that this OpenSSL supports", "leave it out"),
    ({**RDKAFKA, "sasl.username": ""}, "sasl.username is missing", "set both"),
    ({k: v for k, v in RDKAFKA.items() if k != "sasl.password"}, "sasl.password is missing", "set both"),
    # stores
    (
        {**TLS, "ssl.key.location": "/k"},
        "ssl.key.location is a key without its certificate",
        "ssl.certificate.location",
    ),
    ({**TLS, "ssl.key.pem": "-----BEGIN X-----"}, "ssl.key.pem is a key without", "ssl.certificate.pem"),
    ({**TLS, "ssl.certificate.pem": "-----BEGIN X-----"}, "is a certificate without its key", "ssl.key.pem"),
    ({**TLS, "ssl.ca.pem": "/etc/ca.pem"}, "ssl.ca.pem is not PEM text", "-----BEGIN"),
    ({**TLS, "ssl.truststore.location": "classpath:ca.pem"}, "is not a file", "use the path"),
    (
        {**TLS, "ssl.truststore.location": str(CERTIFICATES / "ca.pem"), "ssl.truststore.type": "JKS"},
        "is a PEM file",
        "=PEM",
    ),
    ({**TLS, "ssl.keystore.location": "/k.p12"}, "ssl.keystore.location is a Java keystore", "keytool"),
    (
        {**TLS, "spring.kafka.ssl.trust-store-location": "/t.jks"},
        "spring.kafka.ssl.trust-store-location is a Java",
        "keytool",
    ),
    # placeholders that nobody has replaced
    *(
        ({**RDKAFKA, "sasl.password": value}, "sasl.password has", "put it into a file or a variable")
        for value in (
            "${PASSWORD}",
            "$PASSWORD",
            "{{ password }}",
            "{{password}}",
            "x{{ password }}y",
            "$(PASSWORD)",
            "%PASSWORD%",
            "${}",
            "<%= password %>",
            "#{password}",
            "{% p %}",
            "@PASSWORD@",
            "a${PASSWORD}b",
            " $PASSWORD ",
            "__PASSWORD__",
        )
    ),
    *(
        ({**KAFKA, "sasl.jaas.config": JAAS.replace(SECRET, value)}, "sasl.jaas.config has", "put it into a file")
        for value in (
            "${PASSWORD}",
            "$PASSWORD",
            "{{ password }}",
            "$(PASSWORD)",
            "%PASSWORD%",
        )
    ),
    *(
        ({**TLS, "ssl.ca.location": value}, "ssl.ca.location has", "put it into a file")
        for value in (
            "$HOME/ca.pem",
            "/etc/$ENV/ca.pem",
            "${HOME}/ca.pem",
            "{{ dir }}/ca.pem",
        )
    ),
    ({"bootstrap.servers": "${KAFKA}:9092"}, "bootstrap.servers has ${KAFKA}", "put it into"),
    ({"bootstrap.servers": "$KAFKA:9092"}, "bootstrap.servers has $KAFKA", "put it into"),
    ({"security.protocol": "${PROTOCOL}"}, "security.protocol has ${PROTOCOL}", "put it into"),
    ({**RDKAFKA, "sasl.username": "$USER"}, "sasl.username has $…", "put it into"),
    (
        {**RDKAFKA, "sasl.password": "${KAFKA_PASSWORD:changeit}"},
        "'KAFKA_PASSWORD' is not a config provider",
        "${env:NAME}",
    ),
    (
        {**RDKAFKA, "sasl.password": "${vault:secret/kafka:password}"},
        "'vault' is not a config provider",
        "config.providers",
    ),
]


@pytest.mark.parametrize(("properties", "says", "hint"), REFUSED)
def test_refused(properties: dict[str, str], says: str, hint: str) -> None:
    with pytest.raises(InvalidFile) as caught:
        client_config(properties, source="f")
    assert says in caught.value.message
    assert hint in (caught.value.hint or "")
    assert SECRET not in f"{caught.value.message} {caught.value.hint}"
