from collections.abc import Iterator, Mapping
from typing import Any

class ValidationError(Exception):
    message: str

class Draft202012Validator:
    def __init__(self, schema: Mapping[str, Any]) -> None: ...
    @classmethod
    def check_schema(cls, schema: Mapping[str, Any]) -> None: ...
    def iter_errors(self, instance: object) -> Iterator[ValidationError]: ...
