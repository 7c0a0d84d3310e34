"""What became of records that should be there: the log files of all replicas are asked, by `segment find`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kctl.errors import KctlError
from kctl.segment.find.find_key import find_key
from kctl.segment.log.partition_log import partition_log
from kctl.validate.invariants import Findings
from kctl.validate.workload.records import key_of

MOST = 10  # records of a kind that are looked for


@dataclass(frozen=True, slots=True)
class Sighting:
    """A replica's log file has it. offset: where."""

    broker: int
    segment: str
    offset: int


@dataclass(frozen=True, slots=True)
class Missing:
    """A record that was acknowledged and is not in the log, or is in the log and was not delivered.

    became: «lost»: no replica's files have it; «cut off»: a file has it, and the leader's log does not; «not
    delivered»: the log has it, the consumer never got it; «not looked for»: the log files are not on this machine.
    delivered: whether the consumer had it. key: what `segment find --key` takes.
    """

    partition: int
    offset: int
    sequence: int
    became: str
    delivered: bool | None
    seen: tuple[Sighting, ...]
    unread: tuple[str, ...]
    key: str


def find_missing(findings: Findings, run: str, folders: Mapping[int, Mapping[int, Path]]) -> list[Missing]:
    """The first lost and the first not delivered ones. folders: partition → broker → the folder of its log."""
    wanted = [(each.partition, each.offset, each.sequence, each.delivered) for each in findings.lost.first[:MOST]]
    rows = [_missing(*each, run, folders.get(each[0], {}), in_log=False) for each in wanted]
    own = [at for at in findings.not_delivered.first if at.sequence >= 0][:MOST]
    rows += [
        _missing(at.partition, at.offset, at.sequence, False, run, folders.get(at.partition, {}), in_log=True)
        for at in own
    ]
    return rows


def _missing(
    partition: int, offset: int, sequence: int, delivered: bool | None, run: str, folders: Mapping[int, Path], *,
    in_log: bool,
) -> Missing:  # fmt: skip
    key = key_of(run, partition, sequence)
    seen, unread = [], []
    for broker, folder in sorted(folders.items()):
        try:
            place = find_key(partition_log(folder), key).place
        except (KctlError, OSError) as exc:
            unread.append(f"broker {broker}: {exc}")
            continue
        if place is not None:
            seen.append(Sighting(broker, place.segment, place.record.offset))
    return Missing(
        partition, offset, sequence, became(seen, asked=len(folders) - len(unread), in_log=in_log), delivered,
        tuple(seen), tuple(unread), key.decode(),
    )  # fmt: skip


def became(seen: Sequence[Sighting], *, asked: int, in_log: bool) -> str:
    """asked: how many replicas' files could be read. in_log: the leader's log has it."""
    if in_log:
        return "not delivered"
    if not asked:
        return "not looked for"
    return "cut off" if seen else "lost"
