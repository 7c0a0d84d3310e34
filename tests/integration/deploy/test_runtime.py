"""`kctl runtime` against a download host that misbehaves, hostile archives, real Maven coordinates, and a JRE wheel."""

from __future__ import annotations

import hashlib
import io
import json
import os
import resource
import signal
import subprocess
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_mirror import Mirror, kafka_archive, serve
from kctl_testing import SCRIPT, Kctl, Result, closed_port, within

NAME = "3.9.2/kafka_2.13-3.9.2.tgz"


@pytest.fixture(scope="session")
def small_archive(kafka_home: Path) -> bytes:
    """Two real jars: enough for a runtime to be whole, quick to serve."""
    libs = kafka_home / "libs"
    return kafka_archive(libs / "kafka_2.13-3.9.2.jar", *libs.glob("slf4j-*.jar"), padding_bytes=2_000_000)


@pytest.fixture
def mirror(small_archive: bytes) -> Iterator[Mirror]:
    """A download host that has Kafka 3.9.2."""
    with serve(Mirror({})) as running:
        running.publish(NAME, small_archive)
        yield running


@pytest.fixture
def alone(own_kctl: Kctl, mirror: Mirror, tmp_path: Path) -> Kctl:
    """kctl with an empty home and this one download host: no mvn on PATH, no repository for Ivy."""
    java = Path(os.environ.get("JAVA_HOME") or _java_home()) / "bin"
    return own_kctl.with_environment(
        XDG_CACHE_HOME=str(own_kctl.home / ".cache"),  # not the one that all tests share: downloads are counted
        KCTL_KAFKA_MIRROR=mirror.url,
        KCTL_MAVEN_REPOSITORY=f"http://127.0.0.1:{closed_port()}",
        PATH=f"{java}",
    )


def _java_home() -> Path:
    from kctl.deploy.runtime.java import find_java

    return find_java().home


def runtimes(kctl: Kctl) -> list[str]:
    """What lies in the folder of runtimes, leavings included."""
    folder = kctl.home / ".local/share/kctl/runtimes"
    return sorted(p.name for p in folder.iterdir() if p.name != ".lock") if folder.is_dir() else []


def refused(result: Result, code: int, message: str) -> None:
    """The exit code, a message that says `message` in at most two lines, and no traceback."""
    assert result.code == code, str(result)
    lines = result.err.splitlines()
    errors = [i for i, line in enumerate(lines) if line.startswith("error: ")]
    assert len(errors) == 1, str(result)
    assert message in lines[errors[0]], str(result)
    assert len(lines) - errors[0] <= 2, str(result)
    assert "Traceback" not in result.err
    assert result.out == ""


# --- the life of a runtime ------------------------------------------------------------------------------------------


def test_a_whole_release_from_download_to_removal(own_kctl: Kctl, kafka_home: Path) -> None:
    content = kafka_archive(*sorted((kafka_home / "libs").glob("*.jar")))
    with serve(Mirror({})) as host:
        host.publish(NAME, content)
        kctl = own_kctl.with_environment(KCTL_KAFKA_MIRROR=host.url)
        planned = kctl.json("runtime", "install", "--dry-run")
        assert planned["sources"][0] == f"{host.url}/{NAME}"
        assert runtimes(kctl) == []
        installed = kctl.json("runtime", "install")
        assert installed["source"] == f"{host.url}/{NAME}"
        assert installed["jars"] == len(list((kafka_home / "libs").glob("*.jar")))
        again = kctl.json("runtime", "install")
        assert again == installed
        assert len(host.archive_requests()) == 1
    assert kctl.json("runtime", "list") == [installed]
    assert set(installed) == {"version", "source", "path", "jars", "size_bytes", "default", "healthy"}
    assert kctl.json("runtime", "verify")[0]["problems"] == []
    assert "3.9.2" in kctl.ok("runtime", "list").out
    argv = ["java", "-cp", f"{installed['path']}/libs/*", "kafka.Kafka", "--version"]
    assert "3.9.2" in subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    assert not list((kctl.home / ".cache").rglob("*.tgz*"))

    refused(kctl("runtime", "remove", "--kafka-version", "3.9.2"), 4, "not confirmed")
    assert kctl.json("runtime", "remove", "--kafka-version", "3.9.2", "--dry-run")["removed"] is False
    assert runtimes(kctl) == ["kafka-3.9.2"]
    assert kctl.json("runtime", "remove", "--kafka-version", "3.9.2", "--yes")["removed"] is True
    assert runtimes(kctl) == []
    refused(kctl("runtime", "remove", "--kafka-version", "3.9.2", "--yes"), 4, "Kafka 3.9.2 is not installed")
    assert kctl.json("runtime", "list") == []


