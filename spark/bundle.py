"""The archive that executors of a cluster need for kctl's sources: kctl and what it imports, as it is installed here.

Spark unpacks what `--archives FILE#kctlenv` names into a folder of that name on each executor, and its Python finds the
packages by PYTHONPATH=kctlenv. (`--py-files` is no way: native libraries cannot be imported out of a zip.) Packages are
taken from this installation, so that driver and executors run the same versions, and no network is needed; native
libraries fit the same Python version and platform only, which Spark asks for anyway.

pyspark is left out: a Spark installation brings its own. The archive holds the same bytes whenever it is made of the
same files: names sorted, no times, no owners.
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
from kctl.spark.watching import Progress

ENVIRONMENT = "kctlenv"
EXTRAS = frozenset({"codecs", "spark"})
_LEFT_OUT = frozenset({"pyspark", "py4j"})
_NEEDED = ("pyarrow", "numpy", "pandas")
_SUFFIXES = (".tgz", ".tar.gz")
# What packages bring for their own tests and for C++ compilers: a third of all bytes.
_NO_USE = re.compile(r"(?:^|/)(?:__pycache__|tests?|include)(?:/|$)|\.(?:pyc|pyo|pxd|pyx|a)$")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_EXTRA = re.compile(r"""extra\s*==\s*["']([^"']+)["']""")
_LEVEL = 1  # of isal, which is as small as zlib's 5
_TOLD_BYTES = 8 << 20


class Package(NamedTuple):
    """A distribution in the archive."""

    name: str
    version: str


@dataclass(frozen=True, slots=True)
class Bundle:
    """What was made. python_version, platform: what executors must have too. absent: optional packages that are not
    installed here, and so not in it.

    kctl_options: for commands of kctl spark; spark_submit: the same by spark-submit.
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
    out: Path, *, master: str = "spark://HOST:7077", overwrite: bool = False, progress: Progress | None = None
) -> Bundle:
    """Write the archive, whole or not at all. master: for the command lines.

    Raises UsageError for a name that is none, Refused when the file is there, NotSupported when a package is missing,
    OperationFailed when it cannot be written.
    """
    if not out.name.endswith(_SUFFIXES):
        raise UsageError(f"{out} is no name of an archive that Spark unpacks", hint="let it end in .tgz or .tar.gz")
    if check_output_path(out).has_content and not overwrite:
        raise Refused(f"{out} exists", hint="use --overwrite to replace it", reason=Reason.INVALID_PATH)
    packages, absent = distributions()
    files: dict[str, Path] = dict(_own_files())
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
    """The settings with which executors find the packages."""
    return {"spark.archives": f"{archive}#{ENVIRONMENT}", "spark.executorEnv.PYTHONPATH": ENVIRONMENT}


def submit_line(archive: Path, master: str) -> list[str]:
    """argv of spark-submit, up to the command of kctl that is to run."""
    settings = conf(archive)
    archives = settings.pop("spark.archives")
    script = Path(kctl.__file__).parent / "spark" / "submit.py"
    settings["spark.log.level"] = "WARN"  # kctl's own lines would drown
    return ["spark-submit", "--master", master, "--archives", archives, *_pairs("--conf", settings), str(script)]


def _pairs(option: str, settings: Mapping[str, str]) -> list[str]:
    return [part for key, value in settings.items() for part in (option, f"{key}={value}")]


# --- what goes in -------------------------------------------------------------------------------------------------


def distributions() -> tuple[dict[str, importlib.metadata.Distribution], list[str]]:
    """What kctl needs on executors, by name, with all that these need; and what of kctl's own is not installed.

    Raises NotSupported when something is missing that no executor can do without.
    """
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise NotSupported(f"the archive needs packages that are not installed: {', '.join(missing)}", hint=EXTRA_HINT)
    result: dict[str, importlib.metadata.Distribution] = {}
    absent: list[str] = []
    pending = [(name, True) for name in _requirements("kctl", EXTRAS)]
    while pending:
        name, own = pending.pop()
        if name in result or name in _LEFT_OUT:
            continue
        try:
            result[name] = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            if own:  # others may be for another Python or another platform
                absent.append(name)
            continue
        pending += [(each, False) for each in _requirements(name, frozenset())]
    return result, sorted(absent)


