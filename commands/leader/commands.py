"""kctl leader: status, elections and balance of partition leaders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.base.outcomes import ItemResult, any_changed
from kctl.base.text import counted
from kctl.commands.leader.elections import certificate, progress_of, warn_of_skipped
from kctl.commands.leader.tables import balance_tables, election_tables, idle_lines, status_tables
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import CommandGroup, Invocation, invocation
from kctl.commands.terminal.out_file import ask_to_replace, write_whole
from kctl.commands.terminal.output import jsonable
from kctl.commands.terminal.topic_options import MATCH, PARTITION
from kctl.errors import UsageError

if TYPE_CHECKING:
    from kctl.cluster.unchanged import Basis
    from kctl.leader.balance import LeaderBalance
    from kctl.leader.election import Election
    from kctl.model import ClusterState, PartitionState
    from kctl.protocol.client import ClusterClient

app = CommandGroup()


Topics = Annotated[list[str] | None, typer.Option("--topic", help="Only this topic; repeatable.")]
Match = Annotated[list[str] | None, MATCH]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done; change nothing.")]


@app.command()
def status(
    ctx: typer.Context,
    topic: Topics = None,
    match: Match = None,
    max_imbalance: Annotated[
        float,
        typer.Option(
            metavar="PERCENT",
            min=0,
            max=100,
            help="Exit 1 if other brokers lead more than this share of the partitions that prefer a broker.",
        ),
    ] = 10.0,
) -> None:
    """Show the leader imbalance, and non-preferred leaders.

    The imbalance is computed per broker, as the controller does for leader.imbalance.per.broker.percentage
    (default: 10). Exits 1 if it exceeds --max-imbalance, or if a partition has no leader.

    # Exit 1 if any partition has a non-preferred leader
    kctl leader status --max-imbalance 0
    """
    from kctl.leader.status import read_leader_status

    inv = invocation(ctx)
    with inv.connect() as client:
        leaders = read_leader_status(client, topic or (), match or ())
    inv.emit(leaders, lambda: status_tables(leaders))
    if inv.output in output.FOR_PEOPLE:
        for line in idle_lines(leaders):
            output.note(line)
    leaders.require_healthy(max_imbalance)


@app.command()
def elect(
    ctx: typer.Context,
    preferred: Annotated[bool, typer.Option("--preferred", help="Elect preferred replicas that are in sync.")] = False,
    unclean: Annotated[
        bool,
        typer.Option("--unclean", help="Elect any live replica for partitions without a leader. LOSES RECORDS."),
    ] = False,
    ignore_eligible: Annotated[
        bool,
        typer.Option(
            "--ignore-eligible",
            help="With --unclean, elect even if eligible leader replicas are down. Loses the records that only those "
            "replicas have.",
        ),
    ] = False,
    topic: Topics = None,
    match: Match = None,
    partition: Annotated[list[str] | None, PARTITION] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--path-to-json-file", metavar="FILE", help="JSON file of partitions, as for kafka-leader-election."
        ),
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Elect leaders, and report the new leaders.

    Clients of a partition pause briefly while its leader changes. A partition whose preferred replica is not in
    sync is skipped, and the exit code is 1. An unclean election must be confirmed with the cluster's name, even
    with --yes: records that exist only on replicas that are down are lost. It skips a partition with eligible leader
    replicas (KIP-966): start their brokers, and the controller elects one that has every committed record.

    # Return the leadership of one topic to its preferred replicas
    kctl leader elect --preferred --topic orders
    """
    if preferred == unclean:
        raise UsageError("set either --preferred or --unclean", hint="--preferred loses no records")
    if ignore_eligible and not unclean:
        raise UsageError("--ignore-eligible requires --unclean", hint="add --unclean, or drop --ignore-eligible")
    choose, inv = _chooser(topic or (), match or (), partition, file), invocation(ctx)
    with inv.connect() as client:
        state, chosen = choose(client)
        if unclean:
            from kctl.commands.leader.unclean import elect_unclean

            elect_unclean(
                inv, client, state, chosen, named=bool(partition), dry_run=dry_run, ignore_eligible=ignore_eligible
            )
        else:
            _elect_preferred(inv, client, state, chosen, dry_run=dry_run)


