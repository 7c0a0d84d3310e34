"""Every module of kctl can be imported by the Python that runs the tests."""

from __future__ import annotations

import importlib
import pkgutil

import kctl


def test_every_module_can_be_imported() -> None:
    names = [module.name for module in pkgutil.walk_packages(kctl.__path__, "kctl.") if module.name != "kctl.__main__"]
    assert len(names) > 500
    for name in names:
        importlib.import_module(name)
