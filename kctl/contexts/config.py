"""The config file: strict reads, atomic writes. Other modules use kctl.contexts.choose.

A write creates a temporary file (0600) in the same folder, syncs and renames it. Each writer takes a lock file and
reads the file again under the lock, so that no entry is lost.
"""

from __future__ import annotations

import dataclasses
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kctl.base import paths
from kctl.base.address import parse_servers, parse_zookeeper
from kctl.base.output_file import write_output
from kctl.contexts.context import Context
from kctl.errors import Busy, InvalidFile, OperationFailed, Reason, Refused, UsageError
from kctl.protocol.security import MECHANISMS, PROTOCOLS, SecuritySettings

LOCK_TIMEOUT_S = 5.0
MAX_CONTEXTS = 10_000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_HEADER = "# Written by kctl (`kctl context --help`). Comments are lost on the next write.\n"


@dataclass
class ConfigFile:
    """The content of the config file. previous_context: the target of `kctl context use -`."""

    current_context: str | None = None
    contexts: dict[str, Context] = field(default_factory=dict)
    previous_context: str | None = None

    def choose(self, name: str) -> None:
        """Make an entry the current one."""
        if self.current_context != name:
            before = self.current_context or self.previous_context
            self.current_context, self.previous_context = name, before if before != name else None

    def forget(self, name: str) -> None:
        """Remove an entry.

        If the entry was current, no context is current afterwards, so that the next command cannot reach a cluster that
        the user did not choose. `kctl context use -` still switches to the previous context.
        """
        del self.contexts[name]
        if self.previous_context == name:
            self.previous_context = None
        if self.current_context == name:
            self.current_context = None


def read() -> ConfigFile:
    """Return the config file; empty if it does not exist. Raises InvalidFile with file and line."""
    from kctl.base import strict_yaml

    path = paths.config_file()
    try:
        _check_file(path)
        document = strict_yaml.load_file(path) if path.is_file() else None
    except (FileNotFoundError, NotADirectoryError):
        return ConfigFile()
    except OSError as exc:
        raise UsageError(
            f"cannot read the config file {path}: {exc.strerror}", hint="check its permissions, or set KCTL_CONFIG"
        ) from None
    return ConfigFile() if document is None else _ConfigReader(path).file(document)


def _check_file(path: Path) -> None:
    """Raise InvalidFile unless it is a regular file; Refused if other users could redirect commands through it.

    /dev/null counts as an empty file. A pipe can be read only once, but each write reads the file again.
    """
    status = path.stat()
    mode = status.st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISBLK(mode) or stat.S_ISDIR(mode):
        raise InvalidFile(f"{path} is not a regular file", hint="check KCTL_CONFIG and XDG_CONFIG_HOME")
    others = mode & stat.S_IWOTH or (mode & stat.S_IWGRP and not _is_private_group(status))
    if stat.S_ISREG(mode) and others:
        raise Refused(
            f"other users can write to the config {path} (mode {stat.S_IMODE(mode):04o}), which can redirect commands",
            hint=f"check its content, then run `chmod go-w {path}`",
            reason=Reason.UNSAFE,
        )


def _is_private_group(status: os.stat_result) -> bool:
    """Return True if the file's group is the owner's private group, without other members."""
    import grp
    import pwd

    try:
        owner, group = pwd.getpwuid(status.st_uid), grp.getgrgid(status.st_gid)
    except KeyError:
        return False
    return owner.pw_gid == group.gr_gid and set(group.gr_mem) <= {owner.pw_name}


@contextmanager
def update() -> Iterator[ConfigFile]:
    """Yield the content for changes, and write it if the block ends without an exception."""
    path = paths.config_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if path.exists() and not path.is_file():
            raise UsageError(f"cannot write the config file {path}: it is not a regular file", hint="check KCTL_CONFIG")
        with _lock(path):
            file = read()
            before = dataclasses.replace(file, contexts=dict(file.contexts))
            yield file
            if before != file:
                _write(path, file)
    except OSError as exc:
        raise OperationFailed(
            f"cannot write the config file {path}: {exc.strerror}", hint="check its permissions, or set KCTL_CONFIG"
        ) from None


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    import fcntl

    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    with os.fdopen(os.open(path.with_name(path.name + ".lock"), flags, 0o600), "rb") as lock:
        deadline = time.monotonic() + LOCK_TIMEOUT_S
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise Busy(f"another kctl process is writing {path}", hint="try again in a few seconds") from None
                time.sleep(0.02)
        yield  # closing the file unlocks it


