"""The time from a fault to a new controller, a new leader, and a full ISR. Pure; computed from samples.

Each broker is polled separately, because its view may be seconds old. For the leader, the view with the highest leader
epoch counts. An ISR is full only if every responding broker reports it as full: Metadata does not show which of two
ISRs is newer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kctl.validate.report.gaps import Fault

_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class PartitionView:
    """A broker's view of a partition. leader: -1 for none. full: all assigned replicas are in sync."""

    leader: int
    leader_epoch: int
    full: bool


@dataclass(frozen=True, slots=True)
class Sample:
    """A broker's view, unchanged in all responses from at_ns until until_ns."""

    node: int
    at_ns: int
    until_ns: int
    partitions: Mapping[int, PartitionView]


@dataclass(frozen=True, slots=True)
class ControllerSample:
    """A view of the controller.

    controller: None while there is none. epoch: rises with each election; -1 if unknown.
    """

    at_ns: int
    until_ns: int
    controller: int | None
    epoch: int


@dataclass(frozen=True, slots=True)
class Recovery:
    """The recovery after a fault, until the next one. Times count from the fault; None: not recovered.

    to_new_controller_ms: 0 if the controller was not hit and stayed. to_new_leader_ms: of each partition whose
    leader was hit; if no broker was hit, of each partition with a new leader. to_full_isr_ms: by partition, 0 if the
    ISR was always full. unmoved: partitions whose leader was hit but kept leading until the end of the run, without any
    other sign that it was down: the fault had no effect.
    """

    fault: str
    to_new_controller_ms: int | None
    to_new_leader_ms: dict[int, int | None]
    to_full_isr_ms: dict[int, int | None]
    unmoved: tuple[int, ...] = ()

    @property
    def slowest_leader_ms(self) -> int | None:
        """Return the slowest time, None if a partition got no new leader."""
        return _slowest(self.to_new_leader_ms)

    @property
    def slowest_isr_ms(self) -> int | None:
        """Return the slowest time, None if a partition is still not fully replicated."""
        return _slowest(self.to_full_isr_ms)


def _slowest(times: Mapping[int, int | None]) -> int | None:
    measured = [time for time in times.values() if time is not None]
    return max(measured, default=0) if len(measured) == len(times) else None


def recoveries(
    faults: Sequence[Fault], samples: Sequence[Sample], controllers: Sequence[ControllerSample]
) -> list[Recovery]:
    """Return one recovery per fault. faults: in order; samples: in any order."""
    ordered = sorted(samples, key=lambda sample: sample.at_ns)
    ends = [*(fault.at_ns for fault in faults[1:]), 1 << 63]
    partitions = sorted({number for sample in samples for number in sample.partitions})
    return [
        Recovery(
            fault.name,
            _new_controller(fault, end, controllers),
            dict(_new_leaders(fault, end, ordered, partitions)),
            {number: _full_isr(fault, end, ordered, number) for number in partitions},
            tuple(_unmoved(fault, ordered, controllers, partitions)),
        )
        for fault, end in zip(faults, ends, strict=False)  # without faults, `ends` still has one item
    ]


def _new_controller(fault: Fault, end: int, samples: Sequence[ControllerSample]) -> int | None:
    before: ControllerSample | None = None
    vanished = False
    for sample in samples:
        if sample.at_ns <= fault.at_ns:
            before = sample
        elif sample.at_ns < end:
            if sample.controller is not None and _elected(before, sample):
                return _since(fault, sample.at_ns)
            vanished = vanished or sample.controller is None
    hit = before is None or before.controller is None or before.controller in fault.brokers
    return None if vanished or hit else 0


def _elected(before: ControllerSample | None, now: ControllerSample) -> bool:
    if before is None:
        return True
    return now.epoch > before.epoch if now.epoch >= 0 <= before.epoch else now.controller != before.controller


def _new_leaders(
    fault: Fault, end: int, samples: Sequence[Sample], partitions: Sequence[int]
) -> Iterator[tuple[int, int | None]]:
    """Yield the time to a new leader, per partition.

    A higher leader epoch alone does not show a new leader: the controller also raises it when a replica leaves the
    ISR. If brokers were hit and a partition of another broker gets a new leader, that is a preferred election: the
    partition had a leader all the time.
    """
    for number in partitions:
        views = [(sample.at_ns, sample.partitions[number]) for sample in samples if number in sample.partitions]
        earlier = [view for at, view in views if at <= fault.at_ns]
        before = max(earlier, key=lambda view: view.leader_epoch, default=PartitionView(-1, -1, full=False))
        hit = before.leader in fault.brokers or before.leader < 0
        elected_ns = next(
            (
                at
                for at, view in views
                if fault.at_ns < at < end
                and view.leader >= 0
                and view.leader_epoch > before.leader_epoch
                and (hit or view.leader != before.leader)
            ),
            None,
        )
        if hit or (elected_ns is not None and not fault.brokers):
            yield number, None if elected_ns is None else _since(fault, elected_ns)


def _unmoved(
    fault: Fault, samples: Sequence[Sample], controllers: Sequence[ControllerSample], partitions: Sequence[int]
) -> Iterator[int]:
    """Yield the partitions led by the hit brokers, if all of them kept their leader, and the controller stayed too.

    A broker that is down even briefly loses all its leaderships, and regains one only after many polls of the others.
    Later windows count too, because one of their samples may be the first to show the change. A higher epoch alone
    does not show that the leader was down: it also rises when another replica leaves the ISR.
    """
    unmoved = []
    for number in partitions:
        views = [(sample, sample.partitions[number]) for sample in samples if number in sample.partitions]
        earlier = [view for sample, view in views if sample.at_ns <= fault.at_ns]
        before = max(earlier, key=lambda view: view.leader_epoch, default=None)
        if before is None or before.leader not in fault.brokers:
            continue
        later = [view for sample, view in views if sample.until_ns > fault.at_ns]
        if not later or any(
            view.leader != before.leader and view.leader_epoch >= before.leader_epoch for view in later
        ):
            return
        unmoved.append(number)
    last = [sample for sample in controllers if sample.at_ns <= fault.at_ns][-1:]
    if last and last[0].controller in fault.brokers:
        later_samples = [sample for sample in controllers if sample.at_ns > fault.at_ns]
        if any(sample.controller is None or _elected(last[0], sample) for sample in later_samples):
            return
    yield from unmoved


def _full_isr(fault: Fault, end: int, samples: Sequence[Sample], number: int) -> int | None:
    """Return the time after which no broker reports an incomplete ISR, and at least one broker reports a full ISR."""
    views = [
        (sample.at_ns, min(sample.until_ns, end), sample.partitions[number].full)
        for sample in samples
        if number in sample.partitions and sample.at_ns < end and sample.until_ns > fault.at_ns
    ]
    last_short = max((until for _, until, full in views if not full), default=None)
    if last_short is None:
        return 0 if views else None
    since = [max(at, last_short) for at, until, full in views if full and until > last_short]
    return _since(fault, min(since)) if since else None


def _since(fault: Fault, at_ns: int) -> int:
    return max(0, round((at_ns - fault.at_ns) / _MS))
