"""kctl topic reassign plan: the smallest set of moves that reaches the goals, with the proof that it is."""

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
from kctl.reassign.planner.goals import Balance, Goals, check_options

if TYPE_CHECKING:
    from kctl.reassign.planner.execution import Execution
    from kctl.reassign.planner.plan import Plan

_BROKERS = "N,…"


@dataclass(frozen=True)
class PlanOptions:
    """The options of `kctl topic reassign plan`."""

    remove_broker: Annotated[
        list[str] | None, typer.Option(metavar=_BROKERS, help="Brokers that are to hold nothing; repeatable.")
    ] = None
    add_broker: Annotated[
        list[str] | None, typer.Option(metavar=_BROKERS, help="New brokers that get their share; repeatable.")
    ] = None
    brokers: Annotated[list[str] | None, typer.Option(metavar=_BROKERS, help="All replicas go to these, evenly.")] = (
        None
    )
    replication_factor: Annotated[
        int | None, typer.Option(min=1, max=32767, help="Replicas of each partition; as they are without.")
    ] = None
    fix_racks: Annotated[
        bool, typer.Option("--fix-racks", help="At most ceil(RF / racks) replicas of a partition in one rack.")
    ] = False
    balance: Annotated[
        list[Balance] | None, typer.Option(metavar="WHAT", help="Spread replicas, leaders or bytes; repeatable.")
    ] = None
    log_dirs: Annotated[
        bool, typer.Option("--log-dirs", help="Even out each broker's own log dirs; nothing changes brokers for it.")
    ] = False
    leaders_only: Annotated[
        bool, typer.Option("--leaders-only", help="Spread preferred leaders by another order; no data moves.")
    ] = False
    exclude_broker: Annotated[
        list[str] | None, typer.Option(metavar=_BROKERS, help="Brokers that keep what they have; repeatable.")
    ] = None
    tolerance: Annotated[
        str | None, typer.Option(metavar="SHARE", help="How far from even a broker may stay: 0.1 or 10%.")
    ] = None
    topic: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only this topic; repeatable.")] = None
    match: Annotated[
        list[str] | None,
        typer.Option(
            "--match", "--topic-regex", metavar="REGEX", help="Topics whose whole name it matches; repeatable."
        ),
    ] = None
    topics_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Only these topics: a name a line, or Kafka's JSON.")
    ] = None
    max_moves: Annotated[int | None, typer.Option(min=0, help="Stop at so many copies of replicas.")] = None
    max_bytes: Annotated[str | None, typer.Option(metavar="SIZE", help="Stop at so many bytes to copy.")] = None
    throttle: Annotated[
        str | None, typer.Option(metavar="RATE", help="For the time it takes: 50MB/s for each broker without.")
    ] = None
    max_concurrent_moves: Annotated[
        int | None, typer.Option(min=1, help="Copies in one batch; 5 for each broker, and at least 50, without.")
    ] = None
    batch_bytes: Annotated[str | None, typer.Option(metavar="SIZE", help="Bytes in one batch.")] = None
    from_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Plan for a file of `kctl cluster export`, offline.")
    ] = None
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Save the plan; needed to carry it out.")] = None


@takes_options(PlanOptions)
def plan(ctx: typer.Context, options: PlanOptions) -> None:
    """Plan the fewest moves that reach the goals, and prove below which number no plan can be. Changes nothing.

    All topics are planned unless some are named, Kafka's own (__consumer_offsets) too: a broker that leaves must not
    keep them. -o json is the plan file; kafka-reassign-partitions takes it as well. -o wide shows every row. The exit
    code is 1 when the plan does not reach all goals.

    Example: kctl topic reassign plan --remove-broker 3 --out plan.json
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
    ask_to_replace(inv, options.out)  # before the work: another plan may be in it, perhaps of a run that goes on
    with _without_collector():
        made, execution = plan_request(request, inv.connect, progress=output.progress, warn=output.warn)
        _show(inv, made, goals, execution, options.out)


# --- options ----------------------------------------------------------------------------------------------------------


def _tolerance(text: str | None) -> float:
    if text is None:
        return 0.0
    match = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]{1,6})?)\s*(%?)", text.strip())
    if not match:
        raise UsageError(f"--tolerance: {text!r} is not a share", hint="write 0.1 or 10%")
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
    """The options that were given, for the plan file."""
    found: dict[str, Any] = {
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
    return {key: value for key, value in found.items() if value not in (None, False, 0.0, [])}


# --- planning ---------------------------------------------------------------------------------------------------------


@contextmanager
def _without_collector() -> Iterator[None]:
    """No garbage collection meanwhile: a third of the time goes into millions of rows that have no cycles."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _show(inv: Invocation, made: Plan, goals: Goals, execution: Execution, out: Path | None) -> None:
    from kctl.commands.reassign.plan_tables import change_rows, plan_tables
    from kctl.reassign.plan_file.document import document, text_of

    if inv.output in output.FOR_PEOPLE:
        output.emit(None, lambda: plan_tables(made, goals, execution, wide=inv.output == "wide"), "table")
    elif inv.output == "csv":
        inv.emit(change_rows(made), [])
    elif inv.output == "yaml":
        inv.emit(document(made, execution), [])
    text = text_of(document(made, execution)) if out is not None or inv.output == "json" else ""
    if inv.output == "json":
        output.write_text(text)
    for line in made.warnings:
        output.warn(line)
    if out is not None:
        write_whole(out, text)
        inv.report_change(changed=True)
        output.note(
            f"saved {out}" + (f"; carry it out with `kctl topic reassign apply {_quoted(out)}`" if made.changes else "")
        )
    elif made.changes and inv.output in output.FOR_PEOPLE:
        output.note("to carry it out, save it with --out FILE; then `kctl topic reassign apply FILE`")
    if made.unmet:
        more = f" (and {len(made.unmet) - 1} more)" if len(made.unmet) > 1 else ""
        for line in made.unmet[1:]:
            output.warn(line)
        raise NotHealthy(
            f"the plan does not reach its goals: {made.unmet[0]}{more}",
            hint="what it moves is right all the same, and can be carried out" if made.changes else "",
            details={"unmet": made.unmet},
        )


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
