"""kctl context import: what other tools' files become, and what is refused."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from kctl.commands.context.imports import _changes
from kctl.contexts import choose as context
from kctl.contexts import imports as context_import
from kctl.contexts.change import add_context, put_context, remove_context
from kctl.contexts.context import Context
from kctl.errors import AlreadyExists, InvalidFile, KctlError, NotFound, UsageError
from kctl.protocol.security import SecuritySettings

PASSWORD = "correct-horse-7c2e"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
CLIENT = {
    "bootstrap.servers": "kafka1:9093,kafka2:9093",
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.jaas.config": f'{SCRAM} required username="ops" password="{PASSWORD}";',
    "ssl.truststore.location": "/etc/ca.pem",
    "ssl.truststore.type": "PEM",
    "client.id": "me",
}
KAFKACTL = f"""
contexts:
  local:
    brokers: [localhost:9092]
  prod:
    brokers:
      - kafka1:9093
      - kafka2:9093
    tls: {{enabled: true, ca: ca.pem, cert: /etc/client.pem, certKey: /etc/client.key, insecure: false}}
    sasl: {{enabled: true, username: ops, password: {PASSWORD}, mechanism: scram-sha256}}
    clientID: me
    requestTimeout: 10s
current-context: prod
"""


@pytest.fixture(autouse=True)
def config_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "home" / "config.yaml"
    monkeypatch.setenv("KCTL_CONFIG", str(path))
    monkeypatch.delenv("KCTL_CONTEXT", raising=False)
    return path


def properties(tmp_path: Path, **changes: str | None) -> str:
    """A client.properties with CLIENT's settings, some changed (dots written as two underscores) or left out."""
    settings = {**CLIENT, **{key.replace("__", "."): value for key, value in changes.items()}}
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items() if value is not None))
    return str(file)


def kafkactl(tmp_path: Path, text: str = KAFKACTL) -> str:
    file = tmp_path / "config.yml"
    file.write_text(text)
    return str(file)


def test_client_properties(tmp_path: Path, config_file: Path) -> None:
    source = context_import.read_properties_source(properties(tmp_path), name="prod")
    plan = context_import.plan_import(source, protected=True)
    assert PASSWORD not in repr((source, plan))
    assert not config_file.exists()
    (done,) = context_import.apply_import(plan)
    assert (done.action, done.current, done.left_out) == ("add", True, ("client.id",))
    entry = context.get_context("prod")
    assert entry == done.entry
    assert entry.bootstrap_servers == ("kafka1:9093", "kafka2:9093")
    assert entry.protected
    secret = config_file.parent / "secrets" / "prod.sasl-password"
    assert entry.security == SecuritySettings(
        protocol="SASL_SSL",
        sasl_mechanism="SCRAM-SHA-512",
        sasl_username="ops",
        sasl_password_file=str(secret),
        ssl_cafile="/etc/ca.pem",
    )
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert stat.S_IMODE(secret.parent.stat().st_mode) == 0o700
    assert entry.security.resolve().sasl_password == PASSWORD
    assert PASSWORD not in config_file.read_text()


def with_password(tmp_path: Path, reference: str) -> str:
    return properties(tmp_path, sasl__jaas__config=f'{SCRAM} required username="ops" password="{reference}";')


