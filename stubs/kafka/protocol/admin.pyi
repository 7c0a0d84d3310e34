from collections.abc import Sequence
from typing import Any
from uuid import UUID

from kafka.protocol.api_message import ApiMessage, DataContainer

class AlterPartitionReassignmentsRequest(ApiMessage):
    class ReassignableTopic(DataContainer):
        class ReassignablePartition(DataContainer):
            def __init__(self, *, partition_index: int, replicas: Sequence[int] | None) -> None: ...

        def __init__(
            self,
            *,
            name: str,
            partitions: Sequence[AlterPartitionReassignmentsRequest.ReassignableTopic.ReassignablePartition],
        ) -> None: ...

    def __init__(
        self,
        *,
        topics: Sequence[AlterPartitionReassignmentsRequest.ReassignableTopic],
        timeout_ms: int = ...,
        allow_replication_factor_change: bool = ...,
        version: int | None = ...,
        min_version: int | None = ...,
        max_version: int | None = ...,
    ) -> None: ...

class AlterReplicaLogDirsRequest(ApiMessage):
    class AlterReplicaLogDir(DataContainer):
        class AlterReplicaLogDirTopic(DataContainer):
            def __init__(self, *, name: str, partitions: Sequence[int]) -> None: ...

        def __init__(
            self, *, path: str, topics: Sequence[AlterReplicaLogDirsRequest.AlterReplicaLogDir.AlterReplicaLogDirTopic]
        ) -> None: ...

    def __init__(
        self,
        *,
        dirs: Sequence[AlterReplicaLogDirsRequest.AlterReplicaLogDir],
        version: int | None = ...,
        min_version: int | None = ...,
        max_version: int | None = ...,
    ) -> None: ...

class CreateAclsRequest(ApiMessage):
    class AclCreation(DataContainer):
        def __init__(
            self,
            *,
            resource_type: int = ...,
            resource_name: str = ...,
            resource_pattern_type: int = ...,
            principal: str = ...,
            host: str = ...,
            operation: int = ...,
            permission_type: int = ...,
        ) -> None: ...

    def __init__(
        self,
        *,
        creations: Sequence[CreateAclsRequest.AclCreation] = ...,
        version: int | None = ...,
        min_version: int | None = ...,
        max_version: int | None = ...,
    ) -> None: ...

class DeleteAclsRequest(ApiMessage):
    class DeleteAclsFilter(DataContainer):
        def __init__(
            self,
            *,
            resource_type_filter: int = ...,
            resource_name_filter: str | None = ...,
            pattern_type_filter: int = ...,
            principal_filter: str | None = ...,
            host_filter: str | None = ...,
            operation: int = ...,
            permission_type: int = ...,
        ) -> None: ...

    def __init__(
        self,
        *,
        filters: Sequence[DeleteAclsRequest.DeleteAclsFilter] = ...,
        version: int | None = ...,
        min_version: int | None = ...,
        max_version: int | None = ...,
    ) -> None: ...

class DescribeAclsRequest(ApiMessage):
    def __init__(
        self,
        *,
        resource_type_filter: int = ...,
        resource_name_filter: str | None = ...,
        pattern_type_filter: int = ...,
        principal_filter: str | None = ...,
        host_filter: str | None = ...,
        operation: int = ...,
        permission_type: int = ...,
        version: int | None = ...,
        min_version: int | None = ...,
        max_version: int | None = ...,
    ) -> None: ...

class AlterClientQuotasRequest(ApiMessage):
    class EntryData(DataContainer):
        class EntityData(DataContainer):
            def __init__(self, *, entity_type: str = ..., entity_name: str | None = ...) -> None: ...

        class OpData(DataContainer):
            def __init__(self, *, key: str = ..., value: float = ..., remove: bool = ...) -> None: ...

        def __init__(
            self,
            *,
            entity: Sequence[AlterClientQuotasRequest.EntryData.EntityData] = ...,
            ops: Sequence[AlterClientQuotasRequest.EntryData.OpData] = ...,
        ) -> None: ...

    def __init__(
        self,
        *,
        entries: Sequence[AlterClientQuotasRequest.EntryData] = ...,
        validate_only: bool = ...,
        version: int | None = ...,
        min_version: int | None = ...,
        max_version: int | None = ...,
    ) -> None: ...

