from typing import Any

class DataContainer:
    version: int | None
    def to_dict(self, meta: bool | str = ..., json: bool = ...) -> dict[str, Any]: ...

class ApiMessage(DataContainer):
    """Requests. Responses are Any: their fields depend on the version."""

    name: str
    API_KEY: int
    API_VERSION: int | None
    min_version: int
    max_version: int
    header: Any
    def with_header(self, correlation_id: int = ..., client_id: str = ...) -> None: ...
    def encode(self, version: int | None = ..., header: bool = ..., framed: bool = ...) -> bytes: ...
    @classmethod
    def flexible_version_q(cls, version: int) -> bool: ...
    @classmethod
    def decode(
        cls, data: bytes | memoryview, version: int | None = ..., header: bool = ..., framed: bool = ...
    ) -> Any: ...