def test_a_config_providers_variable_stays_one(
    tmp_path: Path, config_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROD_PASSWORD", PASSWORD)
    file = with_password(tmp_path, "${env:PROD_PASSWORD}")
    source = context_import.read_properties_source(file, name="prod")
    (done,) = context_import.apply_import(context_import.plan_import(source))
    assert (done.secret_files, done.copied_from) == ((), ())
    assert done.entry.security.sasl_password_env == "PROD_PASSWORD"
    assert not (config_file.parent / "secrets").exists()
    monkeypatch.setenv("PROD_PASSWORD", "rotated")
    assert context.get_context("prod").security.resolve().sasl_password == "rotated"


def test_a_config_providers_mounted_file_stays_one(tmp_path: Path, config_file: Path) -> None:
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    (mounted / "password").write_text(PASSWORD)
    (mounted / "password").chmod(0o600)
    source = context_import.read_properties_source(
        with_password(tmp_path, f"${{directory:{mounted}:password}}"), name="p"
    )
    (done,) = context_import.apply_import(context_import.plan_import(source))
    assert done.entry.security.sasl_password_file == str(mounted / "password")
    remove_context("p")
    assert (mounted / "password").exists()


def test_a_config_providers_property_is_copied_and_said(tmp_path: Path, config_file: Path) -> None:
    (tmp_path / "ops.properties").write_text(f"password={PASSWORD}\n")
    reference = f"${{file:{tmp_path}/ops.properties:password}}"
    source = context_import.read_properties_source(with_password(tmp_path, reference), name="prod")
    (done,) = context_import.apply_import(context_import.plan_import(source))
    assert done.copied_from == (f"{tmp_path}/ops.properties",)
    assert context.get_context("prod").security.resolve().sasl_password == PASSWORD
    assert "${" not in config_file.read_text()
    by_variable = context_import.plan_import(source, password_env="PW", replace_existing=True)
    assert by_variable.contexts[0].copied_from == ()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"ssl__truststore__location": None, "ssl__ca__pem": "-----BEGIN X----- -----END X-----"}, "contains PEM text"),
        ({"sasl__jaas__config": f'{SCRAM} required username="ops" password="";'}, "cannot have an empty password"),
        ({"sasl__jaas__config": f'{SCRAM} required username="ops" password="${{PW}}";'}, "an unresolved placeholder"),
        ({"security_protocol": "SASL_SSL"}, "unknown setting security_protocol"),
    ],
)
def test_what_a_context_cannot_have(tmp_path: Path, changes: dict[str, str | None], says: str) -> None:
    with pytest.raises(InvalidFile, match=says):
        context_import.read_properties_source(properties(tmp_path, **changes), name="prod")


def test_versions_and_ciphers_are_taken_over(tmp_path: Path) -> None:
    file = properties(tmp_path, ssl__enabled__protocols="TLSv1.3", my__sasl__thing="x")
    source = context_import.read_properties_source(file, name="prod", ignore_unknown=True)
    (done,) = context_import.apply_import(context_import.plan_import(source))
    assert done.left_out == ("client.id", "my.sasl.thing")
    assert context.get_context("prod").security.ssl_protocols == "TLSv1.3"
    assert context.get_context("prod").security.resolve().ssl_protocols == "TLSv1.3"


def test_again_is_harmless_and_nothing_is_overwritten_unasked(tmp_path: Path) -> None:
    file = properties(tmp_path)
    source = context_import.read_properties_source(file, name="prod")
    context_import.apply_import(context_import.plan_import(source))
    assert context_import.plan_import(source).contexts[0].action == "unchanged"
    properties(tmp_path, sasl__jaas__config=f'{SCRAM} required username="ops" password="another";')
    other = context_import.read_properties_source(file, name="prod")
    with pytest.raises(AlreadyExists, match="different settings"):
        context_import.plan_import(other)
    (done,) = context_import.apply_import(context_import.plan_import(other, replace_existing=True))
    assert done.action == "replace"
    assert context.get_context("prod").security.resolve().sasl_password == "another"


def test_a_variable_instead_of_a_file(tmp_path: Path, config_file: Path) -> None:
    source = context_import.read_properties_source(properties(tmp_path), name="prod")
    context_import.apply_import(context_import.plan_import(source, password_env="PROD_PASSWORD"))
    assert context.get_context("prod").security.sasl_password_env == "PROD_PASSWORD"
    assert not (config_file.parent / "secrets").exists()


def test_replacing_keeps_what_the_file_does_not_have(tmp_path: Path) -> None:
    before = Context(("old:1",), "zk:2181/prod", protected=True, cluster_dir="/var/prod")
    put_context("prod", before, make_current=True)
    source = context_import.read_properties_source(properties(tmp_path), name="prod")
    (done,) = context_import.apply_import(context_import.plan_import(source, replace_existing=True))
    assert (done.action, done.before) == ("replace", before)
    assert (done.entry.zookeeper, done.entry.cluster_dir, done.entry.protected) == ("zk:2181/prod", "/var/prod", True)
    assert done.entry.bootstrap_servers == ("kafka1:9093", "kafka2:9093")
    assert context_import.plan_import(source).contexts[0].action == "unchanged"
    off = context_import.plan_import(source, replace_existing=True, protected=False)
    (done,) = context_import.apply_import(off)
    assert not done.entry.protected, "that was asked for"


