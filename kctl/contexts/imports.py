"""Import contexts from the config files of other tools: Kafka's client.properties and kafkactl's config.yml.

The config file never contains a password. Each imported password is copied to a separate file (0600) in `secrets/`
beside the config file, unless an environment variable is named instead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from kctl.contexts.change import forget_secrets, secrets_dir
from kctl.contexts.choose import list_contexts
from kctl.contexts.context import Context
from kctl.contexts.kafkactl_config import ImportableCluster, read_kafkactl_config
from kctl.errors import AlreadyExists, InvalidFile, NotFound, OperationFailed, UsageError
from kctl.protocol.security import Security, SecuritySettings, full_path

if TYPE_CHECKING:
    from collections.abc import Collection

    from kctl.contexts.client_properties.providers import Reference
    from kctl.contexts.config import ConfigFile

FORMATS = ("properties", "kafkactl")


@dataclass(frozen=True, slots=True)
class ImportSource:
    """The content of a file. refused: contexts that cannot be imported, with reasons. current: its current context."""

    clusters: tuple[ImportableCluster, ...]
    refused: dict[str, str]
    current: str | None = None


class ImportAction(str, Enum):
    """The effect of an import on a context."""

    ADD = "add"
    REPLACE = "replace"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class ImportedContext:
    """An imported context; in a dry run, the planned one.

    secret_files: files with its passwords; left_out: settings that do not apply to a context; copied_from: config
    provider files whose secrets were copied; before: the replaced entry.
    """

    name: str
    action: ImportAction
    current: bool
    entry: Context
    secret_files: tuple[str, ...]
    left_out: tuple[str, ...]
    before: Context | None = None
    copied_from: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """Contexts, and the secrets to write to files: path → (secret, description)."""

    contexts: tuple[ImportedContext, ...]
    current_context: str | None
    secrets: _Secrets


class _Secrets(dict[Path, tuple[str, str]]):
    """Secrets by path. The repr does not show them."""

    def __repr__(self) -> str:
        return f"<{len(self)} secrets>"


def format_of(file: str) -> str:
    """Return the format by file extension: properties or kafkactl. Raises UsageError."""
    suffix = Path(file).suffix.lower()
    formats = {".properties": "properties", ".conf": "properties", ".yml": "kafkactl", ".yaml": "kafkactl"}
    if suffix not in formats:
        raise UsageError(
            f"cannot detect the format of {file} from its name", hint="set --format to properties or kafkactl"
        )
    return formats[suffix]


def read_properties_source(
    file: str, *, name: str, bootstrap_server: str | None = None, ignore_unknown: bool = False
) -> ImportSource:
    """Read a client.properties file as one context. bootstrap_server: overrides bootstrap.servers."""
    from kctl.base.address import parse_servers
    from kctl.contexts import command_config

    properties = command_config.read_properties(file)
    client = command_config.client_config(properties, source=file, ignore_unknown=ignore_unknown)
    servers = parse_servers(bootstrap_server) if bootstrap_server else client.bootstrap_servers
    if not servers:
        raise InvalidFile(f"{file}: bootstrap.servers is missing", hint="add --bootstrap-server HOST:PORT")
    if client.security.ssl_ca_pem or client.security.ssl_client_pem:
        raise InvalidFile(
            f"{file} contains PEM text, but a context can only refer to files",
            hint="write the text to files, and set ssl.truststore.location and ssl.keystore.location",
        )
    if client.security.sasl_password == "":
        raise InvalidFile(f"{file}: a context cannot have an empty password", hint="use --command-config")
    cluster = ImportableCluster(
        name, servers, client.security, client.left_out, client.password_from, client.key_password_from
    )
    return ImportSource((cluster,), {})


def read_kafkactl_source(file: str, *, only: Collection[str] = ()) -> ImportSource:
    """Return the contexts of kafkactl's config.yml. only: names to import (default: all). Raises NotFound."""
    config = read_kafkactl_config(file)
    names = [cluster.name for cluster in config.clusters] + list(config.refused)
    for name in only:
        if name not in names:
            raise NotFound(f"{file} has no context {name!r}", hint=f"it has: {', '.join(names)}")
    selected = set(only) or set(names)
    return ImportSource(
        tuple(cluster for cluster in config.clusters if cluster.name in selected),
        {name: reason for name, reason in config.refused.items() if name in selected},
        config.current,
    )


