"""What `kctl topic describe` says above its tables."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kctl.commands.topic_describe import tables
from kctl.model import PartitionState, TopicState
from kctl.topics.describe import describe


@pytest.mark.parametrize(
    ("replicas", "said"),
    [
        ([(1, 2, 3), (1, 2, 3, 4)], "t: 2 partitions, replication factor 3 to 4"),
        ([(1, 2), (2, 3)], "t: 2 partitions, replication factor 2"),
    ],
)
def test_replication_factors_that_differ_are_said(replicas: list[tuple[int, ...]], said: str) -> None:
    partitions = tuple(PartitionState("t", n, row[0], 0, row, row) for n, row in enumerate(replicas))
    topic = describe(TopicState("t", False, None, partitions), [], None)
    assert tables(topic)[0].title == said


@pytest.mark.parametrize(("isr", "marks"), [((1, 2), False), ((1,), True)])
def test_no_room_for_marks_when_there_are_none(isr: tuple[int, ...], marks: bool) -> None:
    topic = describe(TopicState("t", False, None, (PartitionState("t", 0, 1, 0, (1, 2), isr),)), [], None)
    sized = replace(topic, partitions=tuple(replace(p, size_bytes=1) for p in topic.partitions))
    assert ("marks" in [column.key for column in tables(sized)[0].columns]) is marks