def test_verify_finds_a_changed_jar(alone: Kctl) -> None:
    path = Path(alone.json("runtime", "install")["path"]) / "libs" / "kafka_2.13-3.9.2.jar"
    content = bytearray(path.read_bytes())
    content[1000] ^= 1
    path.write_bytes(content)
    result = alone("runtime", "verify", "-o", "json")
    assert result.code == 1
    assert json.loads(result.out)[0]["problems"] == [{"jar": path.name, "problem": "changed"}]
    assert json.loads(result.err)["code"] == "not_healthy"
    assert alone("runtime", "verify").code == 1
    alone.ok("runtime", "install", "--force")
    assert alone("runtime", "verify").code == 0


# --- downloads ------------------------------------------------------------------------------------------------------


def test_a_download_that_breaks_off_goes_on(alone: Kctl, mirror: Mirror, small_archive: bytes) -> None:
    mirror.cut_after = len(small_archive) // 3
    alone.ok("runtime", "install")
    ranges = mirror.archive_requests()
    assert ranges[0] is None
    assert ranges[1:3] == [f"bytes={mirror.cut_after}-", f"bytes={2 * mirror.cut_after}-"]
    assert mirror.sent_bytes < len(small_archive) + 10_000  # nothing came twice
    assert alone("runtime", "verify").code == 0


@pytest.mark.parametrize("missing", ["ranges", "validators"])
def test_a_host_that_cannot_go_on_starts_again(alone: Kctl, mirror: Mirror, small_archive: bytes, missing: str) -> None:
    setattr(mirror, missing, False)
    mirror.cut_after = len(small_archive) // 2
    refused(alone("runtime", "install"), 3, "Kafka 3.9.2 cannot be downloaded")
    assert runtimes(alone) == []
    mirror.cut_after = None
    alone.ok("runtime", "install")
    assert alone("runtime", "verify").code == 0


def test_a_killed_download_is_resumed_by_the_next_run(alone: Kctl, mirror: Mirror, small_archive: bytes) -> None:
    mirror.bytes_per_s = len(small_archive) // 4
    with alone.running("runtime", "install") as process:
        part = alone.home / ".cache/kctl/downloads/kafka_2.13-3.9.2.tgz.part"
        deadline = time.monotonic() + 20
        while not part.exists() or part.stat().st_size < 500_000:
            assert time.monotonic() < deadline, "the download does not start"
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
    have = part.stat().st_size
    assert have < len(small_archive)
    assert [name for name in runtimes(alone) if not name.startswith(".partial-")] == []
    mirror.bytes_per_s = None
    alone.ok("runtime", "install")
    assert mirror.archive_requests()[-1] == f"bytes={have}-"
    assert runtimes(alone) == ["kafka-3.9.2"]
    assert alone("runtime", "verify").code == 0


def test_ctrl_c_ends_at_once_and_leaves_nothing_installed(alone: Kctl, mirror: Mirror, small_archive: bytes) -> None:
    mirror.bytes_per_s = len(small_archive) // 10
    with alone.running("runtime", "install") as process:
        deadline = time.monotonic() + 20
        while not mirror.archive_requests():
            assert time.monotonic() < deadline, "the download does not start"
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=5) == 130
    assert runtimes(alone) == []


def test_a_part_of_another_file_is_detected(alone: Kctl, mirror: Mirror, small_archive: bytes) -> None:
    downloads = alone.home / ".cache/kctl/downloads"
    downloads.mkdir(parents=True)
    part = downloads / "kafka_2.13-3.9.2.tgz.part"
    part.write_bytes(b"x" * 100_000)
    etag = f'"{hashlib.sha256(small_archive).hexdigest()[:16]}"'  # as if it were of this file
    part.with_name(part.name + ".json").write_text(json.dumps({"total_bytes": len(small_archive), "validator": etag}))
    alone.ok("runtime", "install")
    assert mirror.archive_requests() == ["bytes=100000-", None]
    assert alone("runtime", "verify").code == 0


