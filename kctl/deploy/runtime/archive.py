"""A Kafka release archive: its checksum, and a safe extraction of its jars.

An archive is read once, as a stream. Only `TOP/libs/*.jar`, `TOP/LICENSE` and `TOP/NOTICE` are written, under names
that kctl builds itself. A single hostile entry anywhere (an absolute path, `..`, a link, a device) rejects the whole
archive, because no Kafka release has one. Sizes are limited, to stop compression bombs.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import IO

from kctl.deploy.runtime.jars import LIBS
from kctl.errors import InvalidFile, Reason, Refused

MAX_UNPACKED_BYTES = 2 * 1024**3  # ten times the largest release
MAX_MEMBERS = 20_000
_CHUNK = 1024 * 1024
_MAX_CHECKSUM_BYTES = 64 * 1024
_HEX_512 = re.compile(r"[0-9a-f]{128}")
_DOCUMENTS = {"LICENSE", "NOTICE"}

Advance = Callable[[int, int], None]
"""Called with (bytes done, total bytes) while a file is read."""


def parse_sha512(text: str, *, source: str) -> str:
    """Return the SHA-512 in a checksum file, as 128 lowercase hex digits.

    Accepts Apache's own format (`gpg --print-md`: `NAME: 1A2B 3C4D …` over several lines), sha512sum's
    (`HEX  NAME`), BSD's (`SHA512 (NAME) = HEX`) and bare digits. Raises InvalidFile.
    """
    body = text.strip()
    first = body.split(None, 1)[0].lower() if body else ""
    if _HEX_512.fullmatch(first):
        return first
    _, separator, digits = body.rpartition("=" if re.match(r"SHA(2?-)?512 ?\(", body) else ":")
    joined = "".join(digits.split()).lower()
    if separator and _HEX_512.fullmatch(joined):
        return joined
    raise InvalidFile(f"{source} has no SHA-512", hint="it must have 128 hexadecimal digits")


def read_sha512(archive: Path, checksum: str | None) -> str:
    """Return the expected SHA-512 of `archive`: `checksum` (digits, or a file with them) or ARCHIVE.sha512 beside it.

    Raises InvalidFile, or Refused if there is no checksum: an unverified archive is not unpacked.
    """
    if checksum is not None and _HEX_512.fullmatch(checksum.strip().lower()):
        return checksum.strip().lower()
    path = Path(checksum) if checksum is not None else archive.with_name(archive.name + ".sha512")
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return parse_sha512(file.read(_MAX_CHECKSUM_BYTES), source=str(path))
    except OSError as exc:
        if checksum is not None:
            raise InvalidFile(f"--sha512 {checksum} is neither 128 hexadecimal digits nor a readable file") from exc
        raise Refused(
            f"there is no SHA-512 to check {archive} against",
            hint=f"put {path.name} beside it, or set --sha512 to the digits that Apache publishes",
            reason=Reason.UNSAFE,
        ) from exc


def sha512_of(path: Path, advance: Advance | None = None) -> str:
    """Return the file's SHA-512 in hex."""
    total, done, digest = path.stat().st_size, 0, hashlib.sha512()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            done += len(chunk)
            if advance:
                advance(done, total)
    return digest.hexdigest()


def unpack_jars(archive: Path, into: Path, advance: Advance | None = None) -> int:
    """Write the archive's jars to `into`/libs and its license beside it. Return the number of jars.

    Raises InvalidFile if it is not a gzipped tar, is truncated or has no jars, Refused if it is hostile.
    After an error, the caller removes the files written so far.
    """
    (into / LIBS).mkdir(parents=True, exist_ok=True)
    total, count, unpacked = archive.stat().st_size, 0, 0
    try:
        with archive.open("rb") as packed, gzip.GzipFile(fileobj=packed) as plain:
            bounded = _BoundedStream(plain, archive)
            with tarfile.open(fileobj=bounded, mode="r:", errorlevel=2) as tar:
                for number, member in enumerate(tar):
                    unpacked += _checked(member, number, unpacked, archive)
                    target = _target(member)
                    if target is not None:
                        count += target.suffix == ".jar"
                        _copy(tar, member, into / target, archive)
                    if advance:
                        advance(packed.tell(), total)
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, ValueError, OverflowError) as exc:
        raise InvalidFile(f"{archive} is not a complete gzipped tar archive: {exc}", hint="download it again") from exc
    except RecursionError as exc:  # a chain of extended headers
        raise _hostile(archive, "headers within headers") from exc
    if not count:
        raise InvalidFile(f"{archive} has no libs/*.jar", hint="use a binary release, kafka_SCALA-VERSION.tgz")
    return count


