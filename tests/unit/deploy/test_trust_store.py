"""The trust store that kctl writes for a JRE, read by Java's own keytool."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest

from kctl.deploy.runtime.java import find_java
from kctl.deploy.runtime.trust_store import system_certificates, trust_options, trust_store

CA = Path(__file__).parents[2] / "data" / "tls" / "ca.pem"


def _listed(store: Path) -> str:
    keytool = [str(find_java().executable), "-m", "java.base/sun.security.tools.keytool.Main"]
    argv = [*keytool, "-list", "-keystore", str(store), "-storepass", "changeit"]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def test_keytool_reads_it(tmp_path: Path) -> None:
    (certificate,) = system_certificates({"SSL_CERT_FILE": str(CA)})
    store = tmp_path / "trust.jks"
    store.write_bytes(trust_store([certificate]))
    listed = _listed(store)
    fingerprint = hashlib.sha256(certificate).hexdigest().upper()
    assert ":".join(fingerprint[i : i + 2] for i in range(0, 64, 2)) in listed
    assert "trustedCertEntry" in listed


def test_a_changed_store_is_refused_by_java(tmp_path: Path) -> None:
    store = tmp_path / "trust.jks"
    store.write_bytes(trust_store(system_certificates({"SSL_CERT_FILE": str(CA)}))[:-1] + b"\0")
    with pytest.raises(subprocess.CalledProcessError):
        _listed(store)


def test_what_is_no_certificate_is_left_out(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.pem"
    broken = "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n"
    bundle.write_text(f"# comment\n{broken}{CA.read_text()}{CA.read_text()}\xff", encoding="latin-1")
    assert len(system_certificates({"SSL_CERT_FILE": str(bundle)})) == 1
    assert system_certificates({"SSL_CERT_FILE": str(tmp_path / "missing")}) == []


def test_only_the_wheels_jre_gets_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, other = tmp_path / "jre", tmp_path / "jdk"
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    assert trust_options(other, home, tmp_path) == []
    assert trust_options(other, None, tmp_path) == []
    monkeypatch.setenv("SSL_CERT_FILE", str(CA))
    assert f"-Djavax.net.ssl.trustStore={tmp_path}/trust.jks" in trust_options(other, None, tmp_path)
    assert "trustedCertEntry" in _listed(tmp_path / "trust.jks")