def _write(path: Path, file: ConfigFile) -> None:
    import yaml

    previous = {"previous_context": file.previous_context} if file.previous_context else {}
    document = {
        "current_context": file.current_context,
        **previous,
        "contexts": {name: _plain(entry) for name, entry in file.contexts.items()},
    }
    text = _HEADER + yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
    write_output(path, text.encode(), mode=0o600)


def _plain(entry: Any) -> dict[str, Any]:
    """Return a dataclass as plain values for YAML, without defaults."""
    result: dict[str, Any] = {}
    for item in dataclasses.fields(entry):
        value = getattr(entry, item.name)
        if value == item.default:
            continue
        if dataclasses.is_dataclass(value):
            value = _plain(value)
        result[item.name] = list(value) if isinstance(value, tuple) else value
    return result


class _ConfigReader:
    """A parser that validates a document. Every error has file and line."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def file(self, document: Any) -> ConfigFile:
        top = self._map(document, f"{self._path}", {"current_context", "previous_context", "contexts"})
        contexts: dict[str, Context] = {}
        entries: Any = (
            {} if top.get("contexts") is None else self._map(top["contexts"], f"{self._path}: contexts", None)
        )
        if len(entries) > MAX_CONTEXTS:
            raise InvalidFile(f"{self._path}: more than {MAX_CONTEXTS} contexts")
        for name, value in entries.items():
            where = entries.where(name)
            with _located(where):
                check_name(name)
                contexts[name] = self._context(value, f"{where}: context {name}")
        current = self._text(top, "current_context")
        if current is not None and current not in contexts:
            raise InvalidFile(
                f"{top.where('current_context')}: current_context {current!r} does not exist",
                hint=f"existing contexts: {', '.join(contexts) or 'none'}",
            )
        previous = self._text(top, "previous_context")
        return ConfigFile(current, contexts, previous if previous in contexts else None)

    def _context(self, value: Any, where: str) -> Context:
        entry = self._map(value, where, {f.name for f in dataclasses.fields(Context)})
        servers = entry.get("bootstrap_servers")
        if not isinstance(servers, list) or not all(isinstance(s, str) for s in servers):
            raise InvalidFile(f"{entry.where('bootstrap_servers')}: bootstrap_servers must be a list of host:port")
        result = Context(
            bootstrap_servers=parse_servers(",".join(servers)) if servers else (),
            zookeeper=self._text(entry, "zookeeper"),
            security=self._security(entry, "security", where),
            protected=self._flag(entry, "protected", default=False),
            cluster_dir=self._text(entry, "cluster_dir"),
            zookeeper_security=self._security(entry, "zookeeper_security", where),
            cluster_id=self._text(entry, "cluster_id"),
        )
        check_entry(result)
        return result

    def _security(self, context: Any, key: str, where: str) -> SecuritySettings:
        if context.get(key) is None:
            return SecuritySettings()
        names = {f.name for f in dataclasses.fields(SecuritySettings)}
        entry = self._map(context[key], f"{where}: {key}", names)
        texts = {name: self._text(entry, name) for name in names - {"ssl_check_hostname"} if name in entry}
        texts = {name: text for name, text in texts.items() if text is not None}
        return SecuritySettings(**texts, ssl_check_hostname=self._flag(entry, "ssl_check_hostname", default=True))  # type: ignore[arg-type]

    def _map(self, value: Any, where: str, keys: set[str] | None) -> Any:
        from kctl.base.strict_yaml import YamlMap

        if not isinstance(value, YamlMap):
            raise InvalidFile(f"{where}: must be a mapping")
        for key in value:
            if keys is not None and key not in keys:
                hint = "passwords do not belong in this file: use sasl_password_env or sasl_password_file"
                raise InvalidFile(
                    f"{value.where(key)}: unknown setting {key!r}",
                    hint=hint if "password" in str(key) else f"valid settings: {', '.join(sorted(keys))}",
                )
        return value

    def _text(self, entry: Any, key: str) -> str | None:
        value = entry.get(key)
        if value is not None and not isinstance(value, str):
            raise InvalidFile(f"{entry.where(key)}: {key} must be a string", hint="put it in quotes")
        return value

    def _flag(self, entry: Any, key: str, *, default: bool) -> bool:
        value = entry.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise InvalidFile(f"{entry.where(key)}: {key} must be true or false")
        return value


@contextmanager
def _located(where: str) -> Iterator[None]:
    """Convert a UsageError of a check to an InvalidFile with the location."""
    try:
        yield
    except InvalidFile:
        raise
    except UsageError as exc:
        raise InvalidFile(f"{where}: {exc.message}", hint=exc.hint) from None


def check_name(name: object) -> None:
    """Raise UsageError unless `name` is a valid context name, which is also a folder name."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is not a valid context name",
            hint="use letters, digits, dots, dashes and underscores; at most 100 characters",
        )


