"""kctl validate: what a cluster keeps of what it acknowledged, while something is done to it on purpose."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.commands.terminal.invocation import CommandGroup, invocation
from kctl.commands.terminal.option_sets import takes_options

if TYPE_CHECKING:
    from kctl.validate.plan import Wishes

app = CommandGroup(help="Break a cluster on purpose, and prove what it keeps.")

HooksFile = Annotated[
    Path | None, typer.Option("--hooks", metavar="FILE", help="Commands that break what kctl did not set up (YAML).")
]
Report = Annotated[
    Path | None, typer.Option("--report", metavar="FOLDER", help="Write report.json, report.md and plots there.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]


@dataclass(frozen=True)
class ValidateOptions:
    """The options of a scenario, as written."""

    acks: Annotated[str, typer.Option(metavar="0|1|all", help="What the producer waits for.")] = "all"
    idempotence: Annotated[
        bool | None,
        typer.Option("--idempotence/--no-idempotence", help="Producer's idempotence; on by default with acks=all."),
    ] = None
    min_insync_replicas: Annotated[
        int | None,
        typer.Option("--min-insync-replicas", metavar="N", min=1, help="Of the own topics (2, if that can be)."),
    ] = None
    rate: Annotated[int, typer.Option("--rate", metavar="N", min=1, help="Records a second.")] = 300
    max_gap: Annotated[
        str | None, typer.Option("--max-gap", metavar="DURATION", help="The longest a partition may take no write.")
    ] = None
    max_isr_time: Annotated[
        str | None,
        typer.Option("--max-isr-time", metavar="DURATION", help="The longest until all replicas are in sync."),
    ] = None
    max_leader_time: Annotated[
        str | None,
        typer.Option("--max-leader-time", metavar="DURATION", help="The longest until there is a new leader."),
    ] = None
    max_controller_time: Annotated[
        str | None,
        typer.Option("--max-controller-time", metavar="DURATION", help="The longest until there is a new controller."),
    ] = None
    hooks: HooksFile = None
    report: Report = None
    dry_run: DryRun = False

    def wishes(self) -> Wishes:
        """Return the request. Raises UsageError."""
        from kctl.base.units import parse_duration_ms
        from kctl.errors import UsageError
        from kctl.validate.plan import Wishes
        from kctl.validate.report.verdict import Budgets

        if self.acks not in {"0", "1", "all"}:
            raise UsageError(f"--acks {self.acks} is none of 0, 1 and all")
        limits = (self.max_gap, self.max_isr_time, self.max_leader_time, self.max_controller_time)
        budgets = Budgets(*(None if limit is None else parse_duration_ms(limit) for limit in limits))
        idempotent = self.acks == "all" if self.idempotence is None else self.idempotence
        return Wishes(self.acks, idempotent, self.min_insync_replicas, float(self.rate), budgets)


@app.command("leader-election")
@takes_options(ValidateOptions)
def leader_election(ctx: typer.Context, options: ValidateOptions) -> None:
    """Kill a leader, and see that others take over with all that was acknowledged.

    A producer writes to a topic of its own with replicas on every broker; the broker that leads one of its partitions
    gets kill -9 and is started again; then the preferred leaders are elected. Exits 1 when an invariant or a budget is
    broken.

    Example: kctl validate leader-election --max-gap 30s --yes
    """
    _run(ctx, ["leader-election"], options)


@app.command("controller-election")
@takes_options(ValidateOptions)
def controller_election(ctx: typer.Context, options: ValidateOptions) -> None:
    """Kill the controller, and see that another one takes over.

    As leader-election; the broker that is the controller gets kill -9.

    Example: kctl validate controller-election --yes
    """
    _run(ctx, ["controller-election"], options)


@app.command("rolling-restart")
@takes_options(ValidateOptions)
def rolling_restart(ctx: typer.Context, options: ValidateOptions) -> None:
    """Restart every broker in its turn, under load.

    As kctl cluster restart --rolling does it: each broker is stopped only when the others are enough, and the next one
    when all is in sync again.

    Example: kctl validate rolling-restart --max-gap 10s --yes
    """
    _run(ctx, ["rolling-restart"], options)


@app.command("unclean-election")
@takes_options(ValidateOptions)
def unclean_election(ctx: typer.Context, options: ValidateOptions) -> None:
    """Elect a leader that lacks records, and see what that costs.

    On a topic of its own with two replicas and unclean.leader.election.enable: its follower is paused, the leader goes
    on alone and gets kill -9, the follower is elected. With acks=all and min.insync.replicas=2 nothing that was
    acknowledged is lost; with --acks 1 or --min-insync-replicas 1 it is, and that is found. Writes stand still on
    purpose: it has no budgets.

    Example: kctl validate unclean-election --yes

    Example: kctl validate unclean-election --acks 1 --yes
    """
    _run(ctx, ["unclean-election"], options)


@app.command("broker-loss")
@takes_options(ValidateOptions)
def broker_loss(ctx: typer.Context, options: ValidateOptions) -> None:
    """Do without a broker for a while, and see it catch up.

    As leader-election; the broker stays away until it is in no ISR, and ten seconds more.

    Example: kctl validate broker-loss --max-isr-time 2m --yes
    """
    _run(ctx, ["broker-loss"], options)


@app.command("zookeeper-loss")
@takes_options(ValidateOptions)
def zookeeper_loss(ctx: typer.Context, options: ValidateOptions) -> None:
    """Do without ZooKeeper for a while, and see that brokers serve on.

    All of its ZooKeepers get kill -9, and are started again: those of a cluster that kctl set up by signals, any others
    by the commands under zookeeper: in --hooks.

    Example: kctl validate zookeeper-loss --yes
    """
    _run(ctx, ["zookeeper-loss"], options)


@app.command("all")
@takes_options(ValidateOptions)
def all_(ctx: typer.Context, options: ValidateOptions) -> None:
    """Run every validation, one after the other.

    What cannot be done to this cluster is left out, and said. Nothing of it remains in the cluster, also after Ctrl-C;
    when kctl itself was killed, the next kctl validate takes back what is left.

    Example: kctl validate all --max-gap 30s --report reliability --yes
    """
    _run(ctx, None, options)


@app.command("matrix")
def matrix(ctx: typer.Context, hooks: HooksFile = None, report: Report = None, dry_run: DryRun = False) -> None:
    """Show what acks, idempotence and min.insync.replicas are worth.

    Eight set-ups live through the same unclean election; the table has what each acknowledged and lost. Exits 1 when
    one lost what it promises to keep, and when acks=1 lost nothing: then the fault was none.

    Example: kctl validate matrix --yes
    """
    from kctl.commands.validate.run import run_matrix

    run_matrix(invocation(ctx), hooks, report, dry_run=dry_run)


def _run(ctx: typer.Context, names: list[str] | None, options: ValidateOptions) -> None:
    """names: None for all."""
    from kctl.commands.validate.run import run_scenarios

    run_scenarios(invocation(ctx), names, options.wishes(), options.hooks, options.report, dry_run=options.dry_run)
