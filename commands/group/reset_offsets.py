"""kctl group reset-offsets: reset committed offsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kctl.base.text import counted
from kctl.commands.group.choice import MATCH, TYPE, choose
from kctl.commands.group.tables import effect, emit_changes, judge_changes
from kctl.commands.terminal import output
from kctl.commands.terminal.expect import EXPECT, check_pattern
from kctl.commands.terminal.invocation import Invocation, invocation, more_formats
from kctl.errors import Reason, Refused, UsageError
from kctl.model import TopicPartition

if TYPE_CHECKING:
    from kctl.groups.offsets_file import FileOffset
    from kctl.groups.reset import Given, ResetPlan
    from kctl.groups.reset_rules import ResetTarget
    from kctl.groups.topic_choice import TopicChoice
    from kctl.protocol.client import ClusterClient

DRY_RUN = typer.Option("--dry-run", help="Show the plan, change nothing.")
TOPIC = typer.Option(
    "--topic", metavar="TOPIC[:PARTITIONS]", help="Only this topic, e.g. orders or orders:0,2-5; repeatable."
)


@more_formats("kafka")
def reset_offsets(
    ctx: typer.Context,
    groups: Annotated[list[str] | None, typer.Argument(metavar="[GROUP]…")] = None,
    match: Annotated[list[str] | None, MATCH] = None,
    type_: Annotated[list[str] | None, TYPE] = None,
    expect: Annotated[int | None, EXPECT] = None,
    topic: Annotated[list[str] | None, TOPIC] = None,
    all_topics: Annotated[bool, typer.Option("--all-topics", help="All topics with committed offsets.")] = False,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="Reset to the log start offset.")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="Reset to the log end offset.")] = False,
    to_current: Annotated[
        bool,
        typer.Option("--to-current", help="Keep the committed offset; without a commit, reset to the log end offset."),
    ] = False,
    to_offset: Annotated[str | None, typer.Option(metavar="OFFSET", help="Reset to this offset.")] = None,
    to_datetime: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Reset to the first message at or after this time: ISO 8601, UTC if no zone is given."
        ),
    ] = None,
    by_duration: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Reset to the offset at this long ago, e.g. 90m or PT1H30M.")
    ] = None,
    shift_by: Annotated[
        str | None, typer.Option(metavar="±N", help="Move forward or back by this many messages.")
    ] = None,
    from_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Reset to the offsets in an export, a plan or CSV of Kafka's tool; - is stdin."
        ),
    ] = None,
    from_group: Annotated[
        str | None, typer.Option(metavar="GROUP", help="Reset to the committed offsets of another group.")
    ] = None,
    create: Annotated[bool, typer.Option("--create", help="Create the group if it does not exist.")] = False,
    dry_run: Annotated[bool, DRY_RUN] = False,
) -> None:
    """Reset committed offsets of groups without members.

    Out-of-range offsets are clamped to the log. The plan is shown and confirmed, and the result is verified. -o kafka
    prints the plan as CSV of Kafka's tool.

    Example: kctl group reset-offsets billing --topic orders:0,1 --by-duration 2h --dry-run
    """
    from kctl.cluster.groups.names import check_group_id
    from kctl.groups.reset import plan_reset
    from kctl.groups.topic_choice import parse_choices

    inv = invocation(ctx)
    targets = {
        "--to-earliest": to_earliest, "--to-latest": to_latest, "--to-current": to_current, "--to-offset": to_offset,
        "--to-datetime": to_datetime, "--by-duration": by_duration, "--shift-by": shift_by, "--from-file": from_file,
        "--from-group": from_group,
    }  # fmt: skip
    target = _target(targets)
    choices = parse_choices(topic or ())
    _check_scope(bool(choices), all_topics, offsets_given=from_file is not None or from_group is not None)
    lines = _read_file(from_file)
    if from_group is not None:
        check_group_id(from_group)
    with inv.connect() as client:
        names = choose(client, groups, match, type_, with_commits=True)
        if not dry_run:
            check_pattern(inv, match, expect, len(names))
        offsets: Given | None = None
        if lines is not None:
            offsets = _of_file(lines, names)
        elif from_group is not None:
            offsets = _of_group(client, from_group, names, choices)
        plan = plan_reset(client, names, target, choices, given=offsets, create=create)
        carry_out(inv, client, plan, dry_run=dry_run, moment=_target_time(target))


def _target_time(target: ResetTarget) -> str | None:
    """Return a target time as parsed, for example "2026-11-22T09:30:00.000Z (UTC)"; None for other targets."""
    from kctl.base.timestamps import format_timestamp
    from kctl.groups.reset_rules import To

    return f"{format_timestamp(target.value)} (UTC)" if target.to is To.TIME else None


def carry_out(
    inv: Invocation, client: ClusterClient, plan: ResetPlan, *, dry_run: bool, moment: str | None = None
) -> None:
    """Show the plan, confirm, commit, and show the verified result.

    A dry run ends with the reason for a refusal, if any. moment: the target time of the plan.
    """
    from kctl.groups.basis import of_reset
    from kctl.groups.reset import apply_reset

    if moment is not None:
        output.note(f"to the first message at or after {moment}")

    if dry_run or plan.active or any(row.error for row in plan.rows):
        emit_changes(inv, plan.rows)
        plan.check()
        output.note(effect(plan.todo) if plan.todo else "nothing would change")
        return
    if not plan.todo:
        emit_changes(inv, plan.rows)
        return
    if not inv.yes:
        _show_before_asking(plan)
    groups = len({row.group for row in plan.todo})
    inv.confirm(
        f"Reset {counted(len(plan.todo), 'offset')} of {counted(groups, 'group')} on {client.target.name}"
        f"{f' to {moment}' if moment is not None else ''} ({effect(plan.todo)})?",
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


def _offset_text(offset: int | None) -> str:
    return "no commit" if offset is None else str(offset)


def _target(targets: Mapping[str, object]) -> ResetTarget:
    """Return the target that is set. Raises UsageError for none, several, and for an invalid offset, time or shift."""
    import time

    from kctl.groups.reset_rules import ResetTarget, To, parse_ago, parse_offset, parse_shift, parse_time

    options = [name for name, value in targets.items() if value not in (None, False)]
    if len(options) != 1:
        message = f"{' and '.join(options)} cannot be combined" if options else "no target is set"
        raise UsageError(message, hint=f"set one of {', '.join(targets)}")
    (name,) = options
    text = str(targets[name])
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


def _check_scope(topics: bool, all_topics: bool, *, offsets_given: bool) -> None:
    if topics and all_topics:
        raise UsageError("--topic and --all-topics cannot be combined")
    if not topics and not all_topics and not offsets_given:
        raise UsageError(
            "no topic is selected",
            hint="set --topic TOPIC[:PARTITIONS], or --all-topics to reset all",
        )


def _read_file(path: Path | None) -> list[FileOffset] | None:
    from kctl.groups.offsets_file import read_offsets_file

    return None if path is None else read_offsets_file(path)


def _of_file(lines: Sequence[FileOffset], names: Sequence[str]) -> Given:
    """Return the file's offsets of each named group. Raises UsageError if a group has none."""
    from kctl.groups.offsets_file import by_group

    offsets = by_group(lines, only=names[0] if len(names) == 1 else None)
    missing = [name for name in names if name not in offsets]
    if missing:
        available = ", ".join(repr(name) for name in sorted(offsets)[:5])
        raise UsageError(f"the file has no offsets for group {missing[0]!r}", hint=f"it has offsets for {available}")
    return {name: offsets[name] for name in names}


def _of_group(client: ClusterClient, source: str, names: Sequence[str], choices: Sequence[TopicChoice]) -> Given:
    """Return another group's commits, for each of `names`. Raises NotFound, Refused if it has none, NotAuthorized."""
    from kctl.groups.commit import OffsetToCommit
    from kctl.groups.export import exported

    committed = exported(client, [source], choices)
    if not committed:
        scope = " for the selected topics" if choices else ""
        raise Refused(
            f"group {source!r} has no commits{scope}", hint="nothing was changed", reason=Reason.NOTHING_TO_DO
        )
    offsets = {TopicPartition(row.topic, row.partition): OffsetToCommit(row.committed_offset) for row in committed}
    return dict.fromkeys(names, offsets)
