"""docs/exit-codes.md lists every exit code, and every reason under the exit code of its errors."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import kctl
from kctl.errors import ExitCode, KctlError, Reason

_TEXT = (Path(__file__).parents[2] / "docs" / "exit-codes.md").read_text()


def _classes() -> set[type[KctlError]]:
    for module in walk_packages(kctl.__path__, "kctl."):
        if not module.name.startswith(("kctl.spark", "kctl.__main__")):
            import_module(module.name)
    classes, new = set(), {KctlError}
    while new:
        classes |= new
        new = {sub for cls in new for sub in cls.__subclasses__()} - classes
    return classes


def test_the_codes_are_those_of_kctl() -> None:
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", _TEXT, re.MULTILINE)} == {int(code) for code in ExitCode}


def test_the_reasons_are_those_of_kctl() -> None:
    expected = {(int(cls.exit_code), cls.code) for cls in _classes()}
    expected |= {(int(ExitCode.REFUSED), reason.value) for reason in Reason}
    sections = re.split(r"^## Exit code (\d+)$", _TEXT, flags=re.MULTILINE)[1:]
    listed = {
        (int(code), reason)
        for code, section in zip(sections[::2], sections[1::2], strict=True)
        for reason in re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    }
    assert listed == expected
