"""Find playbooks: shipped ones by name, others by path."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kctl.base.input_file import read_input
from kctl.base.suggestions import did_you_mean
from kctl.errors import InvalidFile, NotFound
from kctl.playbook.read import MAX_BYTES

SUFFIXES = (".yaml", ".yml")
_HINT = "run `kctl playbook list` to see the shipped playbooks, or pass the path of a file"


@dataclass(frozen=True, slots=True)
class PlaybookFile:
    """A playbook's file. file: its name in problems. shipped: it comes with kctl."""

    path: Path
    file: str
    shipped: bool


def folder() -> Path:
    """Return the folder of the shipped playbooks."""
    import kctl

    return Path(kctl.__file__).parent / "playbooks"


def shipped() -> Iterator[PlaybookFile]:
    """Yield the shipped playbooks in order of their names."""
    for path in sorted(folder().glob("*.yaml")):
        yield PlaybookFile(path, path.name, shipped=True)


def in_folder(parent: Path) -> Iterator[PlaybookFile]:
    """Yield the files of a folder that contain `playbook:` or are unreadable. Raises NotFound."""
    if not parent.is_dir():
        raise NotFound(f"folder {parent} does not exist")
    for path in sorted(parent.iterdir()):
        if path.suffix in SUFFIXES and _is_file(path) and _may_be_playbook(path):
            yield PlaybookFile(path, str(path), shipped=False)


def _may_be_playbook(path: Path) -> bool:
    try:
        return b"playbook:" in read_input(path, max_bytes=MAX_BYTES)[0]
    except InvalidFile:
        return True


def find(name: str, *, beside: Path | None = None) -> PlaybookFile:
    """Return a playbook by name or path. beside: the file that includes it; paths are relative to its folder.

    A bare name is first looked up among the shipped playbooks, then as NAME.yaml in the folder, so that a file cannot
    silently replace a shipped playbook. Raises NotFound.
    """
    base = beside.parent if beside is not None else Path()
    is_path = name.endswith(SUFFIXES) or "/" in name or name in {".", ".."}
    if not is_path:
        shipped_path = folder() / f"{name}.yaml"
        if _is_file(shipped_path):
            return PlaybookFile(shipped_path, shipped_path.name, shipped=True)
        for suffix in SUFFIXES:
            path = base / f"{name}{suffix}"
            if _is_file(path):
                return PlaybookFile(path, str(path), shipped=False)
    path = base / name
    if is_path and _is_file(path):
        return PlaybookFile(path, str(path), shipped=_is_shipped(path))
    if is_path:
        raise NotFound(f"file {path} does not exist", hint=_HINT)
    suggestion = did_you_mean(name, [each.path.stem for each in shipped()])
    raise NotFound(f"playbook {name} does not exist", hint=suggestion or _HINT)


def find_all(name: str) -> list[PlaybookFile]:
    """Return the playbook with this name or path, or all playbooks in a folder. Raises NotFound if there is none."""
    try:
        return [find(name)]
    except NotFound:
        if not Path(name).is_dir():
            raise
    files = list(in_folder(Path(name)))
    if not files:
        raise NotFound(f"folder {name} contains no playbooks", hint=_HINT)
    return files


def _is_file(path: Path) -> bool:
    """Return True if the path is a file; False also if it is not a valid path, e.g. too long."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _is_shipped(path: Path) -> bool:
    return path.resolve().parent == folder().resolve()


def text_of(playbook_file: PlaybookFile) -> bytes:
    """Return the content of a playbook's file. Raises InvalidFile, NotFound."""
    return read_input(playbook_file.path, max_bytes=MAX_BYTES)[0]
