"""kctl topic reassign plan: the fewest moves that reach the goals, with a lower bound."""

from __future__ import annotations

import gc
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kctl.base.name_patterns import parse_patterns
from kctl.base.units import parse_rate, parse_size
from kctl.commands.terminal import output
from kctl.commands.terminal.broker_ids import broker_ids
from kctl.commands.terminal.invocation import Invocation, invocation
from kctl.commands.terminal.option_sets import takes_options
from kctl.commands.terminal.out_file import ask_to_replace, write_whole
from kctl.errors import NotHealthy, UsageError
from kctl.reassign.planner.goals import BalanceGoal, Goals, check_options

if TYPE_CHECKING:
    from kctl.reassign.planner.execution import Execution
    from kctl.reassign.planner.plan import Plan

_BROKERS = "N,…"


@dataclass(frozen=True)
class PlanOptions:
    """The options of `kctl topic reassign plan`."""

    remove_broker: Annotated[
        list[str] | None, typer.Option(metavar=_BROKERS, help="Move all replicas off these brokers; repeatable.")
    ] = None
    add_broker: Annotated[
        list[str] | None,
        typer.Option(metavar=_BROKERS, help="Give these brokers an even share of the replicas; repeatable."),
    ] = None
    brokers: Annotated[
        list[str] | None, typer.Option(metavar=_BROKERS, help="Place all replicas evenly on these brokers.")
    ] = None
    replication_factor: Annotated[
        int | None, typer.Option(min=1, max=32767, help="Replicas per partition (default: unchanged).")
    ] = None
    fix_racks: Annotated[bool, typer.Option("--fix-racks", help="Keep at most ceil(RF / racks) replicas per rack.")] = (
        False
    )
    balance: Annotated[
        list[BalanceGoal] | None, typer.Option(metavar="WHAT", help="Balance replicas, leaders or bytes; repeatable.")
    ] = None
    log_dirs: Annotated[bool, typer.Option("--log-dirs", help="Balance the log dirs within each broker.")] = False
    leaders_only: Annotated[
        bool, typer.Option("--leaders-only", help="Balance preferred leaders by reordering replicas; no data moves.")
    ] = False
    exclude_broker: Annotated[
        list[str] | None,
        typer.Option(metavar=_BROKERS, help="Brokers that receive nothing and keep their replicas; repeatable."),
    ] = None
    tolerance: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help="Allowed deviation from the mean, e.g. 0.1 or 10% (default: 10% for bytes, none for counts).",
        ),
    ] = None
    topic: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Plan only this topic; repeatable.")] = None
    match: Annotated[
        list[str] | None,
        typer.Option(
            "--match", "--topic-regex", metavar="REGEX", help="Plan only topics whose whole name matches; repeatable."
        ),
    ] = None
    topics_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Plan only these topics: one name per line, or Kafka's JSON.")
    ] = None
    max_moves: Annotated[
        int | None, typer.Option(min=0, help="Plan at most this many replica moves (default: no limit).")
    ] = None
    max_bytes: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Plan to copy at most this many bytes, e.g. 500GB (default: no limit)."),
    ] = None
    throttle: Annotated[
        str | None, typer.Option(metavar="RATE", help="Rate used for the estimate (default: 50MB/s per broker).")
    ] = None
    max_concurrent_moves: Annotated[
        int | None, typer.Option(min=1, help="Replica copies per batch (default: 5 per broker, at least 50).")
    ] = None
    batch_bytes: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Bytes per batch, e.g. 100GB (default: no limit).")
    ] = None
    from_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Plan offline from a file of `kctl cluster export`.")
    ] = None
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Save the plan to this file, for apply.")] = None


@takes_options(PlanOptions)
def plan(ctx: typer.Context, options: PlanOptions) -> None:
    """Plan the fewest moves that reach the goals, with a lower bound.

    Changes nothing. Plans all topics by default, including internal topics, because a removed broker must not keep
    a replica of any. The estimate assumes 50MB/s per broker unless --throttle is set; `apply` runs without a
    throttle unless its own --throttle is set. -o json prints the plan file, which kafka-reassign-partitions accepts
    as well; -o wide shows every row. Exits 1 if the plan does not reach all goals.

    # Plan to move all replicas off broker 3
    kctl topic reassign plan --remove-broker 3 --out plan.json
    """
    from kctl.reassign.planner.planning import PlanRequest, plan_request

    inv = invocation(ctx)
    goals = Goals(
        remove_brokers=broker_ids("--remove-broker", options.remove_broker),
        add_brokers=broker_ids("--add-broker", options.add_broker),
        brokers=broker_ids("--brokers", options.brokers) if options.brokers else None,
        exclude_brokers=broker_ids("--exclude-broker", options.exclude_broker),
        replication_factor=options.replication_factor,
        fix_racks=options.fix_racks,
        balance=frozenset(options.balance or ()),
        tolerance=_tolerance(options.tolerance),
        leaders_only=options.leaders_only,
        log_dirs=options.log_dirs,
        max_moves=options.max_moves,
        max_bytes=_size("--max-bytes", options.max_bytes),
    )
    check_options(goals)
    request = PlanRequest(
        goals,
        rate_bytes=parse_rate(options.throttle) if options.throttle is not None else None,
        max_concurrent_moves=options.max_concurrent_moves,
        batch_bytes=_size("--batch-bytes", options.batch_bytes),
        patterns=tuple(parse_patterns("--match", options.match or ())),
        topics=_topics(options.topic or (), options.topics_file),
        export=options.from_file,
        options=_options(goals, options.topic, options.match, options.topics_file),
    )
    ask_to_replace(inv, options.out)  # before planning: FILE may hold the plan of an unfinished run
    with _without_collector():
        result, execution = plan_request(request, inv.connect, progress=output.progress, warn=output.warn)
        _show(inv, result, goals, execution, options.out)


