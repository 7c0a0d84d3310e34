"""Which Kafka is used, what a damaged one looks like, and what Maven and Ivy are asked for and say."""

from __future__ import annotations

import errno
import json
import os
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from kctl.deploy.runtime import apache, ivy, jars, maven, provision, runtime
from kctl.deploy.waiting import NoProgress
from kctl.errors import Busy, ConnectionFailed, InvalidFile, NotFound, OperationFailed, Refused, UsageError


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KAFKA_HOME", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def kafka_folder(folder: Path, version: str = "3.9.2", scala: str = "2.13") -> Path:
    folder.mkdir(parents=True)
    for name in (f"kafka_{scala}-{version}.jar", f"kafka-clients-{version}.jar", "slf4j-reload4j-1.7.36.jar"):
        (folder / name).write_bytes(name.encode())
    return folder


def provisioned(version: str = "3.9.2") -> Path:
    """A provisioned runtime with small jars."""
    home = runtime.home_of(version)
    libs = kafka_folder(home / "libs", version)
    jars.write_manifest(home, jars.describe_jars(libs, version=version, source="a test"))
    return home


@pytest.mark.parametrize("version", ["3.9", "3", "../../etc", "3.9.2/..", "latest", "", "3.9.2.1.1", "3.9.2-SNAPSHOT"])
def test_what_is_no_version(version: str) -> None:
    with pytest.raises(UsageError, match="is not a Kafka version"):
        runtime.checked_version(version)


@pytest.mark.parametrize("version", ["3.9.2", "0.10.2.1", "4.3.1", "4.0.0-rc1"])
def test_what_is_a_version(version: str) -> None:
    assert runtime.checked_version(version) == version


@pytest.mark.parametrize("inside", ["libs", "."])
@pytest.mark.parametrize(("version", "scala"), [("3.9.2", "2.13"), ("0.10.2.1", "2.11")])
def test_a_folder_with_libs_or_jars(tmp_path: Path, inside: str, version: str, scala: str) -> None:
    libs = kafka_folder(tmp_path / "k" / inside, version, scala).resolve()
    (libs / f"kafka_{scala}-{version}-sources.jar").touch()
    (libs / f"kafka_{scala}-{version}-test.jar").touch()
    found = runtime.find_runtime(kafka_home=str(tmp_path / "k"))
    assert (found.version, found.libs.resolve()) == (version, libs)


def test_order_of_given_environment_and_provisioned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotFound, match=r"Kafka 3\.9\.2 is not installed"):
        runtime.find_runtime()
    home = provisioned()
    assert runtime.find_runtime().libs == home / "libs"
    monkeypatch.setenv("KAFKA_HOME", str(kafka_folder(tmp_path / "old", "3.8.1")))
    assert (runtime.find_runtime().version, runtime.find_runtime().source) == ("3.8.1", "KAFKA_HOME")
    assert runtime.find_runtime("3.9.2").libs == home / "libs"  # the environment's is another one
    given = kafka_folder(tmp_path / "new", "4.3.1")
    assert runtime.find_runtime(kafka_home=str(given)).version == "4.3.1"
    with pytest.raises(UsageError, match=r"has Kafka 4\.3\.1, not 3\.9\.2"):
        runtime.find_runtime("3.9.2", kafka_home=str(given))


def test_a_given_folder_without_kafka_is_never_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotFound, match=r"--kafka-home .* has no Kafka"):
        runtime.ensure_runtime(kafka_home=str(tmp_path))
    monkeypatch.setenv("KAFKA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(NotFound, match=r"KAFKA_HOME .* has no Kafka"):
        runtime.ensure_runtime()


def _truncate(home: Path) -> None:
    (home / "libs" / "kafka-clients-3.9.2.jar").write_bytes(b"")


def _delete(home: Path) -> None:
    (home / "libs" / "kafka-clients-3.9.2.jar").unlink()


def _add(home: Path) -> None:
    (home / "libs" / "evil.jar").touch()


def _flip(home: Path) -> None:
    path = home / "libs" / "kafka-clients-3.9.2.jar"
    path.write_bytes(path.read_bytes()[::-1])


@pytest.mark.parametrize(
    ("damage", "jar", "problem", "found_without_hashing"),
    [
        (_truncate, "kafka-clients-3.9.2.jar", "changed", True),
        (_delete, "kafka-clients-3.9.2.jar", "missing", True),
        (_add, "evil.jar", "extra", True),
        (_flip, "kafka-clients-3.9.2.jar", "changed", False),
    ],
)
def test_damage_is_found(damage: object, jar: str, problem: str, found_without_hashing: bool) -> None:
    home = provisioned()
    assert runtime.verify_runtime("3.9.2").healthy
    damage(home)  # type: ignore[operator]  # one of the functions above
    verified = runtime.verify_runtime("3.9.2")
    assert not verified.healthy
    assert [(p.jar, p.problem) for p in verified.problems] == [(jar, problem)]
    assert runtime.list_runtimes()[0].healthy is not found_without_hashing
    if found_without_hashing:
        with pytest.raises(InvalidFile, match=f"{jar} is {problem}") as caught:
            runtime.find_runtime()
        assert caught.value.hint is not None
        assert "kctl runtime install" in caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "null", '{"version": "3.9.2"}', '{"version": 3, "source": "x", "jars": {}}',
        '{"version": "3.9.2", "source": "x", "jars": {"../x.jar": {"size_bytes": 1, "sha256": "a"}}}',
        '{"version": "3.9.2", "source": "x", "jars": {"x.jar": {"size_bytes": "1", "sha256": "a"}}}',
        '{"version": "3.9.2", "source": "x", "jars": []}', "[" * 100_000,
    ],
)  # fmt: skip
def test_a_broken_manifest_is_damage(text: str) -> None:
    home = provisioned()
    (home / jars.MANIFEST).write_text(text)
    with pytest.raises(InvalidFile, match=r"manifest\.json"):
        runtime.find_runtime()
    assert not runtime.list_runtimes()[0].healthy
    assert not runtime.verify_runtime("3.9.2").healthy


