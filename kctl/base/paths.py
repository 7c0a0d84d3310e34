"""The folders of kctl's files: XDG base directories, read on each call so that tests and --prefix can set them."""

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
    """Return HOME; if it is empty, as in some CI jobs, the home folder in the user database (Python would use /).

    Raises UsageError if there is neither, as in some containers.
    """
    home = os.environ.get("HOME")
    if not home:
        import pwd

        with suppress(KeyError):
            home = pwd.getpwuid(os.getuid()).pw_dir
    if not home:
        raise UsageError("HOME is not set, and this user has no home folder", hint=f"set HOME or {variable}")
    return Path(home)


def user_without_name(environ: Mapping[str, str]) -> str | None:
    """Return a name for a user who has no entry in the user database; None if the user has one.

    Containers may run with arbitrary user ids (OpenShift).
    """
    import pwd

    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        names = (environ.get(name, "").strip() for name in ("HADOOP_USER_NAME", "SPARK_USER", "USER", "LOGNAME"))
        return next(filter(None, names), f"uid-{os.getuid()}")
    return None


def config_file() -> Path:
    """Return the config file: KCTL_CONFIG, else config.yaml in XDG_CONFIG_HOME."""
    override = os.environ.get("KCTL_CONFIG")
    return Path(override) if override else _xdg("XDG_CONFIG_HOME", ".config") / "config.yaml"


def data_dir() -> Path:
    """Return the folder for data that must not be lost: clusters."""
    return _xdg("XDG_DATA_HOME", ".local/share")


def clusters_dir() -> Path:
    """Return the folder of created clusters, one subfolder each, unless `--dir` was set."""
    return data_dir() / "clusters"


def runtimes_dir() -> Path:
    """Return the folder of Kafka's jars, one subfolder per version. They can be downloaded again."""
    return data_dir() / "runtimes"


def state_dir() -> Path:
    """Return the folder of journals, which interrupted runs need to resume."""
    return _xdg("XDG_STATE_HOME", ".local/state")


def cache_dir() -> Path:
    """Return the folder of files that can be deleted at any time: partial downloads, Spark's class archive."""
    return _xdg("XDG_CACHE_HOME", ".cache")
