"""kctl doctor: apply the rules to a cluster or to files. Changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.base.text import counted
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.commands.terminal.views import told_if_incomplete
from kctl.errors import NotFound, NotHealthy, UsageError

if TYPE_CHECKING:
    from kctl.doctor.report import DoctorReport

_MAX_SUBJECTS = 3  # listed in a table cell
_STYLES = {"error": "red", "warning": "yellow"}


class FailOn(str, Enum):
    """The lowest severity that makes the exit code 1."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    NEVER = "never"


def command(
    ctx: typer.Context,
    config_file: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Check a broker's server.properties offline; repeatable. - is stdin."),
    ] = None,
    client_config: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Check a producer's or consumer's file offline; repeatable. - is stdin."),
    ] = None,
    kafka_version: Annotated[
        str | None,
        typer.Option(
            metavar="VERSION",
            help="Kafka release that uses the files, e.g. 3.9 (default: unknown, any release since 1.0).",
        ),
    ] = None,
    about: Annotated[
        list[str] | None,
        typer.Option(metavar="SUBJECT", help="Apply only rules about a subject: state, topics, groups, …; repeatable."),
    ] = None,
    rule: Annotated[list[str] | None, typer.Option(metavar="ID", help="Apply only this rule; repeatable.")] = None,
    ignore: Annotated[list[str] | None, typer.Option(metavar="ID", help="Skip this rule; repeatable.")] = None,
    fail_on: Annotated[
        FailOn, typer.Option(help="Exit with 1 if a finding has this severity or a higher one.")
    ] = FailOn.ERROR,
    watch_for: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Watch groups this long and count rebalances, e.g. 30s or 5m."),
    ] = None,
    rules: Annotated[
        bool, typer.Option("--rules", help="List the rules; contacts no cluster. -o wide adds why and fix.")
    ] = False,
) -> None:
    """Find problems in a cluster or in config files: health, settings, topics, groups, ZooKeeper. Changes nothing.

    Each finding comes with its reason, source and fix: use -o wide or -o json. The exit code is 1 if there is an error,
    and 5 if something could not be read.

    Example: kctl doctor --fail-on never
    """
    from kctl.doctor.examine import Finding, RuleStatus
    from kctl.doctor.report import choose, rule_rows

    inv = invocation(ctx)
    selected = choose(rule or (), ignore or (), about or ())
    if rules:
        rows = rule_rows(selected)
        inv.emit(rows, lambda: [_rules_table(jsonable(rows))])
        return
    files = [*(config_file or ()), *(client_config or ())]
    if files.count("-") > 1:
        raise UsageError('stdin ("-") can be read only once')
    if files and watch_for:
        raise UsageError("--watch-for needs a cluster, but --config-file and --client-config check files offline")
    if kafka_version and not files:
        raise UsageError(
            "--kafka-version requires --config-file or --client-config",
            hint="kctl detects the release of live brokers",
        )
    if files:
        report = _check_files(selected, config_file or [], client_config or [], kafka_version)
    else:
        report = _check_cluster(inv, selected, watch_for)
    if all(each.outcome is RuleStatus.SKIPPED for each in report.rules) and not report.unknown:
        raise NotFound(
            "none of the selected rules applies to the input",
            hint="`kctl doctor --rules -o wide` shows the subject and releases of each rule",
        )
    inv.emit(report, lambda: _tables(report), lambda: report.findings, Finding)
    for line in report.notes:
        output.note(line)
    with told_if_incomplete(report.unknown):
        _raise_if_unhealthy(report, fail_on)


def _check_files(selected: Any, brokers: list[str], clients: list[str], version: str | None) -> DoctorReport:
    from kctl.doctor.read_files import file_facts, parse_kafka_version, read_broker_file, read_client_file
    from kctl.doctor.report import none_applicable, report_of

    releases = parse_kafka_version(version)
    broker_files = [read_broker_file(file, releases) for file in brokers]
    client_files = [read_client_file(file, releases) for file in clients]
    facts = file_facts(broker_files, client_files)
    if none_applicable(selected, facts):
        raise UsageError(
            "none of the selected rules applies to these files",
            hint="`kctl doctor --rules -o wide` shows the subject of each rule; a client file counts as a producer's "
            "or consumer's by settings that only one of them has, or else by its name",
        )
    notes = [
        f"{each.settings.owner} has no producer or consumer settings: only connection settings were checked"
        for each in client_files
        if not each.roles
    ]
    notes += [
        f"{each.facts.path}: not checked, the values come from a config provider: {', '.join(each.facts.variable_keys)}"
        for each in (*broker_files, *client_files)
        if each.facts.variable_keys
    ]
    return report_of(selected, facts, notes)


def _check_cluster(inv: Invocation, selected: Any, watch_for: str | None) -> DoctorReport:
    from kctl.base.units import parse_duration_ms
    from kctl.doctor.collect import collect
    from kctl.doctor.examine import parts_needed
    from kctl.doctor.report import need_only_files, report_of

    if need_only_files(selected):
        raise UsageError("these rules check files", hint="name a file with --config-file or --client-config")
    watch_s = parse_duration_ms(watch_for) / 1000 if watch_for else 0.0
    with inv.connect() as client, output.progress("watching groups" if watch_s else "checking"):
        facts, notes = collect(client, inv.target(), parts_needed(selected), watch_s=watch_s)
    return report_of(selected, facts, notes)


def _raise_if_unhealthy(report: DoctorReport, fail_on: FailOn) -> None:
    """Raise NotHealthy if a finding has the severity of --fail-on or a higher one."""
    from kctl.doctor.rule import Severity

    if fail_on is FailOn.NEVER:
        return
    failing = report.at_least(Severity(fail_on.value))
    if not failing:
        return
    more = f", and {counted(len(failing) - 1, 'other finding')}" if len(failing) > 1 else ""
    raise NotHealthy(
        f"{failing[0].rule}: {failing[0].message}{more}",
        hint=failing[0].fix,
        details={"rules_found": list(dict.fromkeys(each.rule for each in failing))},
    )


def _tables(report: DoctorReport) -> list[Table]:
    """Return a table of the findings, and a table with the fix of each rule."""
    findings = [
        Column("severity", style=_style),
        Column("rule", name=True),
        Column("message", "FINDING"),
        *([] if len(report.files) == 1 else [Column("subjects", "WHERE", show=_abbreviated)]),
    ]
    fixes = [
        Column("rule", name=True),
        Column("fix", "WHAT TO DO"),
        Column("why", wide=True),
        Column("source", wide=True),
        Column("versions", wide=True),
    ]
    rows = jsonable(report.findings)
    by_rule = {row["rule"]: row for row in rows}
    return [
        Table(findings, rows, title=_title(report), empty=f"{_title(report)}: no findings"),
        Table(fixes, list(by_rule.values())),
    ]


def _title(report: DoctorReport) -> str:
    outcomes = [each.outcome.value for each in report.rules]
    applied = f"{counted(len(outcomes) - outcomes.count('skipped'), 'rule')} applied"
    if outcomes.count("unknown"):
        applied += f", {outcomes.count('unknown')} unknown"
    if report.files:
        return f"{', '.join(report.files)}: {applied}"
    release = f", Kafka {', '.join(report.releases)}" if report.releases else ""
    return f"cluster {report.cluster_id}: {counted(report.broker_count, 'broker')}{release}, {applied}"


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


def _abbreviated(subjects: list[str]) -> str:
    more = f" and {len(subjects) - _MAX_SUBJECTS:,} more" if len(subjects) > _MAX_SUBJECTS else ""
    return ", ".join(subjects[:_MAX_SUBJECTS]) + more
