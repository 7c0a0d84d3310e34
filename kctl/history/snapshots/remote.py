"""A store that is not in a local folder, for readers: S3, HDFS and what else pyarrow has a file system for.

A name below such a store has of a Path what readers use: `/`, `name`, `parent`, and its text. Collecting, compacting
and rolling up rename files and hold locks, which object stores have not: they take local folders only.

Who reads logs in as pyarrow does: for S3 by what the AWS SDK finds (the machine's role, ~/.aws, AWS_ variables), for
HDFS by Hadoop's own configuration. No credentials are taken from the URI, which others can read on command lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import unquote, urlsplit

from kctl.errors import NotSupported, UsageError

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://")
# Schemes that pyarrow.fs.FileSystem.from_uri knows, and what Hadoop calls the same.
_SCHEMES = {"s3": "s3", "s3a": "s3", "s3n": "s3", "hdfs": "hdfs", "viewfs": "viewfs", "gs": "gs", "abfs": "abfs",
            "abfss": "abfss"}  # fmt: skip
_WHOLE_BYTES = 4 << 20
_TAKEN = "s3a://, hdfs://, gs:// and abfs:// are read"


@dataclass(frozen=True, slots=True)
class RemotePath:
    """A name in a remote store. root: URI of the store, without a slash at its end. query: options of pyarrow's."""

    root: str
    query: str = ""
    below: str = ""

    def __truediv__(self, name: str) -> RemotePath:
        return RemotePath(self.root, self.query, f"{self.below}/{name}")

    def __str__(self) -> str:
        return f"{self.root}{self.below}"

    @property
    def name(self) -> str:
        return str(self).rpartition("/")[2]

    @property
    def parent(self) -> RemotePath:
        return RemotePath(self.root, self.query, self.below.rpartition("/")[0])

    @property
    def uri(self) -> str:
        """The store's URI, as `place` takes it."""
        return f"{self.root}{'?' if self.query else ''}{self.query}"

    def names(self) -> list[str]:
        """The names in this folder, sorted; none when there is no such folder. Raises OSError."""
        from pyarrow.fs import FileSelector

        system, path = self._where()
        return sorted(found.base_name for found in system.get_file_info(FileSelector(path, allow_not_found=True)))

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """The file for reading, at any place of it. Raises OSError.

        A small one is had whole: a Parquet file is read at five places or more, and each of them is a request.
        """
        system, path = self._where()
        with system.open_input_file(path) as stream:
            yield BytesIO(stream.read()) if stream.size() <= _WHOLE_BYTES else stream

    def _where(self) -> tuple[Any, str]:
        system, base = _file_system(self.uri)
        return system, f"{base}{self.below}"


def place(text: str) -> Path:
    """What a text says: a local folder, or a store that is read over the network.

    Raises UsageError for a URI of no file system that can be read, or with credentials in it.
    """
    if not _URI.match(text):
        return Path(text)
    try:
        found = urlsplit(text)
        _ = found.port
    except ValueError as exc:
        raise UsageError(f"--store is no URI: {exc}") from None
    scheme = found.scheme.lower()
    if found.password is not None or "secret" in found.query.lower() or "key" in found.query.lower():
        raise UsageError(
            "the URI of the store has credentials in it",
            hint="others see command lines: leave them to ~/.aws, AWS_ variables or the machine's role",
        )
    if scheme == "file" and not found.netloc and not found.query:
        return Path(unquote(found.path))
    if scheme not in _SCHEMES:
        raise UsageError(f"kctl reads no store at {scheme}://", hint=f"{_TAKEN}, and folders")
    root = f"{_SCHEMES[scheme]}://{found.netloc}{found.path.rstrip('/')}"
    return cast("Path", RemotePath(root, found.query))


def text_of(root: Path) -> str:
    """A store's place for another process, which may run in another folder; `place` takes it."""
    remote: object = root
    return remote.uri if isinstance(remote, RemotePath) else str(root.absolute())


def as_given(texts: Iterable[str], root: Path | None) -> list[str]:
    """Texts of processes that have the store as `text_of` says it, with the store's place as it was given: a file has
    one name, whoever tells of it; each text once."""
    if root is None or is_remote(root):
        return list(dict.fromkeys(texts))
    return list(dict.fromkeys(text.replace(f"{text_of(root)}/", f"{root}/") for text in texts))


def is_remote(root: object) -> bool:
    """Whether a store is read over the network."""
    return isinstance(root, RemotePath)


@lru_cache(maxsize=8)
def _file_system(uri: str) -> tuple[Any, str]:
    """pyarrow's file system for a store, and the store's name there. Raises OSError, NotSupported."""
    import pyarrow as pa
    from pyarrow.fs import FileSystem

    try:
        system, base = FileSystem.from_uri(uri)
    except (pa.ArrowException, ValueError, NotImplementedError) as exc:
        raise NotSupported(f"cannot read {uri.partition('?')[0]}: {_line(exc)}", hint=f"{_TAKEN}, and folders") from exc
    except OSError as exc:
        if "libhdfs" in str(exc) or "libjvm" in str(exc):
            raise NotSupported(
                f"reading hdfs:// takes Hadoop's native library, which was not found: {_line(exc)}",
                hint="set HADOOP_HOME, JAVA_HOME and CLASSPATH=$(hadoop classpath --glob) where it is read"
                " (the driver, and executors by spark.executorEnv), or mount it",
            ) from exc
        raise
    return system, base.rstrip("/")


def _line(exc: BaseException) -> str:
    return next(iter(str(exc).splitlines()), type(exc).__name__)
