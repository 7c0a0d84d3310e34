"""The JSON files of Kafka's tools: an object with `version` 1 and a list of entries, whatever else is in either.

As kafka.utils.Json and the tools of Kafka 3.9 and 4.4 read them, but stricter where they guess: what stands behind the
object, and a key that kctl reads and finds twice, are refused. A byte order mark is passed over, as in all files.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, NoReturn

from kctl.errors import InvalidFile
from kctl.text import printable

VERSION = 1


def load_object(data: bytes, name: str, *, keys: Collection[str] | None, hint: str | None = None) -> dict[str, Any]:
    """The object in a file's bytes, its version looked at. name: of the file, for messages.

    keys: those that must not be there twice in one object; None: no key may. Raises InvalidFile.
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [key for key, _ in pairs if keys is None or key in keys]
            twice = next((key for key in names if names.count(key) > 1), None)
            if twice is not None:
                raise ValueError(f"the key {twice!r} is there twice in one object")
        return found

    try:
        document = json.loads(data.decode("utf-8-sig"), object_pairs_hook=once, parse_constant=_no_constant)
    except RecursionError:
        raise InvalidFile(f"{name} cannot be read: its JSON is nested too deep") from None
    except UnicodeDecodeError:
        raise InvalidFile(f"{name} cannot be read as JSON: it is not UTF-8 text", hint=hint) from None
    except ValueError as exc:
        raise InvalidFile(f"{name} cannot be read as JSON: {printable(str(exc))[:200]}", hint=hint) from None
    if not isinstance(document, dict):
        raise InvalidFile(f"{name} holds no JSON object", hint=hint)
    version = document.get("version", VERSION)
    if type(version) is not int or version != VERSION:
        raise InvalidFile(f"{name} has version {shown(version)}; kctl knows version {VERSION}")
    return document


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


def shown(value: object) -> str:
    """A value of a file, for messages."""
    text = printable(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= 60 else text[:57] + "…"
