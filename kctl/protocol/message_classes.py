"""Classes of messages that kafka-python lacks, from Kafka's definitions: JSON files beside the code that uses them."""

from __future__ import annotations

import types
from functools import cache
from typing import Any


def request_class(package: str, name: str) -> Any:
    """Return the class of the request `name`, e.g. "AddRaftVoter", from NameRequest.json and NameResponse.json."""
    return _classes(package, name)[0]


@cache
def _classes(package: str, name: str) -> tuple[Any, Any]:
    """Return both classes. kafka-python finds a response by its API key, in a registry of weak references."""
    from kafka.protocol.api_message import ApiMessage

    request, response = (
        types.new_class(f"{name}{kind}", (ApiMessage,), {"load_json": package}) for kind in ("Request", "Response")
    )
    return request, response
