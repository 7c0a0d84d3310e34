"""Consumer groups for tests, created with kafka-python's clients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kafka_admin import kafka_admin
from kctl.protocol.client import connect
from kctl.protocol.target import Target
from kctl.records.consume.consumer import unstick
from kctl_testing import eventually, within


def join(consumer: Any, *, what: str) -> None:
    """Poll until the consumer has partitions."""

    def joined() -> bool:
        unstick(consumer)  # each poll() may time out at the worst moment
        consumer.poll(timeout_ms=200)
        return bool(consumer.assignment())

    eventually(joined, seconds=within(20), what=what)


class Admin:
    """An admin that commits offsets, deletes and writes records, and joins groups."""

    def __init__(self, bootstrap: str) -> None:
        self.target = Target("tests", tuple(bootstrap.split(",")))

    def commit(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """Commit offsets for a group without members; its coordinator may be unavailable for a moment."""
        from kafka.errors import KafkaError
        from kafka.structs import OffsetAndMetadata, TopicPartition

        positions = {TopicPartition(topic, p): OffsetAndMetadata(o, "", -1) for p, o in offsets.items()}
        with connect(self.target) as client, kafka_admin(client) as admin:

            def committed() -> bool:
                try:
                    admin.alter_group_offsets(group, positions)
                except KafkaError as exc:
                    if not exc.retriable:
                        raise
                    return False
                return True

            eventually(committed, what=f"{group} has a coordinator")

    @contextmanager
    def open_commit(self, group: str, topic: str, offsets: Mapping[int, int]) -> Iterator[None]:
        """Commit offsets in a transaction that stays open for the block and is then aborted."""
        from kafka.structs import OffsetAndMetadata, TopicPartition

        with connect(self.target) as client:
            producer = client.producer(transactional_id=f"open-{group}")
            producer.init_transactions()
            producer.begin_transaction()
            positions = {TopicPartition(topic, p): OffsetAndMetadata(o, "", -1) for p, o in offsets.items()}
            producer.send_offsets_to_transaction(positions, group)
            try:
                yield
            finally:
                producer.abort_transaction()
                producer.close()

    def cut(self, topic: str, partition: int, before: int) -> None:
        """Delete the records before an offset."""
        from kafka.structs import TopicPartition

        with connect(self.target) as client, kafka_admin(client) as admin:
            admin.delete_records({TopicPartition(topic, partition): before})

    def fill(self, topic: str, partitions: int, records: int) -> None:
        """Write this many records to each partition."""
        with connect(self.target) as client:
            producer = client.producer()
            for number in range(partitions * records):
                producer.send(topic, b"x", partition=number % partitions)
            producer.close()

    @contextmanager
    def member(
        self, group: str, topic: str, *, client_id: str = "test-member", instance_id: str | None = None
    ) -> Iterator[Any]:
        """Yield a classic kafka-python consumer that has joined and commits nothing."""
        with connect(self.target) as client:
            consumer = client.consumer(
                topic,
                group_id=group,
                client_id=client_id,
                group_instance_id=instance_id,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
            )
        try:
            join(consumer, what="joined")
            yield consumer
        finally:
            consumer.close(autocommit=False)
