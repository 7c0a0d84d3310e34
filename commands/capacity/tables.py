"""Output of kctl capacity: the result, and the arithmetic if requested."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kctl.base.grouping import grouped
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import Invocation
from kctl.commands.terminal.output import FOR_PEOPLE, Column, Table, jsonable

if TYPE_CHECKING:
    from kctl.capacity.measure import Measurement
    from kctl.capacity.model import Bound, CapacityPlan, Term, TopicPlan

_MAX_NAMES = 5
_BROKERS = "brokers"
_SOURCES = {"partitions": "given", "partitions_now": "current count"}  # formula → name in the table


def emit(inv: Invocation, plan: CapacityPlan | None, measured: Measurement | None, *, explain: bool) -> None:
    """Print the result, and its warnings unless the output is for programs. explain: with the arithmetic."""
    from kctl.capacity.result import CapacityResult

    result = CapacityResult(plan, measured)
    inv.emit(result, lambda: _tables(plan, measured, explain=explain), lambda: _csv(plan, measured))
    if plan is None or inv.output not in FOR_PEOPLE:
        return
    if not explain:
        output.note("--explain shows the arithmetic")
    for message, topics in grouped(plan.cautions, lambda each: each.message).items():
        output.warn(f"{_topic_names([each.topic for each in topics if each.topic])}{message}")


def _topic_names(topics: list[str]) -> str:
    """Return "orders, payments and 7 more: ", as the start of a warning."""
    if not topics:
        return ""
    more = f" and {len(topics) - _MAX_NAMES:,} more" if len(topics) > _MAX_NAMES else ""
    return f"{', '.join(topics[:_MAX_NAMES])}{more}: "


def _csv(plan: CapacityPlan | None, measured: Measurement | None) -> list[dict[str, Any]]:
    """Return a row for each line of the arithmetic; without a plan, the measured rates."""
    if plan is not None:
        return [row for topic, terms in _lines(plan) for row in (_row(topic, term) for term in terms)]
    return [] if measured is None else _rates(measured)


def _lines(plan: CapacityPlan) -> Iterator[tuple[str | None, tuple[Term, ...]]]:
    for topic in plan.topic_plans:
        yield topic.topic, topic.terms
    yield None, plan.terms


def _row(topic: str | None, term: Term) -> dict[str, Any]:
    return {"topic": topic, **jsonable(term)}


def _tables(plan: CapacityPlan | None, measured: Measurement | None, *, explain: bool) -> list[Table]:
    tables = [] if measured is None else [_measured_table(measured)]
    if plan is None:
        return tables
    arithmetic = [_arithmetic(topic or _BROKERS, terms) for topic, terms in _lines(plan)] if explain else []
    return [*tables, _topics(plan), _bounds(plan), *arithmetic]


def _arithmetic(title: str, terms: tuple[Term, ...]) -> Table:
    from kctl.capacity.sheet import format_value

    rows = [{"name": term.name, "result": format_value(term.value, term.unit), "how": _how(term)} for term in terms]
    heading = title.upper() if title == _BROKERS else title
    return Table([Column("name", heading, name=True), Column("result", align="right"), Column("how")], rows)


def _how(term: Term) -> str:
    """Return "formula = numbers", or the source of the number."""
    return term.source if term.formula is None else f"{term.formula} = {term.numbers}"


def _topics(plan: CapacityPlan) -> Table:
    columns = [
        Column("topic", name=True),
        Column("partition_count", "PARTITIONS", align="right"),
        Column("bound_by"),
        Column("replication_factor", "RF", align="right"),
        Column("min_insync_replicas", "MIN ISR", align="right"),
        Column("partition_size", align="right"),
        Column("on_disk", align="right"),
        Column("oldest_record"),
        Column("writes_survive"),
        Column("data_survive"),
    ]
    return Table(columns, [_topic_row(topic) for topic in plan.topic_plans])


def _topic_row(topic: TopicPlan) -> dict[str, Any]:
    from kctl.base.units import format_duration
    from kctl.capacity.fields import BYTES
    from kctl.capacity.sheet import format_value

    oldest = topic.oldest_record_ms
    return {
        "topic": topic.topic,
        "partition_count": topic.partition_count,
        "bound_by": _SOURCES.get(_formula(topic)) or _binding(topic.bounds, "partitions_for_"),
        "replication_factor": topic.replication_factor,
        "min_insync_replicas": topic.min_insync_replicas,
        "partition_size": format_value(topic.partition_bytes, BYTES),
        "on_disk": format_value(topic.disk_bytes, BYTES),
        "oldest_record": None if oldest is None else format_duration(oldest),
        "writes_survive": _survive([each.writes_survive for each in topic.losses]),
        "data_survive": _survive([each.data_survive for each in topic.losses]),
    }


def _formula(topic: TopicPlan) -> str:
    return next(term.formula or "" for term in topic.terms if term.name == "partition_count")


def _survive(by_down: list[int]) -> str:
    """Return e.g. "1, 0 with one down"."""
    first, *others = ["none" if each < 0 else str(each) for each in by_down]
    return f"{first}, {others[0]} with one down" if others else first


def _binding(bounds: tuple[Bound, ...], prefix: str) -> str:
    return ", ".join(bound.name.removeprefix(prefix).replace("_", " ") for bound in bounds if bound.binds)


def _bounds(plan: CapacityPlan) -> Table:
    rows = [
        {
            "name": bound.name.removeprefix("brokers_for_").replace("_", " "), "least": bound.least,
            "binds": "yes" if bound.binds else "",
        }
        for bound in plan.bounds
    ]  # fmt: skip
    total = {"name": "planned", "least": plan.broker_count, "binds": ""}
    return Table(
        [Column("name", "BROKERS FOR"), Column("least", "MINIMUM", align="right"), Column("binds", "LIMITING")],
        [*rows, total],
    )


def _rates(measured: Measurement) -> list[dict[str, Any]]:
    return [
        {"client": "producer", **jsonable(measured.producer)},
        {"client": "consumer", **jsonable(measured.consumer)},
    ]


def _measured_table(measured: Measurement) -> Table:
    from kctl.capacity.fields import BYTES, BYTES_PER_S
    from kctl.capacity.sheet import format_value

    columns = [
        Column("client", "KCTL'S CLIENT"),
        Column("bytes_per_s", "MINIMUM RATE", align="right", show=lambda rate: format_value(rate, BYTES_PER_S)),
        Column("records", align="right", show=lambda count: f"{count:,}"),
        Column("bytes", "SIZE", align="right", show=lambda size: format_value(size, BYTES)),
        Column("duration_ms", "MEASURED", align="right", show=lambda ms: f"{ms / 1000:.2f}s"),
    ]
    return Table(columns, _rates(measured))
