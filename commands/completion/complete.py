"""Values for shell completion. Nothing here may fail, wait for long or print anything.

A parameter without `autocompletion` is completed by its metavar (`by_metavar`), so that topics, groups, brokers and
config keys complete in every command with the usual metavars.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from typing import Any

from kctl.commands.terminal.output import FORMATS
from kctl.errors import KctlError

# A shell evaluates an inserted name when the line runs. A group id may be any text, so only plain names are offered.
_PLAIN = re.compile(r"[A-Za-z0-9._/@%+=,-]+")
_LAYOUTS = ("kraft-combined", "kraft-separate", "kraft-single", "pseudo-distributed", "single", "three-node")
_QUOTA_KINDS = ("user", "users", "client-id", "clients", "ip", "ips")
_KINDS = (
    "topic/", "broker/", "brokers", "group/", "client-metrics/",
    "user/", "users", "client-id/", "clients", "ip/", "ips",
)  # fmt: skip


def context_names(incomplete: str) -> list[str]:
    """Return the contexts in the config file."""
    from kctl.contexts.choose import list_contexts

    try:
        return [name for name in list_contexts() if name.startswith(incomplete)]
    except (KctlError, OSError):
        return []


def cluster_names(incomplete: str) -> list[str]:
    """Return the clusters on this machine."""
    from kctl.base import paths

    try:
        clusters = sorted(path.name for path in paths.clusters_dir().iterdir())
    except OSError:
        return []
    return [name for name in clusters if name.startswith(incomplete) and not name.startswith(".")]


def formats(incomplete: str) -> list[str]:
    """Return the formats of -o."""
    return [name for name in FORMATS if name.startswith(incomplete)]


# --- names in the selected cluster ------------------------------------------------------------------------------------


def topics(ctx: Any, incomplete: str) -> list[str]:
    """Return topics; internal ones only if the word starts with an underscore."""
    return [name for name in _names("topics", ctx, incomplete) if incomplete or not name.startswith("__")]


def groups(ctx: Any, incomplete: str) -> list[str]:
    """Return groups of all types."""
    return _names("groups", ctx, incomplete)


def brokers(ctx: Any, incomplete: str) -> list[str]:
    """Return broker ids, also for the last item of a comma-separated list."""
    before, comma, last = incomplete.rpartition(",")
    chosen_ids = before.split(",")
    return [f"{before}{comma}{name}" for name in _names("brokers", ctx, last) if name not in chosen_ids]


def config_keys(ctx: Any, incomplete: str) -> list[str]:
    """Return the config keys of the resource on the line (default: of topics)."""
    return list(dict.fromkeys(setting.partition("=")[0] for setting in _settings(ctx, incomplete)))


def broker_keys(ctx: Any, incomplete: str) -> list[str]:
    """Return the config keys of brokers."""
    settings = _names("broker-settings", ctx, incomplete)
    return list(dict.fromkeys(setting.partition("=")[0] for setting in settings))


def config_settings(ctx: Any, incomplete: str) -> list[str]:
    """Return KEY= for each config key, and after "=" its values if there are few."""
    settings = _settings(ctx, incomplete)
    if "=" in incomplete:
        return [setting for setting in settings if not setting.endswith("=")]
    return list(dict.fromkeys(setting.partition("=")[0] + "=" for setting in settings))


def _settings(ctx: Any, incomplete: str) -> list[str]:
    """Return KEY=VALUE for each valid value of a key; KEY= if the key accepts any value."""
    resource = str(ctx.params.get("resource") or "topic/")
    kind = next((kind for kind in ("broker", "group") if resource.startswith(kind)), "topic")
    if resource.partition("/")[0] in _QUOTA_KINDS:
        from kctl.access.quotas import CLIENT_KEYS, IP_KEYS

        return [
            f"{key}=" for key in (IP_KEYS if resource.startswith("ip") else CLIENT_KEYS) if key.startswith(incomplete)
        ]
    if resource.startswith("client-metrics"):
        return [key for key in ("interval.ms=", "match=", "metrics=") if key.startswith(incomplete)]
    return _names(f"{kind}-settings", ctx, incomplete)


def playbooks(_ctx: Any, incomplete: str) -> list[str]:
    """Return the playbooks that come with kctl; the shell completes files."""
    from kctl.playbook.shipped import shipped

    return [each.path.stem for each in shipped() if each.path.stem.startswith(incomplete)]


def resources(ctx: Any, incomplete: str) -> list[str]:
    """Return the resources of `config`: topic/NAME, broker/ID and so on."""
    kind, slash, name = incomplete.partition("/")
    complete = {
        "topic": topics, "broker": brokers, "group": groups,
        "user": quota_users, "client-id": quota_clients, "ip": quota_addresses,
    }.get(kind)  # fmt: skip
    if slash and complete:
        return [f"{kind}/{each}" for each in complete(ctx, name)]
    return [each for each in _KINDS if each.startswith(incomplete)]


def users(ctx: Any, incomplete: str) -> list[str]:
    """Return SCRAM users."""
    return _names("users", ctx, incomplete)


def principals(ctx: Any, incomplete: str) -> list[str]:
    """Return SCRAM users, and principals in ACLs."""
    return _names("principals", ctx, incomplete)


def quota_users(ctx: Any, incomplete: str) -> list[str]:
    """Return SCRAM users, and users with quotas."""
    return _names("quota-users", ctx, incomplete)


def quota_clients(ctx: Any, incomplete: str) -> list[str]:
    """Return client ids with quotas."""
    return _names("quota-clients", ctx, incomplete)


def quota_addresses(ctx: Any, incomplete: str) -> list[str]:
    """Return IP addresses with quotas."""
    return _names("quota-addresses", ctx, incomplete)


def quota_keys(ctx: Any, incomplete: str) -> list[str]:
    """Return the quotas of the kind of entity on the line."""
    from kctl.access.quotas import CLIENT_KEYS, IP_KEYS

    of_address = ctx.params.get("ip") or ctx.params.get("ip_defaults")
    return [key for key in (IP_KEYS if of_address else CLIENT_KEYS) if key.startswith(incomplete)]


def quota_settings(ctx: Any, incomplete: str) -> list[str]:
    """Return KEY= for each of these quotas."""
    return [] if "=" in incomplete else [f"{key}=" for key in quota_keys(ctx, incomplete)]


def loggers(ctx: Any, incomplete: str) -> list[str]:
    """Return names of loggers."""
    return _names("loggers", ctx, incomplete)


def logger_levels(ctx: Any, incomplete: str) -> list[str]:
    """Return LOGGER=, and after "=" the levels."""
    from kctl.brokers.loggers import LEVELS

    logger, equals, level = incomplete.partition("=")
    if equals:
        return [f"{logger}={each}" for each in LEVELS if each.startswith(level.upper())]
    return [f"{each}=" for each in loggers(ctx, logger)]


def transactional_ids(ctx: Any, incomplete: str) -> list[str]:
    """Return the transactional ids of all coordinators."""
    return _names("transactional-ids", ctx, incomplete)


def _names(kind: str, ctx: Any, incomplete: str) -> list[str]:
    from kctl.commands.completion.name_cache import cached_names

    try:
        names = cached_names(kind, ctx.find_root().obj.target())
    except Exception:  # noqa: BLE001 - completion never prints errors
        return []
    return [name for name in names if name.startswith(incomplete) and _PLAIN.fullmatch(name)]


_Complete = Callable[[Any, str], Iterable[str]]


# --- fixed words ------------------------------------------------------------------------------------------------------


def _group_states() -> Iterable[str]:
    from kctl.groups.overview import STATES

    return STATES


def _transaction_states() -> Iterable[str]:
    from kctl.transactions.listing import STATES

    return STATES


def _operations() -> Iterable[str]:
    from kctl.access.acl_syntax import OPERATIONS_BY_KEYWORD

    return OPERATIONS_BY_KEYWORD


def _resource_types() -> Iterable[str]:
    from kctl.access.acl_syntax import KINDS_BY_KEYWORD

    return KINDS_BY_KEYWORD


def _levels() -> Iterable[str]:
    from kctl.brokers.loggers import LEVELS

    return LEVELS


def _protocols() -> Iterable[str]:
    from kctl.protocol.security import PROTOCOLS

    return PROTOCOLS


def _mechanisms() -> Iterable[str]:
    from kctl.protocol.security import MECHANISMS

    return MECHANISMS


def _scram() -> Iterable[str]:
    from kctl.access.users import MECHANISMS

    return MECHANISMS


def _group_types() -> Iterable[str]:
    from kctl.cluster.groups.model import TYPES

    return TYPES


def _decoders() -> Iterable[str]:
    from kctl.records.decode.decoding import BUILT_IN

    return BUILT_IN


def _one_of(words: Callable[[], Iterable[str]]) -> _Complete:
    """Return a completion of fixed words, ignoring case."""
    return lambda _ctx, incomplete: [each for each in words() if each.lower().startswith(incomplete.lower())]


_BY_METAVAR: dict[str, _Complete] = {
    "TOPIC": topics, "TOPICS": topics, "TOPIC:PARTITIONS": topics, "GROUP": groups, "GROUPS": groups,
    "BROKER": brokers, "BROKERS": brokers, "N,": brokers, "RESOURCE": resources, "TRANSACTIONAL_ID": transactional_ids,
    "SOURCE": topics, "PRINCIPAL": principals, "OPERATION": _one_of(_operations), "WORDS": _one_of(_resource_types),
    "PERMISSION": _one_of(lambda: ("allow", "deny")), "LOGGER": loggers, "LOGGER=LEVEL": logger_levels,
    "LEVEL": _one_of(_levels), "PROTOCOL": _one_of(_protocols), "LAYOUT": _one_of(lambda: _LAYOUTS),
    "EARLIEST|LATEST": _one_of(lambda: ("earliest", "latest")),
    "PLAYBOOK": playbooks,
}  # fmt: skip
# Metavars that differ in meaning between command groups.
_BY_GROUP: dict[tuple[str, str], _Complete] = {
    ("topic", "NAME"): topics,
    ("topic", "KEY=VALUE"): config_settings,
    ("topic", "KEY"): config_keys,
    ("reassign", "NAME"): topics,
    ("group", "NAME"): groups,
    ("group", "STATE"): _one_of(_group_states),
    ("group", "TYPE"): _one_of(_group_types),
    ("kctl", "STATE"): _one_of(_group_states),
    ("broker", "ID"): brokers,
    ("broker", "KEY"): broker_keys,
    ("loggers", "ID"): brokers,
    ("config", "KEY"): config_keys,
    ("config", "KEY=VALUE"): config_settings,
    ("config", "KEY=ITEM,"): config_settings,
    ("context", "MECHANISM"): _one_of(_mechanisms),
    ("user", "NAME"): users,
    ("user", "MECHANISM"): _one_of(_scram),
    ("quota", "KEY"): quota_keys,
    ("quota", "KEY=VALUE"): quota_settings,
    ("quota", "ADDRESS"): quota_addresses,
    ("transaction", "STATE"): _one_of(_transaction_states),
}
_BY_OPTION: dict[tuple[str, str], _Complete] = {
    ("quota", "user"): quota_users,
    ("quota", "client_id"): quota_clients,
    ("transaction", "broker_id"): brokers,
    ("kctl", "decoder"): _one_of(_decoders),
    ("kctl", "key_decoder"): _one_of(_decoders),
    ("kctl", "value_decoder"): _one_of(_decoders),
    ("user", "password_env"): lambda _ctx, incomplete: [name for name in os.environ if name.startswith(incomplete)],
}
_NEW = frozenset({("topic", "create"), ("user", "add")})  # their NAME does not exist yet


def by_metavar(ctx: Any, param: Any, incomplete: str) -> list[Any]:
    """Complete a parameter by its name or metavar and its command, as click's `shell_complete`.

    Values of a repeatable parameter that are already on the line are not offered again.
    """
    from typer._click.shell_completion import CompletionItem

    word = re.sub(r"[\[\]]|…|\.\.\.", "", (param.metavar or param.name or "").upper())
    group = ctx.parent.info_name if ctx.parent else ""
    if word == "NAME" and (group, ctx.info_name) in _NEW and param.param_type_name == "argument":
        return []
    complete = _BY_OPTION.get((group, param.name)) or _BY_GROUP.get((group, word)) or _BY_METAVAR.get(word)
    present = ctx.params.get(param.name)
    present = present if isinstance(present, (list, tuple)) else ()
    return [CompletionItem(value) for value in complete(ctx, incomplete) if value not in present] if complete else []