def test_list_is_in_the_order_of_versions() -> None:
    for version in ("3.10.0", "3.9.2", "0.10.2.1"):
        provisioned(version)
    (runtime.home_of("3.9.2").parent / "kafka-nonsense").mkdir()
    assert [(r.version, r.default) for r in runtime.list_runtimes()] == [
        ("0.10.2.1", False), ("3.9.2", True), ("3.10.0", False),
    ]  # fmt: skip


def test_remove_refuses_unknown_and_running(tmp_path: Path) -> None:
    import subprocess

    home = provisioned()
    with pytest.raises(NotFound, match="is not installed") as caught:
        runtime.remove_runtime("2.8.2")
    assert caught.value.hint == "installed: 3.9.2"
    argv = ["sh", "-c", "echo; read line", "-cp", f"{home}/libs/*"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"\n"  # /proc has its arguments a moment after it began
        with pytest.raises(Busy, match=f"in use by process {process.pid}"):
            runtime.remove_runtime("3.9.2")
        process.communicate(b"\n")
    assert runtime.remove_runtime("3.9.2") == home
    assert not home.exists()
    assert [p.name for p in home.parent.iterdir()] == [".lock"]


@pytest.mark.parametrize(
    ("archive", "version", "wanted"),
    [
        (None, None, runtime.DEFAULT_VERSION), (None, "2.8.2", "2.8.2"), ("/x/kafka_2.13-4.1.0.tgz", None, "4.1.0"),
        ("kafka_2.12-3.0.0.tar.gz", None, "3.0.0"), ("download.tgz", None, runtime.DEFAULT_VERSION),
    ],
)  # fmt: skip
def test_the_version_that_is_meant(archive: str | None, version: str | None, wanted: str) -> None:
    assert runtime.requested_version(version, archive) == wanted


# --- Apache's names, Maven, Ivy -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "name"),
    [
        ("3.9.2", "kafka_2.13-3.9.2.tgz"), ("2.4.0", "kafka_2.13-2.4.0.tgz"), ("2.3.1", "kafka_2.12-2.3.1.tgz"),
        ("0.10.2.1", "kafka_2.12-0.10.2.1.tgz"), ("0.10.0.0", "kafka_2.11-0.10.0.0.tgz"),
    ],
)  # fmt: skip
def test_names_of_releases(version: str, name: str) -> None:
    assert apache.archive_name(version) == name


def test_mirrors_can_be_set_and_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [m.archives.split("/")[2] for m in apache.mirrors()] == ["dlcdn.apache.org", "archive.apache.org"]
    monkeypatch.setenv("KCTL_KAFKA_MIRROR", "http://a/kafka/ http://b")
    assert [m.checksums for m in apache.mirrors()] == ["http://a/kafka", "http://b"]
    monkeypatch.setenv("KCTL_KAFKA_MIRROR", "")
    assert apache.mirrors() == ()


@pytest.mark.parametrize(
    ("version", "more"),
    [
        ("3.9.2", []),
        ("4.3.1", ["log4j-slf4j-impl"]),  # 4.x names no binding for slf4j
        ("0.10.2.1", ["jaxb-api", "javax.activation-api"]),  # left Java with version 11
    ],
)
def test_coordinates(version: str, more: list[str]) -> None:
    artifacts = [c.artifact for c in maven.coordinates(version)]
    assert artifacts[1:] == ["kafka-tools", *more]
    ns = "{http://maven.apache.org/POM/4.0.0}"
    listed = [d.findtext(f"{ns}artifactId") for d in ET.fromstring(maven.pom(version)).iter(f"{ns}dependency")]
    assert listed == artifacts
    assert [d.get("name") for d in ET.fromstring(ivy.module(version)).iter("dependency")] == artifacts


def test_ivy_settings_escape_the_address() -> None:
    resolver = ET.fromstring(ivy.settings('http://h/a"b&c')).find("resolvers/ibiblio")
    assert resolver is not None
    assert (resolver.get("root"), resolver.get("m2compatible")) == ('http://h/a"b&c', "true")
    assert "root" not in ivy.settings(None)