def test_a_file_that_changed_meanwhile_is_fetched_whole(alone: Kctl, mirror: Mirror, kafka_home: Path) -> None:
    mirror.cut_after = 1_000_000
    mirror.ranges = False
    assert alone("runtime", "install").code == 3
    mirror.cut_after, mirror.ranges = None, True
    mirror.publish(NAME, kafka_archive(*(kafka_home / "libs").glob("kafka_*.jar"), padding_bytes=5000))
    alone.ok("runtime", "install")
    assert alone("runtime", "verify").code == 0


def test_a_wrong_checksum_installs_nothing(alone: Kctl, mirror: Mirror, small_archive: bytes) -> None:
    mirror.publish(NAME, small_archive, sha512="ab" * 64)
    refused(alone("runtime", "install"), 5, "does not have the SHA-512 that 127.0.0.1:")
    assert runtimes(alone) == []
    assert not list((alone.home / ".cache/kctl/downloads").iterdir())


def test_a_silent_host_is_skipped_within_seconds(alone: Kctl, mirror: Mirror) -> None:
    with serve(Mirror({}, silent=True)) as silent, serve(Mirror({}, status=503)) as broken:
        hosts = f"{silent.url} {broken.url} http://127.0.0.1:{closed_port()} {mirror.url}"
        result = alone.with_environment(KCTL_KAFKA_MIRROR=hosts)("runtime", "install")
    assert result.code == 0, str(result)
    assert "did not respond within 5 s" in result.err
    assert "responded 503" in result.err
    assert "Connection refused" in result.err
    assert "Kafka is unavailable from 127.0.0.1:" in result.err
    assert len(result.err.splitlines()) == 3, str(result)
    assert result.seconds < within(10)
    assert mirror.archive_requests() == [None]


@pytest.mark.parametrize("where", ["file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://127.0.0.1/"])
def test_a_redirect_to_something_else_is_not_followed(alone: Kctl, mirror: Mirror, where: str) -> None:
    mirror.redirect = where
    refused(alone("runtime", "install"), 3, "Kafka 3.9.2 cannot be downloaded")


def test_an_unknown_version_is_named(alone: Kctl) -> None:
    refused(alone("runtime", "install", "--kafka-version", "3.8.0"), 4, "Kafka 3.8.0 was not found")
    refused(alone("runtime", "install", "--kafka-version", "latest"), 2, "'latest' is not a Kafka version")


def test_no_network_is_an_error_and_leaves_nothing(alone: Kctl) -> None:
    cut_off = alone.with_environment(KCTL_KAFKA_MIRROR=f"http://127.0.0.1:{closed_port()}")
    result = cut_off("runtime", "install")
    refused(result, 3, "Kafka 3.9.2 cannot be downloaded")
    assert "--archive" in result.err
    assert runtimes(alone) == []


def test_two_installers_at_once_download_once(alone: Kctl, mirror: Mirror, small_archive: bytes) -> None:
    mirror.bytes_per_s = len(small_archive)
    with alone.running("runtime", "install") as one, alone.running("runtime", "install") as two:
        assert (one.wait(60), two.wait(60)) == (0, 0)
    assert mirror.archive_requests() == [None]
    assert runtimes(alone) == ["kafka-3.9.2"]


