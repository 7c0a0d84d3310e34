"""CRC-32C (RFC 3720, appendix B.4): the compiled function of the crc32c package.

Its module is loaded by itself: the package around it looks up its own version among all installed packages when it is
imported, which takes longer than most commands need for their work.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import cast

# (data, value so far) → checksum; data: bytes, bytearray or memoryview.
Crc32c = Callable[..., int]


def _compiled() -> Crc32c | None:
    package = PathFinder.find_spec("crc32c")
    if package is None or package.submodule_search_locations is None:
        return None
    spec = PathFinder.find_spec("_crc32c", package.submodule_search_locations)
    if spec is None or spec.loader is None:
        return None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return cast("Crc32c | None", getattr(module, "crc32c", None))


def _of_the_package() -> Crc32c:
    from crc32c import crc32c

    return crc32c


crc32c: Crc32c = _compiled() or _of_the_package()
