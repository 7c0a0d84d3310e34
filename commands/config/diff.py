"""kctl config diff."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.base.text import counted
from kctl.commands.config.get import shown
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
            metavar="[RESOURCE]…", help="Two or more: topic/NAME, broker/ID, …; default for Kafka's defaults."
        ),
    ] = None,
    all_brokers: Annotated[bool, typer.Option("--all-brokers", help="Compare all brokers with each other.")] = False,
    all_: Annotated[
        bool, typer.Option("--all", help="Of brokers, also what each has for itself: id, listeners, log dirs, rack.")
    ] = False,
) -> None:
    """Show in which configs topics, or brokers, differ. Exit 1 when they do.

    The values that hold are compared, wherever they are set. Sensitive ones cannot be: it is only seen where one is
    set.

    Example: kctl config diff --all-brokers
    """
    from kctl.configs.diff import OF_ONE_BROKER, differences, not_compared

    inv = invocation(ctx)
    chosen, with_default = _chosen(resources or [], all_brokers)
    with inv.connect() as client:
        configs, failed = _read(client, chosen)
    brokers = not all_ and all(name.startswith("broker/") for name in configs)
    if with_default:
        configs[_DEFAULT] = _defaults(next(iter(configs.values()), []))
    brokers = brokers and len(configs) > 1
    left_out = OF_ONE_BROKER if brokers else frozenset()
    found = differences(configs, leave_out=left_out) if len(configs) > 1 else []
    inv.emit(found, lambda: [_table(found, list(configs))], lambda: csv_rows(found))
    if inv.output in FOR_PEOPLE and brokers:
        output.note("what each broker has for itself is left out; --all has it")
    for name in not_compared(configs):
        output.warn(f"{name} is sensitive: whether its values differ cannot be seen")
    with incomplete_after_verdict([f"{name} was not compared: {error.message}" for name, error in failed.items()]):
        if found:
            raise NotHealthy(f"{counted(len(found), 'config')} differ{'s' if len(found) == 1 else ''}")


def _chosen(texts: Sequence[str], all_brokers: bool) -> tuple[list[Resource], bool]:
    """The resources to read (none: all brokers), and whether Kafka's defaults are to be compared as well."""
    from kctl.cluster.config_resources import parse_resource

    if all_brokers:
        if texts:
            raise UsageError("--all-brokers and RESOURCE do not go together")
        return [], False
    given = list(dict.fromkeys(texts))
    if len(given) < 2:
        raise UsageError(
            "two resources are compared", hint="for example topic/a topic/b, broker/1 default, or --all-brokers"
        )
    chosen = [parse_resource(text) for text in given if text != _DEFAULT]
    if any(r.kind == "brokers" for r in chosen):
        raise UsageError(
            "brokers has only what is set for all of them: it cannot be compared",
            hint="`kctl config get brokers` shows it; --all-brokers compares what holds on each",
        )
    kinds = {r.kind for r in chosen}
    if len(kinds) > 1:
        raise UsageError(f"a {' and a '.join(sorted(kinds))} have different configs")
    if _DEFAULT in given and len(chosen) > 1:
        raise UsageError("one resource is compared with the defaults")
    return chosen, _DEFAULT in given


def _read(client: ClusterClient, chosen: Sequence[Resource]) -> tuple[dict[str, list[Config]], dict[str, KctlError]]:
    from kctl.cluster.config_resources import Resource
    from kctl.cluster.membership import down_brokers
    from kctl.configs.describe import describe_each

    everyone = not chosen
    nodes = sorted({*client.metadata(()).brokers, *down_brokers(client)}) if everyone else []
    wanted = chosen or [Resource.broker(node) for node in nodes]
    answers = describe_each(client, wanted)
    read: dict[str, list[Config]] = {}
    failed: dict[str, KctlError] = {}
    for resource in wanted:
        answer = answers[resource]
        if not isinstance(answer, KctlError):
            read[resource.path] = answer
        elif everyone and len(wanted) > 1:
            failed[resource.path] = answer
        else:
            raise answer
    if failed and not read:
        raise next(iter(failed.values()))
    return read, failed


def _defaults(configs: Sequence[Config]) -> list[Config]:
    from dataclasses import replace

    from kctl.cluster.topic_configs import ConfigSource

    return [replace(config, value=config.default, source=ConfigSource.DEFAULT) for config in configs]


def _table(found: Sequence[Difference], compared: Sequence[str]) -> Table:
    """A line for each value, with who has it."""
    columns = [
        Column("config", name=True),
        Column("value"),
        Column("resources", "OF", name=True),
        Column("source", "SET BY", wide=True),
    ]
    rows = [row for each in jsonable(found) for row in _lines(each)]
    return Table(columns, rows, empty=f"no config differs between {', '.join(compared)}")


def csv_rows(found: Sequence[Difference]) -> list[dict[str, Any]]:
    """A row for each value that a config has."""
    return [
        {"name": row["name"], "sensitive": row["sensitive"], **each}
        for row in jsonable(found)
        for each in row["values"]
    ]


def _lines(difference: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "config": difference["name"] if number == 0 else "",
            "value": shown(each["value"], difference["sensitive"] and each["source"] not in (None, _DEFAULT)),
            "resources": " ".join(each["resources"]),
            "source": each["source"],
        }
        for number, each in enumerate(difference["values"])
    ]