def test_replacing_takes_the_old_password_along(tmp_path: Path, config_file: Path) -> None:
    source = context_import.read_properties_source(properties(tmp_path), name="prod")
    secrets = config_file.parent / "secrets"
    for by_import in (True, False):
        context_import.apply_import(context_import.plan_import(source, replace_existing=True))
        assert len(list(secrets.iterdir())) == 1
        if by_import:
            plan = context_import.plan_import(source, password_env="PROD_PASSWORD", replace_existing=True)
            context_import.apply_import(plan)
        else:
            add_context("prod", Context(("h:1",)), replace_existing=True)
        assert list(secrets.iterdir()) == []


def test_what_replacing_changes_is_shown(tmp_path: Path) -> None:
    before = Context(("old:1",), "zk:2181/prod", protected=True)
    put_context("prod", before, make_current=True)
    source = context_import.read_properties_source(properties(tmp_path), name="prod")
    plan = context_import.plan_import(source, replace_existing=True, protected=False, password_env="PW")
    (planned,) = plan.contexts
    assert planned.before
    assert _changes(planned.before, planned.entry) == (
        "protocol: PLAINTEXT → SASL_SSL, sasl_mechanism: - → SCRAM-SHA-512, sasl_username: - → ops,"
        " sasl_password_env: - → PW, ssl_cafile: - → /etc/ca.pem,"
        " bootstrap_servers: old:1 → kafka1:9093,kafka2:9093, protected: yes → no"
    )
    assert _changes(before, before) == "different password"


def test_removing_takes_the_password_along(tmp_path: Path, config_file: Path) -> None:
    source = context_import.read_properties_source(properties(tmp_path), name="prod")
    context_import.apply_import(context_import.plan_import(source))
    own = tmp_path / "own"
    own.write_text("x\n")
    mine = Context(
        ("h:1",),
        security=SecuritySettings("SASL_PLAINTEXT", "PLAIN", "me", sasl_password_file=str(own)),
    )
    add_context("mine", mine)
    remove_context("prod")
    remove_context("mine")
    assert list((config_file.parent / "secrets").iterdir()) == []
    assert own.exists()  # what kctl did not write stays


def test_kafkactl(tmp_path: Path) -> None:
    source = context_import.read_kafkactl_source(kafkactl(tmp_path))
    done = context_import.apply_import(context_import.plan_import(source))
    assert [(each.name, each.current, each.left_out) for each in done] == [
        ("local", False, ()),
        ("prod", True, ("clientid", "requesttimeout")),
    ]
    assert context.current_context() == "prod"
    security = context.get_context("prod").security
    assert (security.protocol, security.sasl_mechanism) == ("SASL_SSL", "SCRAM-SHA-256")
    assert security.ssl_cafile == str(tmp_path / "ca.pem")  # relative to kafkactl's file
    assert (security.ssl_certfile, security.ssl_keyfile) == ("/etc/client.pem", "/etc/client.key")
    assert security.resolve().sasl_password == PASSWORD
    assert context.get_context("local") == Context(("localhost:9092",))


def test_only_one_of_kafkactls(tmp_path: Path) -> None:
    file = kafkactl(tmp_path)
    source = context_import.read_kafkactl_source(file, only=["local"])
    assert [each.name for each in context_import.plan_import(source).contexts] == ["local"]
    with pytest.raises(NotFound, match="'nope'"):
        context_import.read_kafkactl_source(file, only=["nope"])


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"bootstrap__servers": None}, "bootstrap.servers is missing"),
        ({"sasl__mechanism": "OAUTHBEARER"}, "OAUTHBEARER is not supported"),
        ({"sasl__mechanism": "PLAIN"}, "does not support PLAIN"),
        ({"sasl__jaas__config": None}, "sasl.jaas.config is missing"),
        ({"sasl__jaas__config": f'{SCRAM} required username="ops" password="{PASSWORD}"'}, "cannot parse"),
        (
            {"sasl__jaas__config": f'com.example.Own required username="ops" password="{PASSWORD}";'},
            "com.example.Own does not support",
        ),
        (
            {"sasl__jaas__config": f'{SCRAM} required username="o" password="{PASSWORD}" tokenauth="true";'},
            "delegation token",
        ),
        ({"ssl__truststore__type": "JKS"}, "Java keystore"),
        ({"ssl__truststore__type": "PKCS12"}, "Java keystore"),
        ({"sasl__login__class": "com.example.Own"}, "names a Java class"),
    ],
)
def test_properties_that_are_refused(tmp_path: Path, changes: dict[str, str | None], says: str) -> None:
    with pytest.raises(InvalidFile, match=says) as caught:
        context_import.read_properties_source(properties(tmp_path, **changes), name="prod")
    assert PASSWORD not in f"{caught.value} {caught.value.hint}"


