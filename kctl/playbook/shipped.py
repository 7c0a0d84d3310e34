"""Finding playbooks: those that come with kctl, by name, and files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kctl.base.input_file import read_input
from kctl.base.suggestions import did_you_mean
from kctl.errors import InvalidFile, NotFound
from kctl.playbook.read import MAX_BYTES

SUFFIXES = (".yaml", ".yml")
_HINT = "kctl playbook list shows those that come with kctl; a file is named by its path"


@dataclass(frozen=True, slots=True)
class Found:
    """path: the file. file: what problems call it. shipped: it comes with kctl."""

    path: Path
    file: str
    shipped: bool


def folder() -> Path:
    """Where the shipped playbooks are."""
    import kctl

    return Path(kctl.__file__).parent / "playbooks"


def shipped() -> Iterator[Found]:
    """All that come with kctl, by name."""
    for path in sorted(folder().glob("*.yaml")):
        yield Found(path, path.name, shipped=True)


def in_folder(where: Path) -> Iterator[Found]:
    """The playbooks among the files of a folder: YAML with the word `playbook:`, or unreadable. Raises NotFound."""
    if not where.is_dir():
        raise NotFound(f"there is no folder {where}")
    for path in sorted(where.iterdir()):
        if path.suffix in SUFFIXES and _is_file(path) and _may_be_one(path):
            yield Found(path, str(path), shipped=False)


def _may_be_one(path: Path) -> bool:
    try:
        return b"playbook:" in read_input(path, max_bytes=MAX_BYTES)[0]
    except InvalidFile:
        return True


def find(name: str, *, beside: Path | None = None) -> Found:
    """A playbook by name or path. beside: the file that includes it; paths are taken from its folder.

    A bare name is a shipped one's first, then NAME.yaml here (or beside), so that no file can take the place of a
    shipped playbook unseen. Raises NotFound.
    """
    base = beside.parent if beside is not None else Path()
    is_path = name.endswith(SUFFIXES) or "/" in name or name in {".", ".."}
    if not is_path:
        own = folder() / f"{name}.yaml"
        if _is_file(own):
            return Found(own, own.name, shipped=True)
        for suffix in SUFFIXES:
            path = base / f"{name}{suffix}"
            if _is_file(path):
                return Found(path, str(path), shipped=False)
    path = base / name
    if is_path and _is_file(path):
        return Found(path, str(path), shipped=_is_shipped(path))
    if is_path:
        raise NotFound(f"there is no file {path}", hint=_HINT)
    meant = did_you_mean(name, [each.path.stem for each in shipped()])
    raise NotFound(f"there is no playbook {name}", hint=meant or _HINT)


def find_all(name: str) -> list[Found]:
    """As `find`; for a folder all playbooks in it. Raises NotFound, also when a folder has none."""
    try:
        return [find(name)]
    except NotFound:
        if not Path(name).is_dir():
            raise
    found = list(in_folder(Path(name)))
    if not found:
        raise NotFound(f"there is no playbook in {name}", hint=_HINT)
    return found


def _is_file(path: Path) -> bool:
    """False as well for what cannot be the name of a file: too long, say."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _is_shipped(path: Path) -> bool:
    return path.resolve().parent == folder().resolve()


def text_of(found: Found) -> bytes:
    """What a playbook's file holds. Raises InvalidFile, NotFound."""
    return read_input(found.path, max_bytes=MAX_BYTES)[0]