@pytest.mark.parametrize(
    ("environ", "options"),
    [
        ({}, []),
        ({"https_proxy": "http://u:secret@p:3128"}, ["-Dhttps.proxyHost=p", "-Dhttps.proxyPort=3128"]),
        ({"HTTP_PROXY": "p:80", "NO_PROXY": "localhost, .x"},
         ["-Dhttp.proxyHost=p", "-Dhttp.proxyPort=80", "-Dhttp.nonProxyHosts=localhost|.x"]),
    ],
)  # fmt: skip
def test_proxies_for_java(environ: dict[str, str], options: list[str]) -> None:
    assert ivy.proxy_options(environ) == options


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("[ERROR] Could not find artifact org.apache.kafka:kafka_2.13:jar:9.9.9 in central", NotFound),
        ("[ERROR] … Could not transfer artifact …: repo.example: Name or service not known", ConnectionFailed),
        ("[ERROR] … Connect to repo.example:443 failed: Connection refused", ConnectionFailed),
        ("\t\t:: org.apache.kafka#kafka_2.13;9.9.9: not found", OperationFailed),
        ("\t\t::          UNRESOLVED DEPENDENCIES         ::", NotFound),
        ("java.io.IOException: No space left on device", OperationFailed),
        ("ERROR: … (javax.net.ssl.SSLHandshakeException: PKIX path building failed: …)", ConnectionFailed),
        ("[ERROR] The JAVA_HOME environment variable is not defined correctly", OperationFailed),
    ],
)
def test_what_maven_and_ivy_say(line: str, error: type[Exception]) -> None:
    assert type(maven.failure("9.9.9", "mvn", ["noise", line])) is error


# --- a folder that is whole or is not there -------------------------------------------------------------------------


def _archive(tmp_path: Path, version: str = "3.9.2") -> Path:
    import hashlib
    import io
    import tarfile

    path = tmp_path / f"kafka_2.13-{version}.tgz"
    with tarfile.open(path, "w:gz") as tar:
        for name in (f"kafka_2.13-{version}.jar", "slf4j-reload4j-1.7.36.jar"):
            info = tarfile.TarInfo(f"k/libs/{name}")
            info.size = 4
            tar.addfile(info, io.BytesIO(b"jar!"))
    path.with_name(path.name + ".sha512").write_text(hashlib.sha512(path.read_bytes()).hexdigest())
    return path


def _left_behind() -> list[str]:
    return sorted(p.name for p in runtime.home_of("3.9.2").parent.iterdir() if p.name != ".lock")


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_fd: int) -> None:  # a disk cannot be filled on demand without a file system of one's own
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OperationFailed, match="no space left on the disk of"):
        runtime.install_runtime(archive=str(_archive(tmp_path)))
    assert _left_behind() == []


def test_an_interrupt_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(jars, "write_manifest", interrupted)
    with pytest.raises(KeyboardInterrupt):
        runtime.install_runtime(archive=str(_archive(tmp_path)))
    assert _left_behind() == []


def test_what_a_killed_installer_left_is_swept(tmp_path: Path) -> None:
    parent = runtime.home_of("3.9.2").parent
    for name in (".partial-kafka-3.9.2-0abc", ".old-kafka-3.8.0-1abc"):
        (parent / name / "libs").mkdir(parents=True)
    runtime.install_runtime(archive=str(_archive(tmp_path)))
    assert _left_behind() == ["kafka-3.9.2"]


def test_a_damaged_one_is_repaired_and_a_whole_one_kept(tmp_path: Path) -> None:
    packed = str(_archive(tmp_path))
    home = runtime.install_runtime(archive=packed).libs.parent
    before = (home / jars.MANIFEST).stat().st_ino
    runtime.install_runtime(archive=packed)
    assert (home / jars.MANIFEST).stat().st_ino == before
    (home / "libs" / "slf4j-reload4j-1.7.36.jar").unlink()
    assert runtime.ensure_runtime(archive=packed).source == "archive kafka_2.13-3.9.2.tgz"
    assert runtime.verify_runtime("3.9.2").healthy
    (home / "libs" / "x.jar").touch()
    runtime.install_runtime(archive=packed, force=True)
    assert runtime.verify_runtime("3.9.2").healthy


def test_another_version_in_the_archive_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"has Kafka 4\.1\.0, not 3\.9\.2"):
        runtime.install_runtime("3.9.2", archive=str(_archive(tmp_path, "4.1.0")))
    assert _left_behind() == []


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    with pytest.raises(Refused, match=r"cannot write to .*: Not a directory"):
        runtime.install_runtime(archive=str(_archive(tmp_path)))


def test_a_second_installer_waits_for_the_first(tmp_path: Path) -> None:
    with provision.runtimes_lock(1.0, NoProgress()), pytest.raises(Busy, match="another kctl is installing Kafka"):
        runtime.install_runtime(archive=str(_archive(tmp_path)), timeout_s=0.5)


def test_manifest_is_json_that_people_can_read() -> None:
    body = json.loads((provisioned() / jars.MANIFEST).read_text())
    assert set(body) == {"version", "source", "jars"}
    assert set(next(iter(body["jars"].values()))) == {"size_bytes", "sha256"}
