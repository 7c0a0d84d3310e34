"""kctl config get and explain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.errors import UsageError

if TYPE_CHECKING:
    from kctl.cluster.config_resources import Resource
    from kctl.configs.model import Config
    from kctl.protocol.client import ClusterClient

RESOURCE = typer.Argument(
    metavar="RESOURCE",
    help="topic/NAME, broker/ID, brokers (cluster-wide settings), group/NAME, client-metrics/NAME; for quotas"
    " user/NAME, client-id/NAME, ip/ADDRESS, or users, clients, ips (defaults).",
)
HIDDEN = "(hidden)"
_MAX_PAIRS = 3
_OWNERS = {
    "topic": "topics", "broker": "brokers", "group": "groups", "client-metrics": "client metrics subscriptions",
    "user": "users and client ids", "ip": "addresses",
}  # fmt: skip


def get(
    ctx: typer.Context,
    resource: Annotated[str, RESOURCE],
    keys: Annotated[list[str] | None, typer.Argument(metavar="[KEY]…", help="Only these configs.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Include configs with Kafka's default value.")] = False,
) -> None:
    """Show non-default configs of a resource, and where they are set.

    -o wide adds the type, the default and whether a change requires a restart; JSON has all synonyms.

    # Show the dynamic configs that apply to all brokers
    kctl config get brokers
    """
    from kctl.cluster.config_resources import parse_resource
    from kctl.configs.describe import by_name, describe
    from kctl.configs.keys import find_key, unknown

    inv = invocation(ctx)
    chosen = parse_resource(resource, keys[0] if keys else "")
    if keys and all_:
        raise UsageError("--all and KEY cannot be combined")
    with inv.connect(controllers=chosen.kind in {"broker", "brokers"}) as client:
        configs_by_name = by_name(describe(client, chosen))
        pairs = _pairs(client, chosen)
    if keys:
        missing = [key for key in keys if find_key(configs_by_name, key) is None]
        if missing:
            raise unknown(chosen, missing, configs_by_name)
        rows = [config for key in dict.fromkeys(keys) if (config := find_key(configs_by_name, key)) is not None]
    else:
        rows = [config for config in configs_by_name.values() if all_ or not config.is_default]
    inv.emit([_row(c) for c in rows], lambda: [_table(rows, _empty_text(chosen))])
    if pairs:
        output.note(f"{chosen} also has quotas in pairs ({pairs}); see `kctl quota list`")


def _pairs(client: ClusterClient, chosen: Resource) -> str:
    """Return the pairs of user and client id with quotas that include the resource; their quotas take precedence."""
    from kctl.access.quotas import list_quotas
    from kctl.cluster.config_resources import QUOTA_KINDS
    from kctl.configs.quota_configs import pairs_with

    if chosen.kind not in QUOTA_KINDS:
        return ""
    matches = pairs_with(chosen, list_quotas(client))
    return "; ".join(map(str, matches[:_MAX_PAIRS])) + (" …" if len(matches) > _MAX_PAIRS else "")


def _empty_text(resource: Resource) -> str:
    from kctl.cluster.config_resources import QUOTA_KINDS

    if resource.kind == "brokers":
        return "no config is set for all brokers; use --all to list the configs that can be set"
    if resource.kind in QUOTA_KINDS:
        return f"{resource} has no quota; use --all to see what can be set"
    return f"every config of {resource} is the default; use --all to see them"


def _row(config: Config) -> dict[str, Any]:
    row: dict[str, Any] = jsonable(config)
    del row["documentation"]
    return row


def _table(configs: Sequence[Config], empty: str) -> Table:
    columns = [
        Column("name", "CONFIG", name=True),
        Column("shown", "VALUE"),
        Column("source", "SET BY"),
        Column("type", wide=True),
        Column("default", wide=True),
        Column("change", "CHANGED BY", wide=True),
    ]
    rows = [
        {**_row(c), "shown": display_value(c.value, c.sensitive and not c.is_default),
         "change": "restart" if c.read_only else "kctl config set"}
        for c in configs
    ]  # fmt: skip
    return Table(columns, rows, empty=empty)


def display_value(value: str | None, hidden: bool) -> str | None:
    """Return a value for people: hidden if sensitive and set, quotes if empty."""
    if hidden:
        return HIDDEN
    return '""' if value == "" else value


def explain(
    ctx: typer.Context,
    keys: Annotated[list[str], typer.Argument(metavar="KEY…", help="Name of a config, e.g. retention.ms.")],
) -> None:
    """Explain configs: meaning, type, default, and how to change them.

    The text comes from a broker, so it matches the cluster's version.

    # Explain one config
    kctl config explain retention.ms
    """
    from kctl.configs.explain import explain as explain_keys

    inv = invocation(ctx)
    with inv.connect() as client:
        explanations, warnings = explain_keys(client, keys)
    inv.emit(explanations, lambda: [_explanation(row) for row in jsonable(explanations)])
    for warning in warnings:
        output.warn(warning)


def _explanation(row: Mapping[str, Any]) -> Table:
    facts = [
        ("type", row["type"] + (", sensitive" if row["sensitive"] else "")),
        ("default", display_value(row["default"], False) if row["default"] is not None else "none"),
        ("changed by", "server.properties and a restart" if row["read_only"] else "kctl config set"),
    ]
    if row["server_config"]:
        facts.append(("on brokers", row["server_config"]))
    lines = (row["documentation"] or "not documented").splitlines()
    facts += [("meaning" if number == 0 else "", line) for number, line in enumerate(lines)]
    title = f"{row['name']} of {_OWNERS[row['of']]}"
    return Table([Column("field"), Column("value")], [{"field": k, "value": v} for k, v in facts], title=title)
