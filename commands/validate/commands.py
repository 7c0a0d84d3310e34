"""kctl validate: inject faults and check that no acknowledged record is lost."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.commands.terminal.invocation import CommandGroup, invocation
from kctl.commands.terminal.option_sets import takes_options

if TYPE_CHECKING:
    from kctl.validate.plan import ValidationOptions

app = CommandGroup()

HooksFile = Annotated[
    Path | None, typer.Option("--hooks", metavar="FILE", help="YAML file with commands that stop and start brokers.")
]
Report = Annotated[
    Path | None, typer.Option("--report", metavar="FOLDER", help="Folder for report.json, report.md and plots.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")]


@dataclass(frozen=True)
class ValidateOptions:
    """The common options of all scenarios."""

    acks: Annotated[str, typer.Option(metavar="0|1|all", help="Acknowledgments the producer waits for.")] = "all"
    idempotence: Annotated[
        bool | None,
        typer.Option("--idempotence/--no-idempotence", help="Idempotent producer (default: on with acks=all)."),
    ] = None
    min_insync_replicas: Annotated[
        int | None,
        typer.Option(
            "--min-insync-replicas",
            metavar="N",
            min=1,
            help="min.insync.replicas of the test topics (default: 2 with three replicas or for unclean-election, "
            "else 1).",
        ),
    ] = None
    rate: Annotated[int, typer.Option("--rate", metavar="N", min=1, help="Records per second.")] = 300
    max_gap: Annotated[
        str | None, typer.Option("--max-gap", metavar="DURATION", help="Fail if writes to a partition stop for longer.")
    ] = None
    max_isr_time: Annotated[
        str | None,
        typer.Option("--max-isr-time", metavar="DURATION", help="Fail if replicas are out of sync for longer."),
    ] = None
    max_leader_time: Annotated[
        str | None,
        typer.Option("--max-leader-time", metavar="DURATION", help="Fail if a partition has no leader for longer."),
    ] = None
    max_controller_time: Annotated[
        str | None,
        typer.Option("--max-controller-time", metavar="DURATION", help="Fail if there is no controller for longer."),
    ] = None
    hooks: HooksFile = None
    report: Report = None
    dry_run: DryRun = False

    def validation_options(self) -> ValidationOptions:
        """Return the parsed options. Raises UsageError."""
        from kctl.base.units import parse_duration_ms
        from kctl.errors import UsageError
        from kctl.validate.plan import ValidationOptions
        from kctl.validate.report.verdict import Budgets

        if self.acks not in {"0", "1", "all"}:
            raise UsageError(f"--acks {self.acks} is invalid", hint="use 0, 1 or all")
        limits = (self.max_gap, self.max_isr_time, self.max_leader_time, self.max_controller_time)
        budgets = Budgets(*(None if limit is None else parse_duration_ms(limit) for limit in limits))
        idempotent = self.acks == "all" if self.idempotence is None else self.idempotence
        return ValidationOptions(self.acks, idempotent, self.min_insync_replicas, float(self.rate), budgets)


@app.command("leader-election")
@takes_options(ValidateOptions)
def leader_election(ctx: typer.Context, options: ValidateOptions) -> None:
    """Kill a leader; check that no acked record is lost.

    A producer writes to a test topic with replicas on every broker. The leader of one of its partitions is killed (kill
    -9) and started again, then preferred leaders are elected. Exits 1 if an invariant or a budget is violated.

    # Fail if writes to a partition stop for more than 30 seconds
    kctl validate leader-election --max-gap 30s --yes
    """
    _run(ctx, ["leader-election"], options)


@app.command("controller-election")
@takes_options(ValidateOptions)
def controller_election(ctx: typer.Context, options: ValidateOptions) -> None:
    """Kill the controller; check that another takes over.

    Like leader-election, but the controller is killed (kill -9).

    # Run the validation without asking
    kctl validate controller-election --yes
    """
    _run(ctx, ["controller-election"], options)


@app.command("rolling-restart")
@takes_options(ValidateOptions)
def rolling_restart(ctx: typer.Context, options: ValidateOptions) -> None:
    """Restart all brokers one by one under load.

    Like `kctl cluster restart --rolling`: a broker is stopped only if the remaining replicas satisfy
    min.insync.replicas, and the next one only when all replicas are in sync again.

    # Fail if writes to a partition stop for more than 10 seconds
    kctl validate rolling-restart --max-gap 10s --yes
    """
    _run(ctx, ["rolling-restart"], options)


@app.command("unclean-election")
@takes_options(ValidateOptions)
def unclean_election(ctx: typer.Context, options: ValidateOptions) -> None:
    """Elect an out-of-sync leader and measure the loss.

    Uses a test topic with two replicas and unclean.leader.election.enable. The follower is paused, the leader continues
    alone and is killed (kill -9), then the follower is elected. With acks=all and min.insync.replicas=2, no
    acknowledged record is lost. With --acks 1 or --min-insync-replicas 1, records are lost and reported. Writes stop on
    purpose, so budgets do not apply.

    # Check that acks=all loses no record
    kctl validate unclean-election --yes

    # Measure the loss with acks=1
    kctl validate unclean-election --acks 1 --yes
    """
    _run(ctx, ["unclean-election"], options)


@app.command("broker-loss")
@takes_options(ValidateOptions)
def broker_loss(ctx: typer.Context, options: ValidateOptions) -> None:
    """Stop a broker for a while; check that it catches up.

    Like leader-election, but the broker stays down until it has left every ISR, and 10 s longer.

    # Fail if the broker needs more than two minutes to catch up
    kctl validate broker-loss --max-isr-time 2m --yes
    """
    _run(ctx, ["broker-loss"], options)


@app.command("zookeeper-loss")
@takes_options(ValidateOptions)
def zookeeper_loss(ctx: typer.Context, options: ValidateOptions) -> None:
    """Stop ZooKeeper; check that brokers keep serving.

    All ZooKeeper servers are killed (kill -9) and started again: by signals in a cluster that kctl set up, otherwise by
    the commands under `zookeeper` in --hooks.

    # Run the validation without asking
    kctl validate zookeeper-loss --yes
    """
    _run(ctx, ["zookeeper-loss"], options)


@app.command("controller-loss")
@takes_options(ValidateOptions)
def controller_loss(ctx: typer.Context, options: ValidateOptions) -> None:
    """Kill the active dedicated controller under load.

    For clusters with dedicated controllers (KRaft) that kctl set up. The active controller is killed (kill -9) and
    started again after 10 s. Clients must not notice. If brokers are the controllers, use controller-election.

    # Fail if there is no active controller for more than 10 seconds
    kctl validate controller-loss --max-controller-time 10s --yes
    """
    _run(ctx, ["controller-loss"], options)


@app.command("quorum-loss")
@takes_options(ValidateOptions)
def quorum_loss(ctx: typer.Context, options: ValidateOptions) -> None:
    """Kill a majority of the controllers under load.

    For clusters with dedicated controllers (KRaft) that kctl set up. A majority of the controllers is killed (kill -9)
    and started again after 10 s. Brokers must keep serving. A topic that kctl creates during the outage must exist
    completely or not at all afterwards.

    # Run the validation without a prompt
    kctl validate quorum-loss --yes
    """
    _run(ctx, ["quorum-loss"], options)


@app.command("all")
@takes_options(ValidateOptions)
def all_(ctx: typer.Context, options: ValidateOptions) -> None:
    """Run all validations one after another.

    Validations that cannot run on this cluster are skipped with a warning. kctl cleans up after each one, also
    after Ctrl-C. If kctl itself is killed, the next `kctl validate` cleans up.

    # Run all validations, and write a report to the folder reliability
    kctl validate all --max-gap 30s --report reliability --yes
    """
    _run(ctx, None, options)


@app.command("matrix")
def matrix(ctx: typer.Context, hooks: HooksFile = None, report: Report = None, dry_run: DryRun = False) -> None:
    """Compare acks, idempotence and min.insync.replicas.

    Eight combinations go through the same unclean election; the table shows what each acknowledged and lost. Exits
    1 if a combination lost records that it promises to keep, or if acks=1 lost nothing, because then the fault had
    no effect.

    # Compare all combinations without asking
    kctl validate matrix --yes
    """
    from kctl.commands.validate.run import run_matrix

    run_matrix(invocation(ctx), hooks, report, dry_run=dry_run)


def _run(ctx: typer.Context, names: list[str] | None, options: ValidateOptions) -> None:
    """Run scenarios. names: None for all."""
    from kctl.commands.validate.run import run_scenarios

    run_scenarios(
        invocation(ctx), names, options.validation_options(), options.hooks, options.report, dry_run=options.dry_run
    )