def _chooser(
    topics: Sequence[str], match: Sequence[str], partition: Sequence[str] | None, file: Path | None
) -> Callable[[ClusterClient], tuple[ClusterState, list[PartitionState]]]:
    """Return the function that selects the partitions. Invalid options and files are raised before connecting."""
    from kctl.cluster.partition_numbers import parse_each
    from kctl.leader.election import choose, choose_each
    from kctl.leader.election_file import read_election_file

    if file is not None and (topics or match or partition):
        raise UsageError("--path-to-json-file already selects partitions", hint="omit --topic, --match and --partition")
    if partition and not topics and not match:
        raise UsageError("--partition requires a topic", hint="add --topic NAME")
    if file is not None:
        partitions = read_election_file(file)
        return lambda client: choose_each(client, partitions)
    numbers = parse_each(partition)
    return lambda client: choose(client, topics, match, numbers)


def _elect_preferred(
    inv: Invocation, client: ClusterClient, state: ClusterState, chosen: Sequence[PartitionState], *, dry_run: bool
) -> None:
    from kctl.leader import operations
    from kctl.leader.election import require_elected

    def confirm(plan: Sequence[Election], basis: Basis) -> None:
        warn_of_skipped(plan)
        election_count = sum(row.result is ItemResult.WOULD_ELECT for row in plan)
        inv.confirm(
            f"Elect the preferred leaders of {counted(election_count, 'partition')} on {client.target.name}? "
            "Their clients pause briefly.",
            target=client.target,
            basis=basis,
        )

    plan = operations.elect_preferred(
        client,
        state,
        chosen,
        confirm,
        watching=lambda: progress_of("electing"),
        timeout_s=inv.timeout_s(30),
        dry_run=dry_run,
    )
    led = len(chosen) - len(plan)
    if led and all(row.result is ItemResult.SKIPPED for row in plan):
        output.note(f"{counted(led, 'partition')} already led by the preferred replica")
    inv.emit(plan, lambda: election_tables(plan), changed=any_changed(plan))
    require_elected(plan)


@app.command()
def balance(
    ctx: typer.Context,
    topic: Topics = None,
    match: Match = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Also save the plan to this plan file.")] = None,
    dry_run: DryRun = False,
) -> None:
    """Balance leaders over the live brokers, then elect them.

    Reorders replicas with as few changes as possible; no data is moved. With --topic or --match, only the leaders
    of these topics are balanced. If interrupted, run it again.

    # Preview the new leaders
    kctl leader balance --dry-run
    """
    from kctl.leader import operations

    inv = invocation(ctx)
    ask_to_replace(inv, out)

    def report(planned: LeaderBalance) -> None:
        for warning in planned.plan.warnings:
            output.warn(warning)
        if out is not None:
            _save(planned, out, topic=topic or (), match=match or ())

    with inv.connect() as client:

        def confirm(planned: LeaderBalance, basis: Basis) -> None:
            if not inv.yes:
                output.note(certificate(planned))
                warn_of_skipped(planned.elections)
            inv.confirm(_question(planned, client), target=client.target, basis=basis)

        result = operations.balance_leaders(
            client,
            topic or (),
            match or (),
            confirm,
            report=report,
            watching=lambda: progress_of("balancing"),
            timeout_s=inv.timeout_s(30),
            dry_run=dry_run,
        )
    inv.emit(_balance_document(result), lambda: balance_tables(result), changed=result.changed or out is not None)
    result.require_balanced()


def _question(planned: LeaderBalance, client: ClusterClient) -> str:
    election_count = sum(row.result is ItemResult.WOULD_ELECT for row in planned.elections)
    if not planned.reorders:
        return (
            f"Elect the preferred leaders of {counted(election_count, 'partition')} on {client.target.name}? "
            "Clients pause briefly."
        )
    return (
        f"Reorder the replicas of {counted(len(planned.reorders), 'partition')} on {client.target.name}, "
        f"and elect {counted(election_count, 'leader')}? Clients pause briefly."
    )


def _balance_document(result: LeaderBalance) -> dict[str, Any]:
    plan = result.plan
    return {
        "leader_changes": plan.leader_changes,
        "leader_lower_bound": plan.leader_lower_bound,
        "complete": plan.complete,
        "unmet": plan.unmet,
        "reorders": len(result.reorders),
        "brokers": jsonable(result.brokers),
        "elections": jsonable(result.elections),
        "failed": {str(tp): reason for tp, reason in sorted(result.failed.items())},
    }


def _save(planned: LeaderBalance, path: Path, **options: Sequence[str]) -> None:
    from kctl.leader.balance import saved_plan

    write_whole(path, saved_plan(planned, options))
    if not planned.reorders:
        output.note(f"{path} has no reorders; to elect leaders: `kctl leader elect --preferred`")
