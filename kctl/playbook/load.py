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


def load_playbook(name: str, *, beside: Path | None = None, known: Operations | None = None) -> Playbook:
    """Return the playbook with this name or path. Raises NotFound, and InvalidFile with all errors."""
    found = find(name, beside=beside)
    playbook, problems = examine(found, known=known)
    return without_errors(playbook, problems, found.file)


def without_errors(playbook: Playbook | None, problems: Sequence[Problem], file: str) -> Playbook:
    """Return the playbook if it has no errors; warnings are ignored. Raises InvalidFile with all errors."""
    errors = errors_of(problems)
    if playbook is None or errors:
        raise as_error(errors, file)
    return playbook


def examine(found: PlaybookFile, *, known: Operations | None = None) -> tuple[Playbook | None, list[Problem]]:
    """Return a playbook and all of its problems, from the reader and from lint."""
    try:
        text = text_of(found)
    except KctlError as exc:
        return None, [Problem(found.file, 1, 1, exc.message, exc.hint)]
    return examine_text(text, source=found.path, file=found.file, known=known)


def examine_text(
    data: bytes | str, *, source: Path | None, file: str, known: Operations | None = None
) -> tuple[Playbook | None, list[Problem]]:
    """Examine a text that is already in memory, e.g. from a journal."""
    playbook, problems = read_all(data, source=source, file=file, known=known)
    if playbook is None:
        return None, problems
    return playbook, in_order({*problems, *lint(playbook, known=known)})
