"""The validator is validated: each damage that is put into a clean history is found, and nothing else is."""

from __future__ import annotations

import random
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kctl.validate import invariants
from kctl.validate.invariants import (
    INVARIANTS,
    LIMIT,
    DuplicateRecord,
    Findings,
    Hole,
    LostRecord,
    MisplacedRecord,
    OutOfOrderRecord,
    RecordPosition,
    check,
)
from kctl.validate.report.gaps import Fault
from kctl.validate.report.timeline import Recovery
from kctl.validate.report.verdict import Evidence, judge
from kctl.validate.workload.entries import ACKED, FAILED, READ, SENT, UNKNOWN, Entry
from kctl.validate.workload.history import (
    DeliveredPartition,
    DeliveredRecords,
    Log,
    LogPartition,
    SentPartition,
    SentRecords,
    delivered_of,
    sent_of,
)
from kctl.validate.workload.records import FOREIGN

P = 3  # the partition that is damaged


@dataclass
class History:
    """What was sent, is in the log and was delivered: lists that a test changes before it is checked.

    outcomes: by sequence (outcome, acknowledged offset); log, given: (offset, sequence).
    """

    outcomes: list[tuple[int, int]] = field(default_factory=list)
    log: list[tuple[int, int]] = field(default_factory=list)
    given: list[tuple[int, int]] | None = field(default_factory=list)
    start: int = 0
    end: int | None = None

    def send(self, outcome: int, *, in_log: bool) -> None:
        """The next record, with its outcome."""
        sequence, offset = len(self.outcomes), len(self.log)
        self.outcomes.append((outcome, offset if outcome == ACKED else -1))
        if in_log:
            self.log.append((offset, sequence))
            assert self.given is not None
            self.given.append((offset, sequence))

    def parts(self) -> tuple[SentRecords, Log, DeliveredRecords | None]:
        sent = SentPartition(
            bytearray(outcome for outcome, _ in self.outcomes), array("q", [offset for _, offset in self.outcomes])
        )
        sent.ack_ns.append(1)
        end = self.end if self.end is not None else self.log[-1][0] + 1 if self.log else self.start
        log = LogPartition(self.start, end, *columns(self.log))
        given = (
            None if self.given is None else DeliveredRecords({P: DeliveredPartition(*columns(self.given))}, ended=True)
        )
        other = LogPartition(0, 1, array("q", [0]), array("q", [0]))  # a partition beside it, with one record
        sent_all = SentRecords(
            {P: sent, 9: SentPartition(bytearray((ACKED,)), array("q", [0]), array("q", [1]))}, ended=True
        )
        if given is not None:
            given.partitions[9] = DeliveredPartition(array("q", [0]), array("q", [0]))
        return sent_all, {P: log, 9: other}, given

    def check(self) -> Findings:
        return check(*self.parts())

    def violated(self) -> dict[str, int]:
        findings = self.check()
        return {kind: getattr(findings, kind).count for kind in INVARIANTS if getattr(findings, kind)}


def columns(rows: list[tuple[int, int]]) -> tuple[array[int], array[int]]:
    return array("q", [row[0] for row in rows]), array("q", [row[1] for row in rows])


def clean(records: int = 20) -> History:
    history = History()
    for _ in range(records):
        history.send(ACKED, in_log=True)
    return history


def test_a_clean_history() -> None:
    history = clean()
    assert history.violated() == {}
    findings = history.check()
    assert (findings.sent, findings.acked, findings.log_records, findings.delivered) == (21, 21, 21, 21)
    assert judge("t", "r", Evidence(*history.parts())).ok


# --- one damage, one finding ----------------------------------------------------------------------------------------


def test_a_loss_at_the_end_of_the_log() -> None:
    history = clean()
    history.log.pop()
    assert history.given is not None
    history.given.pop()
    assert history.violated() == {"lost": 1}
    assert history.check().lost.first == [LostRecord(P, 19, 19, delivered=False)]


def test_a_loss_that_had_been_delivered() -> None:
    """As after an unclean election: the log was cut, and the consumer had read on."""
    history = clean()
    history.log.pop()
    assert history.violated() == {"lost": 1, "phantoms": 1}
    assert history.check().lost.first == [LostRecord(P, 19, 19, delivered=True)]
    assert history.check().phantoms.first == [RecordPosition(P, 19, 19)]


def test_a_loss_in_the_middle_whose_place_another_record_has_taken() -> None:
    """What came behind an unclean election is where the lost ones were."""
    history = clean(10)
    history.outcomes.append((ACKED, 9))  # the tenth was lost, and the eleventh is there
    history.log[9] = (9, 10)
    assert history.given is not None
    history.given[9] = (9, 10)
    assert history.violated() == {"lost": 1}
    assert history.check().lost.first == [LostRecord(P, 9, 9, delivered=False)]


