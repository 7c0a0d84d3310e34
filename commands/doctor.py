"""kctl doctor: apply the rules to a cluster or to files. Changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.base.text import counted
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.commands.terminal.option_sets import takes_options
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.commands.terminal.views import brokers_up, incomplete_after_verdict
from kctl.errors import UsageError

if TYPE_CHECKING:
    from kctl.doctor.report import DoctorReport
    from kctl.doctor.rule import Rule

_MAX_SUBJECTS = 3  # listed in a table cell
_STYLES = {"error": "red", "warning": "yellow"}


class FailOn(str, Enum):
    """The lowest severity that makes the exit code 1."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    NEVER = "never"


@dataclass(frozen=True)
class DoctorOptions:
    """The options of the command."""

    config_file: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Check a broker's server.properties offline; repeatable. - is stdin."),
    ] = None
    client_config: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Check a producer's or consumer's file offline; repeatable. - is stdin."),
    ] = None
    kafka_version: Annotated[
        str | None,
        typer.Option(
            metavar="VERSION",
            help="Kafka release that uses the files, e.g. 3.9 (default: unknown, any release since 1.0).",
        ),
    ] = None
    about: Annotated[
        list[str] | None,
        typer.Option(metavar="SUBJECT", help="Apply only rules about a subject: state, topics, groups, …; repeatable."),
    ] = None
    rule: Annotated[list[str] | None, typer.Option(metavar="ID", help="Apply only this rule; repeatable.")] = None
    ignore: Annotated[list[str] | None, typer.Option(metavar="ID", help="Skip this rule; repeatable.")] = None
    fail_on: Annotated[FailOn, typer.Option(help="Exit 1 if a finding has this severity or a higher one.")] = (
        FailOn.ERROR
    )
    watch_for: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Watch groups this long and count rebalances, e.g. 30s or 5m."),
    ] = None
    rules: Annotated[
        bool, typer.Option("--rules", help="List the rules; contacts no cluster. -o wide adds reason and fix.")
    ] = False


@takes_options(DoctorOptions)
def command(ctx: typer.Context, options: DoctorOptions) -> None:
    """Find problems in a cluster or in config files: health, settings, topics, groups, ZooKeeper. Changes nothing.

    -o wide and -o json show the reason, source and fix of each finding. Exits 1 if there is an error, and 5 if
    something cannot be read.

    # Check the current cluster; exit 0 whatever is found
    kctl doctor --fail-on never
    """
    from kctl.doctor.examine import Finding
    from kctl.doctor.report import choose, rule_rows
    from kctl.doctor.rule import Severity

    inv = invocation(ctx)
    selected = choose(options.rule or (), options.ignore or (), options.about or ())
    if options.rules:
        rows = rule_rows(selected)
        inv.emit(rows, lambda: [_rules_table(jsonable(rows))])
        return
    report = _examine(inv, options, selected)
    inv.emit(report, lambda: _tables(report), lambda: report.findings, Finding)
    for line in report.notes:
        output.note(line)
    with incomplete_after_verdict(report.unknown):
        if options.fail_on is not FailOn.NEVER:
            report.require_healthy(Severity(options.fail_on.value))


def _examine(inv: Invocation, options: DoctorOptions, selected: Sequence[Rule]) -> DoctorReport:
    from kctl.base.units import parse_duration_ms
    from kctl.doctor.input import examine_cluster, examine_files, refuse_file_rules

    config_files, client_configs = options.config_file or (), options.client_config or ()
    if [*config_files, *client_configs].count("-") > 1:
        raise UsageError('stdin ("-") can be read only once')
    if config_files or client_configs:
        if options.watch_for:
            raise UsageError("--watch-for needs a cluster, but --config-file and --client-config check files offline")
        report = examine_files(selected, config_files, client_configs, options.kafka_version)
    else:
        if options.kafka_version:
            raise UsageError(
                "--kafka-version requires --config-file or --client-config",
                hint="kctl detects the release of live brokers",
            )
        refuse_file_rules(selected)
        watch_s = parse_duration_ms(options.watch_for) / 1000 if options.watch_for else 0.0
        with inv.connect() as client, output.progress("watching groups" if watch_s else "checking"):
            report = examine_cluster(client, inv.target(), selected, watch_s=watch_s)
    report.require_applicable()
    return report


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
    down = report.brokers_down or 0
    brokers = brokers_up((report.broker_count or 0) - down, down)
    return f"cluster {report.cluster_id}: {brokers}{release}, {applied}"


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
