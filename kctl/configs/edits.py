"""What shall be changed, from «key=value» texts; secrets come from files, never from the command line."""

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

_MAX_VALUE_BYTES = 1_000_000  # ZooKeeper and the metadata log take no more


def parse_edits(
    values: Iterable[str], append: Iterable[str] = (), subtract: Iterable[str] = (), *, file: str | None = None
) -> list[Edit]:
    """Edits of «key=value» texts, and of the lines of a properties file. Raises UsageError for none, without «=», and
    for a key that is named twice; NotFound and InvalidFile for a file that cannot be read.
    """
    edits = [_edit(pair, "set") for pair in values]
    edits += _in_file(file) if file is not None else ()
    edits += [_edit(pair, "append") for pair in append]
    edits += [_edit(pair, "subtract") for pair in subtract]
    if not edits:
        raise UsageError(
            "nothing to set was given", hint="write KEY=VALUE, --append KEY=ITEM, --subtract KEY=ITEM or --file FILE"
        )
    return _once_each(edits)


def _in_file(file: str) -> list[Edit]:
    data, name = read_input(Path(file), max_bytes=_MAX_VALUE_BYTES)
    found = load_properties(data, source=name)
    return [Edit(key, "set", value.strip(), file) for key, value in found.items()]


def removals(keys: Iterable[str]) -> list[Edit]:
    """Edits that unset. Raises UsageError for what is no key, and for a key that is named twice. Pure."""
    found = []
    for key in keys:
        if "=" in key or not key.strip():
            raise UsageError(f"{key!r} is not a config's name", hint="to unset, the name alone is given")
        found.append(Edit(key.strip(), "unset"))
    return _once_each(found)


def _edit(pair: str, operation: Operation) -> Edit:
    key, sign, value = pair.partition("=")
    if not sign or not key.strip():
        # Not repeated: it may be a password whose key was forgotten.
        raise UsageError("a config is given as KEY=VALUE", hint="for example retention.ms=3600000")
    return Edit(key.strip(), operation, value.strip())


def _once_each(edits: Sequence[Edit]) -> list[Edit]:
    names = [edit.name for edit in edits]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"{', '.join(twice)}: given twice", hint="each config is changed once by a command")
    if sum(edit.value == "@-" for edit in edits if edit.file is None) + any(edit.file == "-" for edit in edits) > 1:
        raise UsageError("stdin has only one value", hint="take the others from files: KEY=@FILE")
    return list(edits)


def read_values(pairs: Sequence[str]) -> dict[str, str]:
    """«key=value» texts as a mapping, the values of «@FILE» and «@-» read: of resources that have no secrets.

    Raises UsageError as parse_edits does; NotFound and InvalidFile for a file.
    """
    edits = parse_edits(pairs) if pairs else []
    return {edit.name: _read(edit.name, edit.value, _MAX_VALUE_BYTES) for edit in edits if edit.value is not None}


def with_files(edits: Sequence[Edit], known: Mapping[str, Config], warn: Warn = ignore) -> list[Edit]:
    """The edits with the values of «@FILE» and «@-» read.

    warn: gets a line for a secret's file that others can read. Raises UsageError for a sensitive value on the command
    line and for a secret's file that everybody may write to, NotFound and InvalidFile for one that is not there or
    cannot be a value.
    """
    return [_with_file(edit, find_key(known, edit.name), warn) for edit in edits]


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
                hint=f"give {edit.name}=@FILE of a file that only you can read, or {edit.name}=@- for stdin",
            )
        return edit
    if config.sensitive:
        return replace(edit, value=read_secret(edit.name, None, edit.value[1:], warn=warn))
    return replace(edit, value=_read(edit.name, edit.value, _MAX_VALUE_BYTES))


def _read(key: str, value: str, max_bytes: int) -> str:
    """The value, or what the file has that it names."""
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
