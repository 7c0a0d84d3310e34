"""What answers about share and streams groups become; real brokers do not give these on demand."""

from __future__ import annotations

from types import SimpleNamespace as Answer
from typing import Any

from kctl.cluster.groups.coordinators import CoordinatorMoved
from kctl.cluster.groups.model import Group
from kctl.cluster.groups.newer_groups import StartOffset, _group, _start_offsets
from kctl.cluster.groups.streams import SubtopologyTasks
from kctl.errors import KctlError, NotAuthorized
from kctl.model import TopicPartition

LISTED = Group("g", "Stable", "streams", "streams", 1)


def tasks(**active: list[int]) -> Answer:
    return Answer(
        active_tasks=[Answer(subtopology_id=name, partitions=numbers) for name, numbers in active.items()],
        standby_tasks=[], warmup_tasks=[],
    )  # fmt: skip


def member(**fields: Any) -> Answer:
    return Answer(**{
        "member_id": "m", "member_epoch": 3, "instance_id": None, "rack_id": "a", "client_id": "c",
        "client_host": "/10.0.0.1", "topology_epoch": 2, "process_id": "p", "user_endpoint": None, "client_tags": [],
        "assignment": tasks(), "target_assignment": tasks(), "is_classic": False, **fields,
    })  # fmt: skip


def described(members: list[Answer], subtopologies: list[Answer] | None) -> Group | KctlError:
    topology = Answer(epoch=2, subtopologies=subtopologies)
    return _group(
        Answer(
            error_code=0, group_id="g", group_state="Stable", group_epoch=4, assignment_epoch=4, topology=topology,
            members=members,
        ),
        LISTED,
    )  # fmt: skip


def topic(name: str, partitions: int) -> Answer:
    configs = [Answer(key="cleanup.policy", value="compact")]
    return Answer(name=name, partitions=partitions, replication_factor=0, topic_configs=configs)


def test_the_partitions_that_a_members_tasks_read() -> None:
    first = Answer(
        subtopology_id="0", source_topics=["b", "a"], repartition_sink_topics=["r"], state_changelog_topics=[],
        repartition_source_topics=[],
    )  # fmt: skip
    second = Answer(
        subtopology_id="1", source_topics=[], repartition_sink_topics=[], repartition_source_topics=[topic("r", 2)],
        state_changelog_topics=[topic("s", 0)],
    )  # fmt: skip
    found = described([member(assignment=tasks(**{"0": [1], "1": [1, 0], "gone": [7]}))], [first, second])
    assert isinstance(found, Group)
    assert found.members is not None
    assert found.members[0].partitions == tuple(
        TopicPartition(*each) for each in (("a", 1), ("b", 1), ("r", 0), ("r", 1))
    )
    assert found.topology is not None
    assert found.topology.subtopologies is not None
    changelog = found.topology.subtopologies[1].state_changelog_topics[0]
    assert (changelog.partition_count, changelog.replication_factor) == (None, None), "0 is the brokers' own choice"
    assert changelog.configs == {"cleanup.policy": "compact"}


def test_a_topology_without_its_topics_has_tasks_of_nothing() -> None:
    endpoint = Answer(host="\x1bhost", port=65_535)
    found = described([member(user_endpoint=endpoint, is_classic=True, assignment=tasks(**{"0": [0]}))], None)
    assert isinstance(found, Group)
    assert found.topology is not None
    assert (found.topology.epoch, found.topology.subtopologies) == (2, None)
    (only,) = found.members or ()
    assert (only.partitions, only.type, only.host) == ((), "classic", "10.0.0.1")
    assert only.streams is not None
    assert only.streams.user_endpoint == "\x1bhost:65535"
    assert only.streams.tasks.active == (SubtopologyTasks("0", (0,)),)


def offset(partition: int, start: int, *, lag: int = -1, error_code: int = 0) -> Answer:
    return Answer(
        partition_index=partition, start_offset=start, leader_epoch=5, lag=lag, error_code=error_code,
        error_message=None,
    )  # fmt: skip


def test_start_offsets_and_what_could_not_be_read() -> None:
    rows = [offset(2, 7, lag=3), offset(0, -1), offset(1, -1, error_code=29)]
    topics = [Answer(topic_name="t", partitions=rows)]
    answer = Answer(
        groups=[
            Answer(group_id="g", error_code=0, error_message=None, topics=topics),
            Answer(group_id="h", error_code=16, error_message=None, topics=[]),
        ]
    )
    found = _start_offsets(answer)
    seen = found["g"]
    assert not isinstance(seen, KctlError)
    assert seen.offsets == (StartOffset("g", "t", 0, None, 5, None), StartOffset("g", "t", 2, 7, 5, 3))
    assert {tp.partition: type(error) for tp, error in seen.unread.items()} == {1: NotAuthorized}
    assert isinstance(found["h"], CoordinatorMoved), "asked again"
