"""Config providers in client properties: resolved as Kafka's own do, or refused; never sent as they stand."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from config_provider_forms import DATA, ENVIRONMENT, make_folder
from kctl.contexts.client_properties.providers import Providers, Reference
from kctl.contexts.command_config import client_config
from kctl.errors import InvalidFile

SECRET = "s3cret-{7c2e}"
PACKAGE = "org.apache.kafka.common.config.provider"
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="ops" password="%s";'
BASE = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}


@pytest.fixture
def secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with ops.properties and mounted/password; KAFKA_PASSWORD is set."""
    (tmp_path / "ops.properties").write_text(f"password={SECRET}\nname=ops\nempty=\nother=$LITERAL\nplace=${{x}}\n")
    (tmp_path / "mounted").mkdir()
    (tmp_path / "mounted" / "password").write_text(SECRET)
    (tmp_path / "mounted" / "with-newline").write_text(f"{SECRET}\n")
    (tmp_path / "mounted" / "crlf").write_text(f"{SECRET}\r\n")
    (tmp_path / "mounted" / "latin").write_bytes(b"\xff")
    monkeypatch.setenv("KAFKA_PASSWORD", SECRET)
    monkeypatch.delenv("ABSENT", raising=False)
    return tmp_path


def password_of(reference: str, folder: Path, **more: str) -> str | None:
    properties = {**BASE, "sasl.jaas.config": JAAS % reference.replace("DIR", str(folder)), **_dotted(more)}
    found = client_config(properties, source="f").security.sasl_password
    other = {**BASE, "sasl.username": "ops", "sasl.password": reference.replace("DIR", str(folder)), **_dotted(more)}
    assert client_config(other, source="f").security.sasl_password == found
    return found


def _dotted(more: dict[str, str]) -> dict[str, str]:
    return {key.replace("__", "."): value for key, value in more.items()}


DECLARED = {"config__providers": "f, e,d"} | {
    f"config__providers__{name}__class": f"{PACKAGE}.{kind}ConfigProvider"
    for name, kind in (("f", "File"), ("e", "EnvVar"), ("d", "Directory"))
}


FILE = {"config__providers": "file", "config__providers__file__class": f"{PACKAGE}.FileConfigProvider"}
_PATHS = "config__providers__file__param__allowed__paths"


@pytest.mark.parametrize(
    ("reference", "expected", "more"),
    [
        ("${file:DIR/ops.properties:password}", SECRET, {}),
        ("${env:KAFKA_PASSWORD}", SECRET, {}),
        ("${env::KAFKA_PASSWORD}", SECRET, {}),
        ("${directory:DIR/mounted:password}", SECRET, {}),
        ("${directory:DIR/mounted:with-newline}", SECRET, {}),
        ("${directory:DIR/mounted:crlf}", SECRET, {}),
        ("${f:DIR/ops.properties:password}", SECRET, DECLARED),
        ("${e:KAFKA_PASSWORD}", SECRET, DECLARED),
        ("${d:DIR/mounted:password}", SECRET, DECLARED),
        ("${file:DIR/ops.properties:name}-${env:KAFKA_PASSWORD}!", f"ops-{SECRET}!", {}),
        ("a$b${file:DIR/ops.properties:name}$", "a$bops$", {}),
        ("${file:DIR/ops.properties:empty}", "", {}),
        ("${file:DIR/ops.properties:other}", "$LITERAL", {}),  # what a provider returns is not looked at
        ("${file:DIR/ops.properties:place}", "${x}", {}),
        ("${file:DIR/ops.properties:password}", SECRET, {"config__providers__file__param__allowed__paths": "DIR"}),
        (
            "${s:KAFKA_PASSWORD}",
            SECRET,
            {
                "config__providers": "s",
                "config__providers__s__class": f"shaded.{PACKAGE}.EnvVarConfigProvider",
                "config__providers__s__param__allowlist__pattern": "KAFKA_.*",
            },
        ),
    ],
)
def test_resolved(reference: str, expected: str, more: dict[str, str], secrets: Path) -> None:
    more = {key: value.replace("DIR", str(secrets)) for key, value in more.items()}
    assert password_of(reference, secrets, **more) == expected


