"""kctl config diff."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.base.text import counted
from kctl.commands.config.get import display_value
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import invocation
from kctl.commands.terminal.output import FOR_PEOPLE, Column, Table, jsonable
from kctl.commands.terminal.views import incomplete_after_verdict
from kctl.errors import KctlError, NotHealthy, UsageError

if TYPE_CHECKING:
    from kctl.cluster.config_resources import Resource
    from kctl.configs.diff import Difference
    from kctl.configs.model import Config
    from kctl.protocol.client import ClusterClient

_DEFAULT = "default"


def diff(
    ctx: typer.Context,
    resources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RESOURCE]…",
            help="Two or more of topic/NAME, broker/ID and so on, or default for Kafka's defaults.",
        ),
    ] = None,
    all_brokers: Annotated[bool, typer.Option("--all-brokers", help="Compare all brokers with each other.")] = False,
    all_: Annotated[
        bool, typer.Option("--all", help="Include broker-specific configs: id, listeners, log dirs, rack.")
    ] = False,
) -> None:
    """Show config differences between topics or brokers. Exits 1 if they differ.

    Effective values are compared, wherever they are set. For sensitive configs, kctl compares only whether a value
    is set.

    # Find brokers whose configs differ
    kctl config diff --all-brokers
    """
    from kctl.configs.diff import OF_ONE_BROKER, differences, not_compared

    inv = invocation(ctx)
    selected, with_default = _select(resources or [], all_brokers)
    with inv.connect() as client:
        configs, failed = _read_configs(client, selected)
    only_brokers = not all_ and all(name.startswith("broker/") for name in configs)
    if with_default:
        configs[_DEFAULT] = _defaults(next(iter(configs.values()), []))
    only_brokers = only_brokers and len(configs) > 1
    omitted = OF_ONE_BROKER if only_brokers else frozenset()
    diffs = differences(configs, leave_out=omitted) if len(configs) > 1 else []
    inv.emit(diffs, lambda: [_table(diffs, list(configs))], lambda: csv_rows(diffs))
    if inv.output in FOR_PEOPLE and only_brokers:
        output.note("broker-specific configs are left out; use --all to include them")
    for name in not_compared(configs):
        output.warn(f"{name} is sensitive: its values cannot be compared")
    with incomplete_after_verdict([f"{name} was not compared: {error.message}" for name, error in failed.items()]):
        if diffs:
            raise NotHealthy(f"{counted(len(diffs), 'config')} differ{'s' if len(diffs) == 1 else ''}")


def _select(texts: Sequence[str], all_brokers: bool) -> tuple[list[Resource], bool]:
    """Return the resources to read (empty: all brokers), and whether to compare with Kafka's defaults."""
    from kctl.cluster.config_resources import parse_resource

    if all_brokers:
        if texts:
            raise UsageError("--all-brokers and RESOURCE cannot be combined")
        return [], False
    names = list(dict.fromkeys(texts))
    if len(names) < 2:
        raise UsageError("two resources are required", hint="e.g. topic/a topic/b, broker/1 default, or --all-brokers")
    selected = [parse_resource(text) for text in names if text != _DEFAULT]
    if any(r.kind == "brokers" for r in selected):
        raise UsageError(
            "brokers holds only the default for all brokers and cannot be compared",
            hint="use `kctl config get brokers`, or --all-brokers to compare the effective values",
        )
    kinds = {r.kind for r in selected}
    if len(kinds) > 1:
        raise UsageError(f"a {' and a '.join(sorted(kinds))} have different configs")
    if _DEFAULT in names and len(selected) > 1:
        raise UsageError("only one resource can be compared with the defaults")
    return selected, _DEFAULT in names


def _read_configs(
    client: ClusterClient, selected: Sequence[Resource]
) -> tuple[dict[str, list[Config]], dict[str, KctlError]]:
    from kctl.cluster.config_resources import Resource
    from kctl.cluster.membership import down_brokers
    from kctl.configs.describe import describe_each

    all_brokers = not selected
    nodes = sorted({*client.metadata(()).brokers, *down_brokers(client)}) if all_brokers else []
    resources = selected or [Resource.broker(node) for node in nodes]
    results = describe_each(client, resources)
    by_resource: dict[str, list[Config]] = {}
    failed: dict[str, KctlError] = {}
    for resource in resources:
        result = results[resource]
        if not isinstance(result, KctlError):
            by_resource[resource.path] = result
        elif all_brokers and len(resources) > 1:
            failed[resource.path] = result
        else:
            raise result
    if failed and not by_resource:
        raise next(iter(failed.values()))
    return by_resource, failed


def _defaults(configs: Sequence[Config]) -> list[Config]:
    from dataclasses import replace

    from kctl.cluster.topic_configs import ConfigSource

    return [replace(config, value=config.default, source=ConfigSource.DEFAULT) for config in configs]


def _table(diffs: Sequence[Difference], compared: Sequence[str]) -> Table:
    """Return a line for each value, with its resources."""
    columns = [
        Column("config", name=True),
        Column("value"),
        Column("resources", "OF", name=True),
        Column("source", "SET BY", wide=True),
    ]
    rows = [row for each in jsonable(diffs) for row in _lines(each)]
    return Table(columns, rows, empty=f"no config differs between {', '.join(compared)}")


def csv_rows(diffs: Sequence[Difference]) -> list[dict[str, Any]]:
    """Return a row for each value of a config."""
    return [
        {"name": row["name"], "sensitive": row["sensitive"], **each}
        for row in jsonable(diffs)
        for each in row["values"]
    ]


def _lines(difference: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "config": difference["name"] if number == 0 else "",
            "value": display_value(each["value"], difference["sensitive"] and each["source"] not in (None, _DEFAULT)),
            "resources": " ".join(each["resources"]),
            "source": each["source"],
        }
        for number, each in enumerate(difference["values"])
    ]