def test_a_loss_without_a_consumer_and_with_an_unknown_offset() -> None:
    history = clean()
    history.given = None
    history.log.pop()
    history.outcomes[19] = (ACKED, -1)  # acks=0
    assert history.violated() == {"lost": 1}
    assert history.check().lost.first == [LostRecord(P, -1, 19, delivered=None)]


def test_a_partition_that_is_lost_altogether() -> None:
    history = clean()
    history.log, history.given = [], []
    assert history.violated() == {"lost": 20}


def test_a_duplicate() -> None:
    history = clean()
    for rows in (history.log, history.given):
        assert rows is not None
        rows.append((20, 4))
    assert history.violated() == {"duplicated": 1}
    assert history.check().duplicated.first == [DuplicateRecord(P, 20, 4, 4)]


def test_a_duplicate_of_which_the_second_was_acknowledged() -> None:
    """Without idempotence a batch whose answer was lost is sent again: acknowledged is where it is the second time."""
    history = clean(5)
    for rows in (history.log, history.given):
        assert rows is not None
        rows.append((5, 4))
    history.outcomes[4] = (ACKED, 5)
    assert history.violated() == {"duplicated": 1}


def test_a_reorder() -> None:
    history = clean()
    for rows in (history.log, history.given):
        assert rows is not None
        rows[7], rows[8] = (7, 8), (8, 7)
    history.outcomes[7], history.outcomes[8] = (ACKED, 8), (ACKED, 7)
    assert history.violated() == {"out_of_order": 1}
    assert history.check().out_of_order.first == [OutOfOrderRecord(P, 8, 7, 8)]


def test_a_hole() -> None:
    history = clean()
    history.log = [(offset + 3 if offset > 9 else offset, sequence) for offset, sequence in history.log]
    history.given = list(history.log)
    history.outcomes = [(ACKED, offset) for offset, _ in history.log]
    assert history.violated() == {"holes": 1}
    findings = history.check()
    assert (findings.holes.first, findings.missing_offsets) == ([Hole(P, 10, 12)], 3)


def test_holes_at_both_ends() -> None:
    history = clean(4)
    history.log = history.given = [(offset + 2, sequence) for offset, sequence in history.log]
    history.outcomes = [(ACKED, offset) for offset, _ in history.log]
    history.start, history.end = 2, 9
    assert history.violated() == {"holes": 2}
    assert history.check().holes.first == [Hole(P, 0, 1), Hole(P, 6, 8)]


def test_a_log_that_is_empty_up_to_its_end() -> None:
    history = History(start=5, end=5)
    assert history.check().holes.first == [Hole(P, 0, 4)]


def test_a_wrong_sequence_at_an_acknowledged_offset() -> None:
    """The brokers told of two records the other one's offset each."""
    history = clean()
    history.outcomes[7], history.outcomes[8] = (ACKED, 8), (ACKED, 7)
    assert history.violated() == {"misplaced": 2}
    assert history.check().misplaced.first == [MisplacedRecord(P, 8, 7, 7, 8), MisplacedRecord(P, 7, 8, 8, 7)]


def test_an_acknowledged_offset_where_nothing_is() -> None:
    history = clean()
    history.outcomes[19] = (ACKED, 40)
    assert history.check().misplaced.first == [MisplacedRecord(P, 40, 19, 19, None)]


def test_a_record_that_was_not_delivered() -> None:
    history = clean()
    assert history.given is not None
    del history.given[5]
    assert history.violated() == {"not_delivered": 1}
    assert history.check().not_delivered.first == [RecordPosition(P, 5, 5)]


def test_a_consumer_that_stopped_early_or_was_given_nothing() -> None:
    history = clean()
    assert history.given is not None
    del history.given[17:]
    assert history.violated() == {"not_delivered": 3}
    history.given = []
    assert history.violated() == {"not_delivered": 20}


def test_a_record_that_was_delivered_twice() -> None:
    history = clean()
    assert history.given is not None
    history.given.append((4, 4))
    assert history.violated() == {"delivered_again": 1}
    assert history.check().delivered_again.first == [RecordPosition(P, 4, 4)]


def test_a_record_that_was_delivered_late() -> None:
    history = clean()
    assert history.given is not None
    history.given[4], history.given[5] = history.given[5], history.given[4]
    assert history.violated() == {"delivered_late": 1}
    assert history.check().delivered_late.first == [RecordPosition(P, 4, 4)]


@pytest.mark.parametrize("sequence", [FOREIGN, 20, 10**11])
def test_a_foreign_record(sequence: int) -> None:
    """Of another run, of another partition, or with a number that was never sent."""
    history = clean()
    for rows in (history.log, history.given):
        assert rows is not None
        rows.append((20, sequence))
    assert history.violated() == {"foreign": 1}
    assert history.check().foreign.first == [RecordPosition(P, 20, sequence)]


