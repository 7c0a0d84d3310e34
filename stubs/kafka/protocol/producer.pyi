from kafka.protocol.api_message import ApiMessage

class InitProducerIdRequest(ApiMessage):
    def __init__(
        self, *, transactional_id: str | None, transaction_timeout_ms: int, producer_id: int, producer_epoch: int
    ) -> None: ...