@pytest.mark.parametrize(
    ("reference", "says", "more"),
    [
        ("${file:DIR/absent.properties:password}", "there is no file", {}),
        ("${file:DIR/ops.properties:absent}", "has no key absent", {}),
        ("${file:DIR/mounted:password}", "Is a directory", {}),
        ("${file:password}", "has no path", {}),
        ("${file::password}", "has no path", {}),
        ("${env:ABSENT}", "the environment variable ABSENT is not set", {}),
        ("${env:/x:KAFKA_PASSWORD}", "env takes no path", {}),
        ("${directory:DIR/mounted:absent}", "there is no file", {}),
        ("${directory:DIR/mounted:../ops.properties}", "is not a file name", {}),
        ("${directory:DIR/mounted:latin}", "is not UTF-8", {}),
        ("${directory:DIR:mounted}", "Is a directory", {}),
        ("${file:DIR/\0x:password}", "that is not a path", {}),
        *(
            ("x", "config.providers.file.param.allowed.paths has", {**FILE, _PATHS: paths})
            for paths in ("DIR/absent", "DIR, DIR", "relative", " ", ",DIR")
        ),
        ("${File:DIR/ops.properties:password}", "'File' is not a config provider", {}),
        ("${vault:DIR/ops.properties:password}", "'vault' is not a config provider", {}),
        ("${env:KAFKA_PASSWORD", "an unresolved placeholder", {}),
        (
            "${file:DIR/ops.properties:password}",
            "allowed.paths does not allow",
            {**FILE, _PATHS: "DIR/mounted"},
        ),
        (
            "${env:KAFKA_PASSWORD}",
            "allowlist.pattern does not allow",
            {
                "config__providers": "env",
                "config__providers__env__class": f"{PACKAGE}.EnvVarConfigProvider",
                "config__providers__env__param__allowlist__pattern": "OTHER_.*",
            },
        ),
        (
            "x",
            "config.providers.v.class is com.example.Vault, which kctl cannot load",
            {
                "config__providers": "v",
                "config__providers__v__class": "com.example.Vault",
            },
        ),
        ("x", "config.providers.v.class is missing", {"config__providers": "v"}),
        (
            "x",
            "config.providers.v.class is com.example.FileConfigProvider",
            {
                "config__providers": "v",
                "config__providers__v__class": "com.example.FileConfigProvider",
            },
        ),
    ],
)
def test_refused(reference: str, says: str, more: dict[str, str], secrets: Path) -> None:
    more = {key: value.replace("DIR", str(secrets)) for key, value in more.items()}
    with pytest.raises(InvalidFile) as caught:
        password_of(reference, secrets, **more)
    assert says in caught.value.message
    assert SECRET not in f"{caught.value.message} {caught.value.hint}"


def test_other_values_are_resolved_as_well(secrets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKERS", "a:1,b:2")
    monkeypatch.setenv("CA", "/etc/ca.pem")
    monkeypatch.setenv("JAAS", JAAS % SECRET)
    found = client_config(
        {"bootstrap.servers": "${env:BROKERS}", "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN",
         "sasl.jaas.config": "${env:JAAS}", "ssl.ca.location": "${env:CA}"},
        source="f",
    )  # fmt: skip
    assert found.bootstrap_servers == ("a:1", "b:2")
    assert found.security.ssl_cafile == "/etc/ca.pem"
    assert found.security.sasl_password == SECRET


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("${env:X}", Reference("env", None, "X")),
        (" ${file:/a/b:c} ", Reference("file", "/a/b", "c")),
        ("${directory:/d:f}", Reference("directory", "/d", "f")),
        ("x${env:X}", None),
        ("${env:X}${env:Y}", None),
        ("${vault:x:y}", None),
        ("plain", None),
    ],
)
def test_a_reference_as_a_whole(value: str, expected: Reference | None) -> None:
    assert Providers({}, "f").reference(value) == expected


# Where kctl decides otherwise than Kafka, whatever the form: a reference that Kafka leaves as it stands is refused.
# Forms in which it differs besides (value → what kctl makes of it, None for a refusal), and why:
DIFFERENT: dict[str, str | None] = {
    "${env:KCTL_EMPTY}": None,  # an empty variable is one that somebody forgot to fill
    "${file:DIR/bom.properties:next}": None,  # the first line of such a file has another key than it seems
    "${file:DIR/twice.properties:password}": None,  # the last one would win without a word
    # The end of a line is no part of a secret: editors and `echo` leave one, and Kafka's login fails with it.
    "${directory:DIR/mounted:newline}": "s3cret",
    "${directory:DIR/mounted:crlf}": "s3cret",
    "${directory:DIR/mounted:cr}": "s3cret",
    "${directory:DIR/mounted:lines}": "one\ntwo",
    "${directory:DIR/mounted:newlines}": "s3cret\n",
}
DIFFERENT_PATTERNS = {r"\p{Upper}+_A"}  # Python's regular expressions have no \p; refused by name


def test_forms_that_were_run_through_kafka(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """332 values, allowed.paths and allowlist.pattern, by tests/support/ConfigProviderForms.java.

    Kafka 4.4 was asked. 3.9 differs in five: it does not follow links for allowed.paths, and sends U+FFFD for bytes of
    a mounted file that are not UTF-8.
    """
    make_folder(tmp_path)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("KCTL_ABSENT", raising=False)
    wrong = []
    for value, paths, pattern, java in json.loads(DATA.read_text()):
        expected = java.removeprefix("=") if java[0] == "=" and not _left_alone(value, java) else None
        if not paths and not pattern:
            expected = DIFFERENT.get(value, expected)
        elif pattern in DIFFERENT_PATTERNS:
            expected = None
        answer = _resolved(value, paths, pattern, tmp_path)
        if answer != expected:
            wrong.append((value, paths, pattern, java, answer))
    assert not wrong


def _left_alone(value: str, answer: str) -> bool:
    """Whether Kafka would send a reference as it stands."""
    return any(each in answer for each in re.findall(r"\$\{[^}]*\}?", value))


def _resolved(value: str, paths: str, pattern: str, folder: Path) -> str | None:
    """What kctl makes of a value, DIR being the folder; None for a refusal."""
    properties = {"config.providers": "file, env, directory"}
    for name, kind in (("file", "File"), ("env", "EnvVar"), ("directory", "Directory")):
        properties[f"config.providers.{name}.class"] = f"{PACKAGE}.{kind}ConfigProvider"
        if paths and name != "env":
            properties[f"config.providers.{name}.param.allowed.paths"] = paths.replace("DIR", str(folder))
    if pattern:
        properties["config.providers.env.param.allowlist.pattern"] = pattern
    try:
        found = Providers(properties, "f").resolve("k", value.replace("DIR", str(folder)), secret=True)
    except InvalidFile:
        return None
    return found.replace(str(folder), "DIR")