# --- options ----------------------------------------------------------------------------------------------------------


def _tolerance(text: str | None) -> float:
    if text is None:
        return 0.0
    match = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]{1,6})?)\s*(%?)", text.strip())
    if not match:
        raise UsageError(f"--tolerance: {text!r} is not a fraction or percentage", hint="write 0.1 or 10%")
    return float(match.group(1)) / (100 if match.group(2) else 1)


def _size(option: str, text: str | None) -> int | None:
    try:
        return None if text is None else parse_size(text)
    except UsageError as exc:
        raise UsageError(f"{option}: {exc.message}", hint=exc.hint) from None


def _topics(names: Sequence[str], file: Path | None) -> tuple[str, ...]:
    if file is None:
        return tuple(names)
    from kctl.reassign.planner.live_cluster import read_topics_file

    return (*names, *read_topics_file(file))


def _options(
    goals: Goals, topics: Sequence[str] | None, match: Sequence[str] | None, file: Path | None
) -> dict[str, Any]:
    """Return the options in effect, for the plan file."""
    options: dict[str, Any] = {
        "remove_broker": sorted(goals.remove_brokers),
        "add_broker": sorted(goals.add_brokers),
        "brokers": sorted(goals.brokers or ()),
        "exclude_broker": sorted(goals.exclude_brokers),
        "replication_factor": goals.replication_factor,
        "fix_racks": goals.fix_racks,
        "balance": sorted(each.value for each in goals.balance),
        "tolerance": goals.tolerance,
        "leaders_only": goals.leaders_only,
        "log_dirs": goals.log_dirs,
        "max_moves": goals.max_moves,
        "max_bytes": goals.max_bytes,
        "topic": sorted(topics or ()),
        "match": sorted(match or ()),
        "topics_file": None if file is None else str(file),
    }
    return {key: value for key, value in options.items() if value not in (None, False, 0.0, [])}


# --- planning ---------------------------------------------------------------------------------------------------------


@contextmanager
def _without_collector() -> Iterator[None]:
    """Disable garbage collection: it takes a third of the time, on millions of rows without cycles."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _show(inv: Invocation, plan: Plan, goals: Goals, execution: Execution, out: Path | None) -> None:
    from kctl.commands.reassign.plan_tables import change_rows, plan_tables
    from kctl.reassign.plan_file.document import document, text_of

    if inv.output in output.FOR_PEOPLE:
        output.emit(None, lambda: plan_tables(plan, goals, execution, wide=inv.output == "wide"), "table")
    elif inv.output == "csv":
        inv.emit(change_rows(plan), [])
    elif inv.output == "yaml":
        inv.emit(document(plan, execution), [])
    text = text_of(document(plan, execution)) if out is not None or inv.output == "json" else ""
    if inv.output == "json":
        output.write_text(text)
    for line in plan.warnings:
        output.warn(line)
    if out is not None:
        write_whole(out, text)
        inv.report_change(changed=True)
        output.note(
            f"saved {out}" + (f"; apply it with `kctl topic reassign apply {_quoted(out)}`" if plan.changes else "")
        )
    elif plan.changes and inv.output in output.FOR_PEOPLE:
        output.note("to apply it, save it with --out FILE, then run `kctl topic reassign apply FILE`")
    if plan.unmet:
        more = f" (and {len(plan.unmet) - 1} more)" if len(plan.unmet) > 1 else ""
        for line in plan.unmet[1:]:
            output.warn(line)
        raise NotHealthy(
            f"the plan does not reach its goals: {plan.unmet[0]}{more}",
            hint="the moves are valid and can be applied" if plan.changes else "",
            details={"unmet": plan.unmet},
        )


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
