"""Gaps without acknowledged writes, and how soon leaders, controller and ISR are back: rules over given moments."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kctl.validate.report.gaps import Fault, WriteGap, find_gaps, worst, writes_per_second
from kctl.validate.report.timeline import ControllerSample, PartitionView, Recovery, Sample, recoveries
from kctl.validate.report.verdict import Breach, BudgetResult, Budgets, breaches, budget_results
from kctl.validate.workload.history import SentPartition, SentRecords

MS = 1_000_000


def sent(*acks_ms: int, first: int = 0, stop: int = -1, last: int = -1) -> SentRecords:
    partition = SentPartition(first_ns=first * MS)
    partition.ack_ns = array("q", [at * MS for at in acks_ms])
    partition.ack_counts = array("q", [10] * len(acks_ms))
    end = last if last >= 0 else acks_ms[-1] if acks_ms else 0
    return SentRecords({0: partition}, stop_ns=stop * MS if stop >= 0 else -1, last_ns=end * MS)


def fault(at_ms: int, *brokers: int, name: str = "f") -> Fault:
    return Fault(name, at_ms * MS, brokers)


@pytest.mark.parametrize(
    ("history", "faults", "expected"),
    [
        # without a fault
        (sent(10, 20, 90, 100), [], [(None, 70, False)]),
        # the gap of the fault counts in full, from the last acknowledgement before it
        (sent(10, 20, 30, 500, 510), [fault(35)], [(None, 10, False), ("f", 470, False)]),
        # a gap before the fault is not the fault's
        (sent(10, 210, 220, 230), [fault(215)], [(None, 200, False), ("f", 10, False)]),
        # open at the end: until the producer was asked to stop
        (sent(10, 20, stop=900, last=950), [fault(15)], [(None, 10, False), ("f", 880, True)]),
        (sent(10, 20, last=700), [fault(15)], [(None, 10, False), ("f", 680, True)]),
        # open over a second fault: both have it, the second until the write that ends it
        (
            sent(10, 1000, 1010), [fault(20, name="a"), fault(500, name="b")],
            [(None, 10, False), ("a", 490, True), ("b", 990, False)],
        ),
        # never acknowledged: since the first record was taken
        (sent(first=5, stop=100), [fault(30)], [(None, 25, True), ("f", 95, True)]),
        # the fault was before the first record
        (sent(60, 70, first=50), [fault(30)], [(None, 0, False), ("f", 10, False)]),
    ],
)  # fmt: skip
def test_gaps(history: SentRecords, faults: list[Fault], expected: list[tuple[str | None, int, bool]]) -> None:
    assert [(gap.after, gap.gap_ms, gap.open) for gap in find_gaps(history, faults)] == expected


def test_where_a_gap_begins_and_the_worst_partition() -> None:
    history = sent(10, 20, 500, 510)
    history.partitions[4] = sent(15, 300, 505).partitions[0]
    gaps = find_gaps(history, [fault(25)])
    assert [gap.partition for gap in gaps] == [0, 0, 4, 4]
    assert worst(gaps) == {
        None: WriteGap(0, None, 10, 0, open=False) if gaps[0].gap_ms >= gaps[2].gap_ms else gaps[2],
        "f": WriteGap(0, "f", 480, 20 * MS, open=False),
    }


@given(
    st.lists(st.integers(0, 300), min_size=1, max_size=30).map(sorted),
    st.lists(st.integers(0, 300), max_size=3).map(sorted),
)
@settings(max_examples=60)
def test_gaps_are_what_a_look_at_every_moment_finds(acks: list[int], moments: list[int]) -> None:
    history = sent(*acks, stop=310)
    faults = [fault(at, name=str(index)) for index, at in enumerate(moments)]
    borders = [0, *moments, 310]
    for gap, begin, end in zip(find_gaps(history, faults), borders, borders[1:], strict=False):
        waits = [
            # just before the moment: what comes at it ends the wait
            moment - max((ack for ack in acks if ack < moment), default=0)
            for moment in range(begin, end + 1)
            if moment == end or moment in acks
        ]
        assert gap.gap_ms == max(waits), (gap, begin, end)


def test_writes_per_second() -> None:
    assert writes_per_second(sent(100, 900, 1000, 3500), 0, 4000 * MS) == [20, 10, 0, 10]
    assert writes_per_second(sent(100, 900), 500 * MS, 1400 * MS) == [10]
    assert writes_per_second(sent(100), 100, 100) == []


# --- recovery -------------------------------------------------------------------------------------------------------


def seen(node: int, at: int, until: int, *views: tuple[int, int, bool]) -> Sample:
    """views: (leader, epoch, full) of partitions 0, 1 …"""
    return Sample(node, at * MS, until * MS, {n: PartitionView(*view) for n, view in enumerate(views)})


def ruled(at: int, until: int, controller: int | None, epoch: int = -1) -> ControllerSample:
    return ControllerSample(at * MS, until * MS, controller, epoch)


HEALTHY = [seen(node, 0, 1000, (1, 5, True), (2, 7, True)) for node in (1, 2, 3)]


def one(faults: list[Fault], samples: list[Sample], controllers: list[ControllerSample]) -> Recovery:
    (found,) = recoveries(faults, samples, controllers)
    return found


def test_nothing_happens() -> None:
    found = one([fault(500, 3)], HEALTHY, [ruled(0, 1000, 1, 4)])
    assert found == Recovery("f", 0, {}, {0: 0, 1: 0})
    assert (found.slowest_leader_ms, found.slowest_isr_ms) == (0, 0)


KILLED = [
    seen(1, 0, 500, (1, 5, True), (2, 7, True)),  # then it is dead
    seen(2, 0, 7000, (1, 5, True), (2, 7, True)),
    seen(3, 0, 7100, (1, 5, True), (2, 7, True)),
    seen(2, 7050, 9000, (2, 6, False), (2, 8, False)),
    seen(3, 7200, 9100, (2, 6, False), (2, 8, False)),
    seen(1, 8000, 8900, (1, 5, True), (2, 7, True)),  # it is back, and does not know yet
    seen(1, 8950, 9050, (2, 6, False), (2, 8, False)),
    seen(2, 9100, 9900, (2, 6, True), (2, 8, True)),
    seen(1, 9150, 9900, (2, 6, True), (2, 8, True)),
    seen(3, 9200, 9900, (2, 6, True), (2, 8, True)),
]


def test_a_killed_leader_and_controller() -> None:
    controllers = [ruled(0, 6400, 1, 4), ruled(6500, 6600, None, 4), ruled(6700, 9900, 3, 5)]
    found = one([fault(600, 1)], KILLED, controllers)
    assert found.to_new_controller_ms == 6100
    assert found.to_new_leader_ms == {0: 6450}
    assert found.to_full_isr_ms == {0: 8500, 1: 8500}
    assert (found.slowest_leader_ms, found.slowest_isr_ms) == (6450, 8500)


def test_what_has_not_come_is_none() -> None:
    until = [sample for sample in KILLED if sample.at_ns < 7000 * MS]
    found = one([fault(600, 1)], until, [ruled(0, 6400, 1, 4), ruled(6500, 6600, None, 4)])
    assert found == Recovery("f", None, {0: None}, {0: 0, 1: 0})
    assert found.slowest_leader_ms is None
    short = [sample for sample in KILLED if sample.at_ns < 9000 * MS]
    found = one([fault(600, 1)], short, [ruled(0, 8000, 1, 4)])
    assert found.to_new_controller_ms is None  # the dead one's znode is still there
    assert found.to_full_isr_ms == {0: None, 1: None}
    assert found.slowest_isr_ms is None


def test_the_same_broker_is_elected_again() -> None:
    assert one([fault(600, 1)], HEALTHY, [ruled(0, 900, 1, 4), ruled(950, 990, 1, 5)]).to_new_controller_ms == 350


def test_without_epochs_another_controller_is_a_new_one() -> None:
    assert one([fault(600, 1)], HEALTHY, [ruled(0, 900, 1), ruled(950, 990, 2)]).to_new_controller_ms == 350
    assert one([fault(600, 3)], HEALTHY, [ruled(0, 900, 1), ruled(950, 990, None)]).to_new_controller_ms is None


def test_a_leader_that_is_moved_is_a_new_one() -> None:
    """A preferred election behind the fault, say."""
    moved = [*HEALTHY, seen(3, 1050, 2000, (1, 5, True), (3, 8, True))]
    assert one([fault(500)], moved, []).to_new_leader_ms == {1: 550}
    # it led and was not hit: it moves behind a restart, and was never without a leader
    assert one([fault(500, 1)], moved, []).to_new_leader_ms == {0: None}


def test_each_fault_has_its_own_recovery() -> None:
    faults = [fault(600, 1, name="a"), fault(8960, 3, name="b")]
    first, second = recoveries(faults, KILLED, [ruled(0, 9900, 2, 4)])
    assert first.to_new_leader_ms == {0: 6450}
    assert first.to_full_isr_ms == {0: None, 1: None}  # the next fault came before
    assert second == Recovery("b", 0, {}, {0: 140, 1: 140})


def test_without_a_fault_there_is_nothing_to_recover_from() -> None:
    assert recoveries([], HEALTHY, [ruled(0, 900, 1)]) == []


def test_nobody_was_asked() -> None:
    assert one([fault(5)], [], []) == Recovery("f", None, {}, {})


# --- budgets --------------------------------------------------------------------------------------------------------


def test_budgets() -> None:
    gaps = [
        WriteGap(0, None, 100, 0, open=False),
        WriteGap(0, "f", 9000, 0, open=False),
        WriteGap(1, "f", 3000, 0, open=True),
    ]
    recovery = Recovery("f", None, {0: 400, 1: None}, {0: 0, 1: 60_000})
    assert breaches(gaps, [recovery], Budgets()) == []
    assert breaches(gaps, [recovery], Budgets(9000, 60_000, 400)) == [Breach("max_leader_ms", "f", 1, None, 400)]
    assert breaches(gaps, [recovery], Budgets(99, 59_999, 300, 10_000)) == [
        Breach("max_gap_ms", None, 0, 100, 99), Breach("max_gap_ms", "f", 0, 9000, 99),
        Breach("max_gap_ms", "f", 1, 3000, 99), Breach("max_controller_ms", "f", None, None, 10_000),
        Breach("max_leader_ms", "f", 0, 400, 300), Breach("max_leader_ms", "f", 1, None, 300),
        Breach("max_isr_ms", "f", 1, 60_000, 59_999),
    ]  # fmt: skip


def test_what_was_measured_of_a_budget() -> None:
    """What nothing could have broken is not kept: it was not measured."""
    gaps = [WriteGap(0, None, 100, 0, open=False), WriteGap(1, "f", 3000, 0, open=True)]
    calm, moved = Recovery("f", 0, {}, {0: 0, 1: 700}), Recovery("g", 450, {0: 400}, {0: 0})
    asked = Budgets(3000, 600, 400, 449)
    assert budget_results(gaps, [calm], Budgets()) == []
    assert budget_results(gaps, [calm], asked) == [
        BudgetResult("max_gap_ms", 3000, 3000, True), BudgetResult("max_isr_ms", 600, 700, False),
        BudgetResult("max_leader_ms", 400, None, None), BudgetResult("max_controller_ms", 449, None, None),
    ]  # fmt: skip
    assert budget_results(gaps, [calm, moved], asked)[2:] == [
        BudgetResult("max_leader_ms", 400, 400, True), BudgetResult("max_controller_ms", 449, 450, False),
    ]  # fmt: skip
    never = Recovery("f", None, {0: 5, 1: None}, {0: None})
    assert [(each.longest_ms, each.kept) for each in budget_results(gaps, [never], asked)[1:]] == [(None, False)] * 3


# --- faults that were none ------------------------------------------------------------------------------------------


def unmoved(samples: list[Sample], controllers: list[ControllerSample], *more: Fault) -> tuple[int, ...]:
    """Of a kill of broker 1 at 600 ms, which leads partition 0."""
    return recoveries([fault(600, 1), *more], samples, controllers)[0].unmoved


RULES_ON = [ruled(0, 9900, 1, 4)]


@pytest.mark.parametrize(
    ("samples", "controllers", "expected"),
    [
        (HEALTHY, RULES_ON, (0,)),
        (HEALTHY, [], (0,)),
        (HEALTHY, [ruled(0, 9900, 2, 4)], (0,)),
        (HEALTHY, [ruled(0, 500, 2, 4), ruled(700, 9900, 3, 5)], (0,)),  # the controller was another
        (HEALTHY, [ruled(0, 500, 1, 4), ruled(700, 9900, 1, 5)], ()),  # it lost that: it was away
        (HEALTHY, [ruled(0, 500, 1, 4), ruled(700, 800, None, 4)], ()),
        (KILLED, RULES_ON, ()),
        # another broker was hit instead: its replica left the ISR, and that raises the epoch
        ([*HEALTHY, seen(2, 7000, 9000, (1, 6, False), (3, 8, False))], RULES_ON, (0,)),
        # it led nothing that anybody knows of
        ([seen(2, 0, 1000, (2, 5, True))], RULES_ON, ()),
        # nobody said anything any more: that is no sign
        ([seen(2, 0, 500, (1, 5, True))], RULES_ON, ()),
        # without a leader for a moment, and then its own again
        ([*HEALTHY, seen(2, 7000, 7100, (-1, 6, False)), seen(2, 7200, 7300, (1, 7, False))], RULES_ON, ()),
        # an old view of a broker that came back late
        ([*HEALTHY, seen(2, 1100, 1200, (3, 4, True))], RULES_ON, (0,)),
        # brokers that tell no epochs
        ([seen(2, 0, 9000, (1, -1, True)), seen(3, 7000, 9000, (2, -1, False))], RULES_ON, ()),
    ],
)
def test_a_fault_that_hit_nothing(
    samples: list[Sample], controllers: list[ControllerSample], expected: tuple[int, ...]
) -> None:
    assert unmoved(samples, controllers) == expected


def test_a_look_that_came_late_is_enough() -> None:
    """The machine was so slow that no broker was asked before the next fault."""
    assert unmoved(KILLED, RULES_ON, fault(6900, name="next")) == ()
    assert recoveries([fault(600, 1), fault(6900)], KILLED, [])[0].to_new_leader_ms == {0: None}
    assert unmoved(HEALTHY, RULES_ON, fault(6900, name="next")) == (0,)
