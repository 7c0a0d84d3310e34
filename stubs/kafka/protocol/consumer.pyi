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

class FetchRequest(ApiMessage):
    class FetchTopic(DataContainer):
        class FetchPartition(DataContainer):
            def __init__(
                self,
                *,
                partition: int,
                current_leader_epoch: int = ...,
                fetch_offset: int,
                last_fetched_epoch: int = ...,
                log_start_offset: int = ...,
                partition_max_bytes: int,
            ) -> None: ...

        def __init__(self, *, topic: str, partitions: Sequence[FetchRequest.FetchTopic.FetchPartition]) -> None: ...

    class ForgottenTopic(DataContainer): ...

    def __init__(
        self,
        *,
        replica_id: int,
        max_wait_ms: int,
        min_bytes: int,
        max_bytes: int = ...,
        isolation_level: int = ...,
        session_id: int = ...,
        session_epoch: int = ...,
        topics: Sequence[FetchRequest.FetchTopic],
        forgotten_topics_data: Sequence[FetchRequest.ForgottenTopic] = ...,
        rack_id: str = ...,
        version: int | None = ...,
        min_version: int | None = ...,
        max_version: int | None = ...,
    ) -> None: ...

class OffsetCommitRequest(ApiMessage):
    class OffsetCommitRequestTopic(DataContainer):
        class OffsetCommitRequestPartition(DataContainer):
            def __init__(
                self,
                *,
                partition_index: int,
                committed_offset: int,
                committed_leader_epoch: int = ...,
                committed_metadata: str | None,
            ) -> None: ...

        def __init__(
            self,
            *,
            name: str,
            partitions: Sequence[OffsetCommitRequest.OffsetCommitRequestTopic.OffsetCommitRequestPartition],
        ) -> None: ...

    def __init__(
        self,
        *,
        group_id: str,
        generation_id_or_member_epoch: int = ...,
        member_id: str = ...,
        group_instance_id: str | None = ...,
        retention_time_ms: int = ...,
        topics: Sequence[OffsetCommitRequest.OffsetCommitRequestTopic],
        version: int | None = ...,
        min_version: int | None = ...,
        max_version: int | None = ...,
    ) -> None: ...

class OffsetDeleteRequest(ApiMessage):
    class OffsetDeleteRequestTopic(DataContainer):
        class OffsetDeleteRequestPartition(DataContainer):
            def __init__(self, *, partition_index: int) -> None: ...

        def __init__(
            self,
            *,
            name: str,
            partitions: Sequence[OffsetDeleteRequest.OffsetDeleteRequestTopic.OffsetDeleteRequestPartition],
        ) -> None: ...

    def __init__(
        self,
        *,
        group_id: str,
        topics: Sequence[OffsetDeleteRequest.OffsetDeleteRequestTopic],
        version: int | None = ...,
        min_version: int | None = ...,
        max_version: int | None = ...,
    ) -> None: ...

class LeaveGroupRequest(ApiMessage):
    class MemberIdentity(DataContainer):
        def __init__(
            self, *, member_id: str, group_instance_id: str | None = ..., reason: str | None = ...
        ) -> None: ...

    def __init__(
        self,
        *,
        group_id: str,
        member_id: str = ...,
        members: Sequence[LeaveGroupRequest.MemberIdentity] = ...,
        version: int | None = ...,
        min_version: int | None = ...,
        max_version: int | None = ...,
    ) -> None: ...