class DescribeClientQuotasRequest(ApiMessage):
    class ComponentData(DataContainer):
        def __init__(self, *, entity_type: str = ..., match_type: int = ..., match: str | None = ...) -> None: ...

    def __init__(
        self,
        *,
        components: Sequence[DescribeClientQuotasRequest.ComponentData] = ...,
        strict: bool = ...,
        version: int | None = ...,
        min_version: int | None = ...,
        max_version: int | None = ...,
    ) -> None: ...

class AlterUserScramCredentialsRequest(ApiMessage):
    class ScramCredentialDeletion(DataContainer):
        def __init__(self, *, name: str = ..., mechanism: int = ...) -> None: ...

    class ScramCredentialUpsertion(DataContainer):
        def __init__(
            self,
            *,
            name: str = ...,
            mechanism: int = ...,
            iterations: int = ...,
            salt: bytes = ...,
            salted_password: bytes = ...,
        ) -> None: ...

    def __init__(
        self,
        *,
        deletions: Sequence[AlterUserScramCredentialsRequest.ScramCredentialDeletion] = ...,
        upsertions: Sequence[AlterUserScramCredentialsRequest.ScramCredentialUpsertion] = ...,
        version: int | None = ...,
        min_version: int | None = ...,
        max_version: int | None = ...,
    ) -> None: ...

class DescribeUserScramCredentialsRequest(ApiMessage):
    class UserName(DataContainer):
        def __init__(self, *, name: str = ...) -> None: ...

    def __init__(
        self,
        *,
        users: Sequence[DescribeUserScramCredentialsRequest.UserName] | None = ...,
        version: int | None = ...,
        min_version: int | None = ...,
        max_version: int | None = ...,
    ) -> None: ...

class ListTransactionsRequest(ApiMessage):
    def __init__(
        self,
        *,
        state_filters: Sequence[str] = ...,
        producer_id_filters: Sequence[int] = ...,
        duration_filter: int = ...,
        transactional_id_pattern: str | None = ...,
        version: int | None = ...,
        min_version: int | None = ...,
        max_version: int | None = ...,
    ) -> None: ...

class DescribeTransactionsRequest(ApiMessage):
    def __init__(
        self,
        *,
        transactional_ids: Sequence[str] = ...,
        version: int | None = ...,
        min_version: int | None = ...,
        max_version: int | None = ...,
    ) -> None: ...

class DescribeTopicPartitionsRequest(ApiMessage):
    class TopicRequest(DataContainer):
        def __init__(self, *, name: str = ...) -> None: ...

    class Cursor(DataContainer):
        def __init__(self, *, topic_name: str = ..., partition_index: int = ...) -> None: ...

    def __init__(
        self,
        *,
        topics: Sequence[DescribeTopicPartitionsRequest.TopicRequest] = ...,
        response_partition_limit: int = ...,
        cursor: DescribeTopicPartitionsRequest.Cursor | None = ...,
        version: int | None = ...,
        min_version: int | None = ...,
        max_version: int | None = ...,
    ) -> None: ...

class DescribeProducersRequest(ApiMessage):
    class TopicRequest(DataContainer):
        def __init__(self, *, name: str = ..., partition_indexes: Sequence[int] = ...) -> None: ...

    def __init__(
        self,
        *,
        topics: Sequence[DescribeProducersRequest.TopicRequest] = ...,
        version: int | None = ...,
        min_version: int | None = ...,
        max_version: int | None = ...,
    ) -> None: ...