def _requirements(name: str, extras: frozenset[str]) -> Iterator[str]:
    """The names of what a distribution requires, with some of its extras."""
    try:
        requires = importlib.metadata.distribution(name).requires or []
    except importlib.metadata.PackageNotFoundError:
        raise NotSupported(f"{name} is not installed as a package", hint=EXTRA_HINT) from None
    for text in requires:
        selected = _EXTRA.findall(text.partition(";")[2])
        match = _NAME.match(text)
        if match and (not selected or extras.intersection(selected)):
            normal = re.sub(r"[-_.]+", "-", match[0]).lower()
            if normal != "kctl":
                yield normal


def _own_files() -> Iterator[tuple[str, Path]]:
    """kctl itself, whether installed or in a checkout, where some of its folders are links."""
    root = Path(kctl.__file__).resolve().parent
    for folder in (root, *(root / name for name in ("commands", "spark", "playbooks"))):
        for path in sorted(folder.rglob("*") if folder != root else _without_links(root)):
            inner = f"kctl/{path.relative_to(root).as_posix()}"
            if path.is_file() and not _NO_USE.search(inner):
                yield inner, path


def _without_links(root: Path) -> Iterator[Path]:
    for path in root.iterdir():
        if path.is_symlink():
            continue
        yield path
        if path.is_dir():
            yield from path.rglob("*")


def _files_of(package: importlib.metadata.Distribution) -> Iterator[tuple[str, Path]]:
    """A distribution's files, by their names below the packages' folder. Raises NotSupported when it lists none."""
    if package.files is None:
        raise NotSupported(
            f"{package.metadata['Name']} does not list its files",
            hint="install it with pip, in an environment of its own",
        )
    for file in package.files:
        name = file.as_posix()
        if name.startswith(("/", "../")) or "/../" in name or _NO_USE.search(name):
            continue  # scripts
        path = Path(str(package.locate_file(file)))
        if path.is_file():
            yield name, path


# --- writing ------------------------------------------------------------------------------------------------------


def _write(out: Path, files: Mapping[str, Path], progress: Progress | None) -> tuple[int, str]:
    """Size and SHA-256 of the archive."""
    with open_output(out) as file:
        measured = _Measured(file)
        _pack(cast(IO[bytes], measured), files, progress)
    return measured.size, measured.digest.hexdigest()


class _Measured:
    """A stream that counts and hashes what goes through it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self.size, self.digest = file, 0, hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.size += len(data)
        self.digest.update(data)
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()


def _pack(file: IO[bytes], files: Mapping[str, Path], progress: Progress | None) -> None:
    done = messages = 0
    total = sum(path.stat().st_size for path in files.values()) if progress is not None else 0
    with _compressed(file) as stream, tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(files):
            path = files[name]
            entry = tarfile.TarInfo(name)
            with path.open("rb") as content:
                result = os.fstat(content.fileno())
                entry.size, entry.mode = result.st_size, 0o755 if result.st_mode & 0o100 else 0o644
                archive.addfile(entry, content)
            done += entry.size
            if progress is not None and done - messages >= _TOLD_BYTES:
                messages = done
                progress.update("packing", done, total)


def _compressed(file: IO[bytes]) -> IO[bytes]:
    if importlib.util.find_spec("isal") is not None:
        igzip: Any = importlib.import_module("isal.igzip")
        return cast(IO[bytes], igzip.IGzipFile(filename="", mode="wb", compresslevel=_LEVEL, fileobj=file, mtime=0))
    return cast(IO[bytes], gzip.GzipFile(filename="", mode="wb", compresslevel=5, fileobj=file, mtime=0))
