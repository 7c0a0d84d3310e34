"""Where an interrupted copy resumes: its journal and what it adds up to, and when it is refused."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from kctl.base import journal as journals
from kctl.cluster.log_offsets import LogOffsets
from kctl.errors import AlreadyExists, Busy, InvalidFile, KctlError, Refused
from kctl.model import ClusterState, PartitionState, TopicPartition, TopicState
from kctl.topics.clone import journal
from kctl.topics.clone.journal import (
    CloneState,
    CloneStep,
    CloneTask,
    Pair,
    PairTracker,
    begin_entry,
    pairs_entry,
    replay,
)
from kctl.topics.clone.resume import LoggedRecord, check_point, check_topics, record_in
from segment_files import Rec, batch

TASK = CloneTask("a", "id-a", "b", "c1", 1, {"retention.ms": "1"}, {0: LogOffsets(10, 100), 1: LogOffsets(0, 0)})


def _entries(*more: dict[str, Any]) -> list[dict[str, Any]]:
    created = {"step": "created", "target_id": "id-b"}
    return [{"step": "begin", **begin_entry(TASK)}, created, *more]


def _positions(step: CloneStep, pairs: dict[int, list[Pair]]) -> dict[str, Any]:
    return {"step": step.value, **pairs_entry(pairs)}


def test_what_entries_add_up_to() -> None:
    state = replay(_entries(_positions(CloneStep.POSITIONS, {0: [(20, 35), (40, 60)]})), name="j")
    assert (state.task, state.created, state.target_id, state.ended) == (TASK, True, "id-b", False)
    ends = {0: 10, 12: 22, 20: 35, 25: 40, 40: 60, 41: 61}
    assert {end: state.source_offset(0, end) for end in ends} == ends
    again = replay(
        _entries(
            _positions(CloneStep.POSITIONS, {0: [(20, 35), (40, 60)]}),
            _positions(CloneStep.RESUME, {0: [(30, 45)], 1: [(0, 0)]}),
            _positions(CloneStep.POSITIONS, {0: [(38, 55)]}),
        ),
        name="j",
    )  # fmt: skip
    assert [again.source_offset(0, end) for end in (20, 30, 37, 38, 40)] == [35, 45, 52, 55, 57], "no pair of before"
    assert replay(_entries({"step": "end"}), name="j").ended


@pytest.mark.parametrize(
    "entries",
    [
        [], [{"step": "created", "target_id": None}], [{"step": "other"}], [{"step": "begin"}],
        _entries({"step": "positions", "positions": {"7": [[1, 2]]}}), _entries({"step": "positions"}),
    ],
)  # fmt: skip
def test_what_is_no_journal_of_a_copy(entries: list[dict[str, Any]]) -> None:
    with pytest.raises(InvalidFile):
        replay(entries, name="j")


def _log(rng: random.Random) -> list[int]:
    """Offsets of records, with gaps."""
    density = rng.choice([0.2, 0.9, 1.0])
    return [offset for offset in range(rng.randint(0, 400)) if rng.random() < density]


@pytest.mark.parametrize("seed", range(200))
def test_any_interruptions_lose_and_repeat_nothing(seed: int) -> None:
    """Killed after any number of batches, of which any number reached the log; the source is compacted meanwhile.

    A record that was compacted away before it was copied may be missing, and no other.
    """
    rng = random.Random(seed)
    source = _log(rng)
    end = max(source, default=-1) + 1 + rng.randint(0, 5)
    task = CloneTask("a", None, "b", "c", 1, {}, {0: LogOffsets(0, end)})
    entries: list[dict[str, Any]] = [{"step": "begin", **begin_entry(task)}]
    target: list[int] = []
    compacted: set[int] = set()
    while True:
        state = replay(entries, name="j")
        start = (len(target), state.source_offset(0, len(target)))
        assert target == [] or start[1] > target[-1]
        if len(entries) > 1:
            entries.append(_positions(CloneStep.RESUME, {0: [start]}))
        tracker, killed_after = PairTracker({0: start}), rng.randint(0, 12)
        remaining = [offset for offset in source if offset >= start[1]]
        batches: list[list[int]] = []
        while remaining and len(batches) < killed_after:
            size = rng.randint(1, 20)
            records, remaining = remaining[:size], remaining[size:]
            first, pair = tracker.add(0, len(records), records[-1] + 1)
            assert first == len(target) + sum(map(len, batches))
            if pair is not None:
                entries.append(_positions(CloneStep.POSITIONS, {0: [pair]}))
            batches.append(records)
        arrived = batches if not remaining else batches[: rng.randint(0, len(batches))]
        target += [offset for records in arrived for offset in records]
        if not remaining:
            break
        deleted = {offset for offset in source if rng.random() < 0.1}
        compacted |= deleted - set(target)
        source = [offset for offset in source if offset not in deleted]
    assert target == sorted(set(target)), "once, and in order"
    assert set(source) <= set(target)


def _state(**task: Any) -> CloneState:
    return CloneState(TASK, created=True, target_id="id-b", pairs={0: [(0, 10)], 1: [(0, 0)]}, **task)


def _topics(source_id: str = "id-a", target_id: str = "id-b", partitions: int = 2) -> ClusterState:
    def topic(name: str, topic_id: str, count: int) -> TopicState:
        rows = tuple(PartitionState(name, number, 1, 0, (1,), (1,), ()) for number in range(count))
        return TopicState(name, internal=False, topic_id=topic_id, partitions=rows)

    return ClusterState("c1", 1, {}, {"a": topic("a", source_id, 2), "b": topic("b", target_id, partitions)})


@pytest.mark.parametrize(
    ("topics", "error", "message"),
    [
        (_topics(target_id="other"), AlreadyExists, "was not created by the interrupted copy"),
        (_topics(partitions=3), AlreadyExists, "has 3 partitions, the interrupted copy 2"),
        (_topics(source_id="other"), Refused, "topic a was deleted and recreated"),
    ],
)
def test_other_topics_of_these_names(topics: ClusterState, error: type[KctlError], message: str) -> None:
    check_topics(_state(), _topics())
    with pytest.raises(error, match=message) as raised:
        check_topics(_state(), topics)
    assert "`kctl topic delete b`" in (raised.value.hint or "")


@pytest.mark.parametrize(
    ("end", "source", "message"),
    [
        (91, LogOffsets(0, 200), "records that the copy did not write: it ends at 91"),
        (20, LogOffsets(40, 200), "offsets 30 to 39 of a-0 were deleted before they were copied"),
        (20, LogOffsets(150, 200), "offsets 30 to 99 of a-0 were deleted"),
        (20, LogOffsets(0, 80), "was truncated"),
    ],
)
def test_a_copy_that_cannot_go_on(end: int, source: LogOffsets, message: str) -> None:
    state = _state()
    check_point(state, 0, (20, 30), LogOffsets(30, 100))
    check_point(state, 0, (90, 100), LogOffsets(150, 200))
    with pytest.raises(Refused, match=message):
        check_point(state, 0, (end, state.source_offset(0, end)), source)


def test_the_record_at_an_offset() -> None:
    data = batch(0, 5) + batch(5, [Rec(b"a", b"x", [(b"h", b"1")], offset=1), Rec(b"b", b"y", offset=3)])
    tp = TopicPartition("a", 0)
    result = record_in(tp, data, 6)
    assert result is not None
    assert result[:3] == (b"a", b"x", ((b"h", b"1"),))
    assert record_in(tp, data, 7) is None
    assert record_in(tp, b"", 7) is None


def test_what_is_a_copy() -> None:
    source = LoggedRecord(b"k", b"v", ((b"h", b"1"),), 5, append_time=False)
    assert source.is_copy_of(source._replace(append_time=True))
    assert source._replace(timestamp=9, append_time=True).is_copy_of(source)
    cleaned = source._replace(headers=(("\ufffd".encode(), b"1"),))
    assert cleaned.is_copy_of(source._replace(headers=((b"\xff", b"1"),))), "the log cleaner replaces such names"
    for other in ({"key": None}, {"value": b""}, {"headers": ()}, {"timestamp": 6}):
        assert not source._replace(**other).is_copy_of(source)


def test_one_process_holds_the_journal_of_a_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    held = journal.begin(TASK)
    path, state = journal.unfinished("c1", "b") or (None, None)
    assert path == held.path
    assert state is not None
    assert not state.created
    assert journal.unfinished("c1", "other") is None
    assert journal.unfinished("c2", "b") is None
    for attempt in (
        lambda: journal.refuse_while_held(held.path, "b"), lambda: journal.lock_unfinished(held.path, "b"),
        lambda: journal.begin(TASK),
    ):  # fmt: skip
        with pytest.raises(Busy, match="another kctl process is copying into b"):
            attempt()
    held.close()
    journal.refuse_while_held(held.path, "b")
    second = journal.begin(TASK)
    assert journals.read(held.path)[-1]["step"] == "end", "its target is gone"
    second.append(CloneStep.END.value)
    second.close()
    assert journal.unfinished("c1", "b") is None
    with pytest.raises(Refused, match="has already ended"):
        journal.lock_unfinished(second.path, "b")
