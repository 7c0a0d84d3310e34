"""The config file, the choice of a cluster, secrets, and Kafka's client properties."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from kctl.contexts import choose as context
from kctl.contexts.change import add_context, put_context, remove_context, use_context
from kctl.contexts.choose import resolve_target
from kctl.contexts.command_config import security_from_properties
from kctl.contexts.context import Context
from kctl.errors import AlreadyExists, Busy, InvalidFile, KctlError, NotFound, UsageError
from kctl.protocol.security import Security, SecuritySettings
from kctl.protocol.target import Target

SCRAM = SecuritySettings(
    protocol="SASL_SSL",
    sasl_mechanism="SCRAM-SHA-512",
    sasl_username="ops",
    sasl_password_env="TEST_PASSWORD",
    ssl_cafile="/etc/ca.pem",
)
DEV = Context(("127.0.0.1:9092",), "127.0.0.1:2181/dev")
PROD = Context(("kafka1:9093", "kafka2:9093"), security=SCRAM, protected=True, cluster_dir="/x")


@pytest.fixture(autouse=True)
def config_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "home" / "config.yaml"
    monkeypatch.setenv("KCTL_CONFIG", str(path))
    monkeypatch.delenv("KCTL_CONTEXT", raising=False)
    return path


@pytest.fixture
def two(config_file: Path) -> Path:
    put_context("dev", DEV, make_current=True)
    put_context("prod", PROD, make_current=False)
    return config_file


def test_what_is_written_is_read(two: Path) -> None:
    assert context.list_contexts() == {"dev": DEV, "prod": PROD}
    assert context.current_context() == "dev"
    assert stat.S_IMODE(two.stat().st_mode) == 0o600
    assert stat.S_IMODE(two.parent.stat().st_mode) == 0o700
    assert [p.name for p in two.parent.iterdir() if p.name.startswith(".")] == []
    assert "PLAINTEXT" not in two.read_text()  # defaults are left out
    assert two.read_text().startswith("# ")


def test_a_link_stays_a_link(two: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.yaml"
    two.rename(real)
    two.symlink_to(real)
    use_context("prod")
    assert two.is_symlink()
    assert "current_context: prod" in real.read_text()


def test_remove_and_use(two: Path) -> None:
    assert use_context("prod") == PROD
    assert remove_context("dev") == "prod"
    assert context.current_context() == "prod"
    assert remove_context("prod") is None
    assert context.list_contexts() == {}
    assert context.current_context() is None
    with pytest.raises(NotFound, match="'dev'"):
        remove_context("dev")


def test_no_context_is_current_after_the_current_one_goes(two: Path) -> None:
    """The one before was chosen once, but not for what comes now; `kctl context use -` goes back to it."""
    use_context("prod")
    assert remove_context("prod") is None
    assert context.resolve_name("-") == "dev"
    with pytest.raises(UsageError, match="no cluster selected") as caught:
        resolve_target()
    assert "existing contexts: dev" in (caught.value.hint or "")
    put_context("prod", PROD, make_current=True)
    assert context.resolve_name("-") == "dev"


def test_nothing_is_written_when_nothing_changes(two: Path) -> None:
    before = two.stat().st_mtime_ns
    put_context("dev", DEV, make_current=True)
    assert two.stat().st_mtime_ns == before


def test_add(config_file: Path) -> None:
    assert add_context("dev", DEV, dry_run=True).current_context == "dev"
    assert not config_file.exists()
    assert add_context("dev", DEV).current_context == "dev"  # the first one
    assert add_context("prod", PROD).current_context == "dev"
    add_context("prod", PROD)
    with pytest.raises(AlreadyExists, match="'prod'"):
        add_context("prod", DEV)
    assert add_context("prod", DEV, replace_existing=True, make_current=True).current_context == "prod"
    assert context.get_context("prod") == DEV


def test_protection_goes_only_when_that_is_said(two: Path) -> None:
    again = Context(("kafka9:9093",))
    assert add_context("prod", again, keep_protected=True, replace_existing=True).entry.protected
    assert context.get_context("prod").protected
    assert not add_context("prod", again, replace_existing=True).entry.protected


# --- choosing -----------------------------------------------------------------------------------------------------


def test_options_come_first_then_the_environment_then_the_file(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_PASSWORD", "pw")
    assert resolve_target() == Target("dev", DEV.bootstrap_servers, DEV.zookeeper)
    monkeypatch.setenv("KCTL_CONTEXT", "prod")
    assert resolve_target().name == "prod"
    assert resolve_target(context="dev").name == "dev"
    assert resolve_target(bootstrap_server="h:1") == Target("h:1", ("h:1",))
    assert resolve_target(bootstrap_server="h:1").protected is False


def test_servers_given_with_a_context_replace_its_own(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_PASSWORD", "pw")
    target = resolve_target(context="prod", bootstrap_server="h:1", zookeeper="z:2/c")
    assert target.bootstrap_servers == ("h:1",)
    assert target.zookeeper == "z:2/c"
    assert target.protected
    assert target.security.sasl_password == "pw"


def test_unknown_context(two: Path) -> None:
    with pytest.raises(NotFound, match="'nope'") as caught:
        resolve_target(context="nope")
    assert caught.value.hint == "existing contexts: dev, prod"
    assert caught.value.exit_code == 4


def test_a_variable_that_names_a_context_that_is_gone(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after `eval "$(kctl cluster env trio)"` and the end of trio."""
    monkeypatch.setenv("KCTL_CONTEXT", "trio")
    with pytest.raises(NotFound, match="'trio', set by KCTL_CONTEXT, does not exist") as caught:
        resolve_target()
    assert caught.value.hint == "run `unset KCTL_CONTEXT` to use the current context; existing contexts: dev, prod"