def plan_import(
    source: ImportSource,
    *,
    password_env: str | None = None,
    key_password_env: str | None = None,
    protected: bool | None = None,
    make_current: bool = False,
    replace_existing: bool = False,
) -> ImportPlan:
    """Return the plan of an import; nothing is written. password_env, key_password_env: variables instead of files.

    A replaced context keeps what the source does not have: its ZooKeeper, its folder, and its protection unless
    `protected` is set. Raises InvalidFile if a context cannot be imported, AlreadyExists for an existing context with
    different settings, UsageError for invalid settings.
    """
    from kctl.contexts import config

    _check_choice(source, one_only=bool(password_env or key_password_env or make_current))
    file = config.read()
    secrets = _Secrets()
    imported: list[ImportedContext] = []
    current = _current(source, file, make_current=make_current)
    for cluster in source.clusters:
        config.check_name(cluster.name)
        refs = _secret_refs(cluster, password_env, key_password_env)
        files_to_write = _secrets_of(cluster, refs)
        before = file.contexts.get(cluster.name)
        entry = _entry(cluster, refs, before, protected)
        config.check_entry(entry)
        action = _action(before, entry, files_to_write)
        if action is ImportAction.REPLACE and not replace_existing:
            raise AlreadyExists(
                f"context {cluster.name!r} already exists with different settings",
                hint=f"compare `kctl context show {cluster.name}`; --replace overwrites it",
            )
        secrets.update(files_to_write)
        files = tuple(str(path) for path in files_to_write)
        imported.append(
            ImportedContext(
                cluster.name, action, cluster.name == current, entry, files, cluster.left_out,
                before if action is ImportAction.REPLACE else None, _copied_from(cluster, files_to_write),
            )
        )  # fmt: skip
    return ImportPlan(tuple(imported), current, secrets)


def _check_choice(source: ImportSource, *, one_only: bool) -> None:
    """Raise InvalidFile for a context that cannot be imported, UsageError for several if only one is allowed."""
    if source.refused:
        name, reason = next(iter(source.refused.items()))
        others = f", and {len(source.refused) - 1} more" if len(source.refused) > 1 else ""
        raise InvalidFile(
            f"cannot import context {name}: {reason}{others}", hint="select the other contexts with --only NAME"
        )
    if one_only and len(source.clusters) > 1:
        raise UsageError("the file has several contexts", hint="select one with --only NAME")


def _current(source: ImportSource, file: ConfigFile, *, make_current: bool) -> str | None:
    """Return the current context after the import: the existing one, else the file's, else the first imported one."""
    names = [cluster.name for cluster in source.clusters]
    if not names or (file.current_context and not make_current):
        return file.current_context
    return source.current if source.current in names else names[0]


@dataclass(frozen=True, slots=True)
class _SecretRefs:
    """The locations of a context's secrets: an environment variable or a file; both None if there is no secret."""

    password_env: str | None
    password_file: str | None
    key_password_env: str | None
    key_password_file: str | None


def _entry(cluster: ImportableCluster, refs: _SecretRefs, before: Context | None, protected: bool | None) -> Context:
    """Return the new context. before: the replaced one; protected: None keeps its protection."""
    entry = replace(
        before or Context(()),
        bootstrap_servers=cluster.bootstrap_servers,
        security=_settings(cluster.security, refs),
        cluster_id=None,
    ).in_place_of(before)
    return entry if protected is None else replace(entry, protected=protected)


