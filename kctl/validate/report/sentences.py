"""What a verdict says, in sentences for people. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kctl.base.text import counted
from kctl.validate.evidence import Missing
from kctl.validate.report.verdict import Breach, Verdict

_WORDS = {
    "lost": "acknowledged and not in the log",
    "misplaced": "acknowledged at an offset where the log has another",
    "duplicated": "in the log more than once",
    "out_of_order": "in the log behind later ones",
    "holes": "missing in the log's offsets",
    "foreign": "in the log, and not sent by the validation",
    "not_delivered": "in the log and not delivered",
    "delivered_again": "delivered a second time",
    "delivered_late": "delivered behind later ones",
    "phantoms": "delivered, and not in the log any more",
}
_BUDGETS = {
    "max_gap_ms": "without a write",
    "max_isr_ms": "until all replicas were in sync",
    "max_leader_ms": "until there was a new leader",
    "max_controller_ms": "until there was a new controller",
}
OPTIONS = {
    "max_gap_ms": "--max-gap",
    "max_isr_ms": "--max-isr-time",
    "max_leader_ms": "--max-leader-time",
    "max_controller_ms": "--max-controller-time",
}
_NAMED = 3


def why_not(verdict: Verdict) -> Iterator[str]:
    """Why it is not ok, most important first; nothing when it is."""
    for name in verdict.violated:
        listed = getattr(verdict.findings, name)
        what = "gap" if name == "holes" else "record"
        yield f"{name}: {counted(listed.count, what)} {_WORDS[name]}"
    by_name: dict[tuple[str, str | None], list[Breach]] = {}
    for breach in verdict.breaches:
        by_name.setdefault((breach.name, breach.fault), []).append(breach)
    for (name, fault), found in by_name.items():
        slowest = max(found, key=lambda each: float("inf") if each.took_ms is None else each.took_ms)
        took = "not within the time that was watched" if slowest.took_ms is None else f"{slowest.took_ms:,} ms"
        when = "before the first fault" if fault is None else f"after «{fault}»"
        where = "" if slowest.partition is None else f" in {_partitions(found)}"
        yield f"budget: {took} {_BUDGETS[name]} {when}{where}; the limit is {slowest.limit_ms:,} ms"
    yield from (f"doubt: {each}" for each in verdict.doubts)


def _partitions(found: list[Breach]) -> str:
    numbers = [str(each.partition) for each in found]
    more = f" and {len(numbers) - _NAMED} more" if len(numbers) > _NAMED else ""
    return f"partition {', '.join(numbers[:_NAMED])}{more}"


def kept(judged: Mapping[str, Any]) -> str:
    """Whether a budget was kept, in a word. judged: its value in a result."""
    return {True: "yes", False: "no", None: "not measured"}[judged["kept"]]


def unmeasured_line(budget: str) -> str:
    """Of one that no validation of the run could measure."""
    return f"{OPTIONS[budget]} was not measured: nothing that was done took away what it waits for"


def missing_line(missing: Missing) -> str:
    """Where a record is that should have been there."""
    offset = f"offset {missing.offset}" if missing.offset >= 0 else "no offset (acks=0)"
    where = f"partition {missing.partition}, {offset}, sequence {missing.sequence}"
    seen = ", ".join(f"broker {each.broker} has it at offset {each.offset}" for each in missing.seen)
    had = "; the consumer had it" if missing.delivered and missing.became != "not delivered" else ""
    said = {
        "lost": "lost: no replica's log files have it",
        "cut off": f"lost to clients, though a file has it: {seen}",
        "not delivered": f"not delivered; {seen or 'the log has it'}",
        "not looked for": "not in the log; the log files are not on this machine",
    }[missing.became]
    unread = f" ({'; '.join(missing.unread)})" if missing.unread else ""
    return f"{where}: {said}{had}{unread}"
