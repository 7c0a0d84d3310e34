"""Values that a shell can complete. Nothing here may fail or contact a cluster: a person is typing."""

from __future__ import annotations

from kctl.commands.output import FORMATS
from kctl.errors import KctlError


def context_names(incomplete: str) -> list[str]:
    """The contexts of the config file."""
    from kctl.context import list_contexts

    try:
        return [name for name in list_contexts() if name.startswith(incomplete)]
    except (KctlError, OSError):
        return []


def cluster_names(incomplete: str) -> list[str]:
    """The clusters on this machine."""
    from kctl import paths

    try:
        found = sorted(path.name for path in paths.clusters_dir().iterdir())
    except OSError:
        return []
    return [name for name in found if name.startswith(incomplete) and not name.startswith(".")]


def formats(incomplete: str) -> list[str]:
    """What -o takes."""
    return [name for name in FORMATS if name.startswith(incomplete)]
