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
from dataclasses import replace

from kctl.base.address import parse_servers, parse_zookeeper, same_servers
from kctl.contexts.context import Context
from kctl.errors import NotFound, UsageError
from kctl.protocol.security import Security
from kctl.protocol.target import Target

_NAMES_SHOWN = 10


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
        from kctl.contexts.command_config import read_client_config

        in_file, own_security, own_zookeeper_security = read_client_config(
            command_config, ignore_unknown=ignore_unknown
        )
    if in_file:
        context, servers = _choose_servers(in_file, f"{command_config}", context, servers)
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


def _choose_servers(
    in_file: tuple[str, ...], file: str, context: str | None, servers: tuple[str, ...]
) -> tuple[str | None, tuple[str, ...]]:
    """The context and the servers to use, for a file that has servers and what --context and --bootstrap-server say.

    Without either, the file comes before the current context; a context with the same servers is used as a whole, for
    its ZooKeeper. Raises UsageError when the file and one of the options, or KCTL_CONTEXT, name different clusters.
    """
    if servers:
        _check_same(in_file, servers, file, "--bootstrap-server")
        return context, servers
    if context is not None:
        _check_same(in_file, _servers_of(context), file, f"--context {context}")
        return context, ()
    by_variable = os.environ.get("KCTL_CONTEXT")
    if by_variable:  # the user chose it for this shell, so a different cluster in the file is a contradiction
        _check_same(in_file, _servers_of(by_variable, source=by_variable), file, f"KCTL_CONTEXT={by_variable}")
        return None, ()
    from kctl.contexts import config

    current = config.read().current_context
    if current is not None and same_servers(in_file, _servers_of(current)):
        return None, ()
    return None, in_file


def _servers_of(context: str, *, source: str = "") -> tuple[str, ...]:
    return get_context(context, source=source).bootstrap_servers


def _check_same(in_file: tuple[str, ...], servers: tuple[str, ...], file: str, given: str) -> None:
    if not same_servers(in_file, servers):
        raise UsageError(
            f"two different clusters: {file} has bootstrap.servers={','.join(in_file)}, but {given} is"
            f" {','.join(servers) or 'a context without brokers'}",
            hint="remove one of them; nothing was sent to either cluster",
        )


def _default_context(*, required: bool) -> str | None:
    from kctl.contexts import config

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
    from kctl.contexts import config

    return config.read().contexts


def current_context() -> str | None:
    """The name that commands use when nothing else is said; KCTL_CONTEXT comes first."""
    from kctl.contexts import config

    return os.environ.get("KCTL_CONTEXT") or config.read().current_context


def overruled_by(name: str) -> str | None:
    """What KCTL_CONTEXT names instead, so that commands do not go to `name` though it is the current one."""
    override = os.environ.get("KCTL_CONTEXT")
    return override if override and override != name else None


def get_context(name: str, *, source: str = "") -> Context:
    """One entry. source: the value of KCTL_CONTEXT, when the name came from there. Raises NotFound with the known
    names."""
    return find_context(list_contexts(), name, source=source)


def find_context(contexts: dict[str, Context], name: str, *, source: str = "") -> Context:
    """One of these. source: the value of KCTL_CONTEXT, when the name came from there. Raises NotFound."""
    if name not in contexts:
        from kctl.base.suggestions import did_you_mean

        known = f"known: {', '.join(contexts)}" if contexts else "none are known; see `kctl context add --help`"
        meant = did_you_mean(name, contexts) or known
        if source != name:
            raise NotFound(f"context {name!r} does not exist", hint=meant)
        raise NotFound(
            f"context {name!r}, which KCTL_CONTEXT names, does not exist",
            hint=f"`unset KCTL_CONTEXT`, and the current context is used; {meant}",
        )
    return contexts[name]


def resolve_name(name: str) -> str:
    """«-» is the context that was current before, as `cd -` has it. Raises UsageError when there is none."""
    from kctl.contexts import config

    if name != "-":
        return name
    previous = config.read().previous_context
    if previous is None:
        raise UsageError("there is no context before the current one", hint="kctl context use NAME chooses one")
    return previous