class CreateTopicsRequest(ApiMessage):
    class CreatableTopic(DataContainer):
        class CreatableReplicaAssignment(DataContainer):
            def __init__(self, *, partition_index: int, broker_ids: Sequence[int]) -> None: ...

        class CreatableTopicConfig(DataContainer):
            def __init__(self, *, name: str, value: str | None) -> None: ...

        def __init__(
            self,
            *,
            name: str,
            num_partitions: int,
            replication_factor: int,
            assignments: Sequence[CreateTopicsRequest.CreatableTopic.CreatableReplicaAssignment],
            configs: Sequence[CreateTopicsRequest.CreatableTopic.CreatableTopicConfig],
        ) -> None: ...

    def __init__(
        self,
        *,
        topics: Sequence[CreateTopicsRequest.CreatableTopic],
        timeout_ms: int,
        validate_only: bool = ...,
        version: int | None = ...,
        min_version: int | None = ...,
        max_version: int | None = ...,
    ) -> None: ...

class DeleteTopicsRequest(ApiMessage):
    class DeleteTopicState(DataContainer):
        def __init__(self, *, name: str | None = ..., topic_id: UUID = ...) -> None: ...

    def __init__(
        self,
        *,
        topics: Sequence[DeleteTopicsRequest.DeleteTopicState] = ...,
        topic_names: Sequence[str] = ...,
        timeout_ms: int,
        version: int | None = ...,
        min_version: int | None = ...,
        max_version: int | None = ...,
    ) -> None: ...

class DescribeClusterRequest(ApiMessage):
    def __init__(
        self,
        *,
        include_cluster_authorized_operations: bool = ...,
        endpoint_type: int = ...,
        include_fenced_brokers: bool = ...,
        version: int | None = ...,
        min_version: int | None = ...,
        max_version: int | None = ...,
    ) -> None: ...

class DescribeQuorumRequest(ApiMessage):
    class TopicData(DataContainer):
        class PartitionData(DataContainer):
            def __init__(self, *, partition_index: int) -> None: ...

        def __init__(
            self, *, topic_name: str, partitions: Sequence[DescribeQuorumRequest.TopicData.PartitionData]
        ) -> None: ...

    def __init__(
        self,
        *,
        topics: Sequence[DescribeQuorumRequest.TopicData],
        version: int | None = ...,
        min_version: int | None = ...,
        max_version: int | None = ...,
    ) -> None: ...

class DescribeConfigsRequest(ApiMessage):
    class DescribeConfigsResource(DataContainer):
        def __init__(
            self, *, resource_type: int, resource_name: str, configuration_keys: Sequence[str] | None
        ) -> None: ...

    def __init__(
        self,
        *,
        resources: Sequence[DescribeConfigsRequest.DescribeConfigsResource],
        include_synonyms: bool = ...,
        include_documentation: bool = ...,
        version: int | None = ...,
        min_version: int | None = ...,
        max_version: int | None = ...,
    ) -> None: ...

class DescribeGroupsRequest(ApiMessage):
    def __init__(
        self,
        *,
        groups: Sequence[str],
        include_authorized_operations: bool = ...,
        version: int | None = ...,
        min_version: int | None = ...,
        max_version: int | None = ...,
    ) -> None: ...

class DescribeLogDirsRequest(ApiMessage):
    class DescribableLogDirTopic(DataContainer):
        def __init__(self, *, topic: str, partitions: Sequence[int]) -> None: ...

    def __init__(
        self,
        *,
        topics: Sequence[DescribeLogDirsRequest.DescribableLogDirTopic] | None,
        version: int | None = ...,
        min_version: int | None = ...,
        max_version: int | None = ...,
    ) -> None: ...

class ElectLeadersRequest(ApiMessage):
    class TopicPartitions(DataContainer):
        def __init__(self, *, topic: str, partitions: Sequence[int]) -> None: ...

    def __init__(
        self,
        *,
        election_type: int = ...,
        topic_partitions: Sequence[ElectLeadersRequest.TopicPartitions] | None,
        timeout_ms: int = ...,
        version: int | None = ...,
        min_version: int | None = ...,
        max_version: int | None = ...,
    ) -> None: ...

