"""The Python packages that a snapshot store needs (an extra of kctl)."""

from __future__ import annotations

import importlib.util

from kctl.errors import NotSupported

EXTRA_HINT = "install them with `pip install 'kctl[history]'`, or run kctl's install.sh again"
_REQUIRED = ("numpy", "pyarrow")


def need_packages() -> None:
    """Raise NotSupported if a package is missing."""
    missing = [name for name in _REQUIRED if importlib.util.find_spec(name) is None]
    if missing:
        raise NotSupported(
            f"snapshots need Python packages that are not installed: {', '.join(missing)}", hint=EXTRA_HINT
        )
