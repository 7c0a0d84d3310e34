"""Add, replace, remove and select contexts."""

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
    """The state of the config file after `add_context`; in a dry run, the planned state."""

    entry: Context
    current_context: str | None

    @property
    def missing_files(self) -> list[str]:
        """Return the files in the security settings that do not exist yet."""
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
    """Raise UsageError for a secret that exists only while this process runs, e.g. stdin or a shell pipe.

    paths: as entered by the user.
    """
    for path in paths:
        if path == "-" or (path or "").startswith(("/dev/", "/proc/")):
            raise UsageError(
                f"cannot store {path} in a context: it exists only while this command runs",
                hint="write the secret to a file, or use an environment variable",
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
    """Add a context. The first context becomes the current one.

    keep_protected: if the entry replaces a protected context, it is protected as well. Raises AlreadyExists for an
    existing context with different settings unless replace_existing is set, UsageError for invalid settings.
    """
    from kctl.contexts import config

    config.check_name(name)
    config.check_entry(entry)
    file = config.read()
    if keep_protected and name in file.contexts:
        entry = replace(entry, protected=entry.protected or file.contexts[name].protected)
    existing = file.contexts.get(name)
    entry = entry.in_place_of(existing)
    if existing is not None and not replace_existing and not existing.same_settings(entry):
        raise AlreadyExists(
            f"context {name!r} already exists with different settings",
            hint=f"compare `kctl context show {name}`; --replace overwrites it",
        )
    current = name if make_current or not file.contexts else file.current_context
    if not dry_run:
        put_context(name, entry, make_current=current == name)
        current = config.read().current_context
    return AddedContext(entry, current)


def put_context(name: str, entry: Context, *, make_current: bool) -> None:
    """Add or overwrite an entry atomically. Raises UsageError for invalid settings."""
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

    Also deletes the password files that `kctl context import` created for it. Raises NotFound.
    """
    from kctl.contexts import config

    with config.update() as file:
        before = find_context(file.contexts, name)
        file.forget(name)
        current = file.current_context
    forget_secrets([before], file)
    return current


def forget_secrets(before: Iterable[Context], file: ConfigFile) -> None:
    """Delete the password files that an import created for these entries and that `file` no longer uses."""
    used = {path for entry in file.contexts.values() for path in _secret_files(entry.security)}
    for path in {path for entry in before for path in _secret_files(entry.security)} - used:
        if Path(path).parent == secrets_dir():
            Path(path).unlink(missing_ok=True)


def _secret_files(security: SecuritySettings) -> list[str]:
    return [path for path in (security.sasl_password_file, security.ssl_key_password_file) if path is not None]


def secrets_dir() -> Path:
    """Return the folder in which an import stores passwords, one per file."""
    from kctl.base import paths

    return paths.config_file().absolute().parent / "secrets"


def use_context(name: str) -> Context:
    """Make a context the current one, and return it. Raises NotFound."""
    from kctl.contexts import config

    with config.update() as file:
        entry = find_context(file.contexts, name)
        file.choose(name)
    return entry
