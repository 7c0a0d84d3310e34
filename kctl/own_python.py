"""kctl runs with the packages that it was installed with, whatever the environment has for other programs.

As `python -I` has it, for what comes after Python's own start: folders of PYTHONPATH (of a Spark, say, with its pyspark
and py4j), the current folder and the user's site-packages are not searched. Imported before all else, so it imports
nothing that was not imported by Python itself.
"""

from __future__ import annotations

import os
import site
import sys

TYPE_CHECKING = False  # as typing's, which would be searched for where others have put modules
if TYPE_CHECKING:
    from collections.abc import Mapping

# What Python reads at its start, and what the Pythons that kctl starts must not get.
_FOREIGN = ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONPLATLIBDIR", "PYTHONOPTIMIZE")


def isolate() -> None:
    """Take what is not kctl's own out of the path that modules are searched in."""
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
    """The environment for a Python that kctl starts with its own interpreter: it finds the same packages."""
    kept = {name: value for name, value in environ.items() if name not in _FOREIGN}
    if _home() not in map(_real, site.getsitepackages()):
        kept["PYTHONPATH"] = _home()
    if not any(_real(entry) == _real(site.USER_SITE or "") for entry in sys.path):
        kept["PYTHONNOUSERSITE"] = "1"
    return {**kept, "PYTHONSAFEPATH": "1"}  # of Python 3.11 and later: with -m, not the current folder


def _own_folders() -> set[str]:
    """Where kctl lies, its environment's packages, and Python's own modules."""
    library = os.path.dirname(os.path.abspath(os.__file__))  # noqa: PTH100, PTH120
    folders = [_home(), library, os.path.join(library, "lib-dynload"), *site.getsitepackages()]  # noqa: PTH118
    return {_real(folder) for folder in folders}


def _home() -> str:
    return _real(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120


def _real(path: str) -> str:
    return os.path.realpath(path or os.curdir)