def check_entry(entry: Context) -> None:
    """Raise UsageError for settings that contradict each other."""
    if entry.bootstrap_servers:
        parse_servers(",".join(entry.bootstrap_servers))
    elif entry.zookeeper is None:
        raise UsageError("bootstrap_servers is empty", hint="use host:port, e.g. 127.0.0.1:9092")
    if entry.zookeeper is not None:
        parse_zookeeper(entry.zookeeper)
    check_security(entry.security)
    check_security(entry.zookeeper_security)
    if entry.zookeeper_security.protocol.startswith("SASL_"):
        raise UsageError(
            "kctl does not support ZooKeeper logins", hint="set zookeeper_security.protocol to SSL or PLAINTEXT"
        )


def check_security(security: SecuritySettings) -> None:
    """Raise UsageError for security settings that contradict each other."""
    if security.protocol not in PROTOCOLS:
        raise UsageError(f"{security.protocol!r} is not a security protocol", hint=f"use one of {', '.join(PROTOCOLS)}")
    settings = {
        f.name: getattr(security, f.name)
        for f in dataclasses.fields(security)
        if getattr(security, f.name) != f.default
    }
    if security.protocol.startswith("SASL_"):
        _check_sasl(security)
    elif unused := [name for name in settings if name.startswith("sasl_")]:
        raise UsageError(
            f"{unused[0]} has no effect with {security.protocol}",
            hint="set the protocol to SASL_SSL or SASL_PLAINTEXT",
        )
    if not security.protocol.endswith("SSL") and (unused := [name for name in settings if name.startswith("ssl_")]):
        raise UsageError(
            f"{unused[0]} has no effect with {security.protocol}", hint="set the protocol to SSL or SASL_SSL"
        )
    _check_files(security, settings)
    _check_tls(security)


def _check_tls(security: SecuritySettings) -> None:
    if security.ssl_protocols is None and security.ssl_ciphers is None:
        return
    from kctl.protocol.tls_settings import cipher_list, tls_versions

    try:
        tls_versions(security.ssl_protocols)
        cipher_list(security.ssl_ciphers)
    except ValueError as exc:
        raise UsageError(
            f"invalid ssl_protocols or ssl_ciphers: {exc}", hint="remove the setting to use the default"
        ) from None


def _check_sasl(security: SecuritySettings) -> None:
    mechanisms = f"use one of {', '.join(MECHANISMS)}"
    if security.sasl_mechanism is None:
        raise UsageError(f"{security.protocol} requires a SASL mechanism", hint=mechanisms)
    if security.sasl_mechanism not in MECHANISMS:
        raise UsageError(f"the SASL mechanism {security.sasl_mechanism!r} is not supported", hint=mechanisms)
    if not (security.sasl_username and (security.sasl_password_env or security.sasl_password_file)):
        raise UsageError(
            f"{security.protocol} requires a user name and a password",
            hint="set sasl_username, and sasl_password_env or sasl_password_file",
        )


def _check_files(security: SecuritySettings, settings: dict[str, Any]) -> None:
    if security.sasl_password_env and security.sasl_password_file:
        raise UsageError("sasl_password_env and sasl_password_file cannot be combined", hint="remove one of them")
    if security.ssl_key_password_env and security.ssl_key_password_file:
        raise UsageError("ssl_key_password_env and ssl_key_password_file cannot be combined", hint="remove one of them")
    for name, value in settings.items():
        if name.endswith("file") and not value.startswith(("/", "~")):
            raise UsageError(f"{name} {value!r} is a relative path", hint="use an absolute path")
    if security.ssl_keyfile and not security.ssl_certfile:
        raise UsageError(
            "ssl_keyfile has no effect without ssl_certfile", hint="set ssl_certfile to the client certificate"
        )
