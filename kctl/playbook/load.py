"""Find, read and lint a playbook."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kctl.errors import KctlError
from kctl.playbook.lint.lint import lint
from kctl.playbook.lint.problems import as_error, errors_of, in_order
from kctl.playbook.model import Playbook, Problem
from kctl.playbook.operations import Operations
from kctl.playbook.read import read_all
from kctl.playbook.shipped import PlaybookFile, find, text_of


def load_playbook(name: str, *, beside: Path | None = None, definitions: Operations | None = None) -> Playbook:
    """Return the playbook with this name or path. Raises NotFound, and InvalidFile with all errors."""
    playbook_file = find(name, beside=beside)
    playbook, problems = examine(playbook_file, definitions=definitions)
    return without_errors(playbook, problems, playbook_file.file)


def without_errors(playbook: Playbook | None, problems: Sequence[Problem], file: str) -> Playbook:
    """Return the playbook if it has no errors; warnings are ignored. Raises InvalidFile with all errors."""
    errors = errors_of(problems)
    if playbook is None or errors:
        raise as_error(errors, file)
    return playbook


def examine(
    playbook_file: PlaybookFile, *, definitions: Operations | None = None
) -> tuple[Playbook | None, list[Problem]]:
    """Return a playbook and all of its problems, from the reader and from lint."""
    try:
        text = text_of(playbook_file)
    except KctlError as exc:
        return None, [Problem(playbook_file.file, 1, 1, exc.message, exc.hint)]
    return examine_text(text, source=playbook_file.path, file=playbook_file.file, definitions=definitions)


def examine_text(
    data: bytes | str, *, source: Path | None, file: str, definitions: Operations | None = None
) -> tuple[Playbook | None, list[Problem]]:
    """Examine a text that is already in memory, e.g. from a journal."""
    playbook, problems = read_all(data, source=source, file=file, definitions=definitions)
    if playbook is None:
        return None, problems
    return playbook, in_order({*problems, *lint(playbook, definitions=definitions)})
