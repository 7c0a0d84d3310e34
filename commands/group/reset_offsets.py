"""kctl group reset-offsets: reset committed offsets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.base.text import counted
from kctl.commands.group.choice import MATCH, choose
from kctl.commands.group.tables import effect, emit_changes, judge_changes
from kctl.commands.terminal import output
from kctl.commands.terminal.expect import EXPECT, check_pattern
from kctl.commands.terminal.invocation import Invocation, invocation, more_formats
from kctl.commands.terminal.option_sets import takes_options
from kctl.errors import UsageError

if TYPE_CHECKING:
    from kctl.groups.reset import ExplicitOffsets, ResetPlan
    from kctl.groups.reset_rules import ResetTarget
    from kctl.groups.topic_choice import TopicChoice
    from kctl.protocol.client import ClusterClient

DRY_RUN = typer.Option("--dry-run", help="Show the plan; change nothing.")
TOPIC = typer.Option(
    "--topic", metavar="TOPIC[:PARTITIONS]", help="Only this topic, e.g. orders or orders:0,2-5; repeatable."
)


_TARGETS = (
    "--to-earliest", "--to-latest", "--to-current", "--to-offset", "--to-datetime", "--by-duration", "--shift-by",
    "--from-file", "--from-group",
)  # fmt: skip


@dataclass(frozen=True)
class ResetArguments:
    """The arguments and options of the command."""

    groups: Annotated[list[str] | None, typer.Argument(metavar="[GROUP]…", help="Groups to reset.")] = None
    match: Annotated[list[str] | None, MATCH] = None
    type_: Annotated[
        list[str] | None,
        typer.Option(
            "--type",
            metavar="TYPE",
            help="With --match: only classic, consumer, share or streams groups; repeatable. With --create: the type of"
            " a new group, classic or share (default: classic).",
        ),
    ] = None
    expect: Annotated[int | None, EXPECT] = None
    topic: Annotated[list[str] | None, TOPIC] = None
    all_topics: Annotated[
        bool,
        typer.Option(
            "--all-topics",
            help="All topics with offsets; share groups: all subscribed topics; streams groups: the input topics.",
        ),
    ] = False
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="Reset to the log start offset.")] = False
    to_latest: Annotated[bool, typer.Option("--to-latest", help="Reset to the log end offset.")] = False
    to_current: Annotated[
        bool,
        typer.Option("--to-current", help="Keep the committed offset; without a commit, reset to the log end offset."),
    ] = False
    to_offset: Annotated[str | None, typer.Option(metavar="OFFSET", help="Reset to this offset.")] = None
    to_datetime: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Reset to the first message at or after this time: ISO 8601, UTC if no zone is given."
        ),
    ] = None
    by_duration: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Reset to the first message of the last DURATION, e.g. 90m or PT1H30M."),
    ] = None
    shift_by: Annotated[str | None, typer.Option(metavar="±N", help="Move the offset forward by N, or back by -N.")] = (
        None
    )
    from_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Reset to the offsets in an export, a plan, or a CSV file of kafka-consumer-groups; - is stdin.",
        ),
    ] = None
    from_group: Annotated[
        str | None, typer.Option(metavar="GROUP", help="Reset to the committed offsets of another group.")
    ] = None
    create: Annotated[bool, typer.Option("--create", help="Create the group if it does not exist.")] = False
    dry_run: Annotated[bool, DRY_RUN] = False


@more_formats("kafka")
@takes_options(ResetArguments)
def reset_offsets(ctx: typer.Context, options: ResetArguments) -> None:
    """Reset offsets of groups without members.

    Sets committed offsets, or the start offsets of share groups. Out-of-range offsets are clamped to the log. The
    plan is shown and confirmed, and the result is verified. -o kafka prints the plan in the CSV format of
    kafka-consumer-groups.

    # Preview a reset of two partitions to two hours ago
    kctl group reset-offsets billing --topic orders:0,1 --by-duration 2h --dry-run
    """
    from kctl.groups.reset import plan_reset
    from kctl.groups.topic_choice import parse_choices

    inv = invocation(ctx)
    target = _target(options)
    choices = parse_choices(options.topic or ())
    _check_scope(options)
    create_share = _creates_share_groups(options)
    types = options.type_ if options.match or not options.create else None
    read_explicit = _explicit_offsets(options, choices)
    with inv.connect() as client:
        names = choose(client, options.groups, options.match, types)
        if not options.dry_run:
            check_pattern(inv, options.match, options.expect, len(names))
        offsets = read_explicit(client, names)
        plan = plan_reset(
            client, names, target, choices, offsets=offsets, create=options.create, create_share=create_share
        )
        carry_out(inv, client, plan, dry_run=options.dry_run, target_time=_target_time(target))


def _creates_share_groups(options: ResetArguments) -> bool:
    """Return True if new groups are share groups. Raises UsageError if no group of the type can be created."""
    from kctl.cluster.groups.model import CLASSIC, SHARE
    from kctl.cluster.groups.names import known_types

    types = known_types(options.type_)
    if types is None or not options.create or options.match:
        return False
    if types not in ({CLASSIC}, {SHARE}):
        raise UsageError(
            f"--create cannot create {' and '.join(sorted(types))} groups", hint="use --type classic or --type share"
        )
    return types == {SHARE}


def _target_time(target: ResetTarget) -> str | None:
    """Return a target time as parsed, for example "2026-11-22T09:30:00.000Z (UTC)"; None for other targets."""
    from kctl.base.timestamps import format_timestamp
    from kctl.groups.reset_rules import To

    return f"{format_timestamp(target.value)} (UTC)" if target.to is To.TIME else None


def carry_out(
    inv: Invocation, client: ClusterClient, plan: ResetPlan, *, dry_run: bool, target_time: str | None = None
) -> None:
    """Show the plan, confirm, commit, and show the verified result.

    A dry run ends with the reason for a refusal, if any. target_time: the target time of the plan.
    """
    from kctl.groups.basis import of_reset
    from kctl.groups.reset import apply_reset

    if target_time is not None:
        output.note(f"to the first message at or after {target_time}")

    if dry_run or plan.active or any(row.error for row in plan.rows):
        emit_changes(inv, plan.rows)
        plan.check()
        output.note(effect(plan.todo) if plan.todo else "nothing would change")
        _note_internal_topics(plan)
        return
    if not plan.todo:
        emit_changes(inv, plan.rows)
        return
    if not inv.yes:
        _show_before_asking(plan)
    _note_internal_topics(plan)
    groups = len({row.group for row in plan.todo})
    inv.confirm(
        f"Reset {counted(len(plan.todo), 'offset')} of {counted(groups, 'group')} on {client.target.name}"
        f"{f' to {target_time}' if target_time is not None else ''} ({effect(plan.todo)})?",
        target=client.target,
        basis=of_reset(client, plan.todo),
    )
    results, errors = apply_reset(client, plan)
    emit_changes(inv, results)
    judge_changes(results, errors, what="reset")


def _show_before_asking(plan: ResetPlan) -> None:
    for row in plan.todo[:20]:
        note = f" ({row.note})" if row.note else ""
        output.note(f"{row.group} {row.topic}-{row.partition}: {_offset_text(row.old_offset)} → {row.new_offset}{note}")
    if len(plan.todo) > 20:
        output.note(f"and {len(plan.todo) - 20:,} more; use --dry-run to see all")


def _note_internal_topics(plan: ResetPlan) -> None:
    """Print the internal topics that a reset of streams groups does not change."""
    for group, topics in plan.internal_topics.items():
        output.note(
            f"streams group {group} keeps its state and its intermediate records in {counted(len(topics), 'topic')};"
            f" to compute them again, clear the local state of its instances and run: kctl topic delete"
            f" {' '.join(topics)}"
        )


def _offset_text(offset: int | None) -> str:
    return "no commit" if offset is None else str(offset)


def _target(options: ResetArguments) -> ResetTarget:
    """Return the target. Raises UsageError unless exactly one is set, and for an invalid offset, time or shift."""
    import time

    from kctl.groups.reset_rules import ResetTarget, To, parse_ago, parse_offset, parse_shift, parse_time

    selected = [name for name in _TARGETS if _value(options, name) not in (None, False)]
    if len(selected) != 1:
        message = f"{' and '.join(selected)} cannot be combined" if selected else "no target is set"
        raise UsageError(message, hint=f"set one of {', '.join(_TARGETS)}")
    (name,) = selected
    text = str(_value(options, name))
    now_ms = round(time.time() * 1000)
    if name == "--to-offset":
        return ResetTarget(To.OFFSET, parse_offset(text))
    if name == "--shift-by":
        return ResetTarget(To.SHIFT, parse_shift(text))
    if name == "--to-datetime":
        return ResetTarget(To.TIME, parse_time(text, now_ms))
    if name == "--by-duration":
        return ResetTarget(To.TIME, max(parse_ago(text, now_ms), 0))
    plain = {"--to-earliest": To.EARLIEST, "--to-latest": To.LATEST, "--to-current": To.CURRENT}
    return ResetTarget(plain.get(name, To.GIVEN))


def _value(options: ResetArguments, option: str) -> object:
    return getattr(options, option.removeprefix("--").replace("-", "_"))


def _check_scope(options: ResetArguments) -> None:
    if options.topic and options.all_topics:
        raise UsageError("--topic and --all-topics cannot be combined")
    if not (options.topic or options.all_topics or options.from_file is not None or options.from_group is not None):
        raise UsageError(
            "no topic is selected",
            hint="set --topic TOPIC[:PARTITIONS], or --all-topics to reset all",
        )


def _explicit_offsets(
    options: ResetArguments, choices: Sequence[TopicChoice]
) -> Callable[[ClusterClient, Sequence[str]], ExplicitOffsets | None]:
    """Return a function that looks up the offsets for groups, in a file or another group; for neither, it returns None.

    The file is read now, before kctl connects.
    """
    from kctl.cluster.groups.names import check_group_id
    from kctl.groups.explicit_offsets import offsets_of_file, offsets_of_group
    from kctl.groups.offsets_file import read_offsets_file

    if options.from_file is not None:
        lines = read_offsets_file(options.from_file)
        return lambda _client, names: offsets_of_file(lines, names)
    if options.from_group is not None:
        source = check_group_id(options.from_group)
        return lambda client, names: offsets_of_group(client, source, names, choices)
    return lambda _client, _names: None
