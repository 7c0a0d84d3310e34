"""The archive that executors of a cluster need for kctl's sources: kctl and its dependencies, as installed here.

Spark unpacks the archive of `--archives FILE#kctlenv` into a folder of that name on each executor, and Python finds the
packages by PYTHONPATH=kctlenv. (`--py-files` does not work: native libraries cannot be imported from a zip file.)
Packages are copied from this installation, so driver and executors run the same versions and no network is needed.
Native libraries require the same Python version and platform, which Spark requires anyway.

pyspark is omitted: every Spark installation has its own. The same files always give the same archive: names are
sorted, and there are no times or owners.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib.metadata
import importlib.util
import os
import platform
import re
import shlex
import sys
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import kctl
from kctl.base.output_file import check_output_path, open_output
from kctl.errors import NotSupported, Reason, Refused, UsageError
from kctl.spark.settings import EXTRA_HINT
from kctl.spark.watching import TaskProgress

ENVIRONMENT = "kctlenv"
EXTRAS = frozenset({"codecs", "spark"})
_OMITTED = frozenset({"pyspark", "py4j"})
_REQUIRED = ("pyarrow", "numpy", "pandas")
_SUFFIXES = (".tgz", ".tar.gz")
# Tests and headers for C++ compilers make up a third of all bytes of the packages.
_UNUSED_FILE = re.compile(r"(?:^|/)(?:__pycache__|tests?|include)(?:/|$)|\.(?:pyc|pyo|pxd|pyx|a)$")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_EXTRA = re.compile(r"""extra\s*==\s*["']([^"']+)["']""")
_LEVEL = 1  # of isal: compresses about as well as level 5 of zlib
_PROGRESS_BYTES = 8 << 20


class Package(NamedTuple):
    """A distribution in the archive."""

    name: str
    version: str


@dataclass(frozen=True, slots=True)
class Bundle:
    """The finished archive.

    python_version, platform: required on executors. absent: optional packages that are not installed here, and so not
    in the archive. kctl_options: options for commands of `kctl spark`. spark_submit: the equivalent command line of
    spark-submit.
    """

    path: Path
    size_bytes: int
    sha256: str
    files: int
    python_version: str
    platform: str
    packages: list[Package]
    absent: list[str]
    kctl_options: str
    spark_submit: str


def make_bundle(
    out: Path, *, master: str = "spark://HOST:7077", overwrite: bool = False, progress: TaskProgress | None = None
) -> Bundle:
    """Write the archive, completely or not at all. master: used in the command lines.

    Raises UsageError for an invalid file name, Refused if the file exists, NotSupported if a package is missing,
    OperationFailed if the archive cannot be written.
    """
    if not out.name.endswith(_SUFFIXES):
        raise UsageError(f"Spark cannot unpack {out}: unknown file name extension", hint="use .tgz or .tar.gz")
    if check_output_path(out).has_content and not overwrite:
        raise Refused(f"{out} exists", hint="use --overwrite to replace it", reason=Reason.INVALID_PATH)
    packages, absent = distributions()
    files: dict[str, Path] = dict(_kctl_files())
    for package in packages.values():
        for name, path in _files_of(package):
            files.setdefault(name, path)
    size, digest = _write(out, files, progress)
    path = out.absolute()
    return Bundle(
        path=path,
        size_bytes=size,
        sha256=digest,
        files=len(files),
        python_version=".".join(map(str, sys.version_info[:2])),
        platform=f"{platform.system().lower()}-{platform.machine()}",
        packages=[Package("kctl", kctl.__version__), *(Package(n, d.version) for n, d in sorted(packages.items()))],
        absent=absent,
        kctl_options=shlex.join(["--master", master, *_pairs("--conf", conf(path))]),
        spark_submit=shlex.join(submit_line(path, master)),
    )


def conf(archive: Path) -> dict[str, str]:
    """Return the settings by which executors find the packages."""
    return {"spark.archives": f"{archive}#{ENVIRONMENT}", "spark.executorEnv.PYTHONPATH": ENVIRONMENT}


def submit_line(archive: Path, master: str) -> list[str]:
    """Return argv of spark-submit, without the kctl command to run."""
    settings = conf(archive)
    archives = settings.pop("spark.archives")
    script = Path(kctl.__file__).parent / "spark" / "submit.py"
    settings["spark.log.level"] = "WARN"  # at INFO, kctl's own output would be hard to find
    return ["spark-submit", "--master", master, "--archives", archives, *_pairs("--conf", settings), str(script)]


def _pairs(option: str, settings: Mapping[str, str]) -> list[str]:
    return [part for key, value in settings.items() for part in (option, f"{key}={value}")]


# --- contents -----------------------------------------------------------------------------------------------------


def distributions() -> tuple[dict[str, importlib.metadata.Distribution], list[str]]:
    """Return the packages that kctl needs on executors, by name, with their dependencies; and kctl's absent packages.

    Raises NotSupported if a required package is missing.
    """
    missing = [name for name in _REQUIRED if importlib.util.find_spec(name) is None]
    if missing:
        raise NotSupported(f"the archive needs packages that are not installed: {', '.join(missing)}", hint=EXTRA_HINT)
    result: dict[str, importlib.metadata.Distribution] = {}
    absent: list[str] = []
    pending = [(name, True) for name in _requirements("kctl", EXTRAS)]
    while pending:
        name, direct = pending.pop()
        if name in result or name in _OMITTED:
            continue
        try:
            result[name] = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            if direct:  # indirect ones may be for another Python or another platform
                absent.append(name)
            continue
        pending += [(each, False) for each in _requirements(name, frozenset())]
    return result, sorted(absent)


def _requirements(name: str, extras: frozenset[str]) -> Iterator[str]:
    """Yield the names of the packages that a distribution requires, including `extras`."""
    try:
        requires = importlib.metadata.distribution(name).requires or []
    except importlib.metadata.PackageNotFoundError:
        raise NotSupported(f"{name} is not installed as a package", hint=EXTRA_HINT) from None
    for text in requires:
        text_extras = _EXTRA.findall(text.partition(";")[2])
        match = _NAME.match(text)
        if match and (not text_extras or extras.intersection(text_extras)):
            normal = re.sub(r"[-_.]+", "-", match[0]).lower()
            if normal != "kctl":
                yield normal


def _kctl_files() -> Iterator[tuple[str, Path]]:
    """Yield the files of kctl itself, from an installation or a checkout (where some folders are links)."""
    root = Path(kctl.__file__).resolve().parent
    for folder in (root, *(root / name for name in ("commands", "spark", "playbooks"))):
        for path in sorted(folder.rglob("*") if folder != root else _without_links(root)):
            inner = f"kctl/{path.relative_to(root).as_posix()}"
            if path.is_file() and not _UNUSED_FILE.search(inner):
                yield inner, path


def _without_links(root: Path) -> Iterator[Path]:
    for path in root.iterdir():
        if path.is_symlink():
            continue
        yield path
        if path.is_dir():
            yield from path.rglob("*")


def _files_of(package: importlib.metadata.Distribution) -> Iterator[tuple[str, Path]]:
    """Yield a distribution's files by their names below site-packages. Raises NotSupported if it has no file list."""
    if package.files is None:
        raise NotSupported(
            f"{package.metadata['Name']} does not list its files",
            hint="install it with pip, in a virtual environment",
        )
    for file in package.files:
        name = file.as_posix()
        if name.startswith(("/", "../")) or "/../" in name or _UNUSED_FILE.search(name):
            continue  # scripts are outside of site-packages
        path = Path(str(package.locate_file(file)))
        if path.is_file():
            yield name, path


