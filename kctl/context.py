"""Named clusters, as kubectl and kafkactl have them: a YAML file, and the choice of one cluster for a command.

    current_context: dev
    contexts:
      dev:
        bootstrap_servers: [127.0.0.1:9092]
        zookeeper: 127.0.0.1:2181/dev
      prod:
        bootstrap_servers: [kafka1.example.com:9093, kafka2.example.com:9093]
        protected: true
        security:
          protocol: SASL_SSL
          sasl_mechanism: SCRAM-SHA-512
          sasl_username: ops
          sasl_password_env: PROD_PASSWORD      # or sasl_password_file
          ssl_cafile: /etc/kctl/ca.pem
        zookeeper_security:                     # with TLS only
          protocol: SSL
          ssl_cafile: /etc/kctl/ca.pem

The file never holds a password: it names an environment variable or a file, read when a command needs it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kctl.address import parse_servers, parse_zookeeper
from kctl.errors import AlreadyExists, NotFound, UsageError
from kctl.security import NO_SECURITY, NO_SETTINGS, Security, SecuritySettings

if TYPE_CHECKING:
    from kctl.config import ConfigFile

_NAMES_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Target:
    """The cluster that one command talks to. name: the context's, or the servers as given.

    context: the one whose servers these are. remembered_id: the id that this context's cluster had. cluster_id and
    advertised (host:port of the brokers) are known once a client has connected; Kafka 0.10.0 has no id.
    protected: the context is; kctl.protection says what else protects the cluster.
    """

    name: str
    bootstrap_servers: tuple[str, ...]
    zookeeper: str | None = None
    security: Security = NO_SECURITY
    protected: bool = False
    zookeeper_security: Security = NO_SECURITY
    context: str | None = field(default=None, compare=False)
    remembered_id: str | None = field(default=None, compare=False)
    cluster_id: str | None = field(default=None, compare=False)
    advertised: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Context:
    """One entry of the config file. cluster_dir: set for a cluster that kctl set up on this machine. cluster_id: of
    the cluster that answered last; not a setting."""

    bootstrap_servers: tuple[str, ...]
    zookeeper: str | None = None
    security: SecuritySettings = NO_SETTINGS
    protected: bool = False
    cluster_dir: str | None = None
    zookeeper_security: SecuritySettings = NO_SETTINGS
    cluster_id: str | None = None

    def same_settings(self, other: Context) -> bool:
        """Whether both have the same settings, apart from the cluster id."""
        return replace(self, cluster_id=None) == replace(other, cluster_id=None)

    def in_place_of(self, before: Context | None) -> Context:
        """This entry, with what is known of the cluster if `before` has the same servers."""
        if before is None or set(self.bootstrap_servers) != set(before.bootstrap_servers):
            return self
        return replace(self, cluster_id=self.cluster_id or before.cluster_id)


def resolve_target(
    *,
    context: str | None = None,
    bootstrap_server: str | None = None,
    zookeeper: str | None = None,
    command_config: str | None = None,
    warn: Callable[[str], None] | None = None,
    ignore_unknown: bool = False,
) -> Target:
    """The cluster for a command: options, then bootstrap.servers of --command-config, then KCTL_CONTEXT, then the
    current context.

    --bootstrap-server alone is a cluster of its own and takes nothing from a context; together with --context it
    replaces that context's servers. warn: gets a line when other users can read a secret's file. Raises UsageError
    when nothing says which cluster, or two things that were given say different ones; NotFound for an unknown context,
    InvalidFile for a config file that cannot be understood.
    """
    servers = parse_servers(bootstrap_server) if bootstrap_server is not None else ()
    if zookeeper is not None:
        parse_zookeeper(zookeeper)
    in_file: tuple[str, ...] = ()
    own_security = own_zookeeper_security = Security()
    if command_config is not None:
        from kctl.command_config import read_client_config

        in_file, own_security, own_zookeeper_security = read_client_config(
            command_config, ignore_unknown=ignore_unknown
        )
    if in_file:
        from kctl.config_servers import choose

        context, servers = choose(in_file, f"{command_config}", context, servers)
    name = context if context is not None or servers else _default_context(required=zookeeper is None)
    if name is None:
        target = Target(",".join(servers) or f"ZooKeeper {zookeeper}", servers, zookeeper)
    else:
        entry = get_context(name, source="" if context else os.environ.get("KCTL_CONTEXT", ""))
        target = Target(
            name=name,
            bootstrap_servers=servers or entry.bootstrap_servers,
            zookeeper=zookeeper or entry.zookeeper,
            security=Security() if command_config else entry.security.resolve(warn),
            protected=entry.protected,
            zookeeper_security=Security() if command_config else entry.zookeeper_security.resolve(warn),
            context=None if servers else name,
            remembered_id=entry.cluster_id,
        )
    if command_config is None:
        return target
    return replace(target, security=own_security, zookeeper_security=own_zookeeper_security)


def _default_context(*, required: bool) -> str | None:
    from kctl import config

    name = os.environ.get("KCTL_CONTEXT") or config.read().current_context
    if name is None and required:
        raise UsageError(
            "no cluster was chosen",
            hint="give --bootstrap-server HOST:PORT or --context NAME, or choose one with `kctl context use NAME`;"
            + _choices(list_contexts()),
        )
    return name


def target_of(name: str) -> Target:
    """The cluster of a context alone, whatever the environment says."""
    return resolve_target(context=name)


def _choices(contexts: Iterable[str]) -> str:
    names = list(contexts)
    if not names:
        return " `kctl cluster create dev --layout single --use` makes one here"
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return f" known: {', '.join(names[:_NAMES_SHOWN])}{more}"


def list_contexts() -> dict[str, Context]:
    """All contexts by name, in the file's order."""
    from kctl import config

    return config.read().contexts


