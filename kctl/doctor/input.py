"""The two inputs of kctl doctor: a cluster, and files of settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kctl.doctor.collect import collect
from kctl.doctor.examine import parts_needed
from kctl.doctor.read_files import file_facts, parse_kafka_version, read_broker_file, read_client_file
from kctl.doctor.report import DoctorReport, need_only_files, none_applicable, report_of
from kctl.errors import UsageError

if TYPE_CHECKING:
    from kctl.doctor.rule import Rule
    from kctl.protocol.client import ClusterClient
    from kctl.protocol.target import Target


def refuse_file_rules(rules: Sequence[Rule]) -> None:
    """Raise UsageError if every rule checks files only."""
    if need_only_files(rules):
        raise UsageError("these rules check files", hint="name a file with --config-file or --client-config")


def examine_cluster(
    client: ClusterClient, target: Target, rules: Sequence[Rule], *, watch_s: float = 0.0
) -> DoctorReport:
    """Collect the facts that the rules need and apply the rules. watch_s: how long to watch groups for rebalances."""
    facts, notes = collect(client, target, parts_needed(rules), watch_s=watch_s)
    return report_of(rules, facts, notes)


def examine_files(
    rules: Sequence[Rule], broker_paths: Sequence[str], client_paths: Sequence[str], version: str | None
) -> DoctorReport:
    """Apply the rules to files. version: Kafka release, None if unknown. Raises UsageError if no rule applies."""
    releases = parse_kafka_version(version)
    broker_files = [read_broker_file(file, releases) for file in broker_paths]
    client_files = [read_client_file(file, releases) for file in client_paths]
    facts = file_facts(broker_files, client_files)
    if none_applicable(rules, facts):
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
    return report_of(rules, facts, notes)
