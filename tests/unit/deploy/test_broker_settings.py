"""--config and --config-file: what a broker knows, and what it would refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from kctl.deploy.config.broker_settings import OWNED, check_setting, known_settings, read_settings
from kctl.errors import InvalidFile, NotFound, UsageError

GOOD = [
    ("num.io.threads", "4"),
    ("log.retention.ms", "-1"),
    ("log.cleanup.policy", "compact,delete"),
    ("log.cleanup.policy", "compact, delete"),
    ("compression.type", "zstd"),
    ("delete.topic.enable", "FALSE"),
    ("num.io.threads", "+8"),
    ("log.cleaner.min.cleanable.ratio", "5e-1"),
    ("log.cleaner.min.cleanable.ratio", "0.25"),
    ("authorizer.class.name", "kafka.security.authorizer.AclAuthorizer"),
    ("authorizer.class.name", ""),
    ("super.users", "User:ANONYMOUS;User:admin"),
    ("allow.everyone.if.no.acl.found", "true"),
    ("principal.builder.class", "a.B$C"),
    ("listener.name.external.ssl.client.auth", "required"),
    ("listener.name.external.scram-sha-512.sasl.jaas.config", "x"),
    ("log.message.timestamp.type", "LogAppendTime"),
]


@pytest.mark.parametrize(("key", "value"), GOOD)
def test_good(key: str, value: str) -> None:
    check_setting(key, value)


BAD = [
    ("log.retention.mz", "1", "no setting 'log.retention.mz'", "log.retention.ms"),
    ("allow.everyone.if.no.acl.found", "yes", "true or false", "default is false"),
    ("super.user", "User:a", "no setting 'super.user'", "super.users"),
    ("whatever", "1", "no setting 'whatever'", "documentation"),
    ("num.io.threads", "many", "'many' is not a whole number", "default is 8"),
    ("num.io.threads", "1.5", "whole number", None),
    ("num.io.threads", "0", "at least 1", None),
    ("num.io.threads", "2147483648", "between -2147483648 and 2147483647", None),
    ("log.retention.ms", "9223372036854775808", "between -9223372036854775808", None),
    ("compression.type", "brotli", "one of uncompressed, zstd", None),
    ("log.cleanup.policy", "compact,remove", "a list of compact, delete", None),
    ("delete.topic.enable", "yes", "true or false", None),
    ("log.cleaner.min.cleanable.ratio", "1.5", "between 0 and 1", None),
    ("log.cleaner.min.cleanable.ratio", "nan", "a number", None),
    ("principal.builder.class", "not a class", "the name of a class", None),
    ("listener.name.external.ssl.nonsense", "x", "no setting", None),
]


@pytest.mark.parametrize(("key", "value", "says", "hint"), BAD)
def test_bad(key: str, value: str, says: str, hint: str | None) -> None:
    with pytest.raises(UsageError) as caught:
        check_setting(key, value)
    assert says in caught.value.message
    if hint is not None:
        assert hint in (caught.value.hint or "")


@pytest.mark.parametrize("key", OWNED)
def test_what_kctl_owns(key: str) -> None:
    assert key in known_settings() or key == "control.plane.listener.name"
    with pytest.raises(UsageError, match="set by kctl itself") as caught:
        check_setting(key, "1")
    assert caught.value.hint


@pytest.mark.parametrize("setting", known_settings().values(), ids=lambda s: s.name)
def test_every_default_passes_its_own_check(setting: object) -> None:
    from kctl.deploy.config.broker_settings import Setting, problem_of

    assert isinstance(setting, Setting)
    if setting.default is not None:
        assert problem_of(setting, setting.default) is None


def test_the_file_then_the_options(tmp_path: Path) -> None:
    file = tmp_path / "extra.properties"
    file.write_text("# mine\nnum.io.threads=3\nssl.key.password=pw\nlog.cleanup.policy=compact,\\\n delete\n")
    assert read_settings(["num.io.threads=5", "num.network.threads = 2"], file) == {
        "num.io.threads": "5",
        "ssl.key.password": "pw",
        "log.cleanup.policy": "compact,delete",
        "num.network.threads": "2",
    }


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["num.io.threads"], "not key=value"),
        (["=1"], "not key=value"),
        (["a=1", "a=2"], "set twice"),
        (["ssl.keystore.password=x"], "expose a password"),
        (["listener.name.a.ssl.keystore.password=x"], "expose a password"),
    ],
)
def test_refused_options(given: list[str], says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        read_settings(given, None)
    assert "=x" not in caught.value.message


def test_a_wrong_password_setting_is_not_repeated(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("ssl.keystore.passwort=s3cret\n")
    with pytest.raises(UsageError) as caught:
        read_settings([], file)
    assert "s3cret" not in caught.value.message


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        read_settings([], tmp_path / "missing")
    (tmp_path / "binary").write_bytes(b"\x7fELF\0")
    with pytest.raises(InvalidFile, match="is not text"):
        read_settings([], tmp_path / "binary")
    (tmp_path / "large").write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(InvalidFile, match="larger"):
        read_settings([], tmp_path / "large")
    with pytest.raises(UsageError, match="cannot read"):
        read_settings([], tmp_path)
