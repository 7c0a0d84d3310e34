"""Kafka's jars in a folder: their version, and the manifest that lists them.

A provisioned runtime is `kafka-VERSION/manifest.json` beside `kafka-VERSION/libs/*.jar`. The manifest has the
size and SHA-256 of every jar, so that missing, changed and added jars are detected. Added jars matter because the class
path is `libs/*`.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from kctl.errors import InvalidFile

MANIFEST = "manifest.json"
LIBS = "libs"
_CHUNK = 1024 * 1024
_MAX_MANIFEST_BYTES = 1024 * 1024
# kafka_2.13-3.9.2.jar is the broker; kafka_2.13-3.9.2-sources.jar and the like lie beside it in old archives.
_BROKER_JAR = re.compile(r"kafka_(2\.\d+)-(\d+(?:\.\d+){1,3}(?:-(?:rc|RC)\d+)?)\.jar")


@dataclass(frozen=True, slots=True)
class Jar:
    """One entry of a manifest."""

    name: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """The jars of an installed runtime, and its source."""

    version: str
    source: str
    jars: tuple[Jar, ...]

    @property
    def size_bytes(self) -> int:
        return sum(jar.size_bytes for jar in self.jars)


@dataclass(frozen=True, slots=True)
class JarProblem:
    """A jar that differs from the manifest."""

    jar: str
    problem: Literal["missing", "changed", "extra"]


def version_numbers(version: str) -> tuple[int, ...]:
    """Return "3.9.2" as (3, 9, 2), for comparison."""
    return tuple(int(part) for part in version.partition("-")[0].split("."))


def kafka_version(libs: Path) -> str | None:
    """Return the version of the broker's jar in `libs`; None if there is none."""
    for path in sorted(libs.glob("kafka_2.*.jar"), reverse=True):
        match = _BROKER_JAR.fullmatch(path.name)
        if match:
            return match.group(2)
    return None


def sha256_of(path: Path) -> str:
    """Return the file's SHA-256 in hex."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def describe_jars(libs: Path, *, version: str, source: str) -> Manifest:
    """Return a manifest of the jars in `libs`."""
    jars = tuple(Jar(p.name, p.stat().st_size, sha256_of(p)) for p in sorted(libs.glob("*.jar")))
    return Manifest(version, source, jars)


def write_manifest(home: Path, manifest: Manifest) -> None:
    """Write `home`/manifest.json; the caller syncs it."""
    body = {
        "version": manifest.version,
        "source": manifest.source,
        "jars": {jar.name: {"size_bytes": jar.size_bytes, "sha256": jar.sha256} for jar in manifest.jars},
    }
    (home / MANIFEST).write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")


def read_manifest(home: Path) -> Manifest:
    """Read `home`/manifest.json. Raises InvalidFile if it is missing or kctl did not write it."""
    path = home / MANIFEST
    try:
        with path.open("rb") as file:
            body = json.loads(file.read(_MAX_MANIFEST_BYTES))
        return Manifest(
            version=_text(body["version"]),
            source=_text(body["source"]),
            jars=tuple(_jar(name, entry) for name, entry in body["jars"].items()),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "it is not a manifest"
        raise InvalidFile(f"cannot read {path}: {reason}") from exc


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _jar(name: Any, entry: Any) -> Jar:
    size = entry["size_bytes"]
    if not isinstance(size, int) or Path(_text(name)).name != name:
        raise TypeError
    return Jar(name, size, _text(entry["sha256"]))


def check_jars(home: Path, manifest: Manifest, *, contents: bool) -> list[JarProblem]:
    """Return all differences from the manifest. contents: hash every jar; else compare only the sizes."""
    libs = home / LIBS
    problems = [JarProblem(jar.name, p) for jar in manifest.jars if (p := _jar_problem(libs, jar, contents))]
    listed_names = {jar.name for jar in manifest.jars}
    problems += [JarProblem(p.name, "extra") for p in sorted(libs.glob("*.jar")) if p.name not in listed_names]
    return problems


def _jar_problem(libs: Path, jar: Jar, contents: bool) -> Literal["missing", "changed"] | None:
    path = libs / jar.name
    try:
        if path.stat().st_size != jar.size_bytes:
            return "changed"
        return "changed" if contents and sha256_of(path) != jar.sha256 else None
    except FileNotFoundError:
        return "missing"
    except OSError:
        return "changed"
