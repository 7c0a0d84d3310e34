"""How soon after a fault there is a new controller, a new leader, and a full ISR again. Pure: over what was sampled.

Each broker is asked by itself, because each has its own view, which may be old for seconds. Of what brokers say of a
leader, the highest leader epoch counts. A partition's ISR is full only when every broker that answers says so: nothing
in Metadata tells which of two views of an ISR is the newer one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kctl.validate.report.gaps import Fault

_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class PartitionView:
    """leader: −1 for none. full: as many replicas in sync as are assigned."""

    leader: int
    leader_epoch: int
    full: bool


@dataclass(frozen=True, slots=True)
class Sample:
    """What a broker said from at_ns until until_ns: the same in all answers between them."""

    node: int
    at_ns: int
    until_ns: int
    partitions: Mapping[int, PartitionView]


@dataclass(frozen=True, slots=True)
class ControllerSample:
    """controller: None while there is none. epoch: goes up with each election; −1 where that is not told."""

    at_ns: int
    until_ns: int
    controller: int | None
    epoch: int


@dataclass(frozen=True, slots=True)
class Recovery:
    """After one fault, until the next. None: it has not come. Times count from the fault.

    to_new_controller_ms: 0 when a broker that was not hit was the controller, and stayed. to_new_leader_ms: by
    partition, of those whose leader was hit; where no broker was, of those that got another. to_full_isr_ms: by
    partition, 0 where the ISR was always full. unmoved: partitions whose leader was hit and led on until the end of the
    run, where nothing else tells that it was away: the fault was none.
    """

    fault: str
    to_new_controller_ms: int | None
    to_new_leader_ms: dict[int, int | None]
    to_full_isr_ms: dict[int, int | None]
    unmoved: tuple[int, ...] = ()

    @property
    def slowest_leader_ms(self) -> int | None:
        """None when a partition has no new one."""
        return _slowest(self.to_new_leader_ms)

    @property
    def slowest_isr_ms(self) -> int | None:
        """None when a partition is not fully replicated yet."""
        return _slowest(self.to_full_isr_ms)


def _slowest(times: Mapping[int, int | None]) -> int | None:
    found = [time for time in times.values() if time is not None]
    return max(found, default=0) if len(found) == len(times) else None


def recoveries(
    faults: Sequence[Fault], samples: Sequence[Sample], controllers: Sequence[ControllerSample]
) -> list[Recovery]:
    """One for each fault. faults: in their order; samples in any."""
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
        for fault, end in zip(faults, ends, strict=False)  # without a fault there is one end too many
    ]


def _new_controller(fault: Fault, end: int, samples: Sequence[ControllerSample]) -> int | None:
    before: ControllerSample | None = None
    lost = False
    for sample in samples:
        if sample.at_ns <= fault.at_ns:
            before = sample
        elif sample.at_ns < end:
            if sample.controller is not None and _elected(before, sample):
                return _since(fault, sample.at_ns)
            lost = lost or sample.controller is None
    hit = before is None or before.controller is None or before.controller in fault.brokers
    return None if lost or hit else 0


def _elected(before: ControllerSample | None, now: ControllerSample) -> bool:
    if before is None:
        return True
    return now.epoch > before.epoch if now.epoch >= 0 <= before.epoch else now.controller != before.controller


def _new_leaders(
    fault: Fault, end: int, samples: Sequence[Sample], partitions: Sequence[int]
) -> Iterator[tuple[int, int | None]]:
    """A higher leader epoch alone is none: the controller raises it, too, when it takes a replica out of the ISR.
    Where brokers were hit, a partition of another one that moves had a leader all the time: a preferred election.
    """
    for number in partitions:
        views = [(sample.at_ns, sample.partitions[number]) for sample in samples if number in sample.partitions]
        known = [view for at, view in views if at <= fault.at_ns]
        before = max(known, key=lambda view: view.leader_epoch, default=PartitionView(-1, -1, full=False))
        hit = before.leader in fault.brokers or before.leader < 0
        found = next(
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
        if hit or (found is not None and not fault.brokers):
            yield number, None if found is None else _since(fault, found)


def _unmoved(
    fault: Fault, samples: Sequence[Sample], controllers: Sequence[ControllerSample], partitions: Sequence[int]
) -> Iterator[int]:
    """Those that the hit brokers led, when each of them led on and the controller did not move from them either.

    A broker that is away for a moment loses all that it leads, and gets nothing back before the others were asked many
    times. Later windows are looked at, too: where few looks came through, one of them may be the first to tell. A
    higher epoch alone is no sign that it was away: it goes up when another replica leaves the ISR.
    """
    led = []
    for number in partitions:
        views = [(sample, sample.partitions[number]) for sample in samples if number in sample.partitions]
        known = [view for sample, view in views if sample.at_ns <= fault.at_ns]
        before = max(known, key=lambda view: view.leader_epoch, default=None)
        if before is None or before.leader not in fault.brokers:
            continue
        later = [view for sample, view in views if sample.until_ns > fault.at_ns]
        if not later or any(
            view.leader != before.leader and view.leader_epoch >= before.leader_epoch for view in later
        ):
            return
        led.append(number)
    ruled = [sample for sample in controllers if sample.at_ns <= fault.at_ns][-1:]
    if ruled and ruled[0].controller in fault.brokers:
        later_ones = [sample for sample in controllers if sample.at_ns > fault.at_ns]
        if any(sample.controller is None or _elected(ruled[0], sample) for sample in later_ones):
            return
    yield from led


def _full_isr(fault: Fault, end: int, samples: Sequence[Sample], number: int) -> int | None:
    """From when on nobody says any more that it is not full, and somebody says that it is."""
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
