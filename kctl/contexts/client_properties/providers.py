"""Config providers (KIP-297, KIP-421, KIP-887) and placeholders in the values of client properties.

`${file:PATH:KEY}`, `${env:NAME}` and `${directory:PATH:FILE}` are resolved as Kafka's FileConfigProvider,
EnvVarConfigProvider and DirectoryConfigProvider do, with the names and limits of config.providers. Kafka's clients send
an unresolved reference as is; kctl refuses it. kctl also refuses placeholders that a template engine or a shell should
have replaced. A literal value that looks like a placeholder belongs in a file or a variable, because the value from a
provider is not checked.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kctl.errors import InvalidFile, NotFound

MAX_BYTES = 1 << 20
PREFIX = "config.providers"
# org.apache.kafka.common.config.ConfigTransformer: provider, path (optional), key
REFERENCE = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")
_CLASSES = {"FileConfigProvider": "file", "EnvVarConfigProvider": "env", "DirectoryConfigProvider": "directory"}
_PACKAGE = "org.apache.kafka.common.config.provider."

_ANYWHERE = re.compile(r"\$\{[^}]*\}?|\$\([^)]*\)|\{\{.*?\}\}|\{%.*?%\}|<%.*?%>|#\{[^}]*\}", re.DOTALL)
_VARIABLE = re.compile(r"\$[A-Za-z_][A-Za-z0-9_]*")
_WHOLE = re.compile(r"\$[A-Za-z_][A-Za-z0-9_]*|%[A-Za-z_][A-Za-z0-9_]*%|@[A-Z_]+@|__[A-Z_]+__")
_WAY_OUT = "if the value is literal, put it into a file or a variable: ${file:PATH:KEY}, ${env:NAME}"


@dataclass(frozen=True, slots=True)
class Reference:
    """The source of a value. kind: file, env or directory."""

    kind: str
    path: str | None
    key: str


@dataclass(frozen=True, slots=True)
class _Provider:
    kind: str
    allowed_paths: tuple[Path, ...] | None = None
    allowlist: str | None = None


class Providers:
    """The config providers of one file. Every error names the file and the key, and never shows a value."""

    def __init__(self, properties: Mapping[str, str], source: str) -> None:
        """properties: the whole file. Raises InvalidFile for a provider that kctl does not have."""
        self._source = source
        # The usual names need no declaration: a Connect worker declares the providers for its connectors.
        self._known = {kind: _Provider(kind) for kind in _CLASSES.values()}
        for name in filter(None, (each.strip() for each in properties.get(PREFIX, "").split(","))):
            self._known[name] = self._declared(name, properties)

    def _declared(self, name: str, properties: Mapping[str, str]) -> _Provider:
        prefix = f"{PREFIX}.{name}"
        class_name = properties.get(f"{prefix}.class", "").strip()
        short = class_name.rpartition(".")[2]
        if short not in _CLASSES or not class_name.endswith(_PACKAGE + short):
            class_text = class_name if re.fullmatch(r"[\w.$]+", class_name) else "missing"
            raise InvalidFile(
                f"{self._source}: {prefix}.class is {class_text}, which kctl cannot load",
                hint=f"use {', '.join(_CLASSES)} from {_PACKAGE.rstrip('.')}",
            )
        paths = properties.get(f"{prefix}.param.allowed.paths", "")
        return _Provider(
            _CLASSES[short],
            self._allowed_paths(f"{prefix}.param.allowed.paths", paths) if paths else None,
            properties.get(f"{prefix}.param.allowlist.pattern") or None,
        )

    def _allowed_paths(self, key: str, paths: str) -> tuple[Path, ...]:
        """Return the allowed paths, which must be absolute and exist (Kafka's AllowedPaths).

        Links are followed, as in Kafka 4.4; 3.9 compares names.
        """
        allowed = paths.rstrip(",").split(",")
        for each in allowed:
            if "\0" in each or not Path(each).is_absolute() or not Path(each).exists():
                raise InvalidFile(
                    f"{self._source}: {key} has {each!r}, which is not an absolute path of something that exists",
                    hint="write the paths with commas between them, and no blanks",
                )
        return tuple(Path(each).resolve() for each in allowed)

    def resolve(self, key: str, value: str, *, secret: bool) -> str:
        """Return the value with its references resolved. secret: `$` is an ordinary character. Raises InvalidFile."""
        parts, end = [], 0
        for match in REFERENCE.finditer(value):
            parts += [self._checked(key, value[end : match.start()], secret=secret), self._value(key, match)]
            end = match.end()
        if not parts:
            return self._checked(key, value, secret=secret, whole=True)
        return "".join([*parts, self._checked(key, value[end:], secret=secret)])

    def check_replaced(self, key: str, text: str) -> None:
        """Raise InvalidFile for a value that is a placeholder as a whole, such as $PASSWORD."""
        if not REFERENCE.search(text):
            self._checked(key, text, secret=True, whole=True)

    def reference(self, value: str) -> Reference | None:
        """Return the reference if the whole value is one reference, else None."""
        match = REFERENCE.fullmatch(value.strip())
        provider = match and self._known.get(match[1])
        return Reference(provider.kind, match[2], match[3]) if match and provider else None

    def _checked(self, key: str, text: str, *, secret: bool, whole: bool = False) -> str:
        return without_placeholder(f"{self._source}: {key}", text, secret=secret, whole=whole)

    def _value(self, key: str, match: re.Match[str]) -> str:
        provider = self._known.get(match[1])
        if provider is None:  # the rest may be a default value, as in Spring
            raise InvalidFile(
                f"{self._source}: {key} refers to ${{{match[1]}:…}}, and {match[1]!r} is not a config provider",
                hint=f"declare it in {PREFIX}, or write ${{env:NAME}} or ${{file:PATH:KEY}}",
            )
        where = f"{self._source}: {key} refers to {match[0]}"
        path, name = match[2], match[3]
        if provider.kind == "env":
            return _environment(where, provider, path, name)
        if not path:
            raise InvalidFile(f"{where}, which has no path", hint=f"write ${{{match[1]}:PATH:{name}}}")
        place = _allowed(where, provider, path)
        return _property(where, place, name) if provider.kind == "file" else _file(where, place, name)


def without_placeholder(what: str, text: str, *, secret: bool, whole: bool = True) -> str:
    """Return the text, or raise InvalidFile if a template engine or a shell should have replaced part of it.

    what: the setting, for the error. whole: the text is a whole value, not part of one.
    """
    placeholder = _ANYWHERE.search(text) or (whole and _WHOLE.fullmatch(text.strip()))
    if not placeholder and not secret:
        placeholder = _VARIABLE.search(text)
    if placeholder:
        preview = placeholder[0] if len(placeholder[0]) <= 60 and placeholder[0].isprintable() else "a placeholder"
        if secret:  # the placeholder may be a real password
            preview = f"{re.match(r'[^A-Za-z0-9_ ]+|__', placeholder[0])[0]}…"  # type: ignore[index]  # true of all
        raise InvalidFile(f"{what} has {preview}, an unresolved placeholder", hint=_WAY_OUT)
    return text


def _environment(where: str, provider: _Provider, path: str | None, name: str) -> str:
    if path:
        raise InvalidFile(f"{where}, but env takes no path", hint=f"write ${{env:{name}}}")
    if provider.allowlist is not None:
        try:
            allowed = re.fullmatch(provider.allowlist, name)
        except re.error:
            raise InvalidFile(
                f"{where}, but allowlist.pattern is not a regular expression that kctl supports",
                hint="kctl reads it as Python does: without \\p{…} and character classes within others",
            ) from None
        if not allowed:
            raise InvalidFile(f"{where}, which allowlist.pattern does not allow")
    value = os.environ.get(name)
    if not value:
        raise InvalidFile(f"{where}, but the environment variable {name} is not set", hint=f"export {name}=…")
    return value


def _allowed(where: str, provider: _Provider, path: str) -> Path:
    """Return the path; if only some paths are allowed, with dots and links resolved."""
    if provider.allowed_paths is None or "\0" in path:
        return Path(path)
    place = Path(path).resolve()
    if not any(place.is_relative_to(allowed) for allowed in provider.allowed_paths):
        raise InvalidFile(f"{where}, which allowed.paths does not allow")
    return place


def _property(where: str, path: Path, name: str) -> str:
    from kctl.base.properties import load_properties

    data = _read_file(where, path)
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidFile(f"{where}, and {path} is not UTF-8 text") from None
    try:
        values = load_properties(data, source=str(path))
    except InvalidFile as exc:
        raise InvalidFile(f"{where}: {exc.message}", hint=exc.hint) from None
    if name not in values:
        raise InvalidFile(f"{where}, but {path} has no key {name}")
    return values[name]


def _file(where: str, folder: Path, name: str) -> str:
    """Read a file in a folder, as Kubernetes mounts secrets. The final newline is not part of the secret."""
    if "/" in name or name in {"", ".", ".."}:
        raise InvalidFile(f"{where}, but {name!r} is not a file name")
    data = _read_file(where, folder / name)
    try:
        return data.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise InvalidFile(f"{where}, but {folder / name} is not UTF-8 text") from None


def _read_file(where: str, path: Path) -> bytes:
    from kctl.base.input_file import read_input

    try:
        return read_input(path, max_bytes=MAX_BYTES)[0]
    except (NotFound, InvalidFile) as exc:
        raise InvalidFile(f"{where}: {exc.message}", hint="check the path and its permissions") from None
    except ValueError:  # a NUL in the path
        raise InvalidFile(f"{where}, but that is not a path") from None
