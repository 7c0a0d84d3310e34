"""docs/exit-codes.md lists every exit code, and every reason under the exit code of its errors."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import kctl
from kctl.errors import ConnectionReason, ExitCode, KctlError, Reason

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
    expected |= {(int(ExitCode.UNREACHABLE), reason.value) for reason in ConnectionReason}
    expected |= {(int(ExitCode.REFUSED), reason.value) for reason in Reason}
    sections = re.split(r"^## Exit code (\d+)$", _TEXT, flags=re.MULTILINE)[1:]
    listed = {
        (int(code), reason)
        for code, section in zip(sections[::2], sections[1::2], strict=True)
        for reason in re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    }
    assert listed == expected


def test_troubleshooting_names_reasons_of_the_page() -> None:
    """It has those of brokers; registries, ZooKeeper and downloads have their own pages."""
    text = (Path(__file__).parents[2] / "docs" / "troubleshooting.md").read_text()
    named = set(re.findall(r"^\|[^|]+\| `(\w+)` \|", text, re.MULTILINE))
    every = {reason.value for reason in (*ConnectionReason, *Reason)} | {cls.code for cls in _classes()}
    assert named <= every
    assert named >= {reason.value for reason in ConnectionReason}
