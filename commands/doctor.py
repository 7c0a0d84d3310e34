"""kctl doctor: everything that the rules have to say, about a cluster or about files. Changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.base.text import counted
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.commands.terminal.views import incomplete_after_verdict
from kctl.errors import NotFound, UsageError

if TYPE_CHECKING:
    from kctl.doctor.report import DoctorReport

_NAMED = 3
_STYLES = {"error": "red", "warning": "yellow"}


class FailOn(str, Enum):
    """The least severity of a finding that makes the exit code 1."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    NEVER = "never"


def command(
    ctx: typer.Context,
    config_file: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="Check a broker's server.properties, offline; repeatable.")
    ] = None,
    client_config: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="Check a producer's or consumer's file; repeatable.")
    ] = None,
    kafka_version: Annotated[
        str | None, typer.Option(metavar="VERSION", help="Of what reads the files; 1.0 or later without.")
    ] = None,
    about: Annotated[
        list[str] | None,
        typer.Option(metavar="SUBJECT", help="Only rules about it: state, topics, groups, …; repeatable."),
    ] = None,
    rule: Annotated[list[str] | None, typer.Option(metavar="ID", help="Only this rule; repeatable.")] = None,
    ignore: Annotated[list[str] | None, typer.Option(metavar="ID", help="Not this rule; repeatable.")] = None,
    fail_on: Annotated[FailOn, typer.Option(help="Exit with 1 when a finding is as bad, or worse.")] = FailOn.ERROR,
    watch_for: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Watch groups for so long, and count rebalances.")
    ] = None,
    rules: Annotated[bool, typer.Option("--rules", help="List the rules, with why and fix; asks no cluster.")] = False,
) -> None:
    """Look for what is wrong, or will hurt: health, settings, topics, groups, ZooKeeper. Changes nothing.

    Each finding has its reason, its source and its fix: -o wide, or json. What could not be read is told, and exit code
    5 then; 1 when there is an error.

    Example: kctl doctor --fail-on never
    """
    from kctl.base.units import parse_duration_ms
    from kctl.doctor.examine import Finding, Outcome
    from kctl.doctor.input import examine_cluster, examine_files, refuse_rules_of_files
    from kctl.doctor.report import choose, rule_rows
    from kctl.doctor.rule import Severity

    inv = invocation(ctx)
    chosen = choose(rule or (), ignore or (), about or ())
    if rules:
        rows = rule_rows(chosen)
        inv.emit(rows, lambda: [_rules_table(jsonable(rows))])
        return
    named = [*(config_file or ()), *(client_config or ())]
    files = bool(named)
    if named.count("-") > 1:
        raise UsageError("stdin («-») can be read only once")
    if files and watch_for:
        raise UsageError("--watch-for watches a cluster, and files are checked without one")
    if kafka_version and not files:
        raise UsageError(
            "--kafka-version is for --config-file and --client-config", hint="of brokers it is asked of themselves"
        )
    if files:
        found = examine_files(chosen, config_file or (), client_config or (), kafka_version)
    else:
        refuse_rules_of_files(chosen)
        watch_s = parse_duration_ms(watch_for) / 1000 if watch_for else 0.0
        with inv.connect() as client, output.progress("watching groups" if watch_s else "looking"):
            found = examine_cluster(client, inv.target(), chosen, watch_s=watch_s)
    if all(each.outcome is Outcome.SKIPPED for each in found.rules) and not found.unknown:
        raise NotFound(
            "none of the selected rules applies to the input",
            hint="`kctl doctor --rules -o wide` shows the inputs and releases of each rule",
        )
    inv.emit(found, lambda: _tables(found), lambda: found.findings, Finding)
    for line in found.notes:
        output.note(line)
    with incomplete_after_verdict(found.unknown):
        if fail_on is not FailOn.NEVER:
            found.require_healthy(Severity(fail_on.value))


def _tables(found: DoctorReport) -> list[Table]:
    """What was found; and for each rule, once, what to do."""
    findings = [
        Column("severity", style=_style),
        Column("rule", name=True),
        Column("message", "FOUND"),
        *([] if len(found.files) == 1 else [Column("subjects", "WHERE", show=_some)]),
    ]
    fixes = [
        Column("rule", name=True),
        Column("fix", "WHAT TO DO"),
        Column("why", wide=True),
        Column("source", wide=True),
        Column("versions", wide=True),
    ]
    rows = jsonable(found.findings)
    by_rule = {row["rule"]: row for row in rows}
    return [
        Table(findings, rows, title=_title(found), empty=f"{_title(found)}: nothing found"),
        Table(fixes, list(by_rule.values())),
    ]


def _title(found: DoctorReport) -> str:
    outcomes = [each.outcome.value for each in found.rules]
    looked = f"{counted(len(outcomes) - outcomes.count('skipped'), 'rule')} applied"
    if outcomes.count("unknown"):
        looked += f", {outcomes.count('unknown')} without an answer"
    if found.files:
        return f"{', '.join(found.files)}: {looked}"
    release = f" of Kafka {', '.join(found.releases)}" if found.releases else ""
    return f"cluster {found.cluster_id}: {counted(found.broker_count, 'broker')}{release}, {looked}"


def _rules_table(rows: list[Mapping[str, Any]]) -> Table:
    columns = [
        Column("rule", name=True),
        Column("severity", style=_style),
        Column("versions"),
        Column("title"),
        Column("subject", wide=True),
        Column("why", wide=True),
        Column("fix", wide=True),
        Column("source", wide=True),
    ]
    return Table(columns, rows)


def _style(row: Mapping[str, Any]) -> str | None:
    return _STYLES.get(row["severity"])


def _some(subjects: list[str]) -> str:
    more = f" and {len(subjects) - _NAMED:,} more" if len(subjects) > _NAMED else ""
    return ", ".join(subjects[:_NAMED]) + more