def test_a_consumer_that_was_given_what_the_log_does_not_have() -> None:
    history = clean()
    assert history.given is not None
    history.given.append((20, 20))
    assert history.violated() == {"phantoms": 1}
    history = clean()
    assert history.given is not None
    history.given[3] = (3, 11)
    assert history.violated() == {"phantoms": 1, "not_delivered": 1}


def test_a_consumer_that_read_on_before_the_log_was_cut() -> None:
    """Offsets 12 to 19 were lost after they had been delivered, and others are there now, of which it got the last."""
    history = clean()
    history.outcomes += [(ACKED, 12), (ACKED, 13)]
    history.log[12:] = [(12, 20), (13, 21)]
    assert history.given is not None
    history.given.append((13, 21))
    assert history.violated() == {"lost": 8, "phantoms": 8, "not_delivered": 1}
    assert history.check().not_delivered.first == [RecordPosition(P, 12, 20)]


# --- what has no outcome --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "in_log", "figures"),
    [  # failed, indeterminate, and of both those that are in the log
        (FAILED, False, (1, 0, 0, 0)), (FAILED, True, (1, 0, 1, 0)), (UNKNOWN, False, (0, 1, 0, 0)),
        (UNKNOWN, True, (0, 1, 0, 1)), (SENT, False, (0, 1, 0, 0)), (SENT, True, (0, 1, 0, 1)),
    ],
)  # fmt: skip
def test_what_is_not_acknowledged_may_be_in_the_log_or_not(
    outcome: int, in_log: bool, figures: tuple[int, int, int, int]
) -> None:
    history = clean(3)
    history.send(outcome, in_log=in_log)
    history.send(ACKED, in_log=True)
    assert history.violated() == {}
    found = history.check()
    assert (found.failed, found.indeterminate, found.failed_in_log, found.indeterminate_in_log) == figures


# --- any clean history, any damage ----------------------------------------------------------------------------------

_FATES = st.sampled_from([(ACKED, True)] * 4 + [(FAILED, False), (FAILED, True), (UNKNOWN, False), (SENT, True)])


@st.composite
def histories(draw: st.DrawFn) -> History:
    history = History()
    for fate in draw(st.lists(_FATES, min_size=6, max_size=40)):
        history.send(fate[0], in_log=fate[1])
    for _ in range(4):  # so that there is something to damage
        history.send(ACKED, in_log=True)
    return history


@given(histories())
def test_any_clean_history_is_clean(history: History) -> None:
    assert history.violated() == {}
    assert judge("t", "r", Evidence(*history.parts())).ok


@given(histories())
def test_a_clean_history_that_went_through_journals_is_clean(history: History) -> None:
    entries = []
    for sequence, (outcome, offset) in enumerate(history.outcomes):
        entries.append(Entry(SENT, P, 1, sequence, -1, sequence))
        if outcome != SENT:
            entries.append(Entry(outcome, P, 1, sequence, offset, sequence))
    assert history.given is not None
    read = [Entry(READ, P, 1, sequence, offset, 0) for offset, sequence in history.given]
    _, log, _ = history.parts()
    del log[9]
    findings = check(sent_of(entries), log, delivered_of(read))
    assert not any(getattr(findings, kind) for kind in INVARIANTS)
    assert findings.sent == len(history.outcomes)


def lose(history: History, chance: random.Random) -> None:
    """The log ends earlier: acknowledged ones are lost."""
    assert history.given is not None
    for rows in (history.log, history.given):
        del rows[-chance.randint(1, 4) :]


def repeat(history: History, chance: random.Random) -> None:
    assert history.given is not None
    row = (len(history.log), chance.choice(history.log)[1])
    history.log.append(row)
    history.given.append(row)


def swap(history: History, chance: random.Random) -> None:
    """Two records change places, and the producer is told so."""
    assert history.given is not None
    first, second = sorted(chance.sample(range(len(history.log)), 2))
    one, other = history.log[first][1], history.log[second][1]
    for rows in (history.log, history.given):
        rows[first], rows[second] = (first, other), (second, one)
    for sequence, offset in ((one, second), (other, first)):
        if history.outcomes[sequence][0] == ACKED:
            history.outcomes[sequence] = (ACKED, offset)


def puncture(history: History, chance: random.Random) -> None:
    at = chance.randrange(len(history.log))
    history.log = [(offset + (offset >= at), sequence) for offset, sequence in history.log]
    history.given = list(history.log)
    history.outcomes = [
        (outcome, offset + (offset >= at) if outcome == ACKED else -1) for outcome, offset in history.outcomes
    ]