def test_a_java_keystore_is_told_what_to_do(tmp_path: Path) -> None:
    file = properties(tmp_path, ssl__truststore__type=None, ssl__truststore__location="/etc/trust.jks")
    with pytest.raises(InvalidFile) as caught:
        context_import.read_properties_source(file, name="prod")
    assert "keytool" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("contexts: {}", "has no contexts"),
        ("contexts: [a]", "has no contexts"),
        ("a: &x 1", "anchor"),
        ("contexts: {a: {brokers: []}}", "brokers must be"),
        ("contexts: {a: {brokers: [h:0]}}", "port"),
        ("contexts: {a: {brokers: [h:1], kubernetes: {enabled: true}}}", "Kubernetes"),
        ("contexts: {a: {brokers: [h:1], tls: {enabled: true, insecure: true}}}", "insecure"),
        ("contexts: {a: {brokers: [h:1], tls: {enabled: perhaps}}}", "enabled"),
        (
            "contexts: {a: {brokers: [h:1], sasl: {enabled: true, username: u, password: p, mechanism: oauth}}}",
            "oauth is not supported",
        ),
        ("contexts: {a: {brokers: [h:1], sasl: {enabled: true, username: u}}}", "is missing"),
        ("contexts: {a: {brokers: [h:1], sasl: {enabled: true, username: u, password: 0815}}}", "quotes"),
        ("contexts: {'a b': {brokers: [h:1]}}", "context name"),
        ("contexts: {a: {brokers: ['${KAFKA}:1']}}", "brokers has"),
        (
            "contexts: {a: {brokers: [h:1], sasl: {enabled: true, username: u, password: '{{ pw }}'}}}",
            "password has {{…, an unresolved placeholder",
        ),
        ("contexts: {a: {brokers: [h:1], sasl: {enabled: true, username: u, password: $PW}}}", "password has .…"),
        ("contexts: {a: {brokers: [h:1], tls: {enabled: true, ca: $HOME/ca.pem}}}", "ca has .HOME"),
    ],
)
def test_kafkactl_configs_that_are_refused(tmp_path: Path, config_file: Path, text: str, says: str) -> None:
    with pytest.raises(KctlError, match=says) as caught:
        context_import.plan_import(context_import.read_kafkactl_source(kafkactl(tmp_path, text)))
    assert "815" not in caught.value.message
    assert not config_file.exists()


def test_one_bad_context_of_several_leaves_all_out(tmp_path: Path) -> None:
    text = "contexts: {a: {brokers: [h:1]}, b: {brokers: [h:1], kubernetes: {enabled: true}}}"
    file = kafkactl(tmp_path, text)
    with pytest.raises(InvalidFile, match="cannot import context b") as caught:
        context_import.plan_import(context_import.read_kafkactl_source(file))
    assert "--only" in (caught.value.hint or "")
    assert len(context_import.plan_import(context_import.read_kafkactl_source(file, only=["a"])).contexts) == 1


def test_one_variable_cannot_serve_several_contexts(tmp_path: Path) -> None:
    source = context_import.read_kafkactl_source(kafkactl(tmp_path))
    with pytest.raises(UsageError, match="several contexts"):
        context_import.plan_import(source, password_env="PW")


@pytest.mark.parametrize(
    ("name", "expected"), [("a.properties", "properties"), ("config.yml", "kafkactl"), ("c.YAML", "kafkactl")]
)
def test_the_format_by_the_name(name: str, expected: str) -> None:
    assert context_import.format_of(name) == expected


def test_a_name_that_tells_no_format() -> None:
    with pytest.raises(UsageError, match="cannot detect the format"):
        context_import.format_of("client")
