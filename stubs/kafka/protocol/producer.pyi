from collections.abc import Sequence
from uuid import UUID

from kafka.protocol.api_message import ApiMessage, DataContainer

class InitProducerIdRequest(ApiMessage):
    def __init__(
        self,
        *,
        transactional_id: str | None = ...,
        transaction_timeout_ms: int = ...,
        producer_id: int = ...,
        producer_epoch: int = ...,
        enable2_pc: bool = ...,
        keep_prepared_txn: bool = ...,
        version: int | None = ...,
        min_version: int | None = ...,
        max_version: int | None = ...,
    ) -> None: ...

class AddPartitionsToTxnRequest(ApiMessage):
    class AddPartitionsToTxnTransaction(DataContainer):
        class AddPartitionsToTxnTopic(DataContainer):
            def __init__(self, *, name: str = ..., partitions: Sequence[int] = ...) -> None: ...

        def __init__(
            self,
            *,
            transactional_id: str = ...,
            producer_id: int = ...,
            producer_epoch: int = ...,
            verify_only: bool = ...,
            topics: Sequence[AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction.AddPartitionsToTxnTopic] = ...,
        ) -> None: ...

    class AddPartitionsToTxnTopic(DataContainer):
        def __init__(self, *, name: str = ..., partitions: Sequence[int] = ...) -> None: ...

    def __init__(
        self,
        *,
        transactions: Sequence[AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction] = ...,
        v3_and_below_transactional_id: str = ...,
        v3_and_below_producer_id: int = ...,
        v3_and_below_producer_epoch: int = ...,
        v3_and_below_topics: Sequence[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic] = ...,
        version: int | None = ...,
        min_version: int | None = ...,
        max_version: int | None = ...,
    ) -> None: ...

class EndTxnRequest(ApiMessage):
    def __init__(
        self,
        *,
        transactional_id: str = ...,
        producer_id: int = ...,
        producer_epoch: int = ...,
        committed: bool = ...,
        version: int | None = ...,
        min_version: int | None = ...,
        max_version: int | None = ...,
    ) -> None: ...

class WriteTxnMarkersRequest(ApiMessage):
    class WritableTxnMarker(DataContainer):
        class WritableTxnMarkerTopic(DataContainer):
            def __init__(self, *, name: str = ..., partition_indexes: Sequence[int] = ...) -> None: ...

        def __init__(
            self,
            *,
            producer_id: int = ...,
            producer_epoch: int = ...,
            transaction_result: bool = ...,
            topics: Sequence[WriteTxnMarkersRequest.WritableTxnMarker.WritableTxnMarkerTopic] = ...,
            coordinator_epoch: int = ...,
            transaction_version: int = ...,
        ) -> None: ...

    def __init__(
        self,
        *,
        markers: Sequence[WriteTxnMarkersRequest.WritableTxnMarker] = ...,
        version: int | None = ...,
        min_version: int | None = ...,
        max_version: int | None = ...,
    ) -> None: ...

class ProduceRequest(ApiMessage):
    class TopicProduceData(DataContainer):
        class PartitionProduceData(DataContainer):
            def __init__(self, *, index: int = ..., records: bytes | None = ...) -> None: ...

        def __init__(
            self,
            *,
            name: str = ...,
            topic_id: UUID = ...,
            partition_data: Sequence[ProduceRequest.TopicProduceData.PartitionProduceData] = ...,
        ) -> None: ...

    def __init__(
        self,
        *,
        transactional_id: str | None = ...,
        acks: int = ...,
        timeout_ms: int = ...,
        topic_data: Sequence[ProduceRequest.TopicProduceData] = ...,
        version: int | None = ...,
        min_version: int | None = ...,
        max_version: int | None = ...,
    ) -> None: ...
