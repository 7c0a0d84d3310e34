"""Write requirements.lock: one pinned, hashed set of packages for every Python and platform that kctl supports.

    pip install uv && python tests/support/requirements_lock.py

Each pin carries a comment with the groups that need it: base, one for each extra, dev (tests and checks), docs (the
documentation site), build (what builds kctl's and pyspark's wheels). install.sh selects groups; the whole
file is also a valid requirements file. It contains no index and no links.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
LOCK = ROOT / "requirements.lock"
EXTRAS = ("codecs", "history", "spark", "protobuf", "jre")
DEPENDENCY_GROUPS = ("dev", "docs")
GROUPS = ("base", *EXTRAS, *DEPENDENCY_GROUPS, "build")
HEADER = """\
# Written by tests/support/requirements_lock.py from pyproject.toml.
# Each comment names the groups that need the pin below it.
"""
_PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==", re.MULTILINE)
_BUILD_REQUIREMENT = re.compile(r'^requires = \["(setuptools[^"]*)"\]', re.MULTILINE)


def compile_lock(selection: list[str], requirements: str, constraint: Path | None = None) -> str:
    """Return what uv resolves for these extras and groups of pyproject.toml, and additional requirements."""
    with tempfile.TemporaryDirectory() as folder:
        more = Path(folder) / "more.in"
        more.write_text(requirements + "\n", encoding="utf-8")
        argv = [
            "uv", "pip", "compile", "--universal", "--generate-hashes", "--python-version", "3.10", "--quiet",
            "--no-annotate", "--no-header", "--no-emit-index-url", "--no-emit-find-links", "--no-config",
            *selection, *(["--constraint", str(constraint)] if constraint else []), "pyproject.toml", str(more),
        ]  # fmt: skip
        return subprocess.run(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout


def names_of(lock: str) -> set[str]:
    """Return the names of the packages that a lock pins."""
    return {match.lower() for match in _PIN.findall(lock)}


def main() -> int:
    """Resolve everything once, then determine the packages of each group."""
    build = _BUILD_REQUIREMENT.search((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert build is not None
    selection = [*(f"--extra={e}" for e in EXTRAS), *(f"--group={g}" for g in DEPENDENCY_GROUPS)]
    everything = compile_lock(selection, build.group(1))
    with tempfile.TemporaryDirectory() as folder:
        pins = Path(folder) / "pins.txt"
        pins.write_text(re.sub(r" \\\n(    --hash=\S+( \\)?\n)+", "\n", everything), encoding="utf-8")
        base = names_of(compile_lock([], "", pins))
        needs = {"base": base, "build": names_of(compile_lock([], build.group(1), pins)) - base}
        for extra in EXTRAS:
            needs[extra] = names_of(compile_lock([f"--extra={extra}"], "", pins)) - base
        for group in DEPENDENCY_GROUPS:
            needs[group] = names_of(compile_lock([f"--group={group}"], "", pins)) - base

    def annotated(match: re.Match[str]) -> str:
        groups = [group for group in GROUPS if match.group(1).lower() in needs[group]]
        assert groups, match.group()
        return f"# groups: {' '.join(groups)}\n{match.group()}"

    LOCK.write_text(HEADER + _PIN.sub(annotated, everything), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