def _hostile(archive: Path, what: str) -> Refused:
    return Refused(
        f"{archive} was rejected: {what}", hint="no Kafka release has this; do not trust the file", reason=Reason.UNSAFE
    )


def _checked(member: tarfile.TarInfo, number: int, unpacked: int, archive: Path) -> int:
    """Return the entry's size if a release may have such an entry. Raises Refused."""
    path = PurePosixPath(member.name)
    short_name = member.name[:200]
    if path.is_absolute() or ".." in path.parts or "\\" in member.name or "\0" in member.name:
        raise _hostile(archive, f"the entry {short_name!r} points outside of the archive")
    if not (member.isreg() or member.isdir()):
        raise _hostile(
            archive, f"the entry {short_name!r} is a {'link' if member.issym() or member.islnk() else 'device'}"
        )
    if number >= MAX_MEMBERS:
        raise _hostile(archive, f"it has more than {MAX_MEMBERS} entries")
    if member.size < 0 or unpacked + member.size > MAX_UNPACKED_BYTES:
        raise _hostile(archive, f"it unpacks to more than {MAX_UNPACKED_BYTES} bytes")
    return member.size


def _target(member: tarfile.TarInfo) -> Path | None:
    """Return the target relative to the runtime's folder; None for entries that are not needed."""
    parts = [part for part in PurePosixPath(member.name).parts if part != "."]
    if not member.isreg():
        return None
    if len(parts) == 3 and parts[1] == LIBS and parts[2].endswith(".jar"):
        return Path(LIBS, parts[2])
    return Path(parts[1]) if len(parts) == 2 and parts[1] in _DOCUMENTS else None


def _copy(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path, archive: Path) -> None:
    source = tar.extractfile(member)
    assert source is not None  # a regular file
    remaining_bytes = member.size
    try:
        with target.open("xb") as out:
            while chunk := source.read(min(_CHUNK, remaining_bytes)) if remaining_bytes else b"":
                out.write(chunk)
                remaining_bytes -= len(chunk)
    except FileExistsError as exc:
        raise _hostile(archive, f"the entry {member.name[:200]!r} occurs twice") from exc
    if remaining_bytes:
        raise tarfile.ReadError("unexpected end of data")


class _BoundedStream(io.RawIOBase):
    """The unpacked bytes, forward only, with a limit on each read and on the position.

    The limit on each read matters because tarfile reads an extended header in one piece, whatever its claimed size.
    """

    def __init__(self, plain: IO[bytes] | gzip.GzipFile, archive: Path) -> None:
        super().__init__()
        self._plain, self._archive = plain, archive

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._plain.tell()

    def read(self, size: int | None = -1) -> bytes:
        if size is None or not 0 <= size <= _CHUNK:
            raise _hostile(self._archive, "an entry's header is unreasonably large")
        self._limit(self.tell() + size)
        return self._plain.read(size)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence != io.SEEK_SET or offset < self.tell():
            raise tarfile.ReadError("an entry overlaps another")
        self._limit(offset)
        return self._plain.seek(offset)

    def _limit(self, position: int) -> None:
        # Headers and padding add at most 1 KiB per entry to the contents.
        if position > MAX_UNPACKED_BYTES + MAX_MEMBERS * 1024:
            raise _hostile(self._archive, f"it unpacks to more than {MAX_UNPACKED_BYTES} bytes")