def test_a_full_disk_leaves_nothing(alone: Kctl) -> None:
    def limit() -> None:  # limits the size of files, like a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, 3_000_000))

    done = subprocess.run(
        [str(SCRIPT), "runtime", "install"], env=alone.environment, preexec_fn=limit, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    refused(Result(("runtime", "install"), done.returncode, done.stdout, done.stderr, 0), 5, "cannot write to")
    assert runtimes(alone) == []


def test_a_folder_that_cannot_be_written_is_refused(alone: Kctl, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    blocked = alone.with_environment(XDG_DATA_HOME=str(tmp_path / "file"))
    refused(blocked("runtime", "install"), 4, "cannot write to")


# --- archives that are given ----------------------------------------------------------------------------------------


def test_an_archive_that_is_given(alone: Kctl, mirror: Mirror, small_archive: bytes, tmp_path: Path) -> None:
    path = tmp_path / "kafka_2.13-3.9.2.tgz"
    path.write_bytes(small_archive)
    refused(alone("runtime", "install", "--archive", str(path)), 4, "no SHA-512 to check")
    refused(
        alone("runtime", "install", "--archive", str(path), "--sha512", "0" * 128),
        4,
        "does not have the expected SHA-512",
    )
    refused(alone("runtime", "install", "--archive", str(path), "--sha512", "zz"), 2, "neither 128 hexadecimal")
    refused(alone("runtime", "install", "--archive", str(tmp_path / "no.tgz")), 4, "does not exist")
    assert runtimes(alone) == []
    path.with_name(path.name + ".sha512").write_bytes(mirror.files[f"{NAME}.sha512"])
    assert alone.json("runtime", "install", "--archive", str(path))["source"] == "archive kafka_2.13-3.9.2.tgz"
    assert mirror.requests == []
    assert alone("runtime", "verify").code == 0


def test_a_hostile_archive_with_a_right_checksum_writes_nothing(alone: Kctl, mirror: Mirror, tmp_path: Path) -> None:
    path = tmp_path / "kafka_2.13-3.9.2.tgz"
    with tarfile.open(path, "w:gz") as tar:
        for name in ("k/libs/kafka_2.13-3.9.2.jar", f"../../../../../../../../..{tmp_path}/escaped.jar"):
            info = tarfile.TarInfo(name)
            info.size = 3
            tar.addfile(info, io.BytesIO(b"jar"))
    digest = hashlib.sha512(path.read_bytes()).hexdigest()
    refused(alone("runtime", "install", "--archive", str(path), "--sha512", digest), 4, "points outside")
    mirror.publish(NAME, path.read_bytes())
    refused(alone("runtime", "install"), 4, "points outside")
    assert not (tmp_path / "escaped.jar").exists()
    assert runtimes(alone) == []


# --- Maven coordinates and the JRE wheel, for real ------------------------------------------------------------------


def _runs(kctl: Kctl, version: str, java: str = "java") -> None:
    """Kafka's own main class prints the version from the provisioned jars."""
    found = next(r for r in kctl.json("runtime", "list") if r["version"] == version)
    argv = [java, "-cp", f"{found['path']}/libs/*", "kafka.Kafka", "--version"]
    assert version in subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def test_maven_coordinates_by_what_this_machine_has(own_kctl: Kctl) -> None:
    """By mvn where there is one, else by Ivy, as kctl chooses."""
    kctl = own_kctl.with_environment(KCTL_KAFKA_MIRROR="")
    installed = json.loads(kctl("runtime", "install", "-o", "json", timeout=280).out)
    assert installed["source"].startswith("Maven coordinates, by ")
    _runs(kctl, "3.9.2")


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("version", ["3.9.2", "4.3.1"])
def test_maven_coordinates_by_ivy(own_kctl: Kctl, version: str) -> None:
    kctl = own_kctl.with_environment(KCTL_KAFKA_MIRROR="", PATH=str(_java_home() / "bin"))
    result = kctl("runtime", "install", "--kafka-version", version, "-o", "json", timeout=800)
    assert result.code == 0, str(result)
    assert json.loads(result.out)["source"] == "Maven coordinates, by Ivy"
    _runs(kctl, version)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it ended meanwhile
        return b""


@pytest.mark.long
def test_kafka_runs_on_the_jre_of_the_wheel(own_kctl: Kctl, kafka_home: Path) -> None:
    """A cluster, started and used with no other Java in reach."""
    from kctl.deploy.runtime.java import bundled_java_home

    home = bundled_java_home()
    assert home is not None
    kctl = own_kctl.with_environment(JAVA_HOME=str(home), PATH="/usr/bin:/bin")
    try:
        kctl.ok("cluster", "create", "jre", "--use", "--layout", "single", timeout=120)
        kctl.ok("topic", "create", "t", "--partitions", "1", "--replication-factor", "1")
        kctl.ok("produce", "t", stdin="one\ntwo\n")
        assert kctl.ok("consume", "t", "--from-beginning", "--exit-eof").out.splitlines() == ["one", "two"]
        folder = os.fsencode(kctl.home / ".local/share/kctl/clusters/jre")
        running = [p.parent for p in Path("/proc").glob("[0-9]*/cmdline") if folder in _read(p)]
        assert len(running) == 2  # ZooKeeper and the broker
        assert {(p / "exe").resolve() for p in running} == {(home / "bin" / "java").resolve()}
    finally:
        kctl("cluster", "destroy", "jre", "--yes", "--confirm-cluster", "jre", timeout=120)
