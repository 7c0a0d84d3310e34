"""Adding, replacing, removing and choosing named clusters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kctl.contexts.choose import find_context
from kctl.contexts.context import Context
from kctl.errors import AlreadyExists, UsageError
from kctl.protocol.security import SecuritySettings

if TYPE_CHECKING:
    from kctl.contexts.config import ConfigFile


@dataclass(frozen=True, slots=True)
class AddedContext:
    """What `add_context` left (or would leave) in the file."""

    entry: Context
    current_context: str | None

    @property
    def missing_files(self) -> list[str]:
        """Files that the security settings name and that do not exist yet."""
        security = self.entry.security
        paths = (
            security.ssl_cafile,
            security.ssl_certfile,
            security.ssl_keyfile,
            security.sasl_password_file,
            security.ssl_key_password_file,
        )
        return [path for path in paths if path is not None and not Path(path).exists()]


def refuse_temporary_files(*paths: str | None) -> None:
    """Raise UsageError for a secret that exists only while this process runs, such as stdin or a pipe of the shell.

    paths: as the user wrote them.
    """
    for path in paths:
        if path == "-" or (path or "").startswith(("/dev/", "/proc/")):
            raise UsageError(
                f"cannot store {path} in a context: it exists only while this command runs",
                hint="write the secret to a file, or name an environment variable",
            )


def add_context(
    name: str,
    entry: Context,
    *,
    keep_protected: bool = False,
    make_current: bool = False,
    replace_existing: bool = False,
    dry_run: bool = False,
) -> AddedContext:
    """put_context for people: the first context becomes the current one, and nothing is overwritten unasked.

    keep_protected: over a protected context it is protected, too. Raises AlreadyExists for a context of this name
    with other settings, UsageError for settings that cannot work.
    """
    from kctl.contexts import config

    config.check_name(name)
    config.check_entry(entry)
    file = config.read()
    if keep_protected and name in file.contexts:
        entry = replace(entry, protected=entry.protected or file.contexts[name].protected)
    known = file.contexts.get(name)
    entry = entry.in_place_of(known)
    if known is not None and not replace_existing and not known.same_settings(entry):
        raise AlreadyExists(
            f"context {name!r} exists with other settings",
            hint=f"see `kctl context show {name}`; --replace overwrites it",
        )
    current = name if make_current or not file.contexts else file.current_context
    if not dry_run:
        put_context(name, entry, make_current=current == name)
        current = config.read().current_context
    return AddedContext(entry, current)


def put_context(name: str, entry: Context, *, make_current: bool) -> None:
    """Write an entry, over one of the same name, atomically. Raises UsageError for settings that cannot work."""
    from kctl.contexts import config

    config.check_name(name)
    config.check_entry(entry)
    with config.update() as file:
        before = file.contexts.get(name)
        file.contexts[name] = entry
        if make_current:
            file.choose(name)
    if before is not None:
        forget_secrets([before], file)


def remove_context(name: str) -> str | None:
    """Remove an entry, and return the current context; None if the removed entry was current.

    The files that `kctl context import` made for its passwords go with it. Raises NotFound.
    """
    from kctl.contexts import config

    with config.update() as file:
        before = find_context(file.contexts, name)
        file.forget(name)
        current = file.current_context
    forget_secrets([before], file)
    return current


def forget_secrets(before: Iterable[Context], file: ConfigFile) -> None:
    """Remove the files of passwords that an import made for these entries and that `file` names no more."""
    kept = {path for entry in file.contexts.values() for path in _secret_files(entry.security)}
    for path in {path for entry in before for path in _secret_files(entry.security)} - kept:
        if Path(path).parent == secrets_dir():
            Path(path).unlink(missing_ok=True)


def _secret_files(security: SecuritySettings) -> list[str]:
    return [path for path in (security.sasl_password_file, security.ssl_key_password_file) if path is not None]


def secrets_dir() -> Path:
    """Where an import puts passwords, one to a file."""
    from kctl.base import paths

    return paths.config_file().absolute().parent / "secrets"


def use_context(name: str) -> Context:
    """Make an entry the current one, and return it. Raises NotFound."""
    from kctl.contexts import config

    with config.update() as file:
        entry = find_context(file.contexts, name)
        file.choose(name)
    return entry
