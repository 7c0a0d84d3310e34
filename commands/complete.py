"""Values that a shell can complete. Nothing here may fail, wait long or say anything: a person is typing.

A parameter that has no `autocompletion` of its own is completed by what its metavar says (`by_metavar`), so that a
command has completion of topics, groups, brokers and config keys by naming its parameters as all others do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from kctl.commands.output import FORMATS
from kctl.errors import KctlError

# A shell evaluates what it is offered (zsh's script by `eval`): a group's id may be any text, so only plain ones are.
_PLAIN = re.compile(r"[A-Za-z0-9._/@%+=,-]+")
_QUOTA_KINDS = ("user", "users", "client-id", "clients", "ip", "ips")
_KINDS = (
    "topic/", "broker/", "brokers", "group/", "client-metrics/",
    "user/", "users", "client-id/", "clients", "ip/", "ips",
)  # fmt: skip


def context_names(incomplete: str) -> list[str]:
    """The contexts of the config file."""
    from kctl.context import list_contexts

    try:
        return [name for name in list_contexts() if name.startswith(incomplete)]
    except (KctlError, OSError):
        return []


def cluster_names(incomplete: str) -> list[str]:
    """The clusters on this machine."""
    from kctl import paths

    try:
        found = sorted(path.name for path in paths.clusters_dir().iterdir())
    except OSError:
        return []
    return [name for name in found if name.startswith(incomplete) and not name.startswith(".")]


def formats(incomplete: str) -> list[str]:
    """What -o takes."""
    return [name for name in FORMATS if name.startswith(incomplete)]


# --- names of the cluster that the line chooses ---------------------------------------------------------------------


def topics(ctx: Any, incomplete: str) -> list[str]:
    """Topics; internal ones when the word begins with an underscore."""
    return [name for name in _names("topics", ctx, incomplete) if incomplete or not name.startswith("__")]


def groups(ctx: Any, incomplete: str) -> list[str]:
    """Groups of all types."""
    return _names("groups", ctx, incomplete)


def brokers(ctx: Any, incomplete: str) -> list[str]:
    """Broker ids, also as the last of a list with commas."""
    before, comma, last = incomplete.rpartition(",")
    taken = before.split(",")
    return [f"{before}{comma}{name}" for name in _names("brokers", ctx, last) if name not in taken]


def config_keys(ctx: Any, incomplete: str) -> list[str]:
    """The keys of the resource that the line names already; of topics without."""
    resource = str(ctx.params.get("resource") or "topic/")
    if resource.partition("/")[0] in _QUOTA_KINDS:
        from kctl.access.quotas import CLIENT_KEYS, IP_KEYS

        return [key for key in (IP_KEYS if resource.startswith("ip") else CLIENT_KEYS) if key.startswith(incomplete)]
    return _names("broker-configs" if resource.startswith("broker") else "topic-configs", ctx, incomplete)


def config_settings(ctx: Any, incomplete: str) -> list[str]:
    """The same as KEY=."""
    return [] if "=" in incomplete else [f"{key}=" for key in config_keys(ctx, incomplete)]


def resources(ctx: Any, incomplete: str) -> list[str]:
    """What `config` works on: topic/NAME, broker/ID …"""
    kind, slash, name = incomplete.partition("/")
    complete = {"topic": topics, "broker": brokers, "group": groups}.get(kind)
    if slash and complete:
        return [f"{kind}/{each}" for each in complete(ctx, name)]
    return [each for each in _KINDS if each.startswith(incomplete)]


def _names(kind: str, ctx: Any, incomplete: str) -> list[str]:
    from kctl.name_cache import cached_names

    try:
        names = cached_names(kind, ctx.find_root().obj.target())
    except Exception:  # noqa: BLE001 - whatever it is, nobody wants to read of it while typing
        return []
    return [name for name in names if name.startswith(incomplete) and _PLAIN.fullmatch(name)]


_Complete = Callable[[Any, str], Iterable[str]]

_BY_METAVAR: dict[str, _Complete] = {
    "TOPIC": topics, "TOPICS": topics, "TOPIC:PARTITIONS": topics, "GROUP": groups, "GROUPS": groups,
    "BROKER": brokers, "BROKERS": brokers, "RESOURCE": resources,
}  # fmt: skip
# Words that mean something else in each group of commands.
_BY_GROUP: dict[tuple[str, str], _Complete] = {
    ("topic", "NAME"): topics,
    ("topic", "KEY=VALUE"): config_settings,
    ("topic", "KEY"): config_keys,
    ("group", "NAME"): groups,
    ("broker", "ID"): brokers,
    ("config", "KEY"): config_keys,
    ("config", "KEY=VALUE"): config_settings,
    ("config", "KEY=ITEM,"): config_settings,
}
_NEW = frozenset({("topic", "create")})  # their NAME is one that is not there yet


def by_metavar(ctx: Any, param: Any, incomplete: str) -> list[Any]:
    """click's `shell_complete` of a parameter: by its metavar and the command that it belongs to."""
    from typer._click.shell_completion import CompletionItem

    word = re.sub(r"[\[\]]|…|\.\.\.", "", (param.metavar or param.name or "").upper())
    group = ctx.parent.info_name if ctx.parent else ""
    if word == "NAME" and (group, ctx.info_name) in _NEW:
        return []
    complete = _BY_METAVAR.get(word) or _BY_GROUP.get((group, word))
    return [CompletionItem(value) for value in complete(ctx, incomplete)] if complete else []