class IncrementalAlterConfigsRequest(ApiMessage):
    class AlterConfigsResource(DataContainer):
        class AlterableConfig(DataContainer):
            def __init__(self, *, name: str, config_operation: int, value: str | None) -> None: ...

        def __init__(
            self,
            *,
            resource_type: int,
            resource_name: str,
            configs: Sequence[IncrementalAlterConfigsRequest.AlterConfigsResource.AlterableConfig],
        ) -> None: ...

    def __init__(
        self,
        *,
        resources: Sequence[IncrementalAlterConfigsRequest.AlterConfigsResource],
        validate_only: bool = ...,
        version: int | None = ...,
        min_version: int | None = ...,
        max_version: int | None = ...,
    ) -> None: ...

class DeleteGroupsRequest(ApiMessage):
    def __init__(
        self,
        *,
        groups_names: Sequence[str],
        version: int | None = ...,
        min_version: int | None = ...,
        max_version: int | None = ...,
    ) -> None: ...

class ListGroupsRequest(ApiMessage):
    def __init__(
        self,
        *,
        states_filter: Sequence[str] = ...,
        types_filter: Sequence[str] = ...,
        version: int | None = ...,
        min_version: int | None = ...,
        max_version: int | None = ...,
    ) -> None: ...

class ListPartitionReassignmentsRequest(ApiMessage):
    class ListPartitionReassignmentsTopics(DataContainer):
        def __init__(self, *, name: str, partition_indexes: Sequence[int]) -> None: ...

    def __init__(
        self,
        *,
        topics: Sequence[ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics] | None,
        timeout_ms: int = ...,
        version: int | None = ...,
        min_version: int | None = ...,
        max_version: int | None = ...,
    ) -> None: ...

class DescribeLogDirsResponse(ApiMessage):
    DescribeLogDirsResult: Any
    def __init__(self, **fields: Any) -> None: ...

class ListPartitionReassignmentsResponse(ApiMessage):
    def __init__(self, **fields: Any) -> None: ...

class CreatePartitionsRequest(ApiMessage):
    class CreatePartitionsTopic(DataContainer):
        class CreatePartitionsAssignment(DataContainer):
            def __init__(self, *, broker_ids: Sequence[int]) -> None: ...

        def __init__(
            self,
            *,
            name: str,
            count: int | None,
            assignments: Sequence[CreatePartitionsRequest.CreatePartitionsTopic.CreatePartitionsAssignment] | None,
        ) -> None: ...

    def __init__(
        self,
        *,
        topics: Sequence[CreatePartitionsRequest.CreatePartitionsTopic],
        timeout_ms: int,
        validate_only: bool,
        version: int | None = ...,
        min_version: int | None = ...,
        max_version: int | None = ...,
    ) -> None: ...

class DeleteRecordsRequest(ApiMessage):
    class DeleteRecordsTopic(DataContainer):
        class DeleteRecordsPartition(DataContainer):
            def __init__(self, *, partition_index: int, offset: int) -> None: ...

        def __init__(
            self,
            *,
            name: str,
            partitions: Sequence[DeleteRecordsRequest.DeleteRecordsTopic.DeleteRecordsPartition],
        ) -> None: ...

    def __init__(
        self,
        *,
        topics: Sequence[DeleteRecordsRequest.DeleteRecordsTopic],
        timeout_ms: int,
        version: int | None = ...,
        min_version: int | None = ...,
        max_version: int | None = ...,
    ) -> None: ...

class UpdateFeaturesRequest(ApiMessage):
    class FeatureUpdateKey:
        def __init__(self, *, feature: str, max_version_level: int, upgrade_type: int = ...) -> None: ...

    def __init__(
        self,
        *,
        timeout_ms: int = ...,
        feature_updates: Sequence[UpdateFeaturesRequest.FeatureUpdateKey] = ...,
        validate_only: bool = ...,
        min_version: int = ...,
    ) -> None: ...
