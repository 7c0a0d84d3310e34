"""The two inputs of the doctor: a cluster, and files of settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kctl.doctor.collect import collect
from kctl.doctor.read_files import file_facts, read_broker_file, read_client_file, releases_named
from kctl.doctor.report import DoctorReport, nothing_for, only_of_files, parts_of, report_of
from kctl.errors import UsageError

if TYPE_CHECKING:
    from kctl.doctor.rule import Rule
    from kctl.protocol.client import ClusterClient
    from kctl.protocol.target import Target


def refuse_rules_of_files(rules: Sequence[Rule]) -> None:
    """Raise UsageError if none of the rules can be applied to a cluster."""
    if only_of_files(rules):
        raise UsageError("these rules look at files", hint="name one: --config-file, or --client-config")


def examine_cluster(
    client: ClusterClient, target: Target, rules: Sequence[Rule], *, watch_s: float = 0.0
) -> DoctorReport:
    """Read what the rules need and apply them. watch_s: how long groups are watched."""
    facts, notes = collect(client, target, parts_of(rules), watch_s=watch_s)
    return report_of(rules, facts, notes)


def examine_files(
    rules: Sequence[Rule], broker_paths: Sequence[str], client_paths: Sequence[str], version: str | None
) -> DoctorReport:
    """Apply the rules to files. version: of Kafka, None if unknown. Raises UsageError if no rule is about the files."""
    releases = releases_named(version)
    broker_files = [read_broker_file(file, releases) for file in broker_paths]
    client_files = [read_client_file(file, releases) for file in client_paths]
    facts = file_facts(broker_files, client_files)
    if nothing_for(rules, facts):
        raise UsageError(
            "none of the rules asked for looks at such a file",
            hint="`kctl doctor --rules -o wide` says what each is about; "
            "what a client's file is for is told by settings that only a producer or a consumer has, or by its name",
        )
    notes = [
        f"{each.settings.where} has no setting of a producer or consumer alone: only the connection was checked"
        for each in client_files
        if not each.roles
    ]
    notes += [
        f"{each.facts.path}: not known, a config provider has it: {', '.join(each.facts.variables)}"
        for each in (*broker_files, *client_files)
        if each.facts.variables
    ]
    return report_of(rules, facts, notes)
