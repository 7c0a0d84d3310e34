"""bootstrap.servers in --command-config: the cluster that it selects, and conflicts with options and KCTL_CONTEXT."""

from __future__ import annotations

import os

from kctl.base.address import same_servers
from kctl.errors import UsageError

Choice = tuple["str | None", tuple[str, ...]]


def choose(in_file: tuple[str, ...], file: str, context: str | None, servers: tuple[str, ...]) -> Choice:
    """The context and the servers to use, for a file that has servers and what --context and --bootstrap-server say.

    Without either, the file comes before the current context; a context with the same servers is used as a whole, for
    its ZooKeeper. Raises UsageError when the file and one of the options, or KCTL_CONTEXT, name different clusters.
    """
    if servers:
        _check(in_file, servers, file, "--bootstrap-server")
        return context, servers
    if context is not None:
        _check(in_file, _servers_of(context), file, f"--context {context}")
        return context, ()
    by_variable = os.environ.get("KCTL_CONTEXT")
    if by_variable:  # the user chose it for this shell, so a different cluster in the file is a contradiction
        _check(in_file, _servers_of(by_variable, source=by_variable), file, f"KCTL_CONTEXT={by_variable}")
        return None, ()
    from kctl.contexts import config

    current = config.read().current_context
    if current is not None and same_servers(in_file, _servers_of(current)):
        return None, ()
    return None, in_file


def _servers_of(context: str, *, source: str = "") -> tuple[str, ...]:
    from kctl.contexts.choose import get_context

    return get_context(context, source=source).bootstrap_servers


def _check(in_file: tuple[str, ...], servers: tuple[str, ...], file: str, given: str) -> None:
    if not same_servers(in_file, servers):
        raise UsageError(
            f"two different clusters: {file} has bootstrap.servers={','.join(in_file)}, but {given} is"
            f" {','.join(servers) or 'a context without brokers'}",
            hint="remove one of them; nothing was sent to either cluster",
        )
