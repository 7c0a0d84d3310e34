"""Where kctl keeps its files: XDG base directories, read at call time so that tests and --prefix can set them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from kctl.errors import UsageError


def _xdg(variable: str, default: str) -> Path:
    value = os.environ.get(variable, "")
    # The specification says to ignore relative paths.
    base = Path(value) if value.startswith("/") else _home(variable) / default
    return base / "kctl"


def _home(variable: str) -> Path:
    """HOME, or what the system has when that is empty, as in some CI jobs: Python would take / then. Raises UsageError
    for somebody who has none, as in some containers."""
    home = os.environ.get("HOME")
    if not home:
        import pwd

        with suppress(KeyError):
            home = pwd.getpwuid(os.getuid()).pw_dir
    if not home:
        raise UsageError("HOME is not set, and this user has no home", hint=f"export HOME=…, or {variable}=/…")
    return Path(home)


def user_without_name(environ: Mapping[str, str]) -> str | None:
    """A name for this user where the system has none, as in containers that run under any user id (OpenShift); None
    where it has one."""
    import pwd

    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        names = (environ.get(name, "").strip() for name in ("HADOOP_USER_NAME", "SPARK_USER", "USER", "LOGNAME"))
        return next(filter(None, names), f"uid-{os.getuid()}")
    return None


def config_file() -> Path:
    """The file with the contexts (`KCTL_CONFIG`, else config.yaml in XDG's config home)."""
    override = os.environ.get("KCTL_CONFIG")
    return Path(override) if override else _xdg("XDG_CONFIG_HOME", ".config") / "config.yaml"


def data_dir() -> Path:
    """What must not be lost: clusters and their data."""
    return _xdg("XDG_DATA_HOME", ".local/share")


def clusters_dir() -> Path:
    """One folder for each cluster that kctl set up, unless `--dir` put it elsewhere."""
    return data_dir() / "clusters"


def runtimes_dir() -> Path:
    """Kafka's jars, one folder for each version; provisioned, so that a new machine can make them again."""
    return data_dir() / "runtimes"


def state_dir() -> Path:
    """What a run that was interrupted needs to go on: journals."""
    return _xdg("XDG_STATE_HOME", ".local/state")


def cache_dir() -> Path:
    """What can be deleted at any time: partial downloads, Spark's class archive."""
    return _xdg("XDG_CACHE_HOME", ".cache")
