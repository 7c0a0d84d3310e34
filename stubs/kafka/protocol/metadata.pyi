from collections.abc import Sequence
from typing import Any

from kafka.protocol.api_message import ApiMessage, DataContainer

class ApiVersionsRequest(ApiMessage):
    def __init__(
        self, *, client_software_name: str = ..., client_software_version: str = ..., version: int | None = ...
    ) -> None: ...

class FindCoordinatorRequest(ApiMessage):
    def __init__(
        self,
        *,
        key: str = ...,
        key_type: int = ...,
        coordinator_keys: Sequence[str] = ...,
        version: int | None = ...,
        min_version: int | None = ...,
        max_version: int | None = ...,
    ) -> None: ...

class MetadataRequest(ApiMessage):
    class MetadataRequestTopic(DataContainer):
        def __init__(self, *, topic_id: object = ..., name: str | None = ...) -> None: ...

    def __init__(
        self,
        *,
        topics: Sequence[MetadataRequest.MetadataRequestTopic] | None = ...,
        allow_auto_topic_creation: bool = ...,
        include_topic_authorized_operations: bool = ...,
        version: int | None = ...,
        min_version: int | None = ...,
        max_version: int | None = ...,
    ) -> None: ...

class MetadataResponse(ApiMessage):
    MetadataResponseBroker: Any
    MetadataResponseTopic: Any
    def __init__(self, **fields: Any) -> None: ...
