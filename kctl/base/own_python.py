"""Isolation of kctl's Python: only the packages that kctl was installed with are visible.

Like `python -I`, but after Python has started: kctl does not search PYTHONPATH (for example a Spark installation with
its own pyspark and py4j), the current folder or the user's site-packages. This module is imported first, so it imports
only modules that Python has already loaded.
"""

from __future__ import annotations

import os
import site
import sys

TYPE_CHECKING = False  # an import of typing would search the foreign folders
if TYPE_CHECKING:
    from collections.abc import Mapping

# Variables that Python reads at startup. kctl removes them from the environment of the Python processes that it starts.
_FOREIGN = ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONPLATLIBDIR", "PYTHONOPTIMIZE")


def isolate() -> None:
    """Remove foreign folders from sys.path."""
    suspects = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    if site.ENABLE_USER_SITE and site.USER_SITE in sys.path:
        suspects.append(site.USER_SITE)
    first = _real(sys.path[0]) if sys.path else ""
    if first in {_real(""), _real(os.path.dirname(sys.argv[0]))}:  # noqa: PTH120
        suspects.append(first)
    foreign = {_real(entry) for entry in suspects} - _own_folders() if suspects else set()
    if foreign:
        sys.path[:] = [entry for entry in sys.path if _real(entry) not in foreign]


def child_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for a Python process of the same interpreter, so that it sees the same packages."""
    environment = {name: value for name, value in environ.items() if name not in _FOREIGN}
    if _home() not in map(_real, site.getsitepackages()):
        environment["PYTHONPATH"] = _home()
    if not any(_real(entry) == _real(site.USER_SITE or "") for entry in sys.path):
        environment["PYTHONNOUSERSITE"] = "1"
    return {**environment, "PYTHONSAFEPATH": "1"}  # Python 3.11 and later: -m does not search the current folder


def _own_folders() -> set[str]:
    """Return the folders of kctl, of the packages in its environment, and of Python's own modules."""
    library = os.path.dirname(os.path.abspath(os.__file__))  # noqa: PTH100, PTH120
    folders = [_home(), library, os.path.join(library, "lib-dynload"), *site.getsitepackages()]  # noqa: PTH118
    return {_real(folder) for folder in folders}


def _home() -> str:
    return _real(os.path.join(os.path.dirname(__file__), "..", ".."))  # noqa: PTH118, PTH120


def _real(path: str) -> str:
    return os.path.realpath(path or os.curdir)
