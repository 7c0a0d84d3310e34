from collections.abc import Collection

from kafka.structs import TopicPartition

class ConsumerRebalanceListener:
    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None: ...
    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None: ...
