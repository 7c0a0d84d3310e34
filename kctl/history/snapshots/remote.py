"""A store outside local folders, for readers: S3, HDFS and other file systems of pyarrow.

RemotePath has the members of Path that readers use: `/`, `name`, `parent` and `str()`. Collecting, compacting and
rolling up need renames and locks, which object stores lack; they need a local folder.

Credentials are found by pyarrow: for S3 as in the AWS SDK (the machine's role, ~/.aws, AWS_ variables), for HDFS from
Hadoop's configuration. URIs must not contain credentials, because others can see command lines.
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
# Schemes of pyarrow.fs.FileSystem.from_uri, and Hadoop's names for them.
_SCHEMES = {"s3": "s3", "s3a": "s3", "s3n": "s3", "hdfs": "hdfs", "viewfs": "viewfs", "gs": "gs", "abfs": "abfs",
            "abfss": "abfss"}  # fmt: skip
_WHOLE_BYTES = 4 << 20
_SUPPORTED = "use s3a://, hdfs://, gs:// or abfs://"


@dataclass(frozen=True, slots=True)
class RemotePath:
    """A path in a remote store. root: URI of the store, without trailing slash. query: options for pyarrow."""

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
        """Return the store's URI, in the form that `parse_location` parses."""
        return f"{self.root}{'?' if self.query else ''}{self.query}"

    def names(self) -> list[str]:
        """Return the sorted names in this folder; empty if the folder does not exist. Raises OSError."""
        from pyarrow.fs import FileSelector

        system, path = self._where()
        return sorted(result.base_name for result in system.get_file_info(FileSelector(path, allow_not_found=True)))

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """Yield the file, open for random reads. Raises OSError.

        A small file is read as a whole: reading Parquet takes five or more reads, each of them a request.
        """
        system, path = self._where()
        with system.open_input_file(path) as stream:
            yield BytesIO(stream.read()) if stream.size() <= _WHOLE_BYTES else stream

    def _where(self) -> tuple[Any, str]:
        system, base = _file_system(self.uri)
        return system, f"{base}{self.below}"


def parse_location(text: str) -> Path:
    """Parse the location of a store: a local folder or a URI.

    Raises UsageError for a URI with an unsupported file system or with credentials.
    """
    if not _URI.match(text):
        return Path(text)
    try:
        result = urlsplit(text)
        _ = result.port
    except ValueError as exc:
        raise UsageError(f"--store is not a valid URI: {exc}") from None
    scheme = result.scheme.lower()
    if result.password is not None or "secret" in result.query.lower() or "key" in result.query.lower():
        raise UsageError(
            "the URI of the store contains credentials",
            hint="put them into ~/.aws, AWS_ variables or the machine's role: others can see command lines",
        )
    if scheme == "file" and not result.netloc and not result.query:
        return Path(unquote(result.path))
    if scheme not in _SCHEMES:
        raise UsageError(f"kctl cannot read stores at {scheme}://", hint=f"{_SUPPORTED}, or a folder")
    root = f"{_SCHEMES[scheme]}://{result.netloc}{result.path.rstrip('/')}"
    return cast("Path", RemotePath(root, result.query))


def text_of(root: Path) -> str:
    """Return the location for another process, which may run in another folder. `parse_location` parses it."""
    remote: object = root
    return remote.uri if isinstance(remote, RemotePath) else str(root.absolute())


def as_given(texts: Iterable[str], root: Path | None) -> list[str]:
    """Return the distinct messages, with the store's location as the user wrote it instead of `text_of`."""
    if root is None or is_remote(root):
        return list(dict.fromkeys(texts))
    return list(dict.fromkeys(text.replace(f"{text_of(root)}/", f"{root}/") for text in texts))


def is_remote(root: object) -> bool:
    """Return True if the store is read over the network."""
    return isinstance(root, RemotePath)


@lru_cache(maxsize=8)
def _file_system(uri: str) -> tuple[Any, str]:
    """Return pyarrow's file system for a store, and the store's path in it. Raises OSError, NotSupported."""
    import pyarrow as pa
    from pyarrow.fs import FileSystem

    try:
        system, base = FileSystem.from_uri(uri)
    except (pa.ArrowException, ValueError, NotImplementedError) as exc:
        raise NotSupported(
            f"cannot read {uri.partition('?')[0]}: {_line(exc)}", hint=f"{_SUPPORTED}, or a folder"
        ) from exc
    except OSError as exc:
        if "libhdfs" in str(exc) or "libjvm" in str(exc):
            raise NotSupported(
                f"reading hdfs:// needs Hadoop's native library, which was not found: {_line(exc)}",
                hint="set HADOOP_HOME, JAVA_HOME and CLASSPATH=$(hadoop classpath --glob) for the"
                " driver, and for executors by spark.executorEnv; or mount the store",
            ) from exc
        raise
    return system, base.rstrip("/")


def _line(exc: BaseException) -> str:
    return next(iter(str(exc).splitlines()), type(exc).__name__)
