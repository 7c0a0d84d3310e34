"""Contexts: named clusters in a YAML file, as in kubectl and kafkactl, and the choice of one for each command.

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
        zookeeper_security:                     # TLS only
          protocol: SSL
          ssl_cafile: /etc/kctl/ca.pem

The file never contains a password. It names an environment variable or a file, which is read on first use.
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
    bootstrap_controller: str | None = None,
    zookeeper: str | None = None,
    command_config: str | None = None,
    warn: Callable[[str], None] | None = None,
    ignore_unknown: bool = False,
) -> Target:
    """Return the cluster for a command.

    Order of precedence: options, bootstrap.servers of --command-config, KCTL_CONTEXT, the current context.
    --bootstrap-server alone uses no context; together with --context, it replaces that context's servers.
    --bootstrap-controller likewise; then the servers of the target are controllers. warn:
    receives a line if other users can read a secret file. Raises UsageError if no cluster is chosen or two sources name
    different clusters, NotFound for an unknown context, InvalidFile for an invalid config file.
    """
    if bootstrap_server is not None and bootstrap_controller is not None:
        raise UsageError("set either --bootstrap-server or --bootstrap-controller", hint="remove one of the two")
    option = bootstrap_server if bootstrap_controller is None else bootstrap_controller
    servers = parse_servers(option) if option is not None else ()
    if zookeeper is not None:
        parse_zookeeper(zookeeper)
    in_file: tuple[str, ...] = ()
    file_security = file_zookeeper_security = Security()
    if command_config is not None:
        from kctl.contexts.command_config import read_client_config

        in_file, file_security, file_zookeeper_security = read_client_config(
            command_config, ignore_unknown=ignore_unknown
        )
    if in_file and bootstrap_controller is None:
        context, servers = _choose_servers(in_file, f"{command_config}", context, servers)
    name = context if context is not None or servers else _default_context(required=zookeeper is None)
    if name is None:
        name = ",".join(servers) or f"ZooKeeper {zookeeper}"
        target = Target(name, servers, zookeeper, controllers=bootstrap_controller is not None)
    else:
        entry = get_context(name, source="" if context else os.environ.get("KCTL_CONTEXT", ""))
        target = Target(
            name=name,
            bootstrap_servers=servers or entry.bootstrap_servers,
            zookeeper=zookeeper or entry.zookeeper,
            security=Security() if command_config else entry.security.resolve(warn),
            protected=entry.protected,
            zookeeper_security=Security() if command_config else entry.zookeeper_security.resolve(warn),
            controllers=bootstrap_controller is not None,
            context=None if servers else name,
            remembered_id=entry.cluster_id,
        )
    if command_config is None:
        return target
    return replace(target, security=file_security, zookeeper_security=file_zookeeper_security)


def _choose_servers(
    in_file: tuple[str, ...], file: str, context: str | None, servers: tuple[str, ...]
) -> tuple[str | None, tuple[str, ...]]:
    """Return the context and the servers for a --command-config file with bootstrap.servers.

    Without options, the file takes precedence over the current context. If both have the same servers, the context is
    used, for its ZooKeeper. Raises UsageError if the file contradicts an option or KCTL_CONTEXT.
    """
    if servers:
        _check_same(in_file, servers, file, "--bootstrap-server")
        return context, servers
    if context is not None:
        _check_same(in_file, _servers_of(context), file, f"--context {context}")
        return context, ()
    by_variable = os.environ.get("KCTL_CONTEXT")
    if by_variable:  # chosen for this shell, so a different cluster in the file is an error
        _check_same(in_file, _servers_of(by_variable, source=by_variable), file, f"KCTL_CONTEXT={by_variable}")
        return None, ()
    from kctl.contexts import config

    current = config.read().current_context
    if current is not None and same_servers(in_file, _servers_of(current)):
        return None, ()
    return None, in_file


def _servers_of(context: str, *, source: str = "") -> tuple[str, ...]:
    return get_context(context, source=source).bootstrap_servers


def _check_same(in_file: tuple[str, ...], servers: tuple[str, ...], file: str, option: str) -> None:
    if not same_servers(in_file, servers):
        raise UsageError(
            f"two different clusters: {file} has bootstrap.servers={','.join(in_file)}, but {option} is"
            f" {','.join(servers) or 'a context without brokers'}",
            hint="remove one of the two; kctl did not contact either cluster",
        )


def _default_context(*, required: bool) -> str | None:
    from kctl.contexts import config

    name = os.environ.get("KCTL_CONTEXT") or config.read().current_context
    if name is None and required:
        raise UsageError(
            "no cluster selected",
            hint="set --bootstrap-server HOST:PORT or --context NAME, or run `kctl context use NAME`;"
            + _choices(list_contexts()),
        )
    return name


def target_of(name: str) -> Target:
    """Return the cluster of a context, ignoring the environment."""
    return resolve_target(context=name)


def _choices(contexts: Iterable[str]) -> str:
    names = list(contexts)
    if not names:
        return " `kctl cluster create dev --layout single --use` creates a cluster on this machine"
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return f" existing contexts: {', '.join(names[:_NAMES_SHOWN])}{more}"


def list_contexts() -> dict[str, Context]:
    """Return all contexts by name, in file order."""
    from kctl.contexts import config

    return config.read().contexts


def current_context() -> str | None:
    """Return the name of the default context: KCTL_CONTEXT, else the current context."""
    from kctl.contexts import config

    return os.environ.get("KCTL_CONTEXT") or config.read().current_context


def overruled_by(name: str) -> str | None:
    """Return the value of KCTL_CONTEXT if it overrides the current context `name`."""
    override = os.environ.get("KCTL_CONTEXT")
    return override if override and override != name else None


def get_context(name: str, *, source: str = "") -> Context:
    """Return a context. source: the value of KCTL_CONTEXT if the name comes from there. Raises NotFound."""
    return find_context(list_contexts(), name, source=source)


def find_context(contexts: dict[str, Context], name: str, *, source: str = "") -> Context:
    """Return one of `contexts`. source: the value of KCTL_CONTEXT if the name comes from there. Raises NotFound."""
    if name not in contexts:
        from kctl.base.suggestions import did_you_mean

        existing = (
            f"existing contexts: {', '.join(contexts)}"
            if contexts
            else "add one with `kctl context add NAME --bootstrap-server HOST:PORT`"
        )
        suggestion = did_you_mean(name, contexts) or existing
        if source != name:
            raise NotFound(f"context {name!r} does not exist", hint=suggestion)
        raise NotFound(
            f"context {name!r}, set by KCTL_CONTEXT, does not exist",
            hint=f"run `unset KCTL_CONTEXT` to use the current context; {suggestion}",
        )
    return contexts[name]


def resolve_name(name: str) -> str:
    """Return the context name; "-" is the previous context, as in `cd -`. Raises UsageError if there is none."""
    from kctl.contexts import config

    if name != "-":
        return name
    previous = config.read().previous_context
    if previous is None:
        raise UsageError("there is no previous context", hint="run `kctl context use NAME`")
    return previous