@pytest.mark.parametrize(("variable", "other"), [(None, None), ("", None), ("dev", None), ("trio", "trio")])
def test_what_the_variable_names_instead(
    variable: str | None, other: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if variable is not None:
        monkeypatch.setenv("KCTL_CONTEXT", variable)
    assert context.overruled_by("dev") == other


def test_no_context_at_all() -> None:
    with pytest.raises(UsageError, match="no cluster") as caught:
        resolve_target()
    assert "--bootstrap-server" in (caught.value.hint or "")
    assert resolve_target(zookeeper="z:2181").bootstrap_servers == ()


# --- secrets ------------------------------------------------------------------------------------------------------


def test_a_password_is_read_late_and_never_shown(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEST_PASSWORD", raising=False)
    assert context.get_context("prod") == PROD
    with pytest.raises(UsageError, match="TEST_PASSWORD"):
        _ = resolve_target(context="prod").security.sasl_password
    monkeypatch.setenv("TEST_PASSWORD", "hunter2")
    target = resolve_target(context="prod")
    assert target.security.sasl_password == "hunter2"
    assert "hunter2" not in repr(target)


@pytest.mark.parametrize(
    ("content", "mode", "secret"),
    [
        (b"s3cret\n", 0o600, "s3cret"),
        (b"s3cret", 0o400, "s3cret"),
        (b"a b \r\n", 0o600, "a b "),
        (b"x\n\n", 0o600, "x\n"),
    ],
)
def test_password_file(tmp_path: Path, content: bytes, mode: int, secret: str) -> None:
    file = tmp_path / "password"
    file.write_bytes(content)
    file.chmod(mode)
    settings = SecuritySettings(sasl_password_file=str(file))
    assert settings.resolve().sasl_password == secret


def test_a_password_file_that_cannot_be_used(tmp_path: Path) -> None:
    """Which files can is in test_secret_files."""
    file = tmp_path / "password"
    file.touch(0o600)
    for path, says in ((tmp_path / "absent", "No such file"), (tmp_path, "is a folder"), (file, "is empty")):
        found = SecuritySettings(sasl_password_file=str(path)).resolve()
        with pytest.raises(UsageError, match=says):
            _ = found.sasl_password


# --- a hostile file -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("contexts: [a]\n", None, "must be a mapping"),
        ("- a\n", None, "must be a mapping"),
        ("kontexts: {}\n", 1, "unknown setting 'kontexts'"),
        ("contexts:\n  a b:\n    bootstrap_servers: [x]\n", 2, "not a valid context name"),
        ("contexts:\n  ../x:\n    bootstrap_servers: [x]\n", 2, "not a valid context name"),
        ("contexts:\n  a:\n    bootstrap_servers: x:1\n", 3, "a list"),
        ("contexts:\n  a:\n    bootstrap_servers: [1]\n", 3, "a list"),
        ("contexts:\n  a:\n    zookeeper: z\n", 3, "bootstrap_servers must be"),
        ("contexts:\n  a:\n    bootstrap_servers: ['x:y']\n", 2, "not a port"),
        ("contexts:\n  a:\n    bootstrap_servers: [x]\n    protected: yes\n", 4, "true or false"),
        ("contexts:\n  a:\n    bootstrap_servers: [x]\n    zookeeper: 7\n", 4, "must be a string"),
        ("contexts:\n  a:\n    bootstrap_servers: [x]\n    security: SSL\n", 2, "must be a mapping"),
        (
            "contexts:\n  a:\n    bootstrap_servers: [x]\n    security:\n      sasl_password: p\n",
            5,
            "sasl_password_env",
        ),
        ("contexts:\n  a:\n    bootstrap_servers: [x]\n    security: {protocol: TLS}\n", 2, "not a security protocol"),
        ("contexts:\n  a:\n    bootstrap_servers: [x]\n  a:\n    bootstrap_servers: [y]\n", 4, "there twice"),
        ("contexts:\n  a: &a\n    bootstrap_servers: [x]\n  b: *a\n", 2, "anchor"),
        ("current_context: b\ncontexts:\n  a:\n    bootstrap_servers: [x]\n", 1, "current_context 'b' does not exist"),
        ("contexts: [\n", 2, "not YAML"),
    ],
)
def test_a_wrong_file_is_told_with_its_line(config_file: Path, text: str, line: int | None, says: str) -> None:
    config_file.parent.mkdir()
    config_file.write_text(text)
    with pytest.raises(InvalidFile) as caught:
        context.list_contexts()
    assert says in f"{caught.value.message} {caught.value.hint}"
    assert caught.value.message.startswith(f"{config_file}:{line or ''}")
    assert caught.value.exit_code == 2
    with pytest.raises(InvalidFile):
        put_context("x", DEV, make_current=True)
    assert config_file.read_text() == text  # nothing is overwritten


