"""The part that tests use."""

from typing import Any

class ConfigResourceType:
    BROKER: ConfigResourceType
    TOPIC: ConfigResourceType

class ConfigResource:
    def __init__(self, resource_type: ConfigResourceType, name: str, configs: dict[str, Any] | None = ...) -> None: ...
