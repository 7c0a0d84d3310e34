"""Packages for other programs, wherever Python looks for them, are not kctl's."""

from __future__ import annotations

import json
import os
import re
import site
import subprocess
import sys
from pathlib import Path

import pytest

from kctl.base.own_python import child_environment
from kctl_testing import SCRIPT

# What a Spark of another version, a data scientist's folder or a foreign Python would bring.
NAMES = (
    "numpy", "yaml", "py4j", "pyspark", "pyarrow", "typer", "rich", "click", "kafka", "kazoo", "json", "csv", "ssl",
    "tempfile", "select", "secrets", "dataclasses", "typing", "collections", "kctl_plugin",
)  # fmt: skip


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A folder of modules that say that they were imported, and then fail."""
    folder = tmp_path / "foreign"
    folder.mkdir()
    for name in NAMES:
        text = f"import os; os.write(2, b'FOREIGN {name}\\n'); raise ImportError('foreign {name}')\n"
        (folder / f"{name}.py").write_text(text)
    return folder


def run(
    argv: list[str], tmp_path: Path, *, cwd: Path | None = None, script: Path = SCRIPT, **variables: str
) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "KCTL_"))}
    return subprocess.run(
        [str(script), *argv], env={**env, "HOME": str(tmp_path), **variables}, cwd=cwd or tmp_path,
        capture_output=True, text=True, check=False,
    )  # fmt: skip


COMMANDS = [
    ["--version"],
    ["topic", "list", "--help"],
    ["context", "list", "-o", "yaml"],
    ["capacity", "plan", "--help"],
]


def remove_early_modules(foreign: Path, tmp_path: Path) -> None:
    """Remove the modules that Python and pip's launcher import before any of kctl's code runs.

    kctl cannot prevent these imports. They depend on the versions of both, so the launcher's own imports are tried.
    """
    imports = [line for line in SCRIPT.read_text().splitlines() if re.fullmatch(r"import \w+", line)]
    while True:
        done = run(["-c", "\n".join(imports)], tmp_path, script=Path(sys.executable), PYTHONPATH=str(foreign))
        early = [line.split()[1] for line in done.stderr.splitlines() if line.startswith("FOREIGN")]
        if not early:
            return
        for name in early:
            (foreign / f"{name}.py").unlink(missing_ok=True)  # a module can be tried twice


@pytest.mark.parametrize("argv", COMMANDS, ids=" ".join)
def test_a_foreign_folder_in_pythonpath(argv: list[str], foreign: Path, tmp_path: Path) -> None:
    remove_early_modules(foreign, tmp_path)
    assert {"numpy", "yaml", "py4j", "json", "csv", "dataclasses"} <= {path.stem for path in foreign.iterdir()}
    done = run(argv, tmp_path, PYTHONPATH=f"{foreign}:/none:{foreign}/:", PYTHONDONTWRITEBYTECODE="1")
    assert [line for line in done.stderr.splitlines() if line.startswith("FOREIGN")] == []
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("argv", COMMANDS, ids=" ".join)
def test_the_current_folder(argv: list[str], foreign: Path, tmp_path: Path) -> None:
    done = run(argv, tmp_path, cwd=foreign)
    assert (done.returncode, done.stderr) == (0, "")


def test_as_a_module_in_a_foreign_folder(foreign: Path, tmp_path: Path) -> None:
    for name in ("json", "csv", "ssl", "tempfile", "select", "secrets", "dataclasses", "typing", "collections"):
        (foreign / f"{name}.py").unlink()  # runpy imports some of them before kctl runs
    done = run(["-m", "kctl", "context", "list", "-o", "yaml"], tmp_path, cwd=foreign, script=Path(sys.executable))
    assert (done.returncode, done.stderr) == (0, "")


def test_what_is_searched(tmp_path: Path) -> None:
    """Own folders stay, in their order, also when PYTHONPATH names them."""
    code = (
        "import sys, json, site; sys.argv = ['/usr/bin/kctl']; before = list(sys.path)\n"
        "from kctl.base.own_python import isolate; isolate(); print(json.dumps([before, sys.path]))"
    )
    foreign = tmp_path / "empty"
    foreign.mkdir()
    plain = run(["-c", code], tmp_path, script=Path(sys.executable))
    _, own = json.loads(plain.stdout)
    packages = site.getsitepackages()[0]
    done = run(["-c", code], tmp_path, script=Path(sys.executable), PYTHONPATH=f"{foreign}:{packages}:{tmp_path}")
    before, after = json.loads(done.stdout)
    assert str(foreign) in before
    assert sorted(after) == sorted(own)


@pytest.mark.parametrize("code", [0, 2])
def test_pythoninspect_does_not_change_the_exit_code(code: int, tmp_path: Path) -> None:
    argv = ["context", "list"] if code == 0 else ["context", "lst"]
    done = run(argv, tmp_path, PYTHONINSPECT="1", PYTHONSTARTUP="/none")
    assert done.returncode == code
    assert ">>>" not in done.stderr
    assert "Traceback" not in done.stderr


def test_what_children_get(foreign: Path) -> None:
    given = {
        "PATH": "/bin", "PYTHONPATH": str(foreign), "PYTHONHOME": "/x", "PYTHONSTARTUP": "/y", "PYTHONUTF8": "1",
        "PYTHONINSPECT": "1",
    }  # fmt: skip
    found = child_environment(given)
    assert str(foreign) not in found.get("PYTHONPATH", "")
    assert {"PATH": "/bin", "PYTHONUTF8": "1", "PYTHONSAFEPATH": "1"}.items() <= found.items()
    assert not {"PYTHONHOME", "PYTHONSTARTUP", "PYTHONINSPECT"} & found.keys()
    code = "import kctl, sys; print(kctl.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**found, "PATH": os.environ["PATH"]}, cwd=foreign, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    import kctl

    assert Path(done.stdout.strip()).resolve() == Path(kctl.__file__).resolve()


def test_spark_starts_with_its_own_packages(foreign: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kctl.spark.java_command import embedded_environment, submit_environment

    monkeypatch.setenv("SPARK_HOME", "/opt/another-spark")
    environ = {"PYTHONPATH": str(foreign), "SPARK_HOME": "/opt/another-spark", "PYTHONHOME": "/x"}
    for found in (embedded_environment(environ), submit_environment(environ, Path("/java"))):
        assert str(foreign) not in found.get("PYTHONPATH", "")
        assert "PYTHONHOME" not in found
    assert "SPARK_HOME" not in embedded_environment(environ)
    kept = submit_environment({**environ, "PYSPARK_PYTHON": "/other/python"}, Path("/java"))
    assert kept["PYTHONPATH"].endswith(str(foreign)), "the executors' Python is its operator's"


def test_a_package_that_is_only_elsewhere_is_named(foreign: Path, tmp_path: Path) -> None:
    """As where all packages come by PYTHONPATH: kctl says that it does not look there."""
    code = (
        "import sys; sys.modules['typer'] = None; sys.argv = ['kctl', 'topic']\n"
        "from kctl.__main__ import main; sys.exit(main())"
    )
    done = run(["-c", code], tmp_path, script=Path(sys.executable))
    assert done.returncode == 5
    assert "typer is not installed in kctl's own environment" in done.stderr
    assert "PYTHONPATH" in done.stderr