@pytest.mark.parametrize("text", ["", "contexts:\n", "current_context: null\ncontexts: {}\n"])
def test_an_empty_file_is_no_error(config_file: Path, text: str) -> None:
    config_file.parent.mkdir()
    config_file.write_text(text)
    assert context.list_contexts() == {}


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"protocol": "TLS"}, "TLS"),
        ({"protocol": "SASL_SSL"}, "mechanism"),
        ({"protocol": "SASL_SSL", "sasl_mechanism": "GSSAPI"}, "GSSAPI"),
        ({"protocol": "SASL_SSL", "sasl_mechanism": "PLAIN"}, "user name"),
        ({"protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "sasl_username": "u"}, "password"),
        ({"protocol": "PLAINTEXT", "sasl_username": "u"}, "sasl_username has no effect"),
        ({"protocol": "SSL", "sasl_mechanism": "PLAIN"}, "sasl_mechanism has no effect"),
        ({"protocol": "PLAINTEXT", "ssl_cafile": "/x"}, "ssl_cafile has no effect"),
        ({"protocol": "SSL", "ssl_cafile": "x.pem"}, "relative"),
        ({"protocol": "SSL", "ssl_keyfile": "/k.pem"}, "certificate"),
        ({"protocol": "SSL", "ssl_key_password_env": "A", "ssl_key_password_file": "/b"}, "cannot be combined"),
    ],
)
def test_settings_that_cannot_work(settings: dict[str, str], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        put_context("x", Context(("h:1",), security=SecuritySettings(**settings)), make_current=False)  # type: ignore[arg-type]
    assert says in f"{caught.value.message} {caught.value.hint}"


@pytest.mark.parametrize("name", ["", "a b", "../x", "-x", "x/y", "x" * 101, "é"])
def test_names(name: str) -> None:
    with pytest.raises(UsageError, match="context name"):
        put_context(name, DEV, make_current=False)


# --- several writers ----------------------------------------------------------------------------------------------


_PUT = """
import sys
from kctl.contexts.change import put_context
from kctl.contexts.context import Context
for number in range(int(sys.argv[1]), int(sys.argv[2])):
    put_context(f"c{number}", Context(("h:1",)), make_current=False)
"""


def test_writers_at_the_same_time_lose_nothing(config_file: Path) -> None:
    argv = [sys.executable, "-c", _PUT]
    writers = [subprocess.Popen([*argv, str(first), str(first + 3)]) for first in range(0, 12, 3)]
    assert [writer.wait(timeout=60) for writer in writers] == [0] * 4
    assert sorted(context.list_contexts()) == sorted(f"c{n}" for n in range(12))


def test_a_lock_that_is_held_is_busy(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    from kctl.contexts import config

    monkeypatch.setattr(config, "LOCK_TIMEOUT_S", 0.1)
    with two.with_name("config.yaml.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(Busy):
            use_context("prod")


def test_a_file_where_the_folder_should_be(config_file: Path) -> None:
    config_file.parent.write_text("")
    with pytest.raises(KctlError, match="cannot write"):
        put_context("a", DEV, make_current=False)


# --- Kafka's client properties ------------------------------------------------------------------------------------

SCRAM_JAAS = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="o p" password="a\\"b;c=d";'
PLAIN_JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required\n username='ops'\n password=pw ;"


def test_properties() -> None:
    assert security_from_properties({"group.id": "x"}, source="f") == Security()
    assert security_from_properties(
        {
            "security.protocol": "sasl_ssl",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": SCRAM_JAAS,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": "/ca.pem",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": "/me.pem",
            "ssl.key.password": "kp",
            "ssl.endpoint.identification.algorithm": "",
        },
        source="f",
    ) == Security(
        "SASL_SSL", "SCRAM-SHA-512", "o p", 'a"b;c=d', "/ca.pem", "/me.pem", None, "kp", ssl_check_hostname=False
    )
    plain = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": PLAIN_JAAS}
    assert security_from_properties(plain, source="f") == Security("SASL_PLAINTEXT", "PLAIN", "ops", "pw")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"security.protocol": "TLS"}, "TLS"),
        ({"sasl.mechanism": ""}, "not supported"),
        ({"sasl.mechanism": "GSSAPI"}, "GSSAPI"),
        ({"sasl.mechanism": "OAUTHBEARER"}, "OAUTHBEARER"),
        ({"sasl.jaas.config": ""}, "missing"),
        ({"sasl.jaas.config": PLAIN_JAAS}, "does not support SCRAM-SHA-512"),
        ({"sasl.jaas.config": SCRAM_JAAS[:-1]}, "semicolon"),
        ({"sasl.jaas.config": SCRAM_JAAS.replace("username", "user")}, "no username"),
        ({"sasl.jaas.config": SCRAM_JAAS.replace("password=", "password")}, "cannot parse"),
        ({"ssl.truststore.location": "/t.jks"}, "keytool"),
        ({"ssl.truststore.location": "/t.p12", "ssl.truststore.type": "PKCS12"}, "PKCS12"),
        ({"ssl.keystore.location": "/k.jks"}, "keytool"),
        ({"ssl.truststore.certificates": "-----BEGIN"}, "ssl.truststore.certificates is not PEM text"),
        ({"sasl.login.class": "x.Y"}, "Java class"),
    ],
)
def test_properties_refused(changes: dict[str, str], says: str) -> None:
    base = {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": SCRAM_JAAS}
    with pytest.raises(InvalidFile) as caught:
        security_from_properties({**base, **changes}, source="client.properties")
    text = f"{caught.value.message} {caught.value.hint}"
    assert says in text
    assert 'a"b' not in text
    assert "client.properties" in text


def test_command_config_takes_the_place_of_a_contexts_security(two: Path, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location=/ca.pem\n")
    target = resolve_target(context="prod", command_config=str(file))  # its password is not asked for
    assert target.security == Security("SSL", ssl_cafile="/ca.pem")
    with pytest.raises(UsageError, match="cannot read"):
        resolve_target(context="dev", command_config=str(tmp_path / "absent"))