def lie(history: History, chance: random.Random) -> None:
    """An acknowledgement names another record's offset."""
    acked = [sequence for sequence, (outcome, _) in enumerate(history.outcomes) if outcome == ACKED]
    sequence = chance.choice(acked)
    others = [offset for offset, there in history.log if there != sequence]
    history.outcomes[sequence] = (ACKED, chance.choice(others))


def withhold(history: History, chance: random.Random) -> None:
    assert history.given is not None
    history.given.pop(chance.randrange(len(history.given)))


def give_again(history: History, chance: random.Random) -> None:
    assert history.given is not None
    history.given.append(chance.choice(history.given))


def invade(history: History, chance: random.Random) -> None:
    assert history.given is not None
    row = (len(history.log), chance.choice([FOREIGN, len(history.outcomes)]))
    history.log.append(row)
    history.given.append(row)


@pytest.mark.parametrize(
    ("damage", "kind"),
    [
        (repeat, "duplicated"), (swap, "out_of_order"), (puncture, "holes"), (lie, "misplaced"),
        (withhold, "not_delivered"), (give_again, "delivered_again"), (invade, "foreign"), (lose, "lost"),
    ],
)  # fmt: skip
@given(data=st.data())
@settings(max_examples=40)
def test_any_damage_is_found_and_nothing_else(
    damage: Callable[[History, random.Random], None], kind: str, data: st.DataObject
) -> None:
    history = data.draw(histories())
    damage(history, data.draw(st.randoms(use_true_random=False)))
    if damage is lose:  # as many from the log and from what was given
        history.given = list(history.log)
    assert set(history.violated()) == {kind}
    verdict = judge("t", "r", Evidence(*history.parts()))
    assert not verdict.ok
    assert verdict.violated == [kind]
    assert judge("t", "r", Evidence(*history.parts()), tolerated=[kind]).ok


# --- bounds ---------------------------------------------------------------------------------------------------------


def test_findings_are_counted_and_the_first_of_them_named() -> None:
    history = clean(1000)
    history.log.clear()
    history.given = []
    found = history.check()
    assert found.lost.count == 1000
    assert len(found.lost.first) == LIMIT
    assert found.lost.first[0].sequence == 0


def test_a_hundred_thousand_records_are_checked_in_a_moment() -> None:
    """A pass over arrays: nothing is quadratic, not even where every offset is another than was told."""
    count = 50_000
    sent = SentPartition(bytearray((ACKED,)) * count, array("q", range(1, count + 1)), array("q", [1]))
    log = LogPartition(0, count, array("q", range(count)), array("q", range(count)))
    given = DeliveredPartition(array("q", range(count)), array("q", range(count)))
    started = time.process_time()
    found = invariants.check(SentRecords({0: sent, 1: sent}), {0: log, 1: log}, DeliveredRecords({0: given, 1: given}))
    assert time.process_time() - started < 5
    assert found.misplaced.count == 2 * count


def test_no_such_invariant() -> None:
    with pytest.raises(ValueError, match="typo"):
        judge("t", "r", Evidence(*clean().parts()), tolerated=["typo"])


# --- verdicts that prove nothing ------------------------------------------------------------------------------------


def test_a_verdict_needs_acknowledged_writes_everywhere_and_orderly_ends() -> None:
    sent, log, given = clean().parts()
    log[11] = LogPartition()
    verdict = judge("t", "r", Evidence(sent, log, given))
    assert verdict.doubts == ["no write was acknowledged in partition 11"]
    assert not verdict.ok
    sent.ended = False
    assert given is not None
    given.ended = False
    del log[11]
    assert judge("t", "r", Evidence(sent, log, given)).doubts == [
        "the producer did not exit cleanly",
        "the consumer did not exit cleanly",
    ]
    late = judge("t", "r", Evidence(*clean().parts(), faults=[Fault("kill", 1)]))  # all was acknowledged before it
    assert late.doubts == ["no write was acknowledged after 'kill' in partitions 3, 9"]
    assert judge("t", "r", Evidence(*clean().parts(), faults=[Fault("kill", 0)])).ok
    assert judge("t", "r", Evidence(SentRecords(ended=True), {}, None)).doubts == ["the topic has no partition"]


def test_a_fault_that_was_none_is_a_doubt() -> None:
    quiet = Recovery("kill", 0, {3: None}, {3: 0, 9: 0}, unmoved=(3,))
    verdict = judge("t", "r", Evidence(*clean().parts(), faults=[Fault("kill", 0, (1,))], recoveries=[quiet]))
    assert verdict.doubts == ["'kill' had no effect: its broker led partition 3 all the time"]
    assert not verdict.ok
    real = Recovery("kill", 0, {3: None}, {3: 0, 9: 0})  # not seen in time, and yet it was
    assert judge("t", "r", Evidence(*clean().parts(), faults=[Fault("kill", 0, (1,))], recoveries=[real])).ok
