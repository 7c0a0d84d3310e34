"""Checksum files as people publish them, and archives as nobody should."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from kctl.deploy.runtime import archive
from kctl.errors import InvalidFile, KctlError, Refused

DIGEST = hashlib.sha512(b"kafka").hexdigest()
GROUPS = [DIGEST[i : i + 8].upper() for i in range(0, 128, 8)]
# gpg --print-md SHA512, as Apache publishes it: groups of eight digits, wrapped and indented below the name.
GPG = "kafka_2.13-3.9.2.tgz: " + " ".join(GROUPS[:5]) + "\n" + "".join(
    "                      " + " ".join(GROUPS[i : i + 5]) + "\n" for i in range(5, 16, 5)
)  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        GPG,
        GPG.replace("tgz: ", "tgz:\n"),
        f"{DIGEST}  kafka_2.13-3.9.2.tgz\n",
        f"{DIGEST} *kafka_2.13-3.9.2.tgz\n",
        f"SHA512 (kafka_2.13-3.9.2.tgz) = {DIGEST}\n",
        f"SHA2-512(kafka_2.13-3.9.2.tgz)= {DIGEST}\n",
        DIGEST.upper(),
    ],
)
def test_reads_every_form_of_sha512(text: str) -> None:
    assert archive.parse_sha512(text, source="x") == DIGEST


@pytest.mark.parametrize("text", ["", "\n", "<html>not found</html>", DIGEST[:-1], "x: " + DIGEST[:-2] + "zz", "a:b"])
def test_refuses_what_is_no_sha512(text: str) -> None:
    with pytest.raises(InvalidFile, match="has no SHA-512"):
        archive.parse_sha512(text, source="x")


def test_sha512_is_given_as_digits_or_file_or_lies_beside(tmp_path: Path) -> None:
    packed, beside, other = tmp_path / "k.tgz", tmp_path / "k.tgz.sha512", tmp_path / "sum"
    with pytest.raises(Refused, match="no SHA-512 to check"):
        archive.read_sha512(packed, None)
    beside.write_text(GPG)
    other.write_text(f"{'0' * 128}  k.tgz")
    assert archive.read_sha512(packed, None) == DIGEST
    assert archive.read_sha512(packed, str(other)) == "0" * 128
    assert archive.read_sha512(packed, DIGEST.upper()) == DIGEST
    with pytest.raises(InvalidFile, match="neither 128"):
        archive.read_sha512(packed, "abc")


# --- archives -------------------------------------------------------------------------------------------------------


def entry(name: str, content: bytes = b"jar", **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for key, value in fields.items():
        setattr(info, key, value)
    return info, content


JAR = entry("kafka_2.13-3.9.2/libs/kafka_2.13-3.9.2.jar")


def pack(path: Path, *entries: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for info, content in entries:
            tar.addfile(info, io.BytesIO(content))
    return path


def test_takes_the_jars_and_the_licence_and_nothing_else(tmp_path: Path) -> None:
    packed = pack(
        tmp_path / "k.tgz",
        entry("k", b"", type=tarfile.DIRTYPE),
        JAR,
        entry("./k/libs/other.jar", b"\0" * 512),
        entry("k/libs/other.jar.asc"),
        entry("k/libs/deeper/x.jar"),
        entry("k/site-docs/x.jar"),
        entry("k/LICENSE", b"Apache"),
        entry("k/bin/kafka-server-start.sh", b"#!/bin/sh", mode=0o755),
    )
    into = tmp_path / "out"
    assert archive.unpack_jars(packed, into) == 2
    files = {str(p.relative_to(into)): p.read_bytes() for p in into.rglob("*") if p.is_file()}
    assert files == {"libs/kafka_2.13-3.9.2.jar": b"jar", "libs/other.jar": b"\0" * 512, "LICENSE": b"Apache"}


HOSTILE: dict[str, tuple[tarfile.TarInfo, bytes]] = {
    "absolute": entry("/etc/cron.d/x"),
    "parent": entry("k/libs/../../../x.jar"),
    "parent of all": entry("../x"),
    "backslash": entry("k\\..\\..\\x"),
    "link out": entry("k/libs/x.jar", b"", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
    "link inside": entry("k/libs/x.jar", b"", type=tarfile.SYMTYPE, linkname="kafka_2.13-3.9.2.jar"),
    "hard link": entry("k/libs/x.jar", b"", type=tarfile.LNKTYPE, linkname="../../etc/passwd"),
    "device": entry("k/libs/x.jar", b"", type=tarfile.CHRTYPE, devmajor=1, devminor=5),
    "pipe": entry("k/libs/x.jar", b"", type=tarfile.FIFOTYPE),
    "twice": JAR,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_refuses_a_hostile_archive(tmp_path: Path, name: str) -> None:
    packed = pack(tmp_path / "k.tgz", JAR, HOSTILE[name])
    with pytest.raises(Refused, match="was rejected"):
        archive.unpack_jars(packed, tmp_path / "out")
    outside = {p for p in tmp_path.iterdir() if p.name not in {"k.tgz", "out"}}
    assert not outside
    assert not [p for p in (tmp_path / "out").rglob("*") if p.is_symlink() or p.name == "x.jar"]


def _claims(size: int) -> bytes:
    info = tarfile.TarInfo("k/libs/big.jar")
    info.size = size
    return info.tobuf()


def _pax(size: int) -> bytes:
    info = tarfile.TarInfo("PaxHeader")
    info.type, info.size = tarfile.XHDTYPE, size
    return info.tobuf(tarfile.USTAR_FORMAT)


def _zeros(count: int) -> bytes:
    return bytes(count)


BOMBS: dict[str, tuple[Callable[[], bytes], int]] = {
    "an entry of 3 GB": (lambda: _claims(3 * 10**9), 0),
    "a header of 1.5 GB": (lambda: _pax(1_500_000_000), 0),
    "300 MB of a header": (lambda: _pax(300_000_000), 300_000_000),
    "50,000 entries": (lambda: tarfile.TarInfo("k/x").tobuf() * 50_000, 0),
    "a chain of headers": (lambda: _pax(0) * 5_000, 0),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_cost_little_memory(tmp_path: Path, name: str) -> None:
    import resource

    head, padding = BOMBS[name]
    path = tmp_path / "bomb.tgz"
    with gzip.open(path, "wb", compresslevel=1) as out:
        out.write(head())
        for _ in range(padding // 10**7):
            out.write(_zeros(10**7))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(KctlError) as caught:
        archive.unpack_jars(path, tmp_path / "out")
    assert isinstance(caught.value, (Refused, InvalidFile))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kilobytes on Linux
    assert sum(p.stat().st_size for p in (tmp_path / "out").rglob("*.jar")) == 0


@pytest.mark.parametrize("limit", [0, 10, 500])
def test_a_cut_archive_is_no_archive(tmp_path: Path, limit: int) -> None:
    whole = pack(tmp_path / "k.tgz", JAR, entry("k/libs/a.jar", bytes(range(256)) * 40)).read_bytes()
    cut = tmp_path / "cut.tgz"
    cut.write_bytes(whole[: min(limit, len(whole) - 20)])
    with pytest.raises(InvalidFile, match=r"cut\.tgz"):
        archive.unpack_jars(cut, tmp_path / "out")


@pytest.mark.parametrize("content", [b"PK\x03\x04 a zip", b"<html></html>", b"\x1f\x8b" + b"garbage" * 20])
def test_something_else_is_no_archive(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "k.tgz"
    path.write_bytes(content)
    with pytest.raises(InvalidFile, match="not a complete gzipped tar"):
        archive.unpack_jars(path, tmp_path / "out")


def test_an_archive_without_jars_is_named(tmp_path: Path) -> None:
    packed = pack(tmp_path / "src.tgz", entry("kafka-3.9.2-src/build.gradle"))
    with pytest.raises(InvalidFile, match=r"has no libs/\*\.jar"):
        archive.unpack_jars(packed, tmp_path / "out")
