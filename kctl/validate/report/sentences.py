"""A verdict in sentences. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kctl.base.text import counted
from kctl.validate.evidence import MissingRecord
from kctl.validate.report.verdict import Breach, Verdict

_WORDS = {
    "lost": "acknowledged but not in the log",
    "misplaced": "acknowledged at an offset that holds another record",
    "duplicated": "in the log more than once",
    "out_of_order": "in the log after later ones",
    "holes": "in the offsets of the log",
    "foreign": "in the log but not sent by the validation",
    "not_delivered": "in the log but not delivered",
    "delivered_again": "delivered a second time",
    "delivered_late": "delivered after later ones",
    "phantoms": "delivered but no longer in the log",
}
_BUDGETS = {
    "max_gap_ms": "without a write",
    "max_isr_ms": "until all replicas were in sync",
    "max_leader_ms": "until a new leader was elected",
    "max_controller_ms": "until a new controller was elected",
}
OPTIONS = {
    "max_gap_ms": "--max-gap",
    "max_isr_ms": "--max-isr-time",
    "max_leader_ms": "--max-leader-time",
    "max_controller_ms": "--max-controller-time",
}
_SHOWN = 3


def why_not(verdict: Verdict) -> Iterator[str]:
    """Yield the reasons why a verdict is not ok, most important first."""
    for name in verdict.violated:
        findings = getattr(verdict.findings, name)
        what = "gap" if name == "holes" else "record"
        yield f"{name}: {counted(findings.count, what)} {_WORDS[name]}"
    by_name: dict[tuple[str, str | None], list[Breach]] = {}
    for breach in verdict.breaches:
        by_name.setdefault((breach.name, breach.fault), []).append(breach)
    for (name, fault), breaches in by_name.items():
        slowest = max(breaches, key=lambda each: float("inf") if each.took_ms is None else each.took_ms)
        took = "not within the observed time" if slowest.took_ms is None else f"{slowest.took_ms:,} ms"
        when = "before the first fault" if fault is None else f"after '{fault}'"
        where = "" if slowest.partition is None else f" in {_partitions(breaches)}"
        yield f"budget: {took} {_BUDGETS[name]} {when}{where}; the limit is {slowest.limit_ms:,} ms"
    yield from (f"doubt: {each}" for each in verdict.doubts)


def _partitions(breaches: list[Breach]) -> str:
    numbers = [str(each.partition) for each in breaches]
    more = f" and {len(numbers) - _SHOWN} more" if len(numbers) > _SHOWN else ""
    return f"partition {', '.join(numbers[:_SHOWN])}{more}"


def budget_status(budget: Mapping[str, Any]) -> str:
    """Return "yes", "no" or "not measured" for a budget. budget: its value in a result."""
    return {True: "yes", False: "no", None: "not measured"}[budget["kept"]]


def unmeasured_line(budget: str) -> str:
    """Return the warning for a budget that no scenario of the run measured."""
    return f"{OPTIONS[budget]} was not measured: no fault caused what it limits"


def missing_line(missing: MissingRecord) -> str:
    """Return the position of a missing record, and its state in the replicas."""
    offset = f"offset {missing.offset}" if missing.offset >= 0 else "no offset (acks=0)"
    where = f"partition {missing.partition}, {offset}, sequence {missing.sequence}"
    replicas = ", ".join(f"broker {each.broker} has it at offset {each.offset}" for each in missing.seen)
    delivered = "; the consumer got it" if missing.delivered and missing.became != "not delivered" else ""
    text = {
        "lost": "lost: not in the log files of any replica",
        "cut off": f"lost to clients, but still in a file: {replicas}",
        "not delivered": f"not delivered; {replicas or 'the log has it'}",
        "not looked for": "not in the log; the log files are not on this machine",
    }[missing.became]
    unread = f" ({'; '.join(missing.unread)})" if missing.unread else ""
    return f"{where}: {text}{delivered}{unread}"