def current_context() -> str | None:
    """The name that commands use when nothing else is said; KCTL_CONTEXT comes first."""
    from kctl import config

    return os.environ.get("KCTL_CONTEXT") or config.read().current_context


def overruled_by(name: str) -> str | None:
    """What KCTL_CONTEXT names instead, so that commands do not go to `name` though it is the current one."""
    override = os.environ.get("KCTL_CONTEXT")
    return override if override and override != name else None


def get_context(name: str, *, source: str = "") -> Context:
    """One entry. source: the value of KCTL_CONTEXT, when the name came from there. Raises NotFound with the known
    names."""
    return _find(list_contexts(), name, source=source)


def _find(contexts: dict[str, Context], name: str, *, source: str = "") -> Context:
    """source: the value of KCTL_CONTEXT, when the name came from there."""
    if name not in contexts:
        from kctl.suggestions import did_you_mean

        known = f"known: {', '.join(contexts)}" if contexts else "none are known; see `kctl context add --help`"
        meant = did_you_mean(name, contexts) or known
        if source != name:
            raise NotFound(f"context {name!r} does not exist", hint=meant)
        raise NotFound(
            f"context {name!r}, which KCTL_CONTEXT names, does not exist",
            hint=f"`unset KCTL_CONTEXT`, and the current context is used; {meant}",
        )
    return contexts[name]


@dataclass(frozen=True, slots=True)
class AddedContext:
    """What `add_context` left (or would leave) in the file."""

    entry: Context
    current_context: str | None


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
    from kctl import config

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
    from kctl import config

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
    from kctl import config

    with config.update() as file:
        before = _find(file.contexts, name)
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
    from kctl import paths

    return paths.config_file().absolute().parent / "secrets"


def resolve_name(name: str) -> str:
    """«-» is the context that was current before, as `cd -` has it. Raises UsageError when there is none."""
    from kctl import config

    if name != "-":
        return name
    previous = config.read().previous_context
    if previous is None:
        raise UsageError("there is no context before the current one", hint="kctl context use NAME chooses one")
    return previous


def use_context(name: str) -> Context:
    """Make an entry the current one, and return it. Raises NotFound."""
    from kctl import config

    with config.update() as file:
        entry = _find(file.contexts, name)
        file.choose(name)
    return entry
