"""Verdicts on the results of changes: the errors of a run in which topics were not changed as planned."""

from __future__ import annotations

from collections.abc import Sequence

from kctl.base.outcomes import ItemResult, reasons
from kctl.base.text import counted
from kctl.errors import NotHealthy, OperationFailed
from kctl.topics.alter import AlteredTopic
from kctl.topics.apply import AppliedTopic
from kctl.topics.create import CreatedTopic
from kctl.topics.delete import DeletedTopic


def require_created(rows: Sequence[CreatedTopic]) -> None:
    """Raise OperationFailed if a topic was not created, NotHealthy if a new partition has no leader."""
    failed = _failed(rows)
    if failed:
        raise OperationFailed(
            f"{len(failed)} of {counted(len(rows), 'topic')} not created: {reasons(failed)}",
            hint="the other topics were created; retry the failed ones with --if-not-exists"
            if len(failed) < len(rows)
            else None,
        )
    _require_leaders(rows)


def require_altered(rows: Sequence[AlteredTopic]) -> None:
    """Raise OperationFailed if a change failed or could not be verified."""
    failed = _failed(rows)
    if failed:
        raise OperationFailed(f"{len(failed)} of {counted(len(rows), 'topic')} not changed: {reasons(failed)}")


def require_deleted(rows: Sequence[DeletedTopic]) -> None:
    """Raise OperationFailed if the deletion of any topic is not complete."""
    failed = {row.topic: row.error for row in rows if row.result in {ItemResult.FAILED, ItemResult.MARKED}}
    if failed:
        raise OperationFailed(f"{len(failed)} of {counted(len(rows), 'topic')} not deleted: {reasons(failed)}")


def require_applied(rows: Sequence[AppliedTopic], pruned: Sequence[DeletedTopic]) -> None:
    """Raise OperationFailed if a topic does not match the file or was not deleted, NotHealthy without leaders."""
    failed = _failed(rows)
    if failed:
        suffix = "; nothing was pruned" if pruned else ""
        raise OperationFailed(
            f"{len(failed)} of {counted(len(rows), 'topic')} do not match the file: {reasons(failed)}{suffix}",
            hint="run it again to apply the rest",
        )
    require_deleted(pruned)
    _require_leaders(rows)


def require_matching(count: int) -> None:
    """Raise NotHealthy if topics differ from the file. count: their number."""
    if count:
        verb = "differs" if count == 1 else "differ"
        raise NotHealthy(f"{counted(count, 'topic')} {verb} from the file", hint="", details={"differing": count})


def _failed(rows: Sequence[CreatedTopic | AlteredTopic | AppliedTopic]) -> dict[str, str | None]:
    return {row.topic: row.error for row in rows if row.result is ItemResult.FAILED}


def _require_leaders(rows: Sequence[CreatedTopic | AppliedTopic]) -> None:
    leaderless = [f"{row.topic}: {row.error}" for row in rows if row.error]
    if leaderless:
        raise NotHealthy(f"created, but {'; '.join(leaderless)}")