def _secret_refs(cluster: ImportableCluster, password_env: str | None, key_password_env: str | None) -> _SecretRefs:
    security, name = cluster.security, cluster.name
    return _SecretRefs(
        *_secret_ref(security.sasl_password, password_env, cluster.password_from, f"{name}.sasl-password"),
        *_secret_ref(
            security.ssl_key_password, key_password_env, cluster.key_password_from, f"{name}.ssl-key-password"
        ),
    )


def _secret_ref(
    secret: str | None, variable: str | None, reference: Reference | None, file_name: str
) -> tuple[str | None, str | None]:
    """Keep a variable or a file that the source refers to; copy other secrets."""
    if not secret:
        return None, None
    if variable or (reference is not None and reference.kind == "env"):
        return variable or (reference.key if reference else None), None
    if reference is not None and reference.kind == "directory" and reference.path:
        return None, full_path(f"{reference.path}/{reference.key}")
    return None, str(secrets_dir() / file_name)


def _secrets_of(cluster: ImportableCluster, refs: _SecretRefs) -> _Secrets:
    security = cluster.security
    each = (
        (refs.password_file, security.sasl_password, "the password"),
        (refs.key_password_file, security.ssl_key_password, "the key's password"),
    )
    folder = secrets_dir()
    return _Secrets(
        {Path(file): (secret, what) for file, secret, what in each if file and secret and Path(file).parent == folder}
    )


def _settings(security: Security, refs: _SecretRefs) -> SecuritySettings:
    return SecuritySettings(
        protocol=security.protocol,
        sasl_mechanism=security.sasl_mechanism,
        sasl_username=security.sasl_username,
        sasl_password_env=refs.password_env,
        sasl_password_file=refs.password_file,
        ssl_cafile=full_path(security.ssl_cafile),
        ssl_certfile=full_path(security.ssl_certfile),
        ssl_keyfile=full_path(security.ssl_keyfile),
        ssl_key_password_env=refs.key_password_env,
        ssl_key_password_file=refs.key_password_file,
        ssl_check_hostname=security.ssl_check_hostname,
        ssl_protocols=security.ssl_protocols,
        ssl_ciphers=security.ssl_ciphers,
    )


def _copied_from(cluster: ImportableCluster, secrets: _Secrets) -> tuple[str, ...]:
    references = (cluster.password_from, cluster.key_password_from) if secrets else ()
    return tuple(each.path for each in references if each is not None and each.kind == "file" and each.path)


def _action(before: Context | None, entry: Context, secrets: _Secrets) -> ImportAction:
    if before is None:
        return ImportAction.ADD
    same = before == entry and all(_is_written(path, *each) for path, each in secrets.items())
    return ImportAction.UNCHANGED if same else ImportAction.REPLACE


def _is_written(path: Path, secret: str, what: str) -> bool:
    from kctl.base.secrets import read_secret

    warnings: list[str] = []
    try:
        return read_secret(what, None, str(path), warn=warnings.append) == secret and not warnings
    except UsageError:  # missing or readable by other users: write it again
        return False


def apply_import(plan: ImportPlan) -> tuple[ImportedContext, ...]:
    """Write the secrets, then all contexts at once. Return the written contexts. Raises OperationFailed."""
    from kctl.base.secrets import write_secret
    from kctl.contexts import config

    try:
        for path, (secret, what) in plan.secrets.items():
            if not _is_written(path, secret, what):
                write_secret(path, secret, what)
    except OSError as exc:
        raise OperationFailed(f"cannot write {exc.filename or 'a secret'}: {exc.strerror}") from None
    with config.update() as file:
        before = [file.contexts[each.name] for each in plan.contexts if each.name in file.contexts]
        for each in plan.contexts:
            file.contexts[each.name] = each.entry
        if plan.current_context is not None:
            file.choose(plan.current_context)
    forget_secrets(before, file)
    written = list_contexts()
    return tuple(replace(each, entry=written[each.name]) for each in plan.contexts)
