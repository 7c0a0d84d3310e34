"""Parse config edits from "key=value"; secrets come from files, never from the command line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from kctl.base.input_file import read_input
from kctl.base.properties import load_properties
from kctl.base.secrets import Warn, check_secret_file, ignore, read_secret
from kctl.configs.change import Edit, Operation
from kctl.configs.keys import find_key
from kctl.configs.model import Config
from kctl.errors import InvalidFile, UsageError

_MAX_VALUE_BYTES = 1_000_000  # maximum of ZooKeeper and the metadata log


def parse_edits(
    values: Iterable[str], append: Iterable[str] = (), subtract: Iterable[str] = (), *, file: str | None = None
) -> list[Edit]:
    """Parse "key=value" texts and a properties file.

    Raises UsageError if there are none, if "=" is missing, and for a duplicate key; NotFound and InvalidFile for a
    file.
    """
    edits = [_edit(pair, "set") for pair in values]
    edits += _in_file(file) if file is not None else ()
    edits += [_edit(pair, "append") for pair in append]
    edits += [_edit(pair, "subtract") for pair in subtract]
    if not edits:
        raise UsageError("nothing to set", hint="use KEY=VALUE, --append KEY=ITEM, --subtract KEY=ITEM or --file FILE")
    return _check_unique(edits)


def _in_file(file: str) -> list[Edit]:
    data, name = read_input(Path(file), max_bytes=_MAX_VALUE_BYTES)
    values = load_properties(data, source=name)
    return [Edit(key, "set", value.strip(), file) for key, value in values.items()]


def removals(keys: Iterable[str]) -> list[Edit]:
    """Return edits that unset configs. Raises UsageError for an invalid or duplicate key. Pure."""
    edits = []
    for key in keys:
        if "=" in key or not key.strip():
            raise UsageError(f"{key!r} is not a config name", hint="to unset a config, use its name only")
        edits.append(Edit(key.strip(), "unset"))
    return _check_unique(edits)


def _edit(pair: str, operation: Operation) -> Edit:
    key, sign, value = pair.partition("=")
    if not sign or not key.strip():
        # Do not print the text: it may be a password without its key.
        raise UsageError("a config must be KEY=VALUE", hint="e.g. retention.ms=3600000")
    return Edit(key.strip(), operation, value.strip())


def _check_unique(edits: Sequence[Edit]) -> list[Edit]:
    names = [edit.name for edit in edits]
    duplicates = sorted({name for name in names if names.count(name) > 1})
    if duplicates:
        raise UsageError(f"duplicate config: {', '.join(duplicates)}", hint="use each config once")
    if sum(edit.value == "@-" for edit in edits if edit.file is None) + any(edit.file == "-" for edit in edits) > 1:
        raise UsageError("stdin can hold only one value", hint="use KEY=@FILE for the others")
    return list(edits)


def read_values(pairs: Sequence[str]) -> dict[str, str]:
    """Return "key=value" texts as a mapping, with "@FILE" and "@-" read; for resources without secrets.

    Raises UsageError as parse_edits does; NotFound and InvalidFile for a file.
    """
    edits = parse_edits(pairs) if pairs else []
    return {edit.name: _read_value(edit.name, edit.value, _MAX_VALUE_BYTES) for edit in edits if edit.value is not None}


def with_files(edits: Sequence[Edit], configs_by_name: Mapping[str, Config], warn: Warn = ignore) -> list[Edit]:
    """Return the edits with the values of "@FILE" and "@-" read.

    warn: called if others can read the file of a secret. Raises UsageError for a sensitive value on the command line
    and for a world-writable file of a secret, NotFound and InvalidFile for a file that does not exist or has no valid
    value.
    """
    return [_with_file(edit, find_key(configs_by_name, edit.name), warn) for edit in edits]


def _with_file(edit: Edit, config: Config | None, warn: Warn) -> Edit:
    if edit.value is None or config is None:
        return edit
    if edit.file is not None:
        if config.sensitive and edit.file != "-":
            check_secret_file(Path(edit.file), edit.name, warn=warn)
        return edit
    if not edit.value.startswith("@"):
        if config.sensitive:
            raise UsageError(
                f"{edit.name} is sensitive: its value must not be on the command line, where others can see it",
                hint=f"use {edit.name}=@FILE with a file that only you can read, or {edit.name}=@- for stdin",
            )
        return edit
    if config.sensitive:
        return replace(edit, value=read_secret(edit.name, None, edit.value[1:], warn=warn))
    return replace(edit, value=_read_value(edit.name, edit.value, _MAX_VALUE_BYTES))


def _read_value(key: str, value: str, max_bytes: int) -> str:
    """Return the value, or the contents of the file that it names."""
    if not value.startswith("@"):
        return value
    data, name = read_input(Path(value[1:]), max_bytes=max_bytes)
    try:
        text = data.decode("utf-8").strip()
    except UnicodeDecodeError:
        raise InvalidFile(f"{name} for {key} is not UTF-8 text") from None
    if not text:
        raise InvalidFile(f"{name} for {key} is empty")
    return text