# --- writing ------------------------------------------------------------------------------------------------------


def _write(out: Path, files: Mapping[str, Path], progress: TaskProgress | None) -> tuple[int, str]:
    """Write the archive. Return its size and SHA-256."""
    with open_output(out) as file:
        stream = _HashingStream(file)
        _pack(cast(IO[bytes], stream), files, progress)
    return stream.size, stream.digest.hexdigest()


class _HashingStream:
    """A stream that counts and hashes the bytes written to it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self.size, self.digest = file, 0, hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.size += len(data)
        self.digest.update(data)
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()


def _pack(file: IO[bytes], files: Mapping[str, Path], progress: TaskProgress | None) -> None:
    done = reported = 0
    total = sum(path.stat().st_size for path in files.values()) if progress is not None else 0
    with _compressed(file) as stream, tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(files):
            path = files[name]
            entry = tarfile.TarInfo(name)
            with path.open("rb") as content:
                stat = os.fstat(content.fileno())
                entry.size, entry.mode = stat.st_size, 0o755 if stat.st_mode & 0o100 else 0o644
                archive.addfile(entry, content)
            done += entry.size
            if progress is not None and done - reported >= _PROGRESS_BYTES:
                reported = done
                progress.update("packing", done, total)


def _compressed(file: IO[bytes]) -> IO[bytes]:
    if importlib.util.find_spec("isal") is not None:
        igzip: Any = importlib.import_module("isal.igzip")
        return cast(IO[bytes], igzip.IGzipFile(filename="", mode="wb", compresslevel=_LEVEL, fileobj=file, mtime=0))
    return cast(IO[bytes], gzip.GzipFile(filename="", mode="wb", compresslevel=5, fileobj=file, mtime=0))
