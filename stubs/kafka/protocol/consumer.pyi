from collections.abc import Sequence

from kafka.protocol.api_message import ApiMessage, DataContainer

class ListOffsetsRequest(ApiMessage):
    class ListOffsetsTopic(DataContainer):
        class ListOffsetsPartition(DataContainer):
            def __init__(self, *, partition_index: int, timestamp: int, current_leader_epoch: int = ...) -> None: ...

        def __init__(
            self, *, name: str, partitions: Sequence[ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition]
        ) -> None: ...

    def __init__(
        self,
        *,
        replica_id: int,
        isolation_level: int = ...,
        topics: Sequence[ListOffsetsRequest.ListOffsetsTopic],
        version: int | None = ...,
        min_version: int | None = ...,
        max_version: int | None = ...,
    ) -> None: ...

class OffsetFetchRequest(ApiMessage):
    class OffsetFetchRequestTopic(DataContainer):
        def __init__(self, *, name: str, partition_indexes: Sequence[int]) -> None: ...

    class OffsetFetchRequestGroup(DataContainer):
        class OffsetFetchRequestTopics(DataContainer):
            def __init__(self, *, name: str, partition_indexes: Sequence[int]) -> None: ...

        def __init__(
            self,
            *,
            group_id: str,
            topics: Sequence[OffsetFetchRequest.OffsetFetchRequestGroup.OffsetFetchRequestTopics] | None,
        ) -> None: ...

    def __init__(
        self,
        *,
        group_id: str = ...,
        topics: Sequence[OffsetFetchRequest.OffsetFetchRequestTopic] | None = ...,
        groups: Sequence[OffsetFetchRequest.OffsetFetchRequestGroup] = ...,
        require_stable: bool = ...,
        version: int | None = ...,
        min_version: int | None = ...,
        max_version: int | None = ...,
    ) -> None: ...
